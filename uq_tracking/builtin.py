"""What this package itself contributes, through the same hooks as everybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uq_tracking.hooks import FigureSpec, MapSpec, hookimpl

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from uq_tracking.metrics.registry import Metric, Task
    from uq_tracking.recalibration import Recalibrator
    from uq_tracking.report import Report
    from uq_tracking.tracking.backend import Backend


@hookimpl
def uq_metrics() -> list[Metric]:
    """The default suites."""
    from uq_tracking.metrics import (
        accuracy,
        calibration,
        classification,
        ranking,
        reference,
        scoring,
        sharpness,
    )

    modules = (accuracy, scoring, calibration, ranking, sharpness, classification, reference)
    return [metric for module in modules for metric in module.METRICS]


@hookimpl
def uq_recalibrators() -> list[Recalibrator]:
    """The methods of recalibration."""
    from uq_tracking.recalibration.cdf_isotonic import CDF_ISOTONIC
    from uq_tracking.recalibration.std_binning import STD_BINNING
    from uq_tracking.recalibration.std_isotonic import STD_ISOTONIC
    from uq_tracking.recalibration.std_scaling import STD_SCALING
    from uq_tracking.recalibration.temperature import TEMPERATURE

    return [STD_SCALING, CDF_ISOTONIC, STD_ISOTONIC, STD_BINNING, TEMPERATURE]


@hookimpl
def uq_backends() -> list[Backend]:
    """The directory backend."""
    from uq_tracking.tracking.directory import DirectoryBackend

    return [DirectoryBackend()]


@hookimpl
def uq_figures() -> list[FigureSpec]:
    """Figures of a report."""
    return [
        FigureSpec("reliability", _drawing("reliability"), ("reliability",)),
        FigureSpec("calibration", _drawing("calibration"), ("calibration",)),
        FigureSpec("sparsification", _drawing("sparsification"), ("sparsification_rmse",)),
        FigureSpec("error_vs_std", _drawing("error_vs_std"), ("error_vs_std",)),
        FigureSpec("recalibration", _before_after, ("reliability_recalibrated", "calibration_recalibrated")),
        FigureSpec("scale_sweep", _drawing("scale_sweep"), ("scale_sweep",)),
        *(
            FigureSpec(name, _drawing(name), (f"{name}_*",))
            for name in ("by_group", "by_target", "by_members", "stability")
        ),
        *_classification_figures(),
    ]


def _classification_figures() -> list[FigureSpec]:
    """Figures of a classification report, under the names of their counterparts."""
    task: Task = "classification"
    return [
        FigureSpec("reliability", _drawing("class_reliability"), ("reliability",), task),
        FigureSpec("sparsification", _drawing("class_sparsification"), ("sparsification_brier",), task),
        FigureSpec("risk_coverage", _drawing("risk_coverage"), ("risk_coverage",), task),
        FigureSpec("recalibration", _class_before_after, ("reliability", "reliability_recalibrated"), task),
    ]


@hookimpl
def uq_maps() -> list[MapSpec]:
    """The panel of target, prediction, error and uncertainty."""
    return [
        MapSpec("uncertainty", _uncertainty_map),
        MapSpec("uncertainty", _class_map, task="classification"),
    ]


def _uncertainty_map(*arrays: Any, **options: Any) -> Figure:
    from uq_tracking.figures import uncertainty_map

    return uncertainty_map(*arrays, **options)


def _class_map(*arrays: Any, **options: Any) -> Figure:
    from uq_tracking.figures import class_map

    return class_map(*arrays, **options)


def _class_before_after(report: Report) -> Figure:
    from uq_tracking.evaluation.recalibrated import after_report
    from uq_tracking.figures import class_before_after

    return class_before_after(report, after_report(report))


def _before_after(report: Report) -> Figure:
    from uq_tracking.evaluation.recalibrated import after_report, scored_methods
    from uq_tracking.figures import before_after

    return before_after(report, after_report(report), next(iter(scored_methods(report)), None))


class _drawing:  # noqa: N801  (a function that is looked up in uq_tracking.figures when called)
    """Draws by name, so that finding figures does not import matplotlib."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, report: Report) -> Figure:
        from uq_tracking import figures

        figure: Figure = getattr(figures, self.name)(report)
        return figure
