"""How scores change when every standard deviation is multiplied by the same factor."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from uq_tracking import plugins
from uq_tracking.curves.curve import Curve, FloatArray
from uq_tracking.families import family_of, shaped
from uq_tracking.metrics.forms import Undetermined
from uq_tracking.metrics.ranking import merci_at
from uq_tracking.metrics.registry import Metric, Undefined, compute
from uq_tracking.settings import Settings
from uq_tracking.statistics.distribution import is_distribution, plain
from uq_tracking.statistics.scaling import coarsened, scaled
from uq_tracking.statistics.statistics import Statistics

FACTORS: FloatArray = 10.0 ** (np.arange(-20, 21) / 20)
EXACT_UP_TO = 5000
BITS = 8
"""Mantissa bits of the sketch on which larger sets are swept; scores keep five digits or more, or three for densities
of the uniform distribution, which jump."""


def scale_sweep(statistics: Statistics, settings: Settings) -> Curve:
    """Each proper score, coverage and MeRCI with all standard deviations multiplied by 10^-1 ... 10^1.

    The gap between a score at factor 1 and at its best factor is what plain rescaling would gain; the rest depends on
    the means and the ranking. ``coverage_95`` only rises with the factor; ``merci`` does not change.

    Returns
    -------
    Curve
        Columns ``factor`` and one per score, ``coverage_95`` and ``merci`` if they are defined.

    Raises
    ------
    Undefined
        No proper score is defined, e.g. because a standard deviation is 0.

    References
    ----------
    .. [1] MeRCI, 2018, fig. 2.
    """
    of_form = is_distribution(statistics)
    if of_form:  # its PIT and scores after stretching are unknown: only priors are left
        settings = shaped(settings, Undetermined("the stretched distribution is not known"))
    statistics = plain(statistics)
    base = statistics if statistics.counts["n"] <= EXACT_UP_TO else coarsened(statistics, BITS)
    metrics = swept_metrics()
    with np.errstate(all="ignore"):
        rows = [compute(scaled(base, factor), settings, metrics)[0] for factor in FACTORS.tolist()]
    kept = [m.key for m in metrics if all(m.key in row for row in rows)]
    if not kept:
        raise Undefined("no proper score is defined at every scale")
    columns = {"factor": FACTORS, **{key: np.asarray([row[key] for row in rows]) for key in kept}}
    if not of_form:
        columns["coverage_95"] = coverage_by_factor(statistics, settings, 0.95)
    with suppress(Undefined):  # a common factor on all uncertainties is rescaled away
        columns["merci"] = np.full(len(FACTORS), merci_at(statistics, settings.alpha))
    main = "crps" if "crps" in kept else kept[0]
    labels = ("Factor on every std", "Score")
    steps = np.arange(len(FACTORS))
    return Curve("scale_sweep", columns, "factor", main, *labels, "Scores against scale", main, steps)


def coverage_by_factor(statistics: Statistics, settings: Settings, level: float) -> FloatArray:
    """Share of the targets inside the central interval at every factor: those whose abs(z) it reaches."""
    reach = family_of(settings).central(level) * FACTORS
    order = statistics.orders["z"]
    return (order.position(reach) - order.position(-reach, side="left")) / statistics.n


def swept_metrics() -> list[Metric]:
    """Proper scores, under the declared family and the priors."""
    return [metric for metric in plugins.metrics().values() if metric.swept]


def best_factor(curve: Curve, key: str) -> float:
    """The factor of the sweep at which a score is best."""
    losses = [plugins.metrics()[key].loss(value) for value in curve.columns[key].tolist()]
    return float(curve.columns["factor"][int(np.argmin(losses))])
