"""What a user does first, on every tracker and every input: a script that needs the package and its extras alone.

python tests/smoke.py                # everything
python tests/smoke.py mlflow cli     # these

Every part logs the same predictions, reads them back through the tracker, and must find the same scores. It runs in
environments without test tools, and shows there whether the installed versions work together.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import uq_tracking as uq
from uq_tracking.tracking.names import scalar_name

RNG = np.random.default_rng(0)
STD = RNG.uniform(0.2, 1.0, size=(3, 20, 30))
TRUTH = RNG.normal(size=STD.shape)
MEAN = TRUTH + STD * RNG.standard_normal(STD.shape)
REPORT = uq.evaluate(TRUTH, MEAN, STD)

PARTS: dict[str, Callable[[], None]] = {}


def part(check: Callable[[], None]) -> Callable[[], None]:
    PARTS[check.__name__] = check
    return check


class SmokeError(Exception):
    """Something that must hold does not."""


def same(
    found: dict[str, float], expected: dict[str, float] = REPORT.scores, tolerance: float = 1e-12
) -> None:
    """Require the same scores by the same names."""
    if found.keys() != expected.keys():
        raise SmokeError(f"scores differ by name: {sorted(found.keys() ^ expected.keys())}")
    wrong = [key for key in expected if not np.isclose(found[key], expected[key], rtol=tolerance, atol=1e-12)]
    if wrong:
        raise SmokeError(f"scores differ: { {key: (found[key], expected[key]) for key in wrong} }")


def read_back(address: str) -> None:
    """Require one run at the address, with these scores; then score it again with another setting."""
    (run,) = uq.compare(address).runs
    same(dict(run.report.scores))
    summary = uq.rescore(address, alpha=0.8)
    if [outcome.status for outcome in summary.outcomes] != ["done"]:
        raise SmokeError(f"{address} was not rescored: {summary}")
    (run,) = uq.compare(address).runs
    same(dict(run.report.scores), uq.evaluate(TRUTH, MEAN, STD, alpha=0.8).scores)


def command(*arguments: str) -> str:
    """Run the installed command, and return what it prints."""
    program = Path(sys.executable).with_name("uq-tracking")
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SmokeError(
            f"uq-tracking {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}"
        )
    return done.stdout


@part
def folder() -> None:
    uq.log(TRUTH, MEAN, STD, run="dir:runs", method="m", strict=True)
    if not list(Path("runs").rglob("uq_*.png")):
        raise SmokeError("no figure was drawn")
    read_back("dir:runs")


@part
def mlflow() -> None:
    import mlflow

    mlflow.set_tracking_uri("sqlite:///mlflow.db")
    mlflow.set_experiment("smoke")
    with mlflow.start_run():
        uq.log(TRUTH, MEAN, STD, method="m", strict=True)
    read_back("mlflow:smoke")


@part
def evaluator() -> None:
    import mlflow
    import pandas as pd

    mlflow.set_tracking_uri("sqlite:///evaluator.db")
    mlflow.set_experiment("evaluated")
    frame = pd.DataFrame({"x": MEAN.ravel(), "y": TRUTH.ravel(), "mean": MEAN.ravel(), "std": STD.ravel()})
    result = mlflow.models.evaluate(
        data=frame,
        targets="y",
        predictions="mean",
        model_type="regressor",
        evaluators=["uq"],
        evaluator_config={"uq": {"std_col": "std", "strict": True, "scores": "all"}},
    )
    same({key: result.metrics[scalar_name(key)] for key in REPORT.scores})


@part
def wandb() -> None:
    import wandb

    os.environ["WANDB_DATA_DIR"] = str(Path("wandb-data").resolve())
    with wandb.init(project="smoke", mode="offline", settings=wandb.Settings(silent=True)):
        uq.log(TRUTH, MEAN, STD, method="m", strict=True)
    read_back("wandb-offline:wandb")


@part
def tensorboard() -> None:
    uq.log(TRUTH, MEAN, STD, run="tensorboard:events", method="m", strict=True)
    read_back("tensorboard:events")


@part
def dask() -> None:
    import dask.array as da
    import distributed

    lazy = [da.from_array(values, chunks=(1, 20, 30)) for values in (TRUTH, MEAN, STD)]
    same(dict(uq.evaluate(*lazy).scores), tolerance=1e-9)
    with distributed.Client(processes=False, dashboard_address=None, n_workers=1, threads_per_worker=1):
        same(dict(uq.evaluate(*lazy).scores), tolerance=1e-9)


@part
def torch() -> None:
    import torch

    tensors = [torch.from_numpy(values) for values in (TRUTH, MEAN, STD)]
    same(dict(uq.evaluate(*tensors).scores))
    sketch = uq.Accumulator()
    for batch in zip(*tensors, strict=True):
        sketch.update(*batch)
    found = sketch.compute().scores
    for key in ("crps", "nll", "rmse"):
        if not np.isclose(found[key], REPORT.scores[key], rtol=1e-6):
            raise SmokeError(f"{key} of streamed tensors is {found[key]}, not {REPORT.scores[key]}")


@part
def files() -> None:
    """Every kind of file, through the command line."""
    import pandas as pd
    import zarr

    columns = {"target": TRUTH.ravel(), "mean": MEAN.ravel(), "std": STD.ravel()}
    np.savez("p.npz", **columns)
    pd.DataFrame(columns).to_csv("p.csv", index=False)
    pd.DataFrame(columns).to_parquet("p.parquet")
    group = zarr.open_group("p.zarr", mode="w")
    for name, values in columns.items():
        group[name] = values
    for name in ("p.npz", "p.csv", "p.parquet", "p.zarr"):
        command("log", name, "--to", f"dir:of-{name}", "--method", "m", "--no-figures")
        (run,) = uq.compare(f"dir:of-{name}").runs
        same(dict(run.report.scores))


@part
def cli() -> None:
    """Every command explains itself, and those that read runs show them."""
    import typer
    from typer.testing import CliRunner

    from uq_tracking.cli import app

    names = sorted(typer.main.get_group(app).commands)
    if not {"log", "compare", "rescore", "metrics", "backends"} <= set(names):
        raise SmokeError(f"the command line offers only {names}")
    for arguments in ([], *([name] for name in names)):
        done = CliRunner().invoke(app, [*arguments, "--help"])
        if done.exit_code:
            raise SmokeError(f"{arguments} --help ended with {done.exit_code}: {done.exception!r}")
    uq.log(TRUTH, MEAN, STD, run="dir:listed", method="dropout", strict=True)
    shown = {name: command(name, *options) for name, options in LISTINGS.items()}
    missing = [name for name, word in WORDS.items() if word not in shown[name]]
    if missing:
        raise SmokeError(f"not shown by {missing}: {shown}")
    command("compare", "dir:listed", "--output", "page.html")
    if "dropout" not in Path("page.html").read_text(encoding="utf-8"):
        raise SmokeError("the page does not name the method")


LISTINGS = {"metrics": [], "backends": [], "compare": ["dir:listed", "--format", "csv"]}
WORDS = {"metrics": "crps", "backends": "mlflow", "compare": "dropout"}


@part
def demo() -> None:
    """The models of the demonstration need scikit-learn."""
    from sklearn.gaussian_process import GaussianProcessRegressor

    from uq_tracking.frameworks.sklearn import predict

    x = TRUTH.reshape(-1, 1)[:50]
    mean, std = predict(GaussianProcessRegressor(alpha=0.1).fit(x, x[:, 0]), x)
    if not (std > 0).all() or mean.shape != (50,):
        raise SmokeError("a Gaussian process predicts no standard deviations")


def attempt(check: Callable[[], None]) -> str | None:
    """Run a part in a folder of its own; return what went wrong."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, warnings.catch_warnings():
        warnings.simplefilter("error", uq.errors.TrackingWarning)
        os.chdir(place)
        try:
            check()
        except Exception:
            return traceback.format_exc()
        finally:
            os.chdir(home)
    return None


def main(names: list[str]) -> int:
    failed = []
    for name in names or PARTS:
        start = time.perf_counter()
        problem = attempt(PARTS[name])
        print(f"{name:12} {'FAILED' if problem else 'ok':6} {time.perf_counter() - start:6.1f} s", flush=True)
        if problem:
            print(problem)
            failed.append(name)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
