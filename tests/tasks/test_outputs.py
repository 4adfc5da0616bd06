"""Several outputs along the last axis: each as if it were alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.inputs import Predictions
from uq_tracking.report import Reports
from uq_tracking.runs.read import logged_run
from uq_tracking.tracking.folder import FolderStore

NAMES = ["tx", "ty", "tw", "th"]


def boxes(n=400, seed=0):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=(n, 4)), rng.gamma(3, 0.5, (n, 4))
    return mean + np.array([1.0, 1.5, 2.0, 0.5]) * std * rng.normal(size=(n, 4)), mean, std


def test_each_output_is_scored_alone():
    y, mean, std = boxes()
    found = uq.evaluate(y, mean, std, outputs=NAMES)
    assert isinstance(found, Reports)
    assert list(found) == NAMES
    for k, name in enumerate(NAMES):
        assert found[name].scores == uq.evaluate(y[:, k], mean[:, k], std[:, k]).scores


def test_options_reach_every_output():
    y, mean, std = boxes()
    mask = np.zeros(y.shape, bool)
    mask[:10, 1] = True
    found = uq.evaluate(
        y,
        mean,
        std,
        outputs=NAMES,
        mask=mask,
        groups=np.arange(400) // 40,
        unit="m",
        metrics=["rmse"],
    )
    assert [report.counts["n"] for report in found.values()] == [400, 390, 400, 400]
    assert all(report.intervals.keys() == {"rmse"} for report in found.values())
    assert {report.settings["unit"] for report in found.values()} == {"m"}


@pytest.mark.parametrize("second", ["tuple", "mapping", "halves"])
def test_each_output_is_recalibrated_alone(second):
    y, mean, std = boxes(4000)
    other = boxes(4000, seed=1)
    calibration = {
        "tuple": other,
        "mapping": {name: tuple(part[:, k] for part in other) for k, name in enumerate(NAMES)},
        "halves": True,
    }[second]
    found = uq.evaluate(y, mean, std, outputs=NAMES, calibration=calibration)
    scale = [
        report.recalibration["methods"]["std_scaling"]["scalars"]["std_scale"] for report in found.values()
    ]
    assert_allclose(scale, [1.0, 1.5, 2.0, 0.5], rtol=0.05)


def test_a_reference_is_cut_too():
    y, mean, std = boxes()
    found = uq.evaluate(y, mean, std, outputs=NAMES, reference=(mean, 2 * std), metrics=["kl_to_reference"])
    for report in found.values():
        assert_allclose(report.scores["kl_to_reference"], np.log(2) + 1 / 8 - 1 / 2, rtol=1e-12)


def test_they_stand_side_by_side():
    y, mean, std = boxes()
    std[:, 1] = 0
    found = uq.evaluate(y, mean, std, outputs=NAMES, metrics=["rmse", "nll"])
    _, *verdicts, blank, head, _, rmse, nll = str(found).splitlines()
    assert [line.partition(":")[0] for line in verdicts] == list(NAMES)
    assert not blank
    assert head.split() == ["output", *NAMES]
    assert len(rmse.split()) == 5
    assert nll.split()[2] == "-"
    assert found._repr_html_().count("<tr>") == 3


def test_what_is_no_several_outputs_is_refused():
    y, mean, std = boxes()
    with pytest.raises(SettingsError, match="pass y_true, y_pred and y_std"):
        uq.evaluate(Predictions(y, mean, std), None, None, outputs=NAMES)
    with pytest.raises(ShapeError, match="4 entries for 3 outputs"):
        uq.evaluate(y, mean, std, outputs=NAMES[:3])
    with pytest.raises(SettingsError, match="no entry for output 'tx'"):
        uq.evaluate(y, mean, std, outputs=NAMES, calibration={"other": True})
    with pytest.raises(ShapeError, match=r"calibration has shape \(400, 3\)"):
        uq.evaluate(y, mean, std, outputs=NAMES, calibration=(y[:, :3], mean[:, :3], std[:, :3]))


class TestLogged:
    @pytest.mark.slow
    def test_each_under_its_name_in_one_run(self, tmp_path):
        y, mean, std = boxes()
        found = uq.log(
            y,
            mean,
            std,
            outputs=NAMES,
            split="test",
            method="m",
            run=f"dir:{tmp_path}",
            metrics=["rmse", "ence"],
        )
        (stored,) = FolderStore(tmp_path).runs()
        for name in NAMES:
            assert stored.scalars[f"uq/test/{name}/rmse"] == found[name].scores["rmse"]
        files = set(FolderStore(tmp_path).files(stored.run_id))
        assert {f"uq/test/{name}/report.json" for name in NAMES} <= files
        assert {f"uq_test_{name}_reliability.png" for name in NAMES} <= files

    def test_each_is_read_back_as_a_split(self, tmp_path):
        y, mean, std = boxes()
        found = uq.log(y, mean, std, outputs=NAMES, method="m", run=f"dir:{tmp_path}", figures=False)
        back = logged_run(f"dir:{tmp_path}", split="ty")
        assert back.report() == found["ty"]
        assert back.predictions().digest() == Predictions(y[:, 1], mean[:, 1], std[:, 1]).digest()

    def test_an_epoch_is_a_point_for_each(self, tmp_path):
        uq.log(*boxes(), outputs=NAMES, step=3, run=f"dir:{tmp_path}", metrics=["rmse"])
        (stored,) = FolderStore(tmp_path).runs()
        assert stored.scalars.keys() == {f"uq/{name}/rmse" for name in NAMES}

    def test_a_name_that_a_tracker_would_not_take_is_refused(self, tmp_path):
        y, mean, std = boxes()
        with pytest.raises(SettingsError, match=r"'a\*b'"):
            uq.log(y, mean, std, outputs=["a*b", "c", "d", "e"], run=f"dir:{tmp_path}")
        assert not list(tmp_path.iterdir())


def test_outputs_without_a_scale_are_named_without_a_factor():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(1500, 2)) * [1, 2]
    data = uq.Predictions.from_quantiles(
        y[:, 1], np.tile([-1.64, 0, 1.64], (1500, 1)), [0.05, 0.5, 0.95], by=y[:, 0] > 0
    )
    assert (
        uq.evaluate(data).strata.text == "Errors in 2 of 2: 'False' (overconfident), 'True' (overconfident)."
    )


def test_outputs_are_judged_together():
    y, mean, std = boxes(2000)
    found = uq.evaluate(y, mean, std, outputs=NAMES)
    assert found.text.startswith(
        "Errors in 3 of 4: 'tw' (2.0x overconfident), 'th' (1.98x underconfident), 'ty' ("
    )
    assert found.text.endswith("x overconfident).")
    alone, together = uq.evaluate(y[:, 0], mean[:, 0], std[:, 0]).verdict, found["tx"].verdict
    assert (alone.scale.level, together.scale.level) == (0.98, 0.995)
    assert together.scale.low < alone.scale.low < alone.scale.high < together.scale.high
    assert together.bias.high - together.bias.low > alone.bias.high - alone.bias.low
    assert str(found).startswith(found.text)


@pytest.mark.slow
def test_strata_are_judged_together():
    false = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mean, std = rng.normal(size=360), np.exp(0.5 * rng.normal(size=360))
        report = uq.evaluate(mean + std * rng.normal(size=360), mean, std, by=np.arange(360) % 12)
        false += "rrors in" in report.strata.text
    assert false <= 3, "each at its full level, one of twelve has a false word in half of all sets"
