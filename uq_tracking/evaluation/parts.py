"""Scores of parts of the samples: strata, intervals of the target, and random subsets.

Subsets are of an ensemble's members, of the samples, and of independent test sets. Curves that are declared elsewhere
are made on demand.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking import plugins
from uq_tracking.checks import check_callable, value_text, whole_number
from uq_tracking.curves.regression import best_factor, scale_sweep
from uq_tracking.curves.spec import Curve, FloatArray, finite
from uq_tracking.errors import InputTypeError, SettingsError
from uq_tracking.evaluation.scoring import score
from uq_tracking.formatting import axis_label, format_number
from uq_tracking.inference import Judgement
from uq_tracking.inference.noise import with_chance
from uq_tracking.inference.verdict import no_verdict
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.labels import sets_of
from uq_tracking.metrics.registry import Metric, MetricInputs, Undefined, compute, metrics_of_parts, select
from uq_tracking.report import Report
from uq_tracking.settings import ScoreOptions, Settings, check_seed
from uq_tracking.statistics.collecting import How, build_statistics, statistics_of_rows
from uq_tracking.statistics.groups import GroupTables, Label, plain_labels
from uq_tracking.statistics.layout import Layout, OnDemand
from uq_tracking.statistics.statistics import Statistics, resampled
from uq_tracking.tasks import Task, task_of

MOST_STRATA = 1000
UNKNOWN_GROUPS = (
    "which samples of a stratum belong to which group is not kept, so chance cannot be told from skill"
)


def check_curves(task: Task, names: Iterable[str] | None) -> None:
    """Raise SettingsError for a curve that a task has not."""
    optional = (spec.name for spec in plugins.curves(task.name).values() if not spec.default)
    known = [*task.curves, *optional]
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise SettingsError(
            f"a {task.name} has no curve called {', '.join(unknown)}; choose from {', '.join(known)}"
        )


def _with(report: Report, curves: Iterable[Curve], verdicts: Mapping[str, str] | None = None) -> Report:
    """Add the points of curves that 64-bit numbers can represent, and sentences about them."""
    whole = {curve.name: curve for curve in map(finite, curves) if len(curve.columns[curve.x])}
    return replace(
        report, curves={**report.curves, **whole}, verdicts={**report.verdicts, **(verdicts or {})}
    )


def with_strata(
    report: Report,
    strata: Mapping[Label, Statistics],
    settings: Settings,
    metrics: Sequence[Metric],
    scored: Sequence[Metric],
    tables: GroupTables | None,
) -> Report:
    """Add one curve per metric over labelled strata, in the order of the mapping, and their reports.

    Columns ``group`` (the label itself if all are numbers, such as lead times; else its position, named in
    ``labels``), the metric's key, and ``count``; strata in which a metric is undefined are left out of its curve.
    """
    numbers = [label for label in strata if isinstance(label, int | float) and not isinstance(label, bool)]
    place = np.asarray(numbers if len(numbers) == len(strata) else range(len(strata)), dtype=float)
    names = tuple(str(label) for label in strata)
    parts = dict(zip(names, strata.values(), strict=True))
    keys = {metric.key for metric in (*scored, *metrics) if not metric.needs}
    chosen = [metric for metric in select(report.task) if metric.key in keys]

    unjudged = None if tables is None else Judgement({}, no_verdict(UNKNOWN_GROUPS))
    of = partial(score, settings=settings, metrics=chosen, judgement=unjudged, later=True, among=len(parts))
    reports = OnDemand({name: partial(of, part) for name, part in parts.items()})
    curves = _curves("by_group", {"group": place}, "Group", list(parts.values()), settings, metrics, names)
    return replace(_with(report, curves), parts=reports)


def _curves(
    name: str,
    table: dict[str, FloatArray],
    x_label: str,
    parts: Sequence[Statistics],
    settings: Settings,
    metrics: Sequence[Metric],
    labels: tuple[str, ...] | None = None,
) -> list[Curve]:
    with np.errstate(all="ignore"):
        rows = [compute(part, settings, metrics)[0] if part.n else {} for part in parts]
    count = np.asarray([part.counts["n"] for part in parts], dtype=float)
    x, made = next(iter(table)), []
    for metric in metrics:
        kept = np.asarray([i for i, row in enumerate(rows) if metric.key in row], dtype=np.int64)
        columns = {column: values[kept] for column, values in table.items()}
        columns[metric.key] = np.asarray([rows[i][metric.key] for i in kept.tolist()])
        columns["count"] = count[kept]
        own = None if labels is None else tuple(labels[i] for i in kept.tolist())
        texts = (x_label, axis_label(metric.key, metric.unit, settings.unit), f"{metric.key} by {x}")
        made.append(Curve(f"{name}_{metric.key}", columns, x, metric.key, *texts, metric.key, kept, own))
    return made


SUBSETS = 10
"""Number of random subsets of members of each size, or all if there are fewer."""
REPEATS = 20
"""Number of random subsets of samples of each size."""
LARGEST = 1 << 16
"""Size of the largest random subset of samples; beyond it the spread is extrapolated."""
TOLERANCE = 0.05
"""Acceptable uncertainty of a score, as a share of the score."""
LEAST = {"": 0.01, "nats": 0.05}
"""Uncertainty that is always acceptable, for scores near 0, by unit."""
SIZES = tuple(2**k for k in range(3, 13))
"""Sizes of independent test sets."""

Scores = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class PartCurves:
    """What curves over parts of the samples are made of: the samples, and the metrics of each part."""

    task: Task
    inputs: MetricInputs
    settings: Settings
    metrics: Sequence[Metric]
    how: How
    tables: GroupTables | None
    """Statistics of the groups."""

    @property
    def data(self) -> Any:
        """The predictions."""
        return self.inputs.predictions

    @property
    def layout(self) -> Layout:
        """What the statistics of parts consist of."""
        return self.task.layout_for(self.data.facts)

    def with_curves(self, report: Report, options: ScoreOptions, scored: Sequence[Metric]) -> Report:
        """Add the curves that the options ask for, and those over the strata of ``by`` if the predictions have any.

        The reports of strata hold the metrics ``scored``.
        """
        statistics, settings = self.inputs.statistics, self.settings
        if self.data.by is not None:
            report = with_strata(report, self._strata(), settings, self.metrics, scored, self.tables)
        if options.by_target is not None:
            report = _with(report, self._by_target(options.by_target))
        for name in options.curves or ():
            try:
                if name == "by_members":
                    report = _with(report, self._by_members())
                elif name == "stability":
                    report = _with(report, *self._stability(compute(statistics, settings, self.metrics)[0]))
                elif name == "scale_sweep":
                    curve = scale_sweep(statistics, settings)
                    key = "nll" if "nll" in curve.columns else curve.main
                    factor = format_number(best_factor(curve, key))
                    best = f"{key} is best with every standard deviation multiplied by {factor}"
                    report = _with(report, [curve], {name: best})
                else:
                    spec = plugins.curves(self.task.name)[name]
                    made = {name: spec.build(statistics, settings, self.inputs)}
                    chance = with_chance(made, statistics, self.task.name, settings)
                    report = _with(report, chance.values())
            except Undefined as reason:
                report = _with(report, [], {name: f"not made: {reason}"})
        return report

    def _strata(self) -> dict[Label, Statistics]:
        """Return the statistics of each label of ``by``."""
        labels, codes = self.data.label_codes("by")
        used, codes = np.unique(self.data.select(codes), return_inverse=True)
        strata: dict[Label, Statistics] = {}
        for names, place in sets_of(plain_labels(labels[used])):
            _check_number(len(names), "by has", "labels")
            strata |= zip(names, self._split(place[codes], len(names)), strict=True)
        return strata

    def _by_target(self, width: Any) -> list[Curve]:
        """Return one curve per metric over intervals of the target: those between edges, or multiples of a width.

        Columns ``target`` (middle), ``target_low`` and ``target_high``, the metric's key, and ``count``. Targets
        outside are left out; the last interval includes its upper edge.

        References
        ----------
        .. [1] n-MeRCI, 2019, fig. 4 and 5: depth in intervals of 0.1 m.
        """
        target = self.data.rows()["target"].astype(np.float64)
        edges = _edges(width, float(target.min()), float(target.max()))
        codes = np.searchsorted(edges, target, side="right") - 1
        codes[target == edges[-1]] = len(edges) - 2
        low, high = edges[:-1], edges[1:]
        table = {"target": (low + high) / 2, "target_low": low, "target_high": high}
        x_label = axis_label("Target", "target", self.settings.unit)
        parts = self._split(codes, len(low))
        return _curves("by_target", table, x_label, parts, self.settings, self.metrics)

    def _split(self, codes: npt.NDArray[Any], size: int) -> list[Statistics]:
        """Return statistics of the samples of each code 0 ... size - 1."""
        order = np.argsort(codes, kind="stable")
        cuts = np.searchsorted(codes[order], np.arange(size + 1)).tolist()
        rows = self.data.rows()
        parts = (
            {name: column[order[start:end]] for name, column in rows.items()} for start, end in pairwise(cuts)
        )
        return [statistics_of_rows(self.layout, part, self.data.facts, self.how) for part in parts]

    def _by_members(self) -> list[Curve]:
        """Return one curve per metric against the number M of members, over random subsets of the ensemble.

        M runs over 1, 2, 4 ... and the full size, starting from the fewest members that have an uncertainty. If a
        reference is given, the divergence of each subset from it also gets a curve (Gustafsson 2020, fig. 5).
        """
        known = self.data.form.members
        if known is None:
            raise SettingsError(
                "by_members needs the members of an ensemble; make the predictions with "
                "Predictions.from_ensemble, or pass members_axis= to a classification"
            )
        members, fewest = known
        rng, metrics = np.random.default_rng(self.inputs.seed), list(self.metrics)
        if self.inputs.reference is not None:
            comparing = select(self.task.name, given=("predictions", "reference"))
            metrics += [metric for metric in comparing if "reference" in metric.needs]

        def scores_of(chosen: Sequence[int]) -> Scores:
            part = self.data.form.of_members(self.data, chosen)
            statistics = build_statistics(self.task.layout_for(part.facts), part, self.how)
            inputs = replace(self.inputs, statistics=statistics, predictions=part)
            return compute(statistics, self.settings, metrics, inputs)[0]

        scores = {}
        for size in member_counts(members, first=fewest):
            with np.errstate(all="ignore"):
                scores[float(size)] = [
                    scores_of(chosen) for chosen in subsets_of(members, size, SUBSETS, rng)
                ]
        return repeated(scores, "by_members", "members", "Members", metrics, self.settings.unit)

    def _stability(self, scores: Mapping[str, float]) -> tuple[list[Curve], dict[str, str]]:
        """Score random subsets of 2^3, 2^4 ... samples, drawn without replacement, several times each.

        With groups, whole groups are drawn, at least two: samples from one image carry redundant information.
        ``scores`` are those of all samples (Xiong et al., 2024, fig. 4).
        """
        groups, data, rng = self.tables, self.data, np.random.default_rng(self.inputs.seed)
        rows = data.rows() if groups is None else {}
        name, total, least = ("samples", data.n, 3) if groups is None else ("groups", len(groups), 1)
        most = total // 2 if groups is not None else min(total // 2, LARGEST)
        sizes = [2**k for k in range(least, 64) if 2**k <= most]
        if not sizes:
            raise SettingsError(
                f"{total} {name} are too few for stability; it needs {16 if groups is None else 4}"
            )

        def parts(size: int) -> Iterable[Statistics]:
            picks = [rng.choice(total, size, replace=False) for _ in range(REPEATS)]
            if groups is not None:
                weights = np.zeros((len(picks), total))
                np.put_along_axis(weights, np.asarray(picks), 1, axis=1)
                return resampled(groups, weights)
            drawn = ({name: column[pick] for name, column in rows.items()} for pick in picks)
            return (Statistics.exact(self.layout, part, facts=data.facts) for part in drawn)

        with np.errstate(all="ignore"):
            found: dict[float, list[Scores]] = {
                float(size): [compute(part, self.settings, self.metrics)[0] for part in parts(size)]
                for size in sizes
            }
        found[float(total)] = [dict(scores)]
        curves = repeated(found, "stability", name, f"Number of {name}", self.metrics, self.settings.unit)
        known = {metric.key: metric for metric in self.metrics if metric.key in scores}
        verdicts = {
            str(curve.score): verdict(curve, known[str(curve.score)], scores, name)
            for curve in curves
            if curve.score in known
        }
        return curves, verdicts


def _edges(width: Any, low: float, high: float) -> FloatArray:
    try:
        edges = np.asarray(width, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise SettingsError(f"by_target is {value_text(width)}; pass a width above 0, or edges") from None
    if edges.ndim == 0:
        step = float(edges)
        if not 0 < step < np.inf:
            raise SettingsError(f"by_target is {width}; pass a width above 0, or edges")
        first, last = np.floor(low / step), np.floor(high / step) + 1
        _check_number(last - first, f"by_target={step:g} makes", "intervals")
        return np.arange(first, last + 1) * step
    if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise SettingsError("by_target edges must ascend; pass at least two, or a single width")
    _check_number(len(edges) - 1, "by_target has", "intervals")
    return edges


def _check_number(number: float, has: str, what: str) -> None:
    if number > MOST_STRATA:
        raise SettingsError(f"{has} {number:.0f} {what}; pass at most {MOST_STRATA}")


def repeated(
    scores: Mapping[float, Sequence[Scores]],
    name: str,
    x: str,
    x_label: str,
    metrics: Sequence[Metric],
    unit: str | None,
) -> list[Curve]:
    """Return one curve per metric against ``x``, from the scores of several subsets of each size.

    Columns ``mean``, ``spread`` (population std), ``subset_low`` and ``subset_high`` (the range), ``subsets``. A size
    counts for a metric if the metric is defined for all its subsets.
    """
    made = []
    for metric in metrics:
        found = {
            size: np.asarray([row[metric.key] for row in rows])
            for size, rows in scores.items()
            if rows and all(metric.key in row for row in rows)
        }
        if not found:
            continue
        values = list(found.values())
        columns = {
            x: np.asarray(list(found), dtype=float),
            "mean": np.asarray([v.mean() for v in values]),
            "spread": np.asarray([v.std() for v in values]),
            "subset_low": np.asarray([v.min() for v in values]),
            "subset_high": np.asarray([v.max() for v in values]),
            "subsets": np.asarray([float(len(v)) for v in values]),
        }
        y_label = axis_label(metric.key, metric.unit, unit)
        texts = (x_label, y_label, f"{metric.key} by {x_label.lower()}")
        steps = np.rint(columns[x]).astype(np.int64)
        made.append(Curve(f"{name}_{metric.key}", columns, x, "mean", *texts, metric.key, steps))
    return made


def member_counts(members: int, first: int) -> list[int]:
    """Return powers of two up to the number of members, and that number itself."""
    powers = [2**k for k in range(members.bit_length()) if first <= 2**k < members]
    return [*powers, members]


def subsets_of(members: int, size: int, most: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """Yield all subsets of a size if there are at most ``most``, else that many distinct random ones."""
    if math.comb(members, size) <= most:
        yield from (list(chosen) for chosen in itertools.combinations(range(members), size))
        return
    seen: set[tuple[int, ...]] = set()
    while len(seen) < most:
        chosen = tuple(sorted(rng.choice(members, size, replace=False).tolist()))
        if chosen not in seen:
            seen.add(chosen)
            yield list(chosen)


def verdict(curve: Curve, metric: Metric, scores: Mapping[str, float], what: str) -> str:
    """Say in one sentence whether the test set is large enough for this metric, by the end of its stability curve.

    The standard error of the score of all samples is the subsets' spread, extrapolated with the inverse root of their
    size. The drift is the change of the mean score from the largest subsets to all samples.
    """
    size, spread, mean = (curve.columns[name] for name in (curve.x, "spread", "mean"))
    total, repeats = size[-1], curve.columns["subsets"]
    parts = np.flatnonzero(size[:-1] <= total / 2)
    if len(size) < 2 or not len(parts) or scores.get(metric.key) is None:
        return "unknown: too few subset sizes have a value"
    used, last = parts[-3:], parts[-1]
    # The variance of a subset of n of N samples is 1 - n/N times that of n new samples.
    unlimited = spread[used] * np.sqrt(repeats[used] / np.maximum(repeats[used] - 1, 1))
    errors = unlimited * np.sqrt(size[used] / total) / np.sqrt(1 - size[used] / total)
    reach, noise = 2 * float(np.median(errors)), spread[last] / math.sqrt(repeats[last])
    drift = max(float(abs(mean[last] - scores[metric.key]) - 2 * noise), 0.0)
    scale = scores["rmse"] if metric.key == "bias" and "rmse" in scores else abs(scores[metric.key])
    tolerance = max(TOLERANCE * scale, LEAST.get(metric.unit, 0.0))
    known = f"{int(total):,} {what} give it to within ±{format_number(reach, 2)} (2 standard errors)"
    if reach > tolerance:
        enough = _rounded(int(total) * (reach / tolerance) ** 2)
        return f"too small: {known}; about {enough:,} would bring that to ±{format_number(tolerance, 2)}"
    if drift > tolerance:
        return (
            f"too small: {known}, but its mean still moves by {format_number(drift, 2)} when subsets double"
        )
    return f"large enough: {known}"


def _rounded(number: float) -> int:
    """Round up to two significant digits."""
    unit = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return int(math.ceil(number / unit) * unit)


def iid_stability(
    draw: Callable[[int, np.random.Generator], Any],
    *,
    metrics: str | Iterable[str] | None = None,
    sizes: Sequence[int] = SIZES,
    repeats: int = 100,
    seed: int = 0,
    **settings: Any,
) -> dict[str, Curve]:
    """Measure how metrics vary between independent test sets, and how biased small sets make them.

    For targets that can be drawn at will, as in a simulation; ``curves="stability"`` of `evaluate` draws subsets of
    one test set instead.

    Parameters
    ----------
    draw : callable
        ``draw(n, rng)`` returns the predictions of ``n`` new samples: ``Predictions``, or the
        arguments of ``Predictions``, ``(y_true, y_pred, y_std)``.
    metrics : iterable of str, optional
        Keys; by default six of different kinds.
    sizes : sequence of int
        Numbers of samples.
    repeats : int
        Number of test sets of each size.
    seed : int
        Seed of ``rng``.
    **settings
        As for `Settings`: ``n_bins``, ``alpha``, ``family`` ...

    Returns
    -------
    dict of str to Curve
        By metric, with columns ``samples``, ``mean``, ``spread`` (standard deviation between sets), ``low``, ``high``
        and ``subsets``. Sizes at which a metric is undefined for some set are left out of its curve.

    Raises
    ------
    SettingsError
        A size or the number of repeats is not positive.
    UnknownMetricError
        There is no such metric.

    References
    ----------
    .. [1] Xiong et al., 2024, section IV-C and fig. 4 b.

    Examples
    --------
    >>> def draw(n, rng):
    ...     mean, std = rng.normal(size=n), rng.gamma(2, 0.5, n)
    ...     return Predictions(rng.normal(mean, std), mean, std)
    >>> curves = iid_stability(draw, metrics=["nll"], sizes=[64, 256], repeats=20)
    >>> spread = curves["nll"].columns["spread"]
    >>> bool(spread[1] < spread[0])
    True
    """
    check_callable("draw", draw)
    if not isinstance(sizes, Iterable):
        raise SettingsError(f"sizes is {value_text(sizes)}; pass a list of numbers of samples")
    sizes, repeats = [whole_number("sizes", size) for size in sizes], whole_number("repeats", repeats)
    if repeats < 1 or not sizes or min(sizes) < 1:
        raise SettingsError(f"sizes are {sizes} and repeats {repeats}; pass whole numbers, 1 or above")
    check_seed(seed)
    rng, asked = np.random.default_rng(seed), Settings(**settings)
    found: dict[float, list[Mapping[str, float]]] = {}
    chosen: list[Metric] = []
    for size in sizes:
        rows = found[float(size)] = []
        for _ in range(repeats):
            data = draw(size, rng)
            if isinstance(data, tuple | list) and len(data) == 3:
                data = Predictions(*data)
            if not isinstance(data, Predictions):
                raise InputTypeError(
                    f"draw returned {value_text(data)}; it must return (y_true, y_pred, y_std) or predictions"
                )
            task = task_of(data)
            chosen = chosen or metrics_of_parts(task.name, metrics, "metrics")
            with np.errstate(all="ignore"):
                statistics = build_statistics(task.layout_for(data.facts), data, "exact")
                rows.append(compute(statistics, asked, chosen)[0])
    curves = repeated(found, "iid_stability", "samples", "Number of samples", chosen, asked.unit)
    return {str(curve.score): curve for curve in curves}
