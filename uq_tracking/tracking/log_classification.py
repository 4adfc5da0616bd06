"""The one line for classifiers: score class probabilities and log the result to the run that is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from uq_tracking.errors import SettingsError
from uq_tracking.evaluation.classification import as_class_predictions, evaluate_classification
from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.report import Report
from uq_tracking.settings import Method
from uq_tracking.streams.classification import ClassificationAccumulator
from uq_tracking.tracking.cases import Maps, check_images, choose_cases
from uq_tracking.tracking.deadline import checked_deadline
from uq_tracking.tracking.dispatch import checked_step, send
from uq_tracking.tracking.names import check_split
from uq_tracking.tracking.publish import Content
from uq_tracking.tracking.resolve import targets_of

INPUT = (
    "logits",
    "class_axis",
    "members_axis",
    "ignore_label",
    "mask",
    "on_invalid",
    "groups",
    "class_names",
)
"""Options of ``ClassPredictions``."""

AFTER = ("intervals", "level", "n_boot", "seed")
"""Options of ``ClassificationAccumulator.compute``."""


def log_classification(
    labels: Any,
    probs: Any = None,
    *,
    run: Any = None,
    to: str | Sequence[str] | None = None,
    method: str | None = None,
    split: str | None = None,
    step: int | None = None,
    calibration: Any = None,
    images: Any = None,
    figures: bool = True,
    maps: Maps = "auto",
    predictions: Literal["auto"] | bool = "auto",
    tags: Mapping[str, str] | None = None,
    statistics: Method = "auto",
    strict: bool = False,
    every_rank: bool = False,
    deadline: float | None = None,
    **options: Any,
) -> Report:
    """Score class probabilities and log scores, curves, figures, maps, statistics and predictions to a run.

    Where it goes, and what happens when a tracker fails or on several processes, is as for `log`.

    Parameters
    ----------
    labels : integer array of any shape, `ClassPredictions` or `ClassificationAccumulator`
        True classes 0 ... C - 1; or predictions or an accumulator, then without ``probs``.
    probs : array of the labels' shape and an axis of classes, or of the labels' shape
        Probabilities of the classes, or with ``logits=True`` logits; see `evaluate_classification`.
    run, to, method, split, step, figures, tags, strict, every_rank, deadline
        As for `log`.
    calibration : optional
        A second set ``(labels, probs)`` to fit a temperature on, a fitted one, or True to fit each half of the
        samples on the other: logs the temperature and the scores after it too.
    images : array, shape (cases, h, w) or (cases, h, w, channels), optional
        Input images, shown beside the maps.
    maps : "auto", bool, int or list of int
        Cases of labels of shape (..., height, width) that are drawn; see `choose_cases`.
    predictions : "auto" or bool
        Whether to store labels and probabilities; "auto" up to 256 MB.
    statistics : {"auto", "exact", "sketch"}
        How the statistics are made: ``method`` of `evaluate_classification`.
    **options
        Options of `evaluate_classification`: ``logits``, ``class_axis``, ``members_axis``, ``ignore_label``,
        ``mask``, ``on_invalid``, ``groups``, ``class_names``, ``metrics``, ``n_bins``, ``intervals``, ``level``,
        ``n_boot``, ``seed``; the last four for an accumulator too.

    Returns
    -------
    Report

    Raises
    ------
    InputError, SettingsError, UnknownBackendError, BackendError
        As for `log`.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> report = uq.log_classification([0, 1, 1], [0.2, 0.9, 0.4], run="dir:runs", method="example")
    >>> round(report.scores["accuracy"], 3)
    0.667
    """
    check_split(split)
    step, deadline = checked_step(step), checked_deadline(deadline)
    targets = targets_of(run, to, name=method or "uq", tags=tags, every_rank=every_rank)
    if isinstance(labels, ClassificationAccumulator):
        if probs is not None or calibration is not None or not options.keys() <= set(AFTER):
            raise SettingsError("an accumulator has its samples and settings already; pass it alone")
        content = Content(labels.compute(**options), None, split, step, method, tags or {}, figures)
        return send(content, targets, to, strict=strict, every_rank=every_rank, deadline=deadline)
    given = {name: options.pop(name) for name in INPUT if name in options}
    data: ClassPredictions = as_class_predictions(labels, probs, **given)
    chosen = choose_cases(data.shape, maps)
    check_images(data.shape, images)
    report = evaluate_classification(data, method=statistics, calibration=calibration, **options)
    content = Content(
        report, data, split, step, method, tags or {}, figures, chosen, images, keep_predictions=predictions
    )
    return send(content, targets, to, strict=strict, every_rank=every_rank, deadline=deadline)
