"""What was requested, and how it becomes a report: one flow for every task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uq_tracking.checks import as_names, check_flag
from uq_tracking.errors import RecalibrationError, SettingsError
from uq_tracking.evaluation.on_demand import WantedCurves, extra_curves
from uq_tracking.evaluation.outputs import Reports
from uq_tracking.evaluation.recalibrated import add_recalibration, with_refusal
from uq_tracking.evaluation.scoring import score
from uq_tracking.inference.consistency import with_chance
from uq_tracking.inference.intervals import with_intervals
from uq_tracking.metrics.registry import Metric, MetricInputs, select
from uq_tracking.parallel import SIDE_BY_SIDE, begin
from uq_tracking.report import Report
from uq_tracking.settings import Settings, check_level, check_seed
from uq_tracking.statistics.collecting import How, build_groups, build_statistics
from uq_tracking.tasks import Task


@dataclass(frozen=True)
class Plan:
    """What was requested, apart from the arrays; attributes as the options of `evaluate`."""

    task: Task
    settings: Settings
    metrics: tuple[str, ...] | None
    wanted: WantedCurves
    statistics: How
    calibration: Any
    recalibration: tuple[str, ...] | None
    intervals: bool | None
    level: float
    seed: int
    reference: Any

    @classmethod
    def of(
        cls,
        task: Task,
        settings: Settings,
        *,
        metrics: str | Iterable[str] | None = None,
        curves: str | Iterable[str] | None = None,
        by_target: Any = None,
        curve_metrics: str | Iterable[str] | None = None,
        statistics: How = "auto",
        calibration: Any = None,
        recalibration: str | Iterable[str] | None = None,
        intervals: bool | None = None,
        level: float = 0.95,
        seed: int = 0,
        reference: Any = None,
    ) -> Plan:
        """Check the options; SettingsError or UnknownMetricError if one is wrong."""
        check_level(level)
        check_seed(seed)
        if intervals is not None:
            check_flag("intervals", intervals)
        if recalibration is not None and calibration in (None, False):
            raise SettingsError(
                "recalibration= names methods but not what to fit them to; pass calibration= data or True"
            )
        return cls(
            task,
            settings,
            None if metrics is None else as_names("metrics", metrics),
            WantedCurves.of(task, curves, by_target, curve_metrics),
            statistics,
            calibration,
            None if recalibration is None else as_names("recalibration", recalibration),
            intervals,
            level,
            seed,
            reference,
        )

    def run(
        self, arrays: Sequence[Any], outputs: Sequence[str] | None, given: Mapping[str, Any]
    ) -> Report | Reports:
        """The report of arrays in memory, or a report per output."""
        if outputs is None:
            return self.report(self.task.read(*arrays, **given))
        parts = self.split(arrays, outputs, given)
        return Reports({name: own.report(data) for name, (own, data) in parts.items()})

    def split(
        self, arrays: Sequence[Any], outputs: Sequence[str], given: Mapping[str, Any]
    ) -> dict[str, tuple[Plan, Any]]:
        """The plan and the predictions of each output."""
        options = {**given, "calibration": self.calibration, "reference": self.reference}
        parts = self.task.split(arrays, outputs, options)
        return {name: (replace(self, **own), data) for name, (data, own) in parts.items()}

    def report(self, data: Any, *, later: bool = False) -> Report:
        """The report of predictions in memory; with ``later``, scores are computed when first accessed."""
        task, settings = self.task, self.settings
        if settings.unit is None and getattr(data, "unit", None) is not None:
            settings = replace(settings, unit=data.unit)
        check_family(settings, data.facts)
        inputs = MetricInputs(None, data, task.reference(self.reference, data), self.seed)
        chosen = select(task.name, self.metrics, given=inputs.given)
        digest = begin(data.digest) if data.n > SIDE_BY_SIDE else data.digest
        statistics = build_statistics(task.layout_of(data), data, self.statistics)
        report = score(
            statistics,
            settings,
            chosen,
            digest=digest(),
            extra=inputs,
            about=data.about,
            asked=self.metrics,
            later=later,
        )
        tables = build_groups(task.layout_of(data), data, self.intervals)
        if tables is not None:
            report = with_intervals(report, tables, settings, chosen, self.level)
        made = extra_curves(
            self.wanted, task, statistics, settings, inputs, tables=tables, how=self.statistics
        )
        if made.curves or made.verdicts:
            extra = with_chance(made.curves, report.statistics, task.name, settings)
            report = replace(
                report, curves={**report.curves, **extra}, verdicts={**report.verdicts, **made.verdicts}
            )
        return self.recalibrated(report, settings, chosen, data)

    def recalibrated(
        self, report: Report, settings: Settings, chosen: Iterable[Metric], data: Any = None
    ) -> Report:
        """The report with the requested recalibrations; for a stream, or with the reason why there are none."""
        if self.calibration is None or self.calibration is False:
            return report
        plain = [metric for metric in chosen if not metric.needs]
        try:
            return add_recalibration(
                report,
                self.calibration,
                self.recalibration,
                metrics=plain,
                settings=settings,
                data=data,
                seed=self.seed,
            )
        except RecalibrationError as refusal:
            if data is not None:
                raise
            return with_refusal(report, self.calibration, self.recalibration, refusal)


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
