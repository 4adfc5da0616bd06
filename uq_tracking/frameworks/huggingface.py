"""A callback of the Hugging Face ``Trainer`` that scores the uncertainty of every evaluation, and logs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from uq_tracking.checks import check_choice
from uq_tracking.errors import warn
from uq_tracking.frameworks.training import CallbackOptions, TrainingCallback, framework, with_all_options
from uq_tracking.metrics.registry import headline_or_all
from uq_tracking.report import Report
from uq_tracking.streams.accumulator import Accumulator
from uq_tracking.tracking.log import log
from uq_tracking.tracking.resolve import is_rank_zero
from uq_tracking.typed import Unpack

StepKind = Literal["epoch", "global_step"]


class UncertaintyCallback(TrainingCallback):
    """Scores what the ``Trainer`` predicts in every evaluation, and logs it to the trainer's run.

    Pass it twice: ``Trainer(..., compute_metrics=callback.compute_metrics, callbacks=[callback])``. During ``train``,
    the scores of every evaluation are logged at ``step``, and after training the last evaluation is logged with
    curves, figures, maps and files. ``trainer.evaluate`` and ``trainer.predict`` log everything at once; their
    ``metric_key_prefix`` names the split, and ``eval`` is ``val``. With ``TrainingArguments(eval_on_start=True)``,
    outputs that cannot be scored stop the training before it begins; with ``batch_eval_metrics=True``, batches are
    counted in constant memory. With several processes, rank zero logs the samples of all, which the trainer gathers.

    The headline scores are also metrics of the trainer, for ``metric_for_best_model="crps"`` and early stopping.

    **Where it logs**: to the runs that are active when the training begins, such as those that ``report_to="mlflow"``
    or ``"wandb"`` opens, also if the trainer has ended them since; else where `log` would.

    Parameters
    ----------
    read : callable(outputs, labels), optional
        Receives the model's predictions and the labels, and returns ``(target, mean, std)`` or ``(labels, probs)``;
        predictions; or a dict of arguments for the accumulator's ``update``. By default the model returns a mean and
        a std, as a pair or along a last axis of length 2; or class probabilities: logits if the model is a classifier
        of transformers, or with ``logits=True``. A last axis of length 1 that only labels or only outputs have does
        not count.
    task : {"regression", "classification"}, optional
        What the model predicts. By default what the options are for (``logits`` and ``classes``, or ``unit``), else
        classes if labels are whole numbers and every class has a column, or labels are 0 and 1 and one column has
        their probabilities. Two columns that do not sum to 1 are refused then, because they may be a mean and a std.
    scores : "headline" or "all"
        Which scores trackers show, as for `log`, and the trainer gets.
    step : {"global_step", "epoch"}
        The step at which to log; the trainer's own metrics are at "global_step".
    on_invalid : {"skip", "drop", "raise"}
        If predictions are non-finite or a std is negative: skip the evaluation, with a warning; score the rest; or
        stop with an error.
    method, run, figures, tags, strict
        As for `log`. An address that creates a run (``mlflow:EXPERIMENT``) creates one per training.
    statistics : {"sketch", "exact"}
        As for `Accumulator`.
    **options
        As for `Accumulator`: ``unit``, ``alpha``, ``logits``, ``ignore_label`` ...

    Raises
    ------
    SettingsError
        An option is unknown or out of range.
    UnknownBackendError
        No installed backend has the scheme of an address in ``run``.
    MissingPackageError
        transformers is not installed.
    """

    @with_all_options
    def __init__(self, *, step: StepKind = "global_step", **options: Unpack[CallbackOptions]) -> None:
        super().__init__(**options)
        check_choice("step", step, get_args(StepKind))
        self.step = step
        self._is_training = self._is_first = False
        self._counting: Accumulator | None = None
        self._found: tuple[Accumulator, Report | None] | None = None
        """What `compute_metrics` counted, until the trainer says of which split."""

    @staticmethod
    def framework_bases() -> tuple[type, ...]:
        """Return transformers' class of callbacks."""
        return (framework("transformers", "transformers").TrainerCallback,)

    def compute_metrics(self, evaluated: Any, compute_result: bool = True) -> dict[str, float]:
        """Count an evaluation, or one batch of it, and return its headline scores for the trainer."""
        arguments = self._read_outputs(evaluated.predictions, evaluated.label_ids)
        if self._counting is None:
            self._counting = self._empty()
        self._counting.update(**arguments)
        if self._is_first:
            self._check_first(self._counting, "an evaluation")
        if not compute_result:
            return {}
        counted, self._counting = self._counting, None
        report = self._scored(counted, "an evaluation", leads=is_rank_zero())
        self._found = counted, report
        if report is None:
            return {}
        if self.logging["scores"] == "all":
            return dict(report.scores)
        return {key: report.scores[key] for key in headline_or_all(report.task, report.scores)}

    def on_prediction_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Note what the model is, and whether it is untrained; `compute_metrics` is not told."""
        self._is_first = self._is_training and state.global_step == 0
        self._gives_logits = _is_classifier(model)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note the runs that are active: the trainer's, whose callbacks come first."""
        self._begin_fit(leads=state.is_world_process_zero)
        self._is_training = True

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Mapping[str, Any], **_: Any) -> None:
        """Log the scores of an evaluation; outside training, everything."""
        if self._found is None:
            warn("nothing was counted; pass Trainer(..., compute_metrics=callback.compute_metrics) too")
            return
        (counted, report), self._found = self._found, None
        prefix = next((key.removesuffix("_runtime") for key in metrics if key.endswith("_runtime")), "eval")
        split = "val" if prefix == "eval" else prefix
        if report is None or not state.is_world_process_zero:
            return
        if not self._is_training:
            self._log_all(counted, split, state)
            return
        self._last[split] = counted
        step = round(state.epoch) if self.step == "epoch" else state.global_step
        log(report, run=self._destinations(), split=split, step=step, **self.logging)

    on_predict = on_evaluate
    """Log everything about predictions with labels."""

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Log everything about the last evaluation."""
        self._is_training = False
        if args.eval_strategy == "no" and not self._last and state.is_world_process_zero:
            warn(
                "training evaluated nothing, so nothing is logged yet; call trainer.evaluate(), or train with "
                "TrainingArguments(eval_strategy='epoch')"
            )
        self._finish(state)


def _is_classifier(model: Any) -> bool:
    """Return True for a classifier of transformers with one label per sample or token: its outputs are logits."""
    config = getattr(model, "config", None)
    if problem := getattr(config, "problem_type", None):
        return bool(problem == "single_label_classification")
    heads = [kind.__name__ for kind in type(model).__mro__ if kind.__module__.startswith("transformers.")]
    return any(name.endswith("Classification") for name in heads) and getattr(config, "num_labels", 0) > 1
