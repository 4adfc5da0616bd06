"""Measure us and the peers side by side and write docs/benchmarks.md with its plot.

    python benchmarks/run.py           # up to 10^7, under ten minutes
    python benchmarks/run.py --full    # 10^8 and the slowest peers too

The numbers are kept in docs/benchmarks.json, and what got slower by more than a tenth since the last time is named.

Every job runs in a fresh process; medians; the ratio to `numpy.argsort` of one array in the same round is what to
compare, since machines differ and drift.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from classes import classes_page
from draws import draws_page
from everyday import everyday_page
from everyday import measure as measure_everyday
from jobs import in_process
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from parts import parts_page
from scaling import scaling_page

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"

SIZES = [10**5, 10**6, 10**7, 10**8]
RUNS = {10**5: 7, 10**6: 5, 10**7: 3, 10**8: 1}
SLOWER = 1.1
"""Ratio to the last measurement above which a job is named."""
ONLY_FULL = {"toolbox_all"}
LARGEST = {  # beyond this a job takes minutes or does not fit
    "toolbox_all": 10**5,
    "toolbox_area": 10**7,
    "torch_uncertainty_ause": 10**7,
    "netcal_ence": 10**7,
    "scoringrules_crps": 10**7,
    "scipy_spearman": 10**7,
    "np_argsort": 10**8,
    "np_argsort_plain": 10**8,
    "np_sort": 10**7,
    "suite_exact": 10**8,
    "suite_float64": 10**7,
    "suite_sketch": 10**8,
    "ause_alone": 10**7,
    "stream": 10**8,
}
LABELS = {
    "np_sort": "numpy sort",
    "np_argsort": "numpy argsort",
    "np_argsort_plain": "numpy argsort, without SIMD",
    "suite_exact": "uq_tracking, whole suite, exact",
    "suite_float64": "uq_tracking, whole suite, exact, float64",
    "suite_sketch": "uq_tracking, whole suite, sketch",
    "stream": "uq_tracking, Accumulator in blocks of 2^20",
    "ause_alone": "uq_tracking, AUSE alone",
    "toolbox_all": "uncertainty-toolbox get_all_metrics",
    "toolbox_area": "uncertainty-toolbox miscalibration area",
    "torch_uncertainty_ause": "torch-uncertainty AUSE (transcribed)",
    "netcal_ence": "netcal ENCE",
    "scoringrules_crps": "scoringrules CRPS",
    "scipy_spearman": "scipy spearmanr",
}

OURS, PEER, YARD = "#0072b2", "#d55e00", "#8a8a8a"


def measure(job: str, n: int, runs: int) -> dict[str, float]:
    """Median seconds and extra megabytes at peak."""
    found = [in_process(job, n) for _ in range(runs)]
    return {key: statistics.median(one[key] for one in found) for key in ("seconds", "extra_mb")}


def table(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """Seconds / extra megabytes / ratios to both argsorts, per size."""
    sizes = sorted({n for by_size in found.values() for n in by_size}, key=int)
    head = "| job | " + " | ".join(f"10^{len(n) - 1}" for n in sizes) + " |\n|---|" + "---|" * len(sizes)
    lines = [head]
    for job, by_size in found.items():
        cells = []
        for n in sizes:
            if n not in by_size:
                cells.append("-")
                continue
            one = by_size[n]
            fast, plain = (
                one["seconds"] / found[yard][n]["seconds"] for yard in ("np_argsort", "np_argsort_plain")
            )
            cells.append(f"{one['seconds']:.3g} s, {one['extra_mb']:.0f} MB, {fast:.2g} x ({plain:.2g} x)")
        lines.append(f"| {LABELS[job]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def streamed(by_size: dict[str, dict[str, float]]) -> str:
    """What a streamed sample costs, by the length of the stream."""
    costs = [f"{one['seconds'] / int(n) * 1e9:.0f} ns at 10^{len(n) - 1}" for n, one in by_size.items()]
    return f"Time per sample streamed through an `Accumulator`, report included: {', '.join(costs)}.\n"


def plot(found: dict[str, dict[str, dict[str, float]]], path: Path) -> None:
    """Seconds of every job, a dot per number of samples; the slowest at 10^7 above."""
    jobs = sorted(found, key=lambda job: list(found[job].values())[-1]["seconds"])
    figure = Figure(figsize=(8.5, 5.2), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    sizes = sorted({int(n) for by_size in found.values() for n in by_size})
    for place, job in enumerate(jobs):
        color = (
            OURS if job.startswith(("suite", "ause", "stream")) else YARD if job.startswith("np_") else PEER
        )
        seconds = [one["seconds"] for one in found[job].values()]
        axes.plot(seconds, [place] * len(seconds), color=color, alpha=0.4)
        for n, value in zip(found[job], seconds, strict=True):
            shade = 0.35 + 0.65 * sizes.index(int(n)) / (len(sizes) - 1)
            axes.plot(value, place, "o", color=color, alpha=shade, markersize=8, markeredgewidth=0)
        axes.annotate(
            f"{seconds[-1]:#.2g} s", (seconds[-1], place), (8, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(range(len(jobs)), [LABELS[job] for job in jobs])
    for label, job in zip(axes.get_yticklabels(), jobs, strict=True):
        is_ours = job.startswith(("suite", "ause", "stream"))
        label.set(color=OURS if is_ours else "black", fontweight="bold" if is_ours else "normal")
    axes.set(xscale="log", xlabel="seconds (logarithmic)")
    axes.set_title(
        "Seconds for " + ", ".join(f"10^{len(str(n)) - 1}" for n in sizes) + " samples (pale to dark)",
        loc="left",
    )
    axes.margins(x=0.1)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, metadata={"Software": None})


HEAD = """# Speed and memory

Written by `make bench`. Input is float32 and each job runs in a fresh process. Cells give medians: seconds, extra
memory at peak, and the ratio to `numpy.argsort` of one array in the same round. Machines differ, so compare ratios.
numpy 2 sorts several times faster on processors with AVX2 or AVX-512; the ratio in brackets is to numpy's sort
without them (`NPY_DISABLE_CPU_FEATURES`), as on other processors and in older versions.

torch-uncertainty is not installed here (it requires torchvision); its AUSE is transcribed as two argsorts and running
sums in torch.

![Seconds of every job: ours in blue, other libraries in orange, sorting alone in gray](images/benchmarks.png)

"""


def flat(numbers: dict[str, Any]) -> dict[str, float]:
    """What is compared over time: ratios to argsort, and to the tracker's own cost."""
    made = {
        f"{job} at 10^{len(n) - 1}": one["seconds"] / numbers["jobs"]["np_argsort"][n]["seconds"]
        for job, by_size in numbers["jobs"].items()
        for n, one in by_size.items()
        if not job.startswith("np_")
    }
    return made | {key: one["ratio"] for key, one in numbers["everyday"].items() if "ratio" in one}


def slower(now: dict[str, Any], last: dict[str, Any]) -> list[str]:
    """Names of what takes over a tenth longer than the last time, with both ratios."""
    new, old = flat(now), flat(last)
    return [
        f"{name}: {old[name]:.2f} -> {new[name]:.2f}"
        for name in new.keys() & old.keys()
        if new[name] > SLOWER * old[name]
    ]


def main(full: bool) -> None:
    sizes = SIZES if full else SIZES[:-1]
    found: dict[str, dict[str, dict[str, float]]] = {}
    for job in [job for job in LABELS if full or job not in ONLY_FULL]:
        for n in [n for n in sizes if n <= LARGEST[job]]:
            runs = 1 if job == "toolbox_all" else RUNS[n]
            found.setdefault(job, {})[str(n)] = measure(job, n, runs)
            print(f"{LABELS[job]:45} {n:>11,} {found[job][str(n)]['seconds']:9.3f} s", flush=True)
    numbers = {"jobs": found, "everyday": measure_everyday()}
    kept = DOCS / "benchmarks.json"
    last = json.loads(kept.read_text()) if kept.exists() else None
    kept.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    (DOCS / "images").mkdir(exist_ok=True)
    plot(found, DOCS / "images" / "benchmarks.png")
    sections = [
        HEAD + table(found) + "\n", streamed(found["stream"]), everyday_page(numbers["everyday"]),
        draws_page(), classes_page(full=full), scaling_page(), parts_page(),
    ]  # fmt: skip
    (DOCS / "benchmarks.md").write_text("\n".join(sections), encoding="utf-8")
    for line in slower(numbers, last) if last else []:
        print(f"slower than the last time: {line}")


if __name__ == "__main__":
    main("--full" in sys.argv)
