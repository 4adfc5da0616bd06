"""What users pass to the verbs is scored or refused with an error of this package, whatever it is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uq_tracking as uq
from tests.fuzz.test_readers import JSON, QUICK
from uq_tracking.errors import TrackingWarning, UQTrackingError
from uq_tracking.report import Report

FLOATS = st.floats(width=32) | st.sampled_from([0.0, 1.0, np.inf, np.nan, -1.0, 1e-320, 1e-300, 1e160, 1e300])
ROWS = st.lists(st.tuples(FLOATS, FLOATS, FLOATS), max_size=8)
DTYPE_NAMES = ("f8", "f4", "f2", "i8", "u1", "?", "O", "U8", "c16", "M8[s]")
DTYPES = st.sampled_from(DTYPE_NAMES)
SHAPES = st.sampled_from([(-1,), (-1, 1), (1, -1), (1, 1, -1)])
OPTION_NAMES = (
    *(
        "alpha",
        "n_bins",
        "std_floor",
        "on_invalid",
        "unit",
        "mask",
        "intervals",
        "groups",
        "by",
        "level",
        "seed",
    ),
    *("statistics", "calibration", "recalibration", "group_fold"),
)
OPTIONS = st.sampled_from(OPTION_NAMES)
ABOUT_NAMES = ("method", "split", "step", "tags", "figures", "maps", "predictions", "deadline", "images")
ABOUT = st.sampled_from(ABOUT_NAMES)


def scored(call):
    """The report; None where the input is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", TrackingWarning)
        try:
            return call()
        except (UQTrackingError, TypeError):
            return None


@pytest.mark.slow
@QUICK
@given(rows=ROWS, dtype=DTYPES, shape=SHAPES, options=st.dictionaries(OPTIONS, JSON, max_size=2))
def test_evaluate(rows, dtype, shape, options):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            arrays = [np.asarray([row[k] for row in rows]).astype(dtype).reshape(shape) for k in range(3)]
        except (ValueError, OverflowError, TypeError):  # numpy cannot make such an array
            return
    report = scored(lambda: uq.evaluate(*arrays, **options))
    if report is not None:
        assert Report.from_json(report.to_json()) == report


@QUICK
@given(
    labels=st.lists(st.integers(-2, 4), max_size=6),
    values=st.lists(FLOATS, min_size=18, max_size=18),
    classes=st.integers(0, 3),
    options=st.dictionaries(
        OPTIONS | st.sampled_from(["logits", "class_axis", "ignore_label"]), JSON, max_size=2
    ),
)
def test_evaluate_classification(labels, values, classes, options):
    wanted = len(labels) * max(classes, 1)
    probabilities = np.asarray(values[:wanted]).reshape((len(labels), classes) if classes else (-1,))
    report = scored(lambda: uq.evaluate(labels, probs=probabilities, **options))
    if report is not None:
        assert Report.from_json(report.to_json()) == report


@QUICK
@given(about=st.dictionaries(ABOUT, JSON, max_size=3), options=st.dictionaries(OPTIONS, JSON, max_size=1))
def test_log(tmp_path_factory, monkeypatch, about, options):
    """Whatever is said about a call, it is refused before anything is written, or written without a warning."""
    folder = tmp_path_factory.mktemp("log")
    monkeypatch.chdir(folder)
    call = {"figures": False, "maps": False, "run": "dir:runs", **about, **options}
    report = scored(lambda: uq.log([1.0, 2.0, 4.0], [1.5, 2.0, 3.0], [1.0, 0.5, 1.0], **call))
    if report is None:
        assert not (folder / "runs").exists() or not any((folder / "runs").iterdir())
        return
    (run,) = (folder / "runs").iterdir()
    assert (run / "log.jsonl").exists()
