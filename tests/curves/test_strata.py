"""Metrics in strata, against evaluating each stratum by itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.curves import Curve
from uq_tracking.errors import InputTypeError, SettingsError, ShapeError
from uq_tracking.streams.engines import array_blocks

KEYS = ["mae", "n_merci", "coverage_95"]


def data(n=600, seed=0):
    rng = np.random.default_rng(seed)
    y, std = rng.uniform(0.5, 3.0, n), rng.gamma(3, 0.2, n)
    return y, y + std * rng.normal(size=n), std


def test_by_label_is_each_label_evaluated():
    y, mean, std = data()
    by = np.asarray(["sea", "land", "ice"])[np.arange(600) % 3]
    report = uq.evaluate(y, mean, std, by=by, curve_metrics=KEYS)
    for key in KEYS:
        curve = report.curves[f"by_group_{key}"]
        assert curve.labels == ("ice", "land", "sea")
        assert_allclose(curve.columns["count"], 200, rtol=0)
        for label, value in zip(curve.labels, curve.columns[key], strict=True):
            own = by == label
            assert_allclose(value, uq.evaluate(y[own], mean[own], std[own]).scores[key], rtol=1e-12)


@pytest.mark.parametrize(("width", "edges"), [(0.5, np.arange(1, 8) / 2), ([0.5, 1.0, 3.0], [0.5, 1.0, 3.0])])
def test_by_target_is_each_interval_evaluated(width, edges):
    y, mean, std = data()
    y[0], y[1] = 3.0, 1.0  # on edges: an interval holds its lower one, the last of given ones both
    report = uq.evaluate(y, mean, std, by_target=width, curve_metrics=KEYS)
    columns = report.curves["by_target_mae"].columns
    assert columns["count"].sum() == 600
    for low, high, value in zip(columns["target_low"], columns["target_high"], columns["mae"], strict=True):
        own = (y >= low) & ((y < high) | ((y == high) & (high == edges[-1])))
        assert_allclose(value, np.abs(y - mean)[own].mean(), rtol=1e-12)


def test_targets_outside_the_edges_are_left_out():
    y, mean, std = data()
    curve = uq.evaluate(y, mean, std, by_target=[1.0, 2.0], curve_metrics=["mae"]).curves["by_target_mae"]
    assert curve.columns["count"] == ((y >= 1) & (y <= 2)).sum()


def test_an_empty_interval_has_no_point():
    y, mean, std = data()
    keep = (y < 1) | (y > 2)
    curve = uq.evaluate(y[keep], mean[keep], std[keep], by_target=0.5).curves["by_target_rmse"]
    assert_allclose(curve.columns["target"], [0.75, 2.25, 2.75], rtol=1e-12)


@pytest.mark.parametrize(
    ("width", "match"),
    [
        (0, "width above 0"),
        (1e-6, "at most 1000"),
        ([1.0], "edges must ascend"),
        ([2.0, 1.0], "edges must ascend"),
    ],
)
def test_bad_intervals_are_refused(width, match):
    with pytest.raises(SettingsError, match=match):
        uq.evaluate(*data(), by_target=width)


def test_labels_survive_json_and_too_many_are_refused():
    y, mean, std = data()
    report = uq.evaluate(y, mean, std, by=np.arange(600) % 7)
    back = uq.Report.from_json(report.to_json())
    assert back == report
    assert back.curves["by_group_rmse"].labels == ("0", "1", "2", "3", "4", "5", "6")
    assert isinstance(back.curves["by_group_rmse"], Curve)
    y, mean, std = data(1001)
    with pytest.raises(SettingsError, match="by has 1001 labels"):
        uq.evaluate(y, mean, std, by=np.arange(1001))


def test_a_stream_has_its_strata_too():
    y, mean, std = data()
    by = np.where(y > 1.5, "far", "near")
    acc = uq.Accumulator()
    for part in np.array_split(np.arange(600), 4):
        acc.update(y[part], mean[part], std[part], by=by[part])
    streamed, whole = (
        acc.compute().curves["by_group_rmse"],
        uq.evaluate(y, mean, std, by=by).curves["by_group_rmse"],
    )
    order = np.argsort(streamed.labels)
    assert_allclose(streamed.columns["rmse"][order], whole.columns["rmse"], rtol=1e-9)


class TestLabelsOfTheLastAxes:
    HOURS = np.array([6, 12, 24, 48])

    def arrays(self, n=50):
        rng = np.random.default_rng(0)
        std = 0.1 * np.sqrt(self.HOURS) * np.ones((n, 1))
        return std * rng.normal(size=(n, 4)), np.zeros((n, 4)), std

    def test_a_curve_and_a_table_by_lead_time(self):
        y, mean, std = self.arrays()
        report = uq.evaluate(y, mean, std, by=self.HOURS, curve_metrics=["rmse", "crps"])
        curve = report.curves["by_group_crps"]
        assert curve.columns["group"].tolist() == self.HOURS.tolist()
        for place, hours in enumerate(self.HOURS):
            own = uq.evaluate(y[:, place], mean[:, place], std[:, place]).scores
            assert report.strata[str(hours)].counts["n"] == 50
            for key in ("rmse", "crps"):
                assert_allclose(report.strata[str(hours)].scores[key], own[key], rtol=1e-12)
                assert_allclose(report.curves[f"by_group_{key}"].columns[key][place], own[key], rtol=1e-12)
        assert Curve.from_dict(curve.to_dict()).columns["group"].tolist() == self.HOURS.tolist()

    @pytest.mark.slow
    def test_of_forms_streams_dask_and_slices(self):
        import dask.array as da

        from uq_tracking.streams.engines import array_blocks

        y, mean, std = self.arrays()
        options = {"by": self.HOURS, "curve_metrics": ["rmse"]}
        whole = uq.evaluate(y, mean, std, **options).strata
        lazy = [da.from_array(array, chunks=(20, 2)) for array in (y, mean, std)]
        assert_same(uq.evaluate(*lazy, **options).strata, whole)
        assert_same(uq.evaluate(array_blocks(y, mean, std, by=self.HOURS, samples=60)).strata, whole)
        draws = uq.Predictions.from_samples(y, np.stack([mean - std, mean + std]), by=self.HOURS)
        assert_same(uq.evaluate(draws, curve_metrics=["rmse"]).strata, whole)
        stream = uq.Accumulator()
        for part in (slice(0, 21), slice(21, 50)):
            stream.update(y[part], mean[part], std[part], by=self.HOURS)
        assert_same(stream.compute().strata, whole)

    def test_two_axes_of_one_length_are_told_apart_by_the_user(self):
        y, mean, std = self.arrays(4)
        with pytest.raises(ShapeError, match=r"equally long; pass by\[:, None\] .* by\[None, :\] for"):
            uq.evaluate(y, mean, std, by=self.HOURS)
        first = uq.evaluate(y, mean, std, by=self.HOURS[:, None], curve_metrics=["rmse"]).strata
        last = uq.evaluate(y, mean, std, by=self.HOURS[None], curve_metrics=["rmse"]).strata
        for place, hours in enumerate(self.HOURS):
            assert_allclose(first[str(hours)].scores["rmse"], np.sqrt(np.mean(y[place] ** 2)))
            assert_allclose(last[str(hours)].scores["rmse"], np.sqrt(np.mean(y[:, place] ** 2)))
        uq.evaluate(y, mean, std, groups=self.HOURS)  # one per entry of the first axis, as ever

    def test_of_two_last_axes(self):
        rng = np.random.default_rng(1)
        y, by = rng.normal(size=(5, 3, 2)), np.array([["a", "b"], ["b", "c"], ["c", "c"]])
        found = uq.evaluate(y, 0 * y, 0 * y + 1, by=by, curve_metrics=["rmse"]).strata
        assert_allclose(found["b"].scores["rmse"], np.sqrt(np.mean(y[:, [0, 1], [1, 0]] ** 2)))

    def test_a_shape_that_fits_no_axis(self):
        y, mean, std = self.arrays()
        with pytest.raises(ShapeError, match=r"by has shape \(3,\); pass .* or one per entry .* last \(4,\)"):
            uq.evaluate(y, mean, std, by=[1, 2, 3])
        with pytest.raises(ShapeError, match=r"groups has shape \(4,\); pass one label per sample \(50, 4\)"):
            uq.evaluate(y, mean, std, groups=self.HOURS)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for label, report in expected.items():
        assert found[label].counts["n"] == report.counts["n"]
        assert_allclose(found[label].scores["rmse"], report.scores["rmse"], rtol=1e-9)


def test_each_label_has_a_whole_report():
    y, mean, std = data()
    by = np.asarray(["sea", "land", "ice"])[np.arange(600) % 3]
    std = np.where(by == "sea", 0.3 * std, std)
    report = uq.evaluate(y, mean, std, by=by, unit="m")
    assert list(report.strata) == ["ice", "land", "sea"]
    sea = uq.evaluate(y[by == "sea"], mean[by == "sea"], std[by == "sea"], unit="m")
    own = report.strata["sea"]
    assert own.scores == sea.scores
    assert own.curves.keys() == sea.curves.keys()
    assert own.noise == sea.noise
    assert (own.verdict.scale.value, own.verdict.bias.value) == (
        sea.verdict.scale.value,
        sea.verdict.bias.value,
    )
    assert own.verdict.bias.level == 1 - (1 - sea.verdict.bias.level) / 3  # three labels are judged together
    assert own.verdict.calibration == "overconfident"
    assert report.strata["ice"].verdict.calibration == "consistent with calibrated"
    assert "sea: Overconfident" in str(report.strata)
    table = report.strata.to_frame()
    assert table.loc["sea", "count"] == 200
    assert table.loc["sea", "rmse"] == own.scores["rmse"]
    back = uq.Report.from_json(report.to_json()).strata
    assert back["sea"].scores == {key: own.scores[key] for key in back["sea"].scores}
    assert {"rmse", "nll"} <= set(back["sea"].scores)
    assert "without their statistics" in back["sea"].verdict.text


def test_strata_hold_the_metrics_that_were_asked_for():
    y, mean, std = data()
    found = uq.evaluate(y, mean, std, by=np.arange(600) % 2, metrics=["mae"], curve_metrics=["rmse"]).strata
    assert set(found["0"].scores) == {"mae", "rmse"}


def test_a_stratum_of_grouped_samples_is_not_judged_as_if_they_were_independent():
    y, mean, std = data()
    found = uq.evaluate(y, mean, std, by=np.arange(600) % 2, groups=np.arange(600) // 20).strata
    assert found["0"].verdict.calibration == "not enough data"
    assert "which samples of a stratum belong to which group is not kept" in found["0"].verdict.text


def two_sets(n=3000):
    rng = np.random.default_rng(5)
    std, mean = np.exp(0.3 * rng.normal(size=n)), rng.normal(size=n)
    sets = {"organ": rng.choice(["liver", "lung"], n, p=[0.3, 0.7]), "site": rng.integers(0, 3, n)}
    truth = mean + std * rng.normal(size=n) * np.where(sets["organ"] == "liver", 1.7, 1)
    return truth, mean, std, sets


def test_several_sets_of_labels_are_judged_set_by_set():
    truth, mean, std, sets = two_sets()
    report = uq.evaluate(truth, mean, std, by=sets)
    names = ["organ: liver", "organ: lung", "site: 0", "site: 1", "site: 2"]
    assert sorted(report.strata) == names
    for name in names:
        of, label = name.split(": ")
        chosen = sets[of].astype(str) == label
        assert report.strata[name].scores["rmse"] == pytest.approx(
            uq.evaluate(truth[chosen], mean[chosen], std[chosen], metrics=["rmse"]).scores["rmse"]
        )
    assert [(part.of, part.name) for part in report.verdict.places.strata] == [
        (name.split(": ")[0], name) for name in names
    ]
    assert "stratum 'organ: liver' standard deviations are 1.7" in report.verdict.text
    assert "no difference is found among" not in report.verdict.text  # of the organs, one other is left
    one = uq.evaluate(truth, mean, std, by=sets["organ"], metrics=["rmse"]).verdict.places.strata
    two = report.verdict.places.strata
    assert [part.p for part in two[:2]] == pytest.approx([min(1, part.p * 5 / 2) for part in one])


def test_several_sets_of_labels_pass_streams_frames_blocks_and_files(tmp_path):
    truth, mean, std, sets = two_sets()
    whole = uq.evaluate(truth, mean, std, by=sets)
    stream = uq.Accumulator()
    for batch in array_blocks(truth, mean, std, by=sets, samples=700):
        stream.update(**batch)
    streamed = stream.compute()
    frame = pd.DataFrame({"y": truth, "m": mean, "s": std, **sets})
    columns = {"y_true": "y", "y_pred": "m", "y_std": "s", "by": {"organ": "organ", "site": "site"}}
    data = uq.Predictions.from_frame(frame, **columns)
    stored = uq.Predictions.load(data.save(tmp_path / "predictions.npz"))
    for report in (streamed, uq.evaluate(data), uq.evaluate(stored)):
        assert report.verdict.text == whole.verdict.text
        assert {name: each.counts["n"] for name, each in report.strata.items()} == {
            name: each.counts["n"] for name, each in whole.strata.items()
        }


def test_a_set_of_labels_must_fit():
    truth, mean, std, sets = two_sets(50)
    with pytest.raises(ShapeError, match=r"by\['site'\] has shape \(49,\)"):
        uq.evaluate(truth, mean, std, by={**sets, "site": sets["site"][1:]})
    with pytest.raises(InputTypeError, match="by is an empty mapping"):
        uq.evaluate(truth, mean, std, by={})


def test_strata_too_small_to_be_judged_alone_are_named_as_the_verdict_names_them():
    rng, site = np.random.default_rng(0), np.repeat(np.arange(30), 20)
    region = np.array(["north", "south", "west"])[site % 3]
    z = rng.normal(size=600) * np.where(region == "south", 2, 1)
    text = uq.evaluate(uq.Predictions(z, np.zeros(600), np.ones(600), by=region, groups=site)).strata.text
    assert text.startswith(
        "Too few data in each of 3 to judge it alone. Judged together, errors in 'south' ("
    )
