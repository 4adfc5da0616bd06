"""The catalogue of metrics as Markdown, from the registry."""

from __future__ import annotations

from itertools import groupby

from uq_tracking.metrics.registry import Metric
from uq_tracking.plugins import metrics
from uq_tracking.tables import better_text
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

Notation: target y, predictive mean mu and standard deviation s, error e = y - mu, z = e / s, and Q, the quantile function
of the standardized predictive distribution. The priors (Gaussian, Laplace, uniform) have the predicted mean and
standard deviation. *Better* is lower, higher, or a target value; it is empty for purely descriptive numbers.
The example is the value on the small dataset of `uq_tracking.testing.examples`.

Conventions, where sources differ or are silent:

- Samples with equal s (or equal |e|) have no order: cumulative sums are linear within a tie, so nothing depends on the
  order of the rows.
- With s = 0, the prediction is a point mass. Coverage, calibration, CRPS (= |e|), interval and pinball scores and all
  rankings remain defined; log, quadratic and spherical scores and moments of z have no value unless `std_floor=` is set.
- `n_merci` has no value if the error's percentile is not above its mean (very heavy tails, or small `alpha`), because its
  scale would run backward.
- `ence` and `uce` have no value for fewer samples than bins. `mce` considers only non-empty bins. `miou` averages over the
  classes that occur among labels or predictions. Bins of the top probability are closed below, the last one on both sides.
- `family=` declares the predicted distribution, Gaussian by default, which coverage, calibration, PIT and all proper
  scores then use. Keys that end in `_gaussian`, `_laplace` or `_uniform` instead score a prior with the same mean and
  standard deviation (what if?). A Student t with `dof` of 2 or less has no standard deviation: predictions are read as
  location and scale, and anything that needs a variance has no value.
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
