"""Trainers of both Lightning packages, and what their runs hold."""

from __future__ import annotations

import csv
import re
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

import uq_tracking as uq
from uq_tracking.errors import TrackingWarning

from .tiny import loader

with warnings.catch_warnings():  # the packages' own imports warn
    warnings.simplefilter("ignore")
    import lightning.pytorch

QUIET = [
    pytest.mark.filterwarnings(rf"ignore:::{package}(\.|$)")
    for package in ("lightning", "pytorch_lightning", "lightning_fabric", "torch")
]
"""Marks that keep the warnings of the packages from being errors."""
VAL = loader(40, seed=1)


@contextmanager
def tracking_warning(match):
    """Like ``pytest.warns``, which would make errors of what Lightning and torch warn of; the line is a test's."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    found = [item for item in caught if item.category is TrackingWarning]
    assert len(found) == 1, [str(item.message) for item in found]
    assert re.search(match, str(found[0].message)), found[0].message
    assert Path(found[0].filename).name.startswith("test_")


def trainer(*callbacks, package=lightning.pytorch, **options):
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    options = {
        "max_epochs": 2,
        "accelerator": "cpu",
        "logger": False,
        "log_every_n_steps": 1,
        **quiet,
    } | options
    return package.Trainer(callbacks=list(callbacks), **options)


def report_of(model, data=VAL):
    x, y = data.dataset.tensors
    with torch.no_grad():
        mean, std = model(x)
    return uq.evaluate(y, mean, std)


def rows_of(logger):
    with Path(logger.log_dir, "metrics.csv").open() as file:
        return [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(file)]
