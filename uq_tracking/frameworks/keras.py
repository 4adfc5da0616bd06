"""A Keras callback that scores the uncertainty of every epoch on validation data, and logs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from uq_tracking.errors import ShapeError
from uq_tracking.frameworks.training import CallbackOptions, TrainingCallback, framework, with_all_options
from uq_tracking.tracking.log import log
from uq_tracking.tracking.names import check_split
from uq_tracking.typed import Unpack

FIRST = 8
"""Samples that are predicted before training."""


class UncertaintyCallback(TrainingCallback):
    """Predicts validation data after every epoch, scores the predictions, and logs them.

    The scores of every epoch are logged at its number, and after training the last epoch is logged with curves,
    figures, maps and files. Before training a few samples are predicted, so that outputs that cannot be scored stop
    it at once. The scores are also in the epoch's ``logs`` under their logged names, so that the history has
    them and ``EarlyStopping(monitor="uq/val/nll", mode="min")`` can stop by them, if it comes later in the list of
    callbacks.

    **Where it logs**: to the runs that are active when the training begins; else where `log` would.

    Parameters
    ----------
    data : (inputs, labels), or an iterable of such batches
        Validation data: arrays as for ``model.predict``, or a data set that can be read once per epoch.
    read : callable(outputs, labels), optional
        Receives what the model returned and the labels, and returns ``(target, mean, std)`` or ``(labels, probs)``;
        predictions; or a dict of arguments for the accumulator's ``update``. By default the model returns a mean and
        a std, as a pair or along a last axis of length 2; or class probabilities (logits with ``logits=True``). A
        last axis of length 1 that only labels or only outputs have does not count.
    split : str
        Name of the data in the names of scores.
    task : {"regression", "classification"}, optional
        What the model predicts. By default what the options are for (``logits`` and ``classes``, or ``unit``), else
        classes if labels are whole numbers and every class has a column, or labels are 0 and 1 and one column has
        their probabilities. Two columns that do not sum to 1 are refused then, because they may be a mean and a std.
    scores : "headline" or "all"
        Which scores trackers show, as for `log`; the history has all.
    on_invalid : {"skip", "drop", "raise"}
        If predictions are non-finite or a std is negative: skip the epoch, with a warning; score the rest; or stop
        with an error.
    method, run, figures, tags, strict
        As for `log`. An address that creates a run (``mlflow:EXPERIMENT``) creates one per training.
    statistics : {"sketch", "exact"}
        As for `Accumulator`.
    **options
        As for `Accumulator`: ``unit``, ``alpha``, ``logits`` ...

    Raises
    ------
    SettingsError
        An option is unknown or out of range.
    UnknownBackendError
        No installed backend has the scheme of an address in ``run``.
    MissingPackageError
        Keras 3 is not installed.
    """

    model: Any
    """What is trained; Keras sets it."""

    @with_all_options
    def __init__(self, data: Any, *, split: str = "val", **options: Unpack[CallbackOptions]) -> None:
        super().__init__(**options)
        check_split(split)
        self.data, self.split = data, split
        if self._is_arrays and len({len(each) for each in data if hasattr(each, "shape")}) > 1:
            raise ShapeError(
                f"the inputs have {len(data[0])} samples, the labels {len(data[1])}; pass equally many"
            )

    @staticmethod
    def framework_bases() -> tuple[type, ...]:
        """Return Keras' class of callbacks."""
        return (framework("Keras", "keras").callbacks.Callback,)

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Note the runs that are active, and read a few predictions: mistakes come to light before training."""
        self._begin_fit(leads=True)
        for outputs, labels in islice(self._predicted(FIRST), 1):
            arguments = self._read_outputs(outputs, labels)
            counted = self._empty()
            counted.update(**arguments)
            self._check_first(counted, self.split)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Predict, score and log the scores."""
        counted = self._empty()
        for outputs, labels in self._predicted():
            counted.update(**self._read_outputs(outputs, labels))
        report = self._scored(counted, self.split, leads=True, epoch=f"epoch {epoch} of ")
        if logs is not None:
            logs.update(self._monitored(counted, report, self.split))
        if report is not None:
            self._last[self.split] = counted
            log(report, run=self._destinations(), split=self.split, step=epoch, **self.logging)

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Log everything about the last epoch."""
        self._finish(None)

    @property
    def _is_arrays(self) -> bool:
        """Whether the data are inputs and labels, not batches of them."""
        return isinstance(self.data, tuple) and len(self.data) == 2

    def _predicted(self, first: int | None = None) -> Iterator[tuple[Any, Any]]:
        """Predict batch by batch; of arrays, all samples or the first."""
        if self._is_arrays:
            inputs, labels = self.data if first is None else _first(self.data, first)
            yield self.model.predict(inputs, verbose=0), labels
        else:
            for inputs, labels, *_ in self.data:
                yield self.model.predict_on_batch(inputs), labels


def _first(data: Any, number: int) -> Any:
    """Return the first samples of arrays, which may be nested as those of several inputs are."""
    if isinstance(data, Mapping):
        return {name: _first(each, number) for name, each in data.items()}
    if isinstance(data, tuple) or (isinstance(data, list) and hasattr(data[0], "shape")):
        return type(data)(_first(each, number) for each in data)
    return data[:number]
