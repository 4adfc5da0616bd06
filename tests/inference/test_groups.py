"""Intervals over groups against the truth, and the groups' tables behind them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from tests.small_statistics import exact_statistics
from uq_tracking import plugins
from uq_tracking.errors import SettingsError
from uq_tracking.inference.intervals import interval_table, leave_out
from uq_tracking.inference.limits import Influence
from uq_tracking.inputs import Predictions
from uq_tracking.metrics.registry import Metric, compute, find, select
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import build_groups
from uq_tracking.statistics.groups import pool_chain
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.statistics import resampled

SETTINGS = Settings()
KEYS = [
    "rmse",
    "bias",
    "nll",
    "crps",
    "coverage_95",
    "auce",
    "ence",
    "ause_rmse",
    "n_merci",
    "spearman",
    "r2",
]


def images(seed=0, groups=30, size=200, spread=0.3):
    """Targets, means and stds of images that differ in how hard they are."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(groups), size)
    hard = np.exp(spread * rng.normal(size=groups))[codes]
    mean, std = rng.normal(size=len(codes)), rng.gamma(3, 0.5, len(codes)) * hard
    wrong = np.exp(0.2 * rng.normal(size=groups))[codes]
    return codes, mean + wrong * std * rng.normal(size=len(codes)), mean, std


def intervals_of(tables, metrics):
    """Intervals around the scores of the groups' own statistics."""
    return interval_table(tables, SETTINGS, metrics, scores=leave_out(tables, SETTINGS, metrics).whole)


def tables_of(codes, y, mean, std):
    return build_groups(REGRESSION, Predictions(y, mean, std, groups=codes))


class TestResamples:
    def test_a_resample_is_the_statistics_of_its_rows(self):
        codes, y, mean, std = images(groups=12)
        tables = tables_of(codes, y, mean, std)
        weights = np.random.default_rng(1).multinomial(12, np.full(12, 1 / 12), 5).astype(float)
        for made, row in zip(resampled(tables, weights), weights, strict=True):
            rows = np.concatenate([np.flatnonzero(codes == g) for g in range(12) for _ in range(int(row[g]))])
            exact = exact_statistics(y[rows], mean[rows], std[rows])
            found, expected = (compute(s, SETTINGS, select("regression"))[0] for s in (made, exact))
            assert made.n == exact.n
            for key in ("rmse", "mae", "bias", "nll", "r2", "sharpness", "cv", "z_std"):  # plain sums
                assert_allclose(found[key], expected[key], rtol=1e-9, err_msg=key)
            for key in (
                "crps",
                "coverage_95",
                "auce",
                "ence",
                "ause_rmse",
                "n_merci",
                "spearman",
            ):  # by coarse buckets
                assert_allclose(found[key], expected[key], rtol=0.01, atol=5e-3, err_msg=key)

    def test_zero_stds_count_only_in_the_resamples_that_draw_them(self):
        codes, y, mean, std = images(groups=10, size=20)
        std[codes == 3] = 0
        weights = np.ones((2, 10))
        weights[1, 3] = 0
        scores = [
            compute(s, SETTINGS, find(["nll", "crps"]))
            for s in resampled(tables_of(codes, y, mean, std), weights)
        ]
        keep = codes != 3
        assert "nll" in scores[0][1]
        expected = uq.evaluate(y[keep], mean[keep], std[keep]).scores
        assert_allclose(scores[1][0]["nll"], expected["nll"], rtol=1e-10)
        assert_allclose(scores[0][0]["crps"], uq.evaluate(y, mean, std).scores["crps"], rtol=1e-4)


class TestCoverage:
    def hits(self, repeats):
        """How often intervals contain the score of very many samples, by metric."""
        metrics = find(["rmse", "coverage_95", "ause_rmse"])
        _, *rows = images(seed=999, groups=4000, size=40)
        truth = compute(exact_statistics(*rows), SETTINGS, metrics)[0]
        hits = dict.fromkeys(truth, 0)
        for seed in range(repeats):
            data = images(seed=seed, groups=60, size=40)
            exact = compute(exact_statistics(*data[1:]), SETTINGS, metrics)[0]
            found = interval_table(tables_of(*data), SETTINGS, metrics, scores=exact).values
            for key, (low, high) in found.items():
                hits[key] += low <= truth[key] <= high
        return hits

    @pytest.mark.simulation
    def test_intervals_hold_the_truth_as_often_as_they_say(self):
        hits = self.hits(100)
        # Binomial(100, .95): 87 ... 100 with probability .999
        assert min(hits.values()) >= 87, hits
        assert sum(hits.values()) < 300, "intervals that never miss are too wide"

    @pytest.mark.slow
    def test_of_ten_intervals_as_many_hold_the_truth(self):
        assert self.hits(10) == {"rmse": 9, "coverage_95": 9, "ause_rmse": 9}

    def test_samples_of_one_image_are_not_independent(self):
        codes, y, mean, std = images(spread=0.6)
        by_image = uq.evaluate(y, mean, std, groups=codes, metrics=["rmse"]).intervals["rmse"]
        by_sample = uq.evaluate(y, mean, std, intervals=True, metrics=["rmse"]).intervals["rmse"]
        assert np.ptp(by_image) > 2.5 * np.ptp(by_sample)

    def test_sample_intervals_of_a_mean_are_its_standard_error(self):
        y = np.random.default_rng(0).normal(size=20_000)
        report = uq.evaluate(y, np.zeros(20_000), np.ones(20_000), intervals=True, metrics=["bias"])
        # twenty sets know a standard error to a sixth
        assert_allclose(np.ptp(report.intervals["bias"]), 2 * 2.09 / np.sqrt(20_000), rtol=0.4)


class TestIntervals:
    @pytest.mark.slow
    def test_of_a_report(self):
        codes, y, mean, std = images(groups=60, size=100)
        report = uq.evaluate(y, mean, std, groups=codes)
        assert report.intervals.keys() == report.scores.keys()
        for key, (low, high) in report.intervals.items():
            # finite data push calibration scores above the values that their intervals speak of
            assert low <= report.scores[key] <= high or plugins.metrics("regression")[key].gap, key
        about = report.provenance["intervals"]
        assert (about["level"], about["groups"], about["sets"]) == (0.95, 60, 20)
        assert str(report).count("[") >= len(report.scores)

    def test_without_groups_there_are_none(self):
        _, y, mean, std = images()
        assert uq.evaluate(y, mean, std).intervals == {}
        assert uq.evaluate(y, mean, std, groups=np.arange(len(y)) // 200, intervals=False).intervals == {}

    def test_a_higher_level_is_wider(self):
        codes, y, mean, std = images()
        wide, narrow = (
            uq.evaluate(y, mean, std, groups=codes, level=level, metrics=["rmse"]).intervals["rmse"]
            for level in (0.99, 0.5)
        )
        assert wide[0] < narrow[0] < narrow[1] < wide[1]

    def test_few_groups_have_none_and_say_why(self):
        codes, y, mean, std = images(groups=7)
        report = uq.evaluate(y, mean, std, groups=codes)
        assert report.intervals == {}
        assert (
            report.provenance["intervals"]["undefined"]["rmse"]
            == "7 groups are too few for an interval, which needs 8"
        )

    def test_few_groups_that_carry_a_score_give_it_none(self):
        codes, y, mean, std = images(groups=40)
        wide = np.where(codes < 4, 5.0, 1.0)
        report = uq.evaluate(wide * y, wide * mean, wide * std, groups=codes)
        v = np.bincount(codes, np.square(wide * std))
        assert {"rmse", "ence"} < report.intervals.keys()
        assert report.provenance["intervals"]["undefined"]["uce"] == (
            f"it is carried by groups with large standard deviations, worth {v.sum() ** 2 / (v @ v):.1f} equal "
            "groups; it needs 25"
        )

    def test_groups_of_very_different_scale_give_none_to_what_a_few_of_them_carry(self):
        keys = {"ause_rmse", "aurg_rmse", "cv"}
        for spread, given in ((0.0, keys), (0.3, keys), (1.0, set())):
            found = intervals_of(tables_of(*images(spread=spread)), find([*keys, "mae"]))
            assert set(found.values) == given | {"mae"}
            for key in keys - given:
                assert "groups differ so much in scale that these 30 are worth" in found.undefined[key]

    def test_a_unit_that_is_a_power_of_two_moves_no_interval(self):
        codes, y, mean, std = images(groups=12, size=50)
        one = intervals_of(tables_of(codes, y, mean, std), find(["ence", "n_merci"])).values
        larger = tables_of(codes, 1024 * y, 1024 * mean, 1024 * std)
        other = intervals_of(larger, find(["ence", "n_merci"])).values
        for key in one:
            assert_allclose(one[key], other[key], rtol=1e-9)

    def test_the_sizes_of_groups_are_no_difference_of_scale(self):
        codes, y, mean, std = images(groups=12, size=400, spread=0.0)
        kept = np.arange(len(codes)) % 400 < 20 * 2 ** (codes % 5)
        tables = tables_of(*(part[kept] for part in (codes, y, mean, std)))
        assert {"ause_rmse", "cv"} <= set(intervals_of(tables, find(["ause_rmse", "cv"])).values)

    @pytest.mark.slow
    def test_weights_that_grow_with_the_variance_let_fewer_groups_carry_more_scores(self):
        codes, y, mean, std = images(groups=30, spread=0.5)
        for weights, refused in (
            (std**2, {"uce", "ence", "ause_rmse", "aurg_rmse", "spearman"}),
            (None, {"uce"}),
        ):
            made = uq.evaluate(y, mean, std, groups=codes, weights=weights).provenance["intervals"][
                "undefined"
            ]
            assert {key for key, reason in made.items() if "equal groups" in reason} == refused

    def test_a_metric_that_is_seldom_defined_has_none(self):
        def odd(statistics, settings):
            if statistics.kind == "sketch":
                from uq_tracking.metrics.registry import Undefined

                raise Undefined("never")
            return 1.0

        metric = Metric(
            "odd", family="spread", direction=None, summary="x", formula="x", source="x", function=odd
        )
        made = interval_table(tables_of(*images(groups=9, size=10)), SETTINGS, [metric], scores={"odd": 1.0})
        assert made.values == {}
        assert "undefined without some of the groups" in made.undefined["odd"]

    def test_it_ends_at_the_range_of_the_metric(self):
        codes, _, mean, std = images(groups=10)
        report = uq.evaluate(mean + 0.01 * std, mean, std, groups=codes)
        low, high = report.intervals["coverage_95"]
        assert high == 1
        assert low == pytest.approx(0.025 ** (1 / 10), rel=1e-9)  # ten independent samples, all inside
        assert report.intervals["calibration_error"][1] <= 1

    @pytest.mark.parametrize(
        ("options", "match"), [({"level": 1.0}, "level is 1.0"), ({"level": 0.0}, "level is 0.0")]
    )
    def test_bad_options_are_refused(self, options, match):
        codes, y, mean, std = images(groups=8, size=10)
        with pytest.raises(SettingsError, match=match):
            uq.evaluate(y, mean, std, groups=codes, **options)

    @pytest.mark.slow
    def test_an_accumulator_gives_those_of_evaluate(self):
        codes, y, mean, std = images(groups=12)
        acc = uq.Accumulator(statistics="exact")
        for part in np.array_split(np.arange(len(y)), 5):
            acc.update(y[part], mean[part], std[part], groups=codes[part])
        streamed, whole = acc.compute(), uq.evaluate(y, mean, std, groups=codes)
        for key in whole.intervals:
            assert_allclose(streamed.intervals[key], whole.intervals[key], rtol=1e-6, atol=1e-9, err_msg=key)


class TestGroups:
    def test_many_groups_are_pooled_and_counted(self):
        n = 4500
        rng = np.random.default_rng(0)
        y = rng.normal(size=n)
        tables = build_groups(REGRESSION, Predictions(y, np.zeros(n), np.ones(n), groups=np.arange(n) // 2))
        assert (tables.n_groups, len(tables)) == (2250, 563)
        assert tables.sums["n"].sum() == n

    def test_labels_of_any_kind_and_order(self):
        codes, y, mean, std = images(groups=9, size=20)
        order = np.random.default_rng(0).permutation(len(y))
        plain = build_groups(REGRESSION, Predictions(y, mean, std, groups=codes))
        shuffled = build_groups(
            REGRESSION, Predictions(y[order], mean[order], std[order], groups=codes[order])
        )
        assert plain.members == shuffled.members
        assert_allclose(plain.moments, shuffled.moments, rtol=1e-9, atol=1e-12)
        text = build_groups(
            REGRESSION, Predictions(y, mean, std, groups=np.char.add("img", codes.astype(str)))
        )
        assert text.labels[0] == "img0"
        assert text.members != plain.members

    def test_pools_of_pools_are_pools(self):
        first = pool_chain(1000, 500)
        assert np.array_equal(pool_chain(500, 250)[first], pool_chain(1000, 250))
        assert np.bincount(pool_chain(1001, 300)).tolist().count(0) == 0

    @pytest.mark.slow
    def test_they_are_stored_with_the_statistics(self, tmp_path):
        codes, y, mean, std = images(groups=20)
        report = uq.evaluate(y, mean, std, groups=codes, metrics=KEYS)
        report.to_npz(tmp_path / "report.npz")
        back = uq.Report.from_npz(tmp_path / "report.npz")
        assert back == report
        again = interval_table(back.statistics.groups, SETTINGS, find(KEYS), scores=report.scores).values
        for key in KEYS:
            assert_allclose(again[key], report.intervals[key], rtol=1e-4, atol=1e-6, err_msg=key)

    def test_what_is_stored_stays_small_and_still_serves(self):
        codes, y, mean, std = images(groups=600, size=60)
        tables = build_groups(REGRESSION, Predictions(y, mean, std, groups=codes))
        small = tables.stored(limit=2**20)
        assert sum(values.nbytes for values in small.to_arrays().values()) < 2**20 * 1.2
        assert len(small) < 600
        metrics = find(["rmse", "coverage_95", "ause_rmse"])
        one, other = (leave_out(part, SETTINGS, metrics) for part in (tables, small))
        for metric in metrics:  # the sets differ, and 20 of them know a spread to a sixth
            spreads = [
                Influence.left_out(part.estimates(metric.key), part.freedom).standard_error
                for part in (one, other)
            ]
            assert_allclose(spreads[1], spreads[0], rtol=0.6, err_msg=metric.key)

    @pytest.mark.slow
    def test_statistics_that_merge_keep_their_groups(self):
        codes, y, mean, std = images(groups=20)
        half = codes < 10
        parts = [uq.evaluate(y[k], mean[k], std[k], groups=codes[k]).statistics for k in (half, ~half)]
        whole = uq.evaluate(y, mean, std, groups=codes).statistics.groups
        merged = (parts[0] + parts[1]).groups
        assert merged.labels == whole.labels
        assert merged.members == whole.members
        assert_allclose(merged.moments, whole.moments, rtol=1e-9, atol=1e-12)


def paired(one, other):
    found = uq.compare({"one": one, "other": other}, baseline="other")
    assert {item.how for item in found.differences} == {"paired groups"}
    return {item.metric: item for item in found.differences}


class TestPaired:
    def pair(self, factor=1.03):
        codes, y, mean, std = images(groups=20)
        return [uq.evaluate(y, mean, s, groups=codes) for s in (std, factor * std)]

    @pytest.mark.slow
    def test_what_is_hard_for_both_cancels(self):
        one, other = self.pair()
        found = paired(one, other)["crps"]
        alone = one.intervals["crps"]
        assert np.ptp(found.interval) < 0.2 * np.ptp(alone)
        assert_allclose(found.value, one.scores["crps"] - other.scores["crps"], rtol=1e-12)

    @pytest.mark.slow
    def test_equal_methods_cannot_be_distinguishable(self):
        assert {item.verdict for item in paired(*self.pair(factor=1.0)).values()} == {"indistinguishable"}

    @pytest.mark.slow
    def test_a_constant_difference_is_distinguishable(self):
        one, other = self.pair(factor=1.5)
        found = paired(one, other)
        assert found["merci"].verdict == "indistinguishable"
        assert found["z_std"].verdict == "better"
        assert found["rmse"].verdict == "indistinguishable"

    @pytest.mark.slow
    def test_a_metric_that_is_better_higher_is_turned(self):
        found = paired(*self.pair(factor=3.0))["quadratic_score"]
        assert found.value > 0
        assert found.interval[0] < found.value < found.interval[1]
        assert found.verdict == "better"

    @pytest.mark.slow
    def test_a_target_value_is_compared_by_distance(self):
        one, other = self.pair(factor=1.5)
        found = paired(one, other)["coverage_95"]
        gap = abs(one.scores["coverage_95"] - 0.95) - abs(other.scores["coverage_95"] - 0.95)
        assert_allclose(found.value, gap, rtol=1e-12)


def test_a_logged_stream_takes_the_options_of_intervals(tmp_path):
    codes, y, mean, std = images(groups=10, size=20)
    acc = uq.Accumulator(metrics=["rmse"])
    acc.update(y, mean, std, groups=codes)
    report = uq.log(acc, run=f"dir:{tmp_path}", figures=False, level=0.5)
    assert report.provenance["intervals"]["level"] == 0.5
    assert report.intervals.keys() == {"rmse"}
