"""Conformal intervals by group: the guarantee within each, saved and applied like the others."""

import math

import numpy as np
import pytest
from typer.testing import CliRunner

import uq_tracking as uq
from uq_tracking.cli import app
from uq_tracking.errors import FileFormatError, RecalibrationError, SettingsError, ShapeError, TrackingWarning
from uq_tracking.recalibration import ConformalBy, Recalibration, recalibrate_file


def sample(rng, n, groups=("near", "far")):
    """Errors that are stated right in the first group and three times too small in the second."""
    mean, std, by = rng.normal(size=n), rng.gamma(3.0, size=n), rng.choice(groups, n, p=[0.7, 0.3])
    return mean + std * np.where(by == groups[0], 1.0, 3.0) * rng.normal(size=n), mean, std, by


def fitted(data, **options):
    return uq.recalibrate(data[:3], "conformal_by", by=data[3], **options)


def test_each_group_has_the_order_statistic_of_its_own():
    truth, mean, std, by = data = sample(np.random.default_rng(0), 200)
    rule = fitted(data)
    for label in ("near", "far"):
        residuals = np.sort((np.abs(truth - mean) / std)[by == label])
        expected = residuals[math.ceil((len(residuals) + 1) * 0.9) - 1]
        assert rule.radius(0.9, label) == pytest.approx(expected, rel=1e-12)
    assert rule.labels == ("far", "near")
    assert rule.fitted_on.n == 200


def test_coverage_holds_in_every_group_where_one_rule_for_all_fails():
    rng = np.random.default_rng(1)
    inside = {label: ([], []) for label in ("near", "far")}
    for _ in range(60):
        fit, (truth, mean, std, by) = sample(rng, 300), sample(rng, 300)
        together = uq.recalibrate(fit[:3], "conformal").interval(mean, std, 0.9)
        each = fitted(fit).interval(mean, std, 0.9, by=by)
        for label, found in inside.items():
            for rule, (low, high) in zip(found, (together, each), strict=True):
                rule.append(np.mean(((low <= truth) & (truth <= high))[by == label]))
    for label, (together, each) in inside.items():
        error = 4 * np.std(each) / np.sqrt(len(each))
        assert 0.9 - error <= np.mean(each) <= 0.9 + 1 / 80 + error, label
        assert abs(np.mean(together) - 0.9) > 0.05, label


@pytest.mark.parametrize("labels", [("near", "far"), (0, 1), (False, True)])
def test_saved_and_applied_like_the_others(labels, tmp_path):
    truth, mean, std, by = data = sample(np.random.default_rng(2), 300, labels)
    rule = fitted(data, split="validation")
    rule.to_json(tmp_path / "rule.json")
    back = Recalibration.from_json(tmp_path / "rule.json")
    assert isinstance(back, ConformalBy)
    assert back == rule
    new_mean, new_std = back.apply(mean, std, by)
    np.testing.assert_array_equal(new_mean, mean)
    ratio = [np.unique(np.round((new_std / std)[by == label], 9)) for label in labels]
    assert [len(each) for each in ratio] == [1, 1]
    assert ratio[1][0] / ratio[0][0] == pytest.approx(3, rel=0.25)
    again = back.apply_to(uq.Predictions(truth, mean, std, by=by))
    np.testing.assert_allclose(again.std, new_std, rtol=1e-12)
    low, high = (back.quantile(mean, std, q, by=by) for q in (0.05, 0.95))
    exact = back.interval(mean, std, 0.9, by=by)
    np.testing.assert_allclose(high - low, exact[1] - exact[0], rtol=0.06)


def test_predictions_hold_their_groups_and_masks():
    truth, mean, std, by = sample(np.random.default_rng(3), 300)
    hole = np.arange(300) % 7 == 0
    data = uq.Predictions(truth, mean, std, by=by, mask=hole)
    rule = uq.recalibrate(data, "conformal_by")
    assert sum(one.n for one in rule.rules.values()) == rule.fitted_on.n == data.n
    after = rule.apply_to(data)
    np.testing.assert_array_equal(after.std[hole], std[hole])
    assert np.all(after.std[~hole] != std[~hole])


def test_scores_after_it():
    rng = np.random.default_rng(4)
    truth, mean, std, by = sample(rng, 2000)
    *second, second_by = sample(rng, 2000)
    report = uq.evaluate(truth, mean, std, by=by, calibration=fitted(sample(rng, 2000)))
    after = report.recalibration["methods"]["conformal_by"]
    assert after["scores"]["z_std"] == pytest.approx(1, abs=0.06)
    assert after["scores"]["spearman"] > report.scores["spearman"] + 0.1
    assert "its own distribution" in after["undefined"]["coverage_95"]
    crossed = uq.evaluate(truth, mean, std, by=by, calibration=["conformal_by"])
    assert crossed.recalibration["methods"]["conformal_by"]["scores"]["z_std"] == pytest.approx(1, abs=0.1)
    data = uq.Predictions(*second, by=second_by)
    other = uq.evaluate(truth, mean, std, by=by, calibration=data, recalibration="conformal_by")
    assert other.recalibration["methods"]["conformal_by"]["scores"]["z_std"] == pytest.approx(1, abs=0.06)


def test_refusals(tmp_path):
    rng = np.random.default_rng(5)
    truth, mean, std, by = data = sample(rng, 300)
    rule = fitted(data)
    with pytest.raises(RecalibrationError, match="needs the group of each"):
        rule.apply(mean, std)
    with pytest.raises(RecalibrationError, match="'moon' was not in the fit set, which has 'far', 'near'"):
        rule.interval([0.0], [1.0], by=["moon"])
    with pytest.raises(ShapeError, match="by has shape"):
        rule.apply(mean, std, by[:3])
    with pytest.raises(RecalibrationError, match="group 'rare': conformal needs at least 9 samples"):
        fitted((truth, mean, std, np.where(np.arange(300) < 5, "rare", by)))
    with pytest.raises(RecalibrationError, match="which statistics and reports do not hold"):
        uq.recalibrate(uq.evaluate(truth, mean, std), "conformal_by")
    with pytest.raises(SettingsError, match="by= is for conformal_by"):
        uq.recalibrate((truth, mean, std), "conformal", by=by)
    np.savez(tmp_path / "maps.npz", std=std)
    with pytest.raises(RecalibrationError, match="needs the group of each"):
        recalibrate_file(rule, tmp_path / "maps.npz")
    with pytest.warns(UserWarning, match="needs the group of each sample"):
        report = uq.evaluate(truth, mean, std, calibration=["conformal_by"])
    assert "pass by=" in report.recalibration["methods"]["conformal_by"]["refused"]


def test_a_file_names_the_column_of_groups(tmp_path):
    truth, mean, std, by = data = sample(np.random.default_rng(7), 400)
    rule = fitted(data)
    expected = rule.apply(mean, std, by)[1]
    np.savez(tmp_path / "new.npz", std=std, scene=by)
    with np.load(recalibrate_file(rule, tmp_path / "new.npz", by="scene")) as arrays:
        np.testing.assert_array_equal(arrays["std_recalibrated"], expected)
    table = "\n".join(["std,scene", *(f"{s!r},{label}" for s, label in zip(std.tolist(), by, strict=True))])
    (tmp_path / "new.csv").write_text(table + "\n")
    command = ["recalibrate", f"dir:{tmp_path / 'runs'}", "--apply", str(tmp_path / "new.csv")]
    with pytest.warns(
        TrackingWarning, match="conformal_by was fitted on the samples it is scored on"
    ) as told:
        uq.log(truth, mean, std, by=by, calibration=rule, run=f"dir:{tmp_path / 'runs'}", figures=False)
    assert told[0].filename == __file__
    done = CliRunner().invoke(app, [*command, "--columns", "by=scene"])
    assert done.exit_code == 0, done.output
    rows = (tmp_path / "new.recalibrated.csv").read_text().splitlines()
    assert rows[0] == "std,scene,std_recalibrated"
    assert [float(row.split(",")[2]) for row in rows[1:]] == expected.tolist()
    with pytest.raises(FileFormatError, match=r"holds std, scene, but no groups \(place\)"):
        recalibrate_file(rule, tmp_path / "new.csv", by="place")
