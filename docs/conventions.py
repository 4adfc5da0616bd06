"""The page of conventions: which library computes which reading of a score's name, from ``conformance/registry.json``.

Its last section, on agreement, is written by `agreement.py`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

CONFORMANCE = Path(__file__).parents[1] / "conformance"
PAGE = Path(__file__).parent / "conventions.md"
AGREEMENT = "## Agreement with other libraries\n"

HEAD = """# Conventions: which calibration error is this?

Two libraries rarely mean the same number by one name. The tables below say which reading of a score a function follows, and **ours** marks
that of `uq_tracking`. Ask the same of any function, yours too:

```
uq-tracking audit sklearn.metrics:brier_score_loss --score brier
brier of event: follows "the event alone" in 6 data sets
```

In your own tests:

```python
from uq_tracking.testing import conformance

(found,) = conformance.audit(my_log_loss, "nll", kind="event")
assert found.follows[0].facts["unit"] == "nats"
```

Each row was run over the golden data of `conformance/`: {sets} small data sets with ties, edges, certain forecasts, rare events, weights,
draws and quantiles, and the exact value of {readings} readings of {scores} scores. They are JSON and CSV in `conformance/golden`;
`python conformance/generate.py` writes them again, without any code of the package, `python conformance/peers.py` runs the libraries, and
`docs/generate.py conventions` writes this page. [Largest differences](#agreement-with-other-libraries) stand at the end.

Versions: {versions}.

"""

CASES = """## Why yours differs

Most often by the bins: of equal width instead of equal count, 15 instead of 10, weighted by their counts or not, ties in the order of the
rows. An ENCE also differs if it compares the RMSE of a bin with its mean std instead of the root of its mean variance. Ask which reading
yours follows; `my_ence(y, mean, std)` returns a number:

```
uq-tracking audit my_module:my_ence --score ence --kind normal
```

## Where numbers part

- **Which event?** Of two classes, the calibration error of the event and that of the top label differ: a model that states .2
  where .4 is true and .8 where 1 is has an `ece` of .2 by the event, and almost 0 by the top label.
- **A value on an edge.** `[low, high)` and `(low, high]` put it into different bins. numpy's `linspace(0, 1, 11)[3]` is
  0.30000000000000004, so that .3 falls below the edge it is meant to be; torch rounds other edges. We compare with `b / bins`.
- **torchmetrics: ECE.** With `n_bins=10`, `binary_calibration_error` and `multiclass_calibration_error` are our `ece` of [an
  event](#ece-of-event) and of [more classes](#ece-of-classes), but for values on an edge; their default is 15 bins. Probabilities of exactly 1 fall into a bin of their own beyond the last.
- **MAPIE: one bin less.** `num_bins` is used as the number of edges: 10 makes 9 bins, and the default of 50 makes 49; the value 0
  has a bin of its own.
- **netcal: `ACE`** is the mean gap of bins of equal *width*; elsewhere adaptive means bins of equal *count*. Its `ENCE` has bins of
  equal width in the std, its `UCE` in the variance.
- **netcal: `PinballLoss`** takes an end of the central interval of level q for the quantile of level q.
- **scoringrules: `weighted_interval_score`** (backend numpy) adds the median itself, not its distance from the truth: truth 0,
  median -1, 50 % interval -2 to 3 gives .5; by Bracher et al. (2021) it is 7/6.
- **scoringrules: `crps_quantile`** is twice the mean pinball loss, since the CRPS is twice its integral.
- **torch-uncertainty: ties.** `AURC` and `AUGRC` leave tied confidences in the order of the sort, so that the number depends on the
  order of rows; ours is the mean over all orders. Both integrate by trapezoids from one sample on, ours is the mean.
- **Draws.** `crps` of an ensemble divides by M^2 (the law of the draws as given) or by M (M - 1) ("fair": the law they come from).
- **Brier.** scikit-learn's is that of the event; ours, the sum over classes, is twice that for two classes.
- **relplot: `smECE`** smooths with a kernel instead of binning, so it follows no binned reading.

"""


def cell(row: dict[str, Any]) -> str:
    """Return what a function was found to follow, in words."""
    if not row["follows"]:
        if "reason" in row:
            return row["reason"]
        nearest = row.get("nearest")
        if nearest is None:
            return f"no known reading{': ' + row['note'] if 'note' in row else ''}"
        return f"no known reading; {nearest} except in {', '.join(row['departures'])}"
    factor = "" if row["factor"] == 1 else f", times {row['factor']:g}"
    note = f" ({row['note']})" if "note" in row else ""
    return f"{'**ours**: ' if row['as_uq_tracking'] else ''}{row['follows'][0]}{factor}{note}"


def conventions() -> str:
    """Return the page."""
    rows = json.loads((CONFORMANCE / "registry.json").read_text(encoding="utf-8"))
    readings = json.loads((CONFORMANCE / "golden" / "readings.json").read_text(encoding="utf-8"))
    versions = {row["library"]: row["version"] for row in rows}
    page = HEAD.format(
        sets=len(list((CONFORMANCE / "golden").glob("*.csv"))),
        readings=len(readings),
        scores=len({each["score"] for each in readings}),
        versions=", ".join(
            f"{name} {release}" for name, release in sorted(versions.items(), key=lambda v: v[0].lower())
        ),
    )
    page += CASES
    by_score: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_score[row["score"], row["kind"]].append(row)
    own = {(each["score"], each["kind"]): each["text"] for each in readings if each.get("ours")}
    page += "## Every function\n\n"
    for score, kind in sorted(by_score):
        page += f"### `{score}` of {kind}\n\n"
        if (score, kind) in own:
            page += f"`uq_tracking`: {own[score, kind]}.\n\n"
        page += "| library | function | follows |\n|---|---|---|\n"
        page += "".join(
            f"| {row['library']} | `{row['function']}` | {cell(row)} |\n" for row in by_score[score, kind]
        )
        page += "\n"
    _, heading, agreement = PAGE.read_text(encoding="utf-8").partition(AGREEMENT)
    page = page.replace("docs/metrics.md", "[every metric](metrics.md)")
    return page.rstrip() + "\n\n" + heading + agreement
