"""A Lightning callback that scores the uncertainty of every validation and test epoch, and logs it.

Works with ``lightning.pytorch`` and ``pytorch_lightning``, which are looked up when a callback is made.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from uq_tracking.checks import check_choice, value_text
from uq_tracking.errors import InputTypeError, SettingsError, warn
from uq_tracking.frameworks.training import CallbackOptions, TrainingCallback, framework, with_all_options
from uq_tracking.report import Report
from uq_tracking.streams.accumulator import Accumulator
from uq_tracking.streams.engines import arguments_of
from uq_tracking.tasks import REGRESSION
from uq_tracking.tracking.content import logged_scores
from uq_tracking.tracking.log import log
from uq_tracking.tracking.names import check_split
from uq_tracking.tracking.resolve import targets_of
from uq_tracking.typed import Unpack

Stage = Literal["validate", "test"]
StepKind = Literal["epoch", "global_step"]

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")
_STEPS = {"validate": "validation_step", "test": "test_step"}
KEYS = {"regression": ("target", "mean", "std"), "classification": ("labels", "probs")}
"""Entries of a step's output, by task."""


class UncertaintyCallback(TrainingCallback):
    """Collects the predictions of validation and test steps, and logs their scores.

    During ``fit``, the scores of every validation epoch are logged at ``step``, and after training the last epoch is
    logged with curves, figures, maps and files. ``trainer.validate`` and ``trainer.test`` log everything at once.
    Batches are counted on their own device and in constant memory; with several processes, rank zero logs the samples
    of all. The sanity check before training is used to check what steps return, and is not logged: it stops if no
    prediction can be scored.

    The scores are also Lightning metrics under their logged names, so that ``EarlyStopping(monitor="uq/val/nll")``
    and ``ModelCheckpoint`` can monitor them; they are NaN if undefined. After ``trainer.validate`` or
    ``trainer.test`` they are in ``trainer.callback_metrics``, not in the dicts returned.

    **Where it logs**: to every logger of the trainer that is a known tracker (`MLFlowLogger`, `WandbLogger`,
    `TensorBoardLogger`). Any other logger receives the scores through ``log_metrics``, and the final report goes into
    the folder ``uq`` of its ``log_dir``. Without a logger, it logs where `log` would. A failing tracker causes a
    warning, but never stops training.

    Parameters
    ----------
    read : callable, optional
        Receives the step's output and the batch, and returns ``(target, mean, std)`` or ``(labels, probs)``;
        predictions; or a dict of arguments for the accumulator's ``update``: ``y_true``, ``y_pred``, ``y_std``,
        ``mask``, ``groups`` ...
    keys : sequence of str, optional
        Without ``read``: the entries of the dict returned by the step; by default ``target``, ``mean``, ``std``, or
        ``labels``, ``probs``.
    task : {"regression", "classification"}
        What the model predicts: means and standard deviations, or class probabilities. By default what the options
        are for (``logits``, ``classes``), else a regression.
    splits : mapping
        Which of the stages ``"validate"`` and ``"test"`` to score, and the split to use in names. With several data
        loaders in sequence, ``_0``, ``_1`` ... is appended.
    scores : "headline" or "all"
        Which scores loggers show, as for `log`; all of them can be monitored.
    step : {"epoch", "global_step"}
        The step at which to log a validation epoch's scores. With several validations per epoch
        (``val_check_interval``), "epoch" puts them on one step; choose "global_step".
    on_invalid : {"skip", "drop", "raise"}
        If predictions are non-finite or a std is negative: skip the epoch, with a warning; score the rest; or stop
        with an error.
    method, run, figures, tags, strict
        As for `log`; ``run`` replaces the trainer's loggers. An address that creates a run (``mlflow:EXPERIMENT``)
        creates one per fit, which later validations and tests join.
    statistics : {"sketch", "exact"}
        As for `Accumulator`.
    **options
        As for `Accumulator`: ``unit``, ``alpha``, ``n_bins``, ``maps`` ...

    Raises
    ------
    SettingsError
        An option is unknown or out of range.
    UnknownBackendError
        No installed backend has the scheme of an address in ``run``.
    MissingPackageError
        Lightning is not installed.

    Examples
    --------
    >>> callback = UncertaintyCallback(method="mean-variance network", unit="m")
    >>> # trainer = Trainer(logger=MLFlowLogger(), callbacks=[callback])

    Notes
    -----
    A distributed sampler repeats samples until all ranks have equally many, and repeated samples count twice. Make
    the number of samples a multiple of the number of ranks, or use ``Trainer(use_distributed_sampler=False)`` with a
    sampler that does not repeat samples.
    """

    @with_all_options
    def __init__(
        self,
        *,
        keys: Sequence[str] | None = None,
        splits: Mapping[Stage, str] | None = None,
        step: StepKind = "epoch",
        **options: Unpack[CallbackOptions],
    ) -> None:
        super().__init__(**options)
        wanted = KEYS[(self.task or REGRESSION).name]
        keys = wanted if keys is None else keys
        splits = {"validate": "val", "test": "test"} if splits is None else splits
        if not isinstance(keys, list | tuple) or [type(key) for key in keys] != [str] * len(wanted):
            raise SettingsError(f"keys is {value_text(keys)}; name {len(wanted)} entries, truth first")
        _check_splits(splits)
        check_choice("step", step, get_args(StepKind))
        self.splits, self.keys, self.step = dict(splits), tuple(keys), step
        self._counting: list[Accumulator] = []
        self._counted = 0
        """The last data loader with a batch."""

    @staticmethod
    def framework_bases() -> tuple[type, ...]:
        """Return the callbacks of the Lightning packages in use, which neither accepts of the other, else of one."""
        loaded = [sys.modules[name] for name in _PACKAGES if hasattr(sys.modules.get(name), "Callback")]
        return tuple(package.Callback for package in loaded or [framework("Lightning", *_PACKAGES)])

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Check ids of runs before the first batch; a fit makes a run of its own."""
        if stage == "fit":
            self._runs.forget()
        if _logs(trainer):
            self._runs.check(ids=True)

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Start counting."""
        self._counting = [self._empty() for _ in _batches(trainer)] if _stage(trainer) in self.splits else []
        self._counted = 0

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Count a batch: what the step returned, the batch, its number and its data loader's."""
        if self._counting:
            found = self._read(outputs, trainer) if self.read is None else self.read(outputs, batch)
            self._counting[dataloader_idx].update(**arguments_of(found, "what read returned"))
            self._counted = max(self._counted, dataloader_idx)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Score and log the scores; outside training, log everything."""
        counted, self._counting = self._counting, []
        if not self._counted and all(_batches(trainer)):
            counted = counted[:1]  # a CombinedLoader reads all of its loaders at once
        for place, accumulator in enumerate(counted):
            split = self.splits[_stage(trainer)] + (f"_{place}" if len(counted) > 1 else "")
            if trainer.world_size > 1:
                accumulator.all_reduce()
            if trainer.sanity_checking:
                self._check_first(accumulator, split)
                continue
            epoch = f"epoch {trainer.current_epoch} of "
            report = self._scored(accumulator, split, leads=trainer.is_global_zero, epoch=epoch)
            monitored = self._monitored(accumulator, report, split)
            pl_module.log_dict(monitored, logger=False, sync_dist=trainer.world_size > 1)
            if report is None:
                continue
            if trainer.state.fn == "fit":
                self._last[split] = accumulator
                self._log_step(report, split, trainer)
            else:
                self._log_all(accumulator, split, trainer)

    on_test_epoch_start = on_validation_epoch_start
    on_test_batch_end = on_validation_batch_end
    on_test_epoch_end = on_validation_epoch_end

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Log everything about the last validation epoch."""
        self._finish(trainer)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Log everything about the last validation epoch when training is interrupted."""
        self._finish(trainer, strict=False)  # nothing may hide the exception

    def _read(self, outputs: Any, trainer: Any) -> tuple[Any, ...]:
        """The entries of a step's dict; InputTypeError if it is none, or lacks one."""
        if isinstance(outputs, Mapping) and all(key in outputs for key in self.keys):
            return tuple(outputs[key] for key in self.keys)
        is_dict = isinstance(outputs, Mapping)
        found = f"a dict of {sorted(map(str, outputs))}" if is_dict else type(outputs).__name__
        raise InputTypeError(
            f"{_STEPS[_stage(trainer)]} returned {found}, which lacks {', '.join(map(repr, self.keys))}; "
            "return a dict with them, name its entries with keys=, or pass read="
        )

    def _log_step(self, report: Report, split: str, trainer: Any) -> None:
        if not _logs(trainer):
            return
        step = trainer.current_epoch if self.step == "epoch" else trainer.global_step
        known, others = self._known_and_others(trainer)
        if known or not others:
            log(report, run=known or None, split=split, step=step, **self.logging)
        scores = logged_scores(report, split, self.logging["scores"])
        for logger in others:
            try:
                logger.log_metrics(scores, step=step)
            except Exception as error:  # loggers raise whatever their libraries raise
                if self.logging["strict"]:
                    raise
                name = type(logger).__name__
                warn(f"{name} did not take the scores. {type(error).__name__}: {error}")

    def _log_all(self, accumulator: Accumulator, split: str, trainer: Any, **changes: Any) -> None:
        if not _logs(trainer):
            return
        known, others = self._known_and_others(trainer)
        folders = [Path(folder) / "uq" for logger in others if (folder := getattr(logger, "log_dir", None))]
        log(accumulator, run=[*known, *folders] or None, split=split, **{**self.logging, **changes})

    def _known_and_others(self, trainer: Any) -> tuple[list[Any], list[Any]]:
        """Runs and loggers that `log` accepts, and the other loggers."""
        if self._runs.given is not None:
            return self._runs.opened_once(), []
        known = [logger for logger in trainer.loggers if _is_known(logger)]
        return known, [logger for logger in trainer.loggers if logger not in known]


def _check_splits(splits: Any) -> None:
    """The name of each stage's split; two stages of one name would overwrite each other's scores."""
    if not isinstance(splits, Mapping) or set(splits) - set(get_args(Stage)):
        raise SettingsError(
            f"splits is {value_text(splits)}; pass the name of each stage's split, such as "
            "{'validate': 'val', 'test': 'test'}"
        )
    for stage, split in splits.items():
        if check_split(split) is None:
            raise SettingsError(f"splits has no name for {stage!r}; name it, or omit the stage")
    if len(set(splits.values())) < len(splits):
        raise SettingsError(
            f"splits is {value_text(splits)}; name the stages differently, or one overwrites the other"
        )


def _stage(trainer: Any) -> Stage:
    """Return what is being evaluated; the sanity check is a validation."""
    return "test" if trainer.testing else "validate"


def _batches(trainer: Any) -> Sequence[Any]:
    """Number of batches of each data loader."""
    found = trainer.num_test_batches if trainer.testing else trainer.num_val_batches
    return found if isinstance(found, Sequence) else [found]


def _logs(trainer: Any) -> bool:
    """True on rank zero, unless this is a trial of a few batches."""
    return bool(trainer.is_global_zero and not trainer.fast_dev_run)


def _is_known(logger: Any) -> bool:
    try:
        targets_of(logger, None, name="")
    except SettingsError:
        return False
    return True
