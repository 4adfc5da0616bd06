"""From a request to a report: one flow for every task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uq_tracking.errors import RecalibrationError, SettingsError
from uq_tracking.evaluation.parts import PartCurves, check_curves
from uq_tracking.evaluation.recalibrated import add_recalibration, with_refusal
from uq_tracking.evaluation.scoring import narrowed, score
from uq_tracking.inference import samples_of
from uq_tracking.inference.intervals import with_intervals
from uq_tracking.inputs.predictions import Forecast, outputs_of
from uq_tracking.metrics.registry import Metric, MetricInputs, metrics_of_parts, select
from uq_tracking.parallel import SIDE_BY_SIDE, begin, keep_memory
from uq_tracking.report import Report
from uq_tracking.settings import ScoreOptions, Settings
from uq_tracking.statistics.collecting import blocks_of, build_groups, build_statistics, wants_exact
from uq_tracking.tasks import Task


@dataclass(frozen=True)
class Plan:
    """A request to one task, apart from the arrays."""

    task: Task
    options: ScoreOptions
    among: int = 1
    """Number of outputs that are judged together."""

    def __post_init__(self) -> None:
        """Check the options that depend on the task; SettingsError or UnknownMetricError if one is wrong."""
        check_curves(self.task, self.options.curves)
        metrics_of_parts(self.task.name, self.options.curve_metrics)

    @property
    def curve_metrics(self) -> list[Metric]:
        """Metrics of curves over parts of the samples."""
        return metrics_of_parts(self.task.name, self.options.curve_metrics)

    def split(
        self, forecast: Forecast, outputs: Sequence[str], given: Mapping[str, Any]
    ) -> dict[str, tuple[Plan, Any]]:
        """Split into the plan and the predictions of each output."""
        shared = {"calibration": self.options.calibration, "reference": self.options.reference}
        parts = outputs_of(forecast, outputs, {**given, **shared})
        return {
            name: (replace(self, options=replace(self.options, **own), among=len(parts)), data)
            for name, (data, own) in parts.items()
        }

    def report(self, data: Any, *, later: bool = False, narrow: bool = False) -> Report:
        """Return the report of predictions in memory; with ``later``, scores are computed when first accessed.

        With ``narrow``, only what the chosen metrics need is read of the predictions, where less is much faster.
        """
        task, options, settings = self.task, self.options, self.options.settings
        if settings.unit is None and data.unit is not None:
            settings = replace(settings, unit=data.unit)
        check_family(settings, data.facts)
        inputs = MetricInputs(None, data, task.reference(options.reference, data), options.seed)
        chosen = select(task.name, options.metrics, given=inputs.given)
        more = options.curves is not None or options.calibration is not None or options.by_target is not None
        whole, data = data, narrowed(data, chosen) if narrow and not more else data
        rows, kept, layout = None, None, task.layout_for(data.facts)
        by_class = not later or options.metrics is not None  # a step logs no table of classes
        if options.metrics is not None and wants_exact(data.n, options.statistics):
            keep_memory(32 * data.n)
            columns = data.rows().items()  # in memory of their own, for what is asked of the report later
            rows = kept = {
                name: column if column.flags.owndata else column.copy() for name, column in columns
            }
            found = data.digest_of(rows)
        else:
            found = begin(data.digest) if data.n > SIDE_BY_SIDE else data.digest
            rows = data.rows() if wants_exact(data.n, options.statistics) else None
        statistics = build_statistics(
            layout, data, options.statistics, rows=rows, lazy=kept is not None, classes=by_class
        )
        digest = found if kept is not None else found()
        samples = samples_of(whole, statistics, kept)
        is_part = samples is None or samples.total is not None
        report = score(
            statistics,
            settings,
            chosen,
            digest=digest,
            extra=inputs,
            about=data.about,
            asked=None if options.metrics is None else tuple(options.metrics),
            samples=samples,
            blocks=blocks_of(layout, data, settings, rows) if is_part else None,
            later=later,
            among=self.among,
        )
        tables = build_groups(layout, data, options.intervals)
        if tables is not None:
            report = with_intervals(report, tables, settings, chosen, options.level)
        inputs = replace(inputs, statistics=statistics)
        parts = PartCurves(task, inputs, settings, self.curve_metrics, options.statistics, tables)
        report = parts.with_curves(report, options, chosen)
        return self.recalibrated(report, settings, chosen, data)

    def recalibrated(
        self, report: Report, settings: Settings, chosen: Iterable[Metric], data: Any = None
    ) -> Report:
        """Add the requested recalibrations, or, for a stream, the reason why there are none."""
        calibration, methods = self.options.calibration, self.options.recalibration
        if calibration is None or calibration is False:
            return report
        plain = [metric for metric in chosen if not metric.needs]
        try:
            return add_recalibration(
                report,
                calibration,
                methods,
                metrics=plain,
                settings=settings,
                data=data,
                seed=self.options.seed,
            )
        except RecalibrationError as refusal:
            if data is not None:
                raise
            return with_refusal(report, calibration, methods, refusal)


def check_family(settings: Settings, facts: Mapping[str, Any]) -> None:
    """SettingsError for a family of predictions that state their own distribution."""
    if settings.family == "gaussian":
        return
    if facts.get("distribution"):
        raise SettingsError(
            f"family={settings.family!r} sets the distribution for a mean and a std, but these predictions have a "
            f"form of their own ({facts['distribution']}) and are scored as they are; omit family"
        )
    if facts.get("vector_length"):
        raise SettingsError(
            f"family={settings.family!r} cannot be combined with a covariance, which is scored as that of a "
            "normal distribution; omit family"
        )
