"""The catalogue of metrics as Markdown, from the registry."""

from __future__ import annotations

from itertools import groupby

from uq_tracking.metrics.registry import Metric
from uq_tracking.plugins import metrics
from uq_tracking.tables.model import better_text
from uq_tracking.testing.examples import example_score

QUESTIONS = {
    "accuracy": "Are the predictions right?",
    "scoring": "Is the whole predictive distribution good?",
    "calibration": "Does the stated uncertainty come true?",
    "ranking": "Does the uncertainty tell large errors from small ones?",
    "spread": "How large and how varied are the uncertainties?",
}
TASKS = {"regression": "Means and standard deviations", "classification": "Class probabilities"}

HEAD = """# Every metric

Written by `docs/generate.py` from the registry; `uq-tracking metrics KEY` shows the same.

Notation: target y, predictive mean mu and standard deviation s, error e = y - mu, z = e / s, Q the quantile function
of the standardised predictive distribution. The priors (Gaussian, Laplace, uniform) have the predicted mean and
standard deviation. *Better* is lower, higher, a target value, or nothing where the number describes without judging.
The example is the value on the small data set of `uq_tracking.testing.examples`.

Conventions, where sources differ or are silent:

- Samples with equal s (or equal |e|) have no order: cumulative sums are linear inside a tie, so nothing depends on the
  order of the rows.
- With s = 0 the prediction is a point mass. Coverage, calibration, CRPS (= |e|), interval and pinball scores and all
  rankings stay defined; log, quadratic and spherical scores and moments of z have no value unless `std_floor=` is given.
- `n_merci` has no value where the error's percentile is not above its mean: its scale would run backwards (very heavy
  tails, or small `alpha`).
- `ence` and `uce` have no value for fewer samples than bins. `mce` looks at bins that hold samples. `miou` averages the
  classes that occur among labels or predictions. Bins of the top probability are closed below, the last one on both sides.
- `family=` declares the predicted distribution, by default Gaussian: coverage, calibration, PIT and all proper scores are
  those of it. Keys that end in `_gaussian`, `_laplace` or `_uniform` score a prior with the same mean and standard
  deviation instead (what if?). A Student t with `dof` of 2 or less has no standard deviation: predictions are read as
  location and scale, and whatever needs a variance has no value.
"""


def catalogue() -> str:
    """The whole page."""
    sections = [HEAD]
    for task, title in TASKS.items():
        sections.append(f"# {title}\n")
        ours = [m for m in metrics(task).values() if m.function.__module__.startswith("uq_tracking.")]
        for family, members in groupby(ours, key=lambda metric: metric.family):
            sections.append(f"## {QUESTIONS[family]}\n")
            sections.append(
                "| key | unit | better | meaning | formula | source | example |\n|---|---|---|---|---|---|---|"
            )
            sections.extend(row(metric) for metric in members)
            sections.append("")
    return "\n".join(sections)


def row(metric: Metric) -> str:
    """One line of the table."""
    example = "" if metric.needs else f"{example_score(metric.key, metric.task):g}"
    cells = (
        f"`{metric.key}`",
        metric.unit,
        better_text(metric),
        metric.summary,
        metric.formula,
        metric.source,
        example,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
