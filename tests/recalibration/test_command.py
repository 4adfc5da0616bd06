from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import uq_tracking as uq
from uq_tracking.cli import app

from .samples import overconfident


@pytest.fixture
def runs(tmp_path):
    uq.log(*overconfident(1500), run=f"dir:{tmp_path / 'runs'}", split="val", figures=False, strict=True)
    np.savez(tmp_path / "new.npz", spread=[0.5, 1.0], mean=[0.0, 1.0])
    return tmp_path


def command(runs, *more):
    return CliRunner().invoke(app, ["recalibrate", f"dir:{runs / 'runs'}", *(str(word) for word in more)])


def test_a_file_is_recalibrated_by_a_run(runs):
    done = command(runs, "--split", "val", "--apply", runs / "new.npz", "--columns", "std=spread")
    assert done.exit_code == 0, done.output
    assert "std_scale: " in done.output
    assert "fitted on: 1,500 samples" in done.output
    with np.load(runs / "new.recalibrated.npz") as arrays:
        expected = uq.recalibrate(overconfident(1500)).apply_std([0.5, 1.0])
        assert_allclose(arrays["spread_recalibrated"], expected, rtol=1e-12)


def test_without_a_file_the_parameters_are_shown(runs):
    done = command(runs, "--split", "val", "--method", "cdf_isotonic")
    assert done.exit_code == 0, done.output
    assert "cdf_scale: " in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--split", "test"), "name the split"),
        (("--split", "val", "--apply", "nowhere.npz"), "there is no file nowhere.npz"),
        (("--split", "val", "--columns", "target=y"), "reads only std, mean and by"),
        (("--split", "val", "--method", "platt"), "no recalibration method is called 'platt'"),
    ],
)
def test_mistakes_are_one_line(runs, words, message):
    done = command(runs, *words)
    assert done.exit_code == 1
    assert message in done.output
    assert "Traceback" not in done.output
