"""One job in a process of its own: `python benchmarks/jobs.py JOB N` prints seconds and peak memory as JSON.

The data are float32: gamma-distributed standard deviations, normal errors of that size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath as multiarray

os.environ["UQ_TRACKING_PLUGINS"] = "mlflow,wandb,tensorboard"
"""What the wheel brings; the examples beside it, where they are installed, bring metrics and figures of their own."""

Array = Any
Job = Callable[[], Callable[[Array, Array, Array], object]]


def data(n: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    s = rng.standard_gamma(3, n, dtype=np.float32)
    mu = rng.standard_normal(n, dtype=np.float32)
    return mu + s * rng.standard_normal(n, dtype=np.float32), mu, s


def np_sort() -> Callable[[Array, Array, Array], object]:
    return lambda y, mu, s: np.sort(s)


def np_argsort() -> Callable[[Array, Array, Array], object]:
    return lambda y, mu, s: np.argsort(s)


def np_argsort_plain() -> Callable[[Array, Array, Array], object]:
    """The same on a processor without SIMD instructions for sorting; see ``in_process``."""
    return np_argsort()


def suite_exact() -> Callable[[Array, Array, Array], object]:
    import uq_tracking as uq

    return lambda y, mu, s: uq.evaluate(y, mu, s, statistics="exact")


def suite_float64() -> Callable[[Array, Array, Array], object]:
    return suite_exact()


def suite_sketch() -> Callable[[Array, Array, Array], object]:
    import uq_tracking as uq

    return lambda y, mu, s: uq.evaluate(y, mu, s, statistics="sketch")


def ause_alone() -> Callable[[Array, Array, Array], object]:
    import uq_tracking as uq

    return lambda y, mu, s: uq.evaluate(y, mu, s, metrics=["ause_rmse"], statistics="sketch").scores


def stream() -> Callable[[Array, Array, Array], object]:
    import uq_tracking as uq

    def run(y: Array, mu: Array, s: Array) -> object:
        acc = uq.Accumulator()
        for at in range(0, len(y), 1 << 20):
            part = slice(at, at + (1 << 20))
            acc.update(y[part], mu[part], s[part])
        return acc.compute()

    return run


def toolbox_all() -> Callable[[Array, Array, Array], object]:
    import uncertainty_toolbox as uct

    return lambda y, mu, s: uct.get_all_metrics(mu, s, y, verbose=False)


def toolbox_area() -> Callable[[Array, Array, Array], object]:
    import uncertainty_toolbox as uct

    return lambda y, mu, s: uct.miscalibration_area(mu, s, y, vectorized=True)


def torch_uncertainty_ause() -> Callable[[Array, Array, Array], object]:
    """What its AUSE metric computes: two argsorts and running sums of the errors, in torch."""
    import torch

    def rejection(scores: Any, errors: Any) -> Any:
        ordered = errors[scores.argsort()]
        rates = torch.zeros(len(scores) + 1)
        rates[1:] = ordered.cumsum(0) / torch.arange(1, len(scores) + 1)
        return rates

    def run(y: Array, mu: Array, s: Array) -> object:
        scores, errors = torch.from_numpy(s), (torch.from_numpy(y) - torch.from_numpy(mu)).abs()
        gap = rejection(scores, errors) - rejection(errors, errors)
        return float(torch.trapezoid(gap, dx=1 / len(s)))

    return run


def netcal_ence() -> Callable[[Array, Array, Array], object]:
    from netcal.metrics import ENCE

    return lambda y, mu, s: ENCE(bins=10).measure((mu, s), y)


def scoringrules_crps() -> Callable[[Array, Array, Array], object]:
    import scoringrules

    return lambda y, mu, s: scoringrules.crps_normal(y, mu, s).mean()


def scipy_spearman() -> Callable[[Array, Array, Array], object]:
    from scipy import stats

    return lambda y, mu, s: stats.spearmanr(s, np.abs(y - mu)).statistic


JOBS: dict[str, Job] = {
    name: job
    for name, job in list(globals().items())
    if callable(job) and getattr(job, "__module__", "") == __name__ and name not in ("data", "Job")
}


def in_process(job: str, n: int) -> dict[str, float]:
    """Seconds and extra megabytes of a job in a process of its own."""
    environment = dict(os.environ)
    if job == "np_argsort_plain":
        environment["NPY_DISABLE_CPU_FEATURES"] = " ".join(
            name for name in multiarray.__cpu_dispatch__ if multiarray.__cpu_features__[name]
        )
    command = [sys.executable, __file__, job, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def start_peak() -> int:
    """Forget the peak so far, a parent's included, and return the bytes in memory now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """The most bytes this process had in memory (Linux)."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def main(name: str, n: int) -> None:
    y, mu, s = (array.astype(np.float64 if name.endswith("float64") else np.float32) for array in data(n))
    run = JOBS[name]()
    run(y[:1000], mu[:1000], s[:1000])  # imports and first-call costs are not the job's
    before = start_peak()
    start = time.perf_counter()
    run(y, mu, s)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "extra_mb": (peak() - before) / 1e6}))


if __name__ == "__main__":
    main(sys.argv[1], int(float(sys.argv[2])))
