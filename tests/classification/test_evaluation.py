import json

import numpy as np
import pytest
import torch
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

import uq_tracking as uq
from uq_tracking.errors import SettingsError, TrackingWarning, UnknownMetricError
from uq_tracking.recalibration import Recalibration

from .made import pixels, same, samples, softmax


def naive_ece(labels, probs, n_bins=10):
    """ECE in float64 by plain binning."""
    confidence, right = probs.max(axis=1).astype(float), probs.argmax(axis=1) == labels
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs(right[bins == b].sum() - confidence[bins == b].sum()) for b in range(n_bins)]
    return sum(gaps) / len(labels)


def test_a_case_by_hand():
    report = uq.evaluate([0, 1, 1, 0], probs=[[0.75, 0.25], [0.25, 0.75], [0.875, 0.125], [0.5, 0.5]])
    scores = report.scores
    assert scores["accuracy"] == 0.75
    expected = {
        "nll": -np.mean(np.log([0.75, 0.75, 0.125, 0.5])),
        "brier": np.mean([0.125, 0.125, 2 * 0.875**2, 0.5]),
        "ece": (2 * 0.25 + 0.875 + 0.5) / 4,
        "mce": 0.875,
        "miou": (2 / 3 + 1 / 2) / 2,
        "aurc": (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4,
    }
    for key, value in expected.items():
        np.testing.assert_allclose(scores[key], value, rtol=1e-14, err_msg=key)
    assert report.undefined == {"ace": "4 samples cannot fill 10 bins; lower n_bins"}


def test_pixels_are_scored_as_samples():
    labels, probs = pixels()
    flat = uq.evaluate(labels.reshape(-1), probs=probs.reshape(-1, 4))
    channels_first = np.moveaxis(probs, -1, 1)
    same(flat, uq.evaluate(labels, probs=channels_first, class_axis=1), rtol=0, atol=0)
    tensors = torch.from_numpy(labels), torch.from_numpy(np.ascontiguousarray(channels_first))
    same(flat, uq.evaluate(tensors[0], probs=tensors[1], class_axis=1), rtol=0, atol=0)


def test_logits_score_as_their_softmax():
    labels, z = samples()
    same(
        uq.evaluate(labels, probs=softmax(z)), uq.evaluate(labels, probs=z, logits=True),
        rtol=1e-11,
    )  # fmt: skip


def test_a_binary_classifier_in_one_or_two_columns():
    labels, z = samples(classes=2)
    one = z[:, 1] - z[:, 0]
    p = 1 / (1 + np.exp(-one))
    both = uq.evaluate(labels, probs=np.stack([1 - p, p], axis=1))
    same(both, uq.evaluate(labels, probs=p))
    same(both, uq.evaluate(labels, probs=one, logits=True), rtol=1e-10)


def test_an_ensemble_scores_as_its_mean():
    labels, z = samples()
    members = np.stack([softmax(z), softmax(z / 2), softmax(z + 1.0)])
    report = uq.evaluate(labels, probs=members, members_axis=0)
    same(report, uq.evaluate(labels, probs=members.mean(axis=0)))
    assert report.settings["n_members"] == 3


def test_ignored_pixels_are_as_if_they_were_not_there():
    labels, probs = pixels()
    marked = labels.copy()
    marked[:, :5] = 255
    report = uq.evaluate(marked, probs=probs, ignore_label=255)
    same(report, uq.evaluate(labels[:, 5:], probs=probs[:, 5:]), rtol=1e-12)
    assert report.counts["n_ignored"] == (marked == 255).sum()
    masked = uq.evaluate(labels, probs=probs, mask=marked == 255)
    same(report, masked, rtol=0, atol=0)
    assert masked.counts["n_masked"] == report.counts["n_ignored"]


def test_an_impossible_label_makes_the_log_score_undefined():
    report = uq.evaluate([0, 1], probs=[[1.0, 0.0], [1.0, 0.0]])
    assert report.undefined["nll"] == "infinite: 0.5 of the true classes have probability 0"
    logits = uq.evaluate([0, 1], probs=[[900.0, 0.0], [900.0, 0.0]], logits=True, class_axis=1)
    assert logits.scores["nll"] == 450.0


@pytest.mark.parametrize("classes", [2, 5, 30])
def test_ece_is_that_of_torchmetrics(classes):
    labels, z = samples(3000, classes)
    probs, key = softmax(z), "ece_top" if classes == 2 else "ece"
    peer = multiclass_calibration_error(
        torch.from_numpy(probs), torch.from_numpy(labels), num_classes=classes, n_bins=10, norm="l1"
    )
    np.testing.assert_allclose(uq.evaluate(labels, probs=probs).scores[key], peer.item(), rtol=1e-5)


@pytest.fixture(scope="module")
def many():
    """Two million float32 samples."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((2_000_000, 3), dtype=np.float32)
    labels = (softmax(z).cumsum(axis=1) > rng.random((len(z), 1))).argmax(axis=1)
    return labels.astype(np.uint8), softmax(2 * z)


@pytest.mark.parametrize("method", ["exact", "sketch"])
@pytest.mark.slow
def test_float32_scores_as_its_float64_copy(many, method):
    labels, probs = many
    assert probs.dtype == np.float32
    one = uq.evaluate(labels, probs=probs, statistics=method)
    two = uq.evaluate(labels, probs=probs.astype(np.float64), statistics=method)
    same(one, two, rtol=0, atol=1e-6)
    assert abs(one.scores["ece"] - naive_ece(labels, probs)) < 1e-9
    assert one.statistics.tables["confusion"].count.dtype == np.int64
    assert one.statistics.tables["confusion"].count.sum() == len(labels)


@pytest.mark.slow
def test_sums_go_on_where_float32_bins_stop():
    """A float32 count stops at 2**24; torchmetrics then finds this overconfident classifier perfectly calibrated."""
    n = 3 << 23
    labels = np.ones(n, dtype=np.int8)
    labels[::4] = 0
    probs = np.full(n, 0.9375, dtype=np.float32)  # of class 1, which is right three times of four
    peer = binary_calibration_error(torch.from_numpy(probs), torch.from_numpy(labels), n_bins=10)
    assert peer.item() < 0.01
    report = uq.evaluate(labels, probs=probs, metrics=["ece", "accuracy"])
    assert report.scores == {"ece": 0.9375 - 0.75, "accuracy": 0.75}
    assert report.provenance["statistics"] == "sketch"


def test_curves_agree_with_their_scores():
    labels, z = samples(5000)
    report = uq.evaluate(labels, probs=softmax(z), n_bins=15)
    bins = report.curves["reliability"].columns
    assert list(bins) == [
        "confidence_low", "confidence_high", "confidence", "accuracy", "count", "chance_low", "chance_high",
    ]  # fmt: skip
    assert bins["count"].sum() == 5000
    assert (bins["confidence_low"] <= bins["confidence"]).all()
    assert (bins["confidence"] <= bins["confidence_high"]).all()
    ece = np.sum(bins["count"] * np.abs(bins["accuracy"] - bins["confidence"])) / 5000
    np.testing.assert_allclose(report.scores["ece"], ece, rtol=1e-12)
    gap = report.curves["sparsification_error_brier"].columns
    np.testing.assert_allclose(
        report.scores["ause_brier"], np.trapezoid(gap["error"], gap["fraction"]), rtol=1e-12
    )
    risk = report.curves["risk_coverage"].columns
    assert risk["coverage"][-1] == 1
    np.testing.assert_allclose(risk["risk"][-1], 1 - report.scores["accuracy"], rtol=1e-12)
    order = np.argsort(-softmax(z).max(axis=1))
    wrong = (softmax(z).argmax(axis=1) != labels)[order]
    np.testing.assert_allclose(risk["risk"][9], wrong[:500].mean(), rtol=1e-12)


def test_empty_bins_are_left_out_of_the_curve():
    probs = [[0.95, 0.05, 0.0], [0.55, 0.45, 0.0], [0.52, 0.48, 0.0]]
    curve = uq.evaluate([0, 0, 1], probs=probs).curves["reliability"]
    np.testing.assert_array_equal(curve.columns["count"], [2, 1])
    np.testing.assert_array_equal(curve.steps, [5, 9])


def test_a_perfect_classifier_has_no_sparsification():
    report = uq.evaluate(np.arange(10) % 3, probs=np.eye(3)[np.arange(10) % 3])
    assert report.undefined == {
        "ause_brier": "every Brier score is 0, so there is no error to normalize by",
        "failure_auroc": "all samples, or none, are classified correctly",
    }
    assert "sparsification_brier" not in report.curves
    assert report.scores["ece"] == 0


def test_a_report_survives_its_files(tmp_path):
    labels, z = samples()
    report = uq.evaluate(labels, probs=softmax(z), classes=list("abcd"))
    assert uq.Report.from_json(report.to_json()) == report
    report.to_npz(tmp_path / "report.npz")
    read = uq.Report.from_npz(tmp_path / "report.npz")
    assert read == report
    assert read.statistics.n == report.statistics.n
    assert json.loads(report.to_json())["settings"]["classes"] == list("abcd")
    assert "Share of samples classified correctly" in str(report)


def test_class_predictions_stand_for_the_input():
    labels, z = samples()
    data = uq.Predictions.from_probs(labels, z, logits=True)
    same(uq.evaluate(data), uq.evaluate(labels, probs=z, logits=True), rtol=0, atol=0)
    with pytest.raises(SettingsError, match=r"pass logits, probs to Predictions\.from_probs"):
        uq.evaluate(data, probs=z, logits=True)


def test_wrong_arguments():
    with pytest.raises(SettingsError, match=r"y_pred and y_std are missing; .*probs="):
        uq.evaluate([0, 1])
    with pytest.raises(SettingsError, match="statistics is 'fast'"):
        uq.evaluate([0, 1], probs=[0.2, 0.9], statistics="fast")
    with pytest.raises(UnknownMetricError, match="no classification metric is called rmse"):
        uq.evaluate([0, 1], probs=[0.2, 0.9], metrics=["rmse"])
    with pytest.raises(SettingsError, match="n_bins is 0"):
        uq.evaluate([0, 1], probs=[0.2, 0.9], n_bins=0)


class TestTemperature:
    def test_a_fit_to_the_samples_that_are_scored_is_told(self):
        labels, z = samples(500, factor=2.5)
        with pytest.warns(TrackingWarning, match="temperature was fitted on the samples it is scored on"):
            uq.evaluate(labels, probs=z, logits=True, calibration=(labels, z))

    def test_a_second_set_recovers_the_factor(self):
        labels, z = samples(20_000, factor=2.5)
        report = uq.evaluate(labels[::2], probs=z[::2], logits=True, calibration=(labels[1::2], z[1::2]))
        entry = report.recalibration["methods"]["temperature"]
        assert entry["how"] == "second set"
        assert abs(entry["scalars"]["temperature"] - 2.5) < 0.1
        assert entry["scores"]["nll"] < report.scores["nll"] - 0.1
        assert entry["scores"]["ece"] < 0.02 < report.scores["ece"]
        assert entry["scores"]["accuracy"] == report.scores["accuracy"]
        assert "reliability_recalibrated" in report.curves
        fitted = Recalibration.from_dict(entry["recalibration"])
        after = uq.evaluate(labels[::2], probs=fitted.apply(z[::2], logits=True))
        np.testing.assert_allclose(after.scores["nll"], entry["scores"]["nll"], rtol=1e-12)
        again = uq.evaluate(labels[::2], probs=z[::2], logits=True, calibration=fitted)
        assert again.recalibration["methods"]["temperature"]["how"] == "fitted object"
        assert again.recalibration["methods"]["temperature"]["scores"] == entry["scores"]

    def test_probabilities_ensembles_and_one_column_too(self):
        labels, z = samples(8000, 2, factor=2.0)
        half = slice(0, 4000), slice(4000, None)
        one = z[:, 1] - z[:, 0]
        members = np.stack([softmax(z), softmax(z * 1.1)])
        for probs, options in (
            (softmax(z), {}),
            (softmax(z)[:, 1], {}),
            (one, {"logits": True}),
            (members, {"members_axis": 0}),
        ):
            parts = [probs[:, part] if "members_axis" in options else probs[part] for part in half]
            report = uq.evaluate(
                labels[half[0]],
                probs=parts[0],
                calibration=(labels[half[1]], parts[1]),
                recalibration="temperature",
                **options,
            )
            after = report.recalibration["methods"]["temperature"]
            assert abs(after["scalars"]["temperature"] - 2.0) < 0.25
            assert after["scores"]["nll"] < report.scores["nll"]

    def test_what_cannot_be_fitted_is_said(self):
        labels, z = samples(500)
        sure = np.eye(4)[labels]
        with pytest.warns(TrackingWarning, match="no scores after temperature: .*tends to 0"):
            report = uq.evaluate(labels, probs=softmax(z), calibration=(labels, sure))
        assert "tends to 0" in report.recalibration["methods"]["temperature"]["refused"]
        with pytest.raises(SettingsError, match="no recalibration method is called 'platt'"):
            uq.evaluate(labels, probs=z, logits=True, calibration="platt")

    def test_another_number_of_classes_is_refused(self):
        labels, z = samples(500)
        temperature = uq.recalibrate((labels, z), "temperature", logits=True)
        with pytest.raises(
            SettingsError, match="fitted to 4 logits per sample, but these predictions have 3"
        ):
            uq.evaluate(uq.Predictions.from_probs(*samples(500, 3), logits=True), calibration=temperature)

    def test_a_cross_fit_is_that_of_literal_halves(self):
        labels, z = samples(3000, factor=2.0)
        groups = np.arange(3000) // 150
        report = uq.evaluate(labels, probs=z, logits=True, groups=groups, calibration=True)
        entry = report.recalibration["methods"]["temperature"]
        assert entry["how"] == "fitted on half of the groups, scored on the others"
        second = np.isin(groups, np.random.default_rng(0).permutation(20)[:10])
        used = entry["split"]["scalars"]["temperature"]
        fitted = uq.recalibrate((labels[~second], z[~second]), "temperature", logits=True)
        # the search ends within 1e-8
        assert used == pytest.approx(fitted.temperature, rel=1e-6)
        assert (entry["split"]["fitted"], entry["split"]["scored"]) == (1500, 1500)
        unseen = uq.evaluate(labels[second], probs=z[second] / used, logits=True)
        after = report.after().scores
        assert unseen.scores.keys() - after.keys() == {"cwece", "worst_class_gap"}
        for key, value in after.items():
            assert value == pytest.approx(unseen.scores[key], rel=1e-11), key
        assert 0 < entry["spread"]["nll"] < 0.1
        whole = uq.recalibrate((labels, z), "temperature", logits=True).temperature
        assert entry["scalars"]["temperature"] == pytest.approx(whole, rel=1e-6)
        assert entry["scores"]["nll"] < report.scores["nll"] - 0.1
        assert "reliability_recalibrated" in report.curves

    @pytest.mark.parametrize("method", ["exact", "sketch"])
    def test_a_cross_fit_without_groups_is_random(self, method):
        labels, probs = pixels()
        marked = np.where(np.arange(labels.size).reshape(labels.shape) % 7, labels, 9)
        options = {"ignore_label": 9, "statistics": method}
        report = uq.evaluate(marked, probs=probs, calibration=True, **options)
        entry = report.recalibration["methods"]["temperature"]
        assert entry["how"] == "fitted on a random half of the samples, scored on the others"
        assert entry["split"]["fitted"] + entry["split"]["scored"] == report.counts["n"]
        keep = marked.reshape(-1) != 9
        flat = {"y_true": labels.reshape(-1)[keep], "probs": probs.reshape(-1, 4)[keep], "statistics": method}
        again = uq.evaluate(**flat, calibration="temperature")
        same(report.after(), again.after(), rtol=1e-9, atol=1e-12)
        assert Recalibration.from_dict(entry["recalibration"]).fitted_on.n == report.counts["n"]

    def test_one_group_cannot_be_cross_fitted(self):
        labels, z = samples(300)
        with pytest.warns(
            TrackingWarning, match="cross-fitting needs at least two groups; pass a second set"
        ):
            report = uq.evaluate(labels, probs=z, logits=True, groups=np.zeros(300, int), calibration=True)
        assert "two groups" in report.recalibration["methods"]["temperature"]["refused"]
        assert report.scores
