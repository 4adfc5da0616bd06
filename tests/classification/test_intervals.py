"""Intervals of classifications over groups: against the truth, and stored."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import uq_tracking as uq
from tests.small_statistics import classification_statistics
from uq_tracking import plugins
from uq_tracking.errors import (
    FileFormatError,
    IncompatibleStatisticsError,
    InputTypeError,
    SettingsError,
    ShapeError,
)
from uq_tracking.inference.intervals import interval_table, leave_out
from uq_tracking.inference.limits import Influence
from uq_tracking.metrics.events import several_classes
from uq_tracking.metrics.registry import compute, find, select
from uq_tracking.runs.read import logged_runs
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import build_groups, build_statistics
from uq_tracking.statistics.groups import GroupTables
from uq_tracking.statistics.statistics import resampled
from uq_tracking.statistics.store import read_statistics, statistics_from_arrays, write_statistics
from uq_tracking.tasks import CLASSIFICATION

from .made import softmax

SETTINGS = Settings()
SUITE = [metric for metric in select("classification") if metric.when in (None, several_classes)]
WITHOUT = {"mce", "cwece", "worst_class_gap"}
"""Scores whose bins are too thin, or not kept by group."""
SUMS = ("accuracy", "nll", "brier", "entropy_mean", "miou")
"""Scores that coarse buckets do not change."""


def scenes(seed=0, groups=20, size=100, spread=0.5, classes=3):
    """Group of each sample, its label, and the logits of a model that is more or less overconfident by group."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(groups), size)
    sharp = np.exp(spread * rng.normal(size=groups))[codes, None]
    z = 1.5 * sharp * rng.normal(size=(len(codes), classes))
    labels = (softmax(z).cumsum(axis=1) > rng.random((len(z), 1))).argmax(axis=1)
    over = 1.6 * np.exp(0.3 * rng.normal(size=groups))[codes, None]
    return codes, labels, over * z


def grouped(codes, labels, z, **options):
    data = uq.Predictions.from_probs(labels, z, logits=True, groups=codes, **options)
    return with_groups(data)


def with_groups(data):
    layout = CLASSIFICATION.layout_for(data.facts)
    return replace(build_statistics(layout, data), groups=build_groups(layout, data))


def evaluated(codes, labels, z, **options):
    return uq.evaluate(labels, probs=z, logits=True, groups=codes, **{**options})


def pairs(statistics):
    """Samples by pair of true and predicted class."""
    table = statistics.tables["confusion"]
    return {key: count for key, count in zip(table.key, table.count, strict=True) if count}


def scores_of(statistics):
    return compute(statistics, SETTINGS, SUITE)[0]


class TestResamples:
    def test_a_resample_is_the_statistics_of_its_rows(self):
        codes, labels, z = scenes(groups=12)
        tables = grouped(codes, labels, z).groups
        weights = np.random.default_rng(1).multinomial(12, np.full(12, 1 / 12), 5).astype(float)
        for made, row in zip(resampled(tables, weights), weights, strict=True):
            rows = np.concatenate([np.flatnonzero(codes == g) for g in range(12) for _ in range(int(row[g]))])
            exact = classification_statistics(labels[rows], z[rows], logits=True)
            assert pairs(made) == pairs(exact)
            assert made.counts == exact.counts
            found, expected = scores_of(made), scores_of(exact)
            by_class = {"cwece", "worst_class_gap"}  # need sums of every class, which resamples do without
            assert found.keys() == expected.keys() - by_class == {metric.key for metric in SUITE} - by_class
            expected = {key: expected[key] for key in found}
            for key, value in expected.items():
                tolerance = {"rtol": 1e-10} if key in SUMS else {"atol": 5e-3}
                # one bin decides the largest gap, and a coarse bucket lies across its edge
                tolerance = {"atol": 0.05} if key == "mce" else tolerance
                assert_allclose(found[key], value, **tolerance, err_msg=key)

    def test_equal_confidences_are_binned_as_they_are(self):
        """Coarse buckets know their spread, so a tie at the edge of a bin stays on its side."""
        rng = np.random.default_rng(0)
        codes = np.repeat(np.arange(10), 50)
        top = rng.choice([0.55, 0.6, 0.7, 0.8, 0.95], 500)
        labels = (rng.random(500) < 0.8).astype(int)
        probs = np.stack([1 - top, top], axis=1)
        statistics = with_groups(uq.Predictions.from_probs(labels, probs, groups=codes))
        (made,) = resampled(statistics.groups, np.ones((1, 10)))
        for key, value in scores_of(statistics).items():
            assert_allclose(scores_of(made)[key], value, rtol=1e-9, err_msg=key)

    def test_impossible_labels_count_only_in_the_resamples_that_draw_them(self):
        codes, labels, z = scenes(groups=10, size=20)
        probs = softmax(z)
        first = np.flatnonzero(codes == 3)[0]
        probs[first] = np.eye(3)[(labels[first] + 1) % 3]
        tables = with_groups(uq.Predictions.from_probs(labels, probs, groups=codes)).groups
        weights = np.ones((2, 10))
        weights[1, 3] = 0
        made = [compute(one, SETTINGS, SUITE) for one in resampled(tables, weights)]
        assert "nll" in made[0][1]
        keep = codes != 3
        expected = uq.evaluate(labels[keep], probs=probs[keep]).scores["nll"]
        assert_allclose(made[1][0]["nll"], expected, rtol=1e-10)


class TestCoverage:
    @pytest.mark.slow
    def test_intervals_hold_the_truth_as_often_as_they_say(self):
        metrics = find(["accuracy", "brier", "ece", "ause_brier"], "classification")
        truth = compute(
            classification_statistics(*scenes(999, groups=4000, size=60)[1:], logits=True), SETTINGS, metrics
        )[0]
        repeats, hits = 100, dict.fromkeys(truth, 0)
        for seed in range(repeats):
            statistics = grouped(*scenes(seed, groups=60, size=60))
            exact = compute(statistics, SETTINGS, metrics)[0]
            found = interval_table(statistics.groups, SETTINGS, metrics, scores=exact).values
            for key, (low, high) in found.items():
                hits[key] += low <= truth[key] <= high
        # Binomial(100, .93), for ece is a sum of absolute values: 84 ... 100 with probability .999
        assert min(hits.values()) >= 84, hits
        assert sum(hits.values()) < 398, "intervals that never miss are too wide"

    def test_samples_of_one_scene_are_not_independent(self):
        codes, labels, z = scenes(spread=1.0)
        by_scene = evaluated(codes, labels, z).intervals["nll"]
        by_sample = evaluated(None, labels, z, intervals=True).intervals["nll"]
        assert np.ptp(by_scene) > 2 * np.ptp(by_sample)

    def test_sample_intervals_of_a_share_are_its_standard_error(self):
        labels = (np.random.default_rng(0).random(20_000) < 0.3).astype(int)
        report = uq.evaluate(labels, probs=np.full(20_000, 0.3), intervals=True)
        expected = 2 * 1.96 * np.sqrt(0.3 * 0.7 / 20_000)
        # twenty sets know a standard error to a sixth
        assert_allclose(np.ptp(report.intervals["accuracy"]), expected * 2.09 / 1.96, rtol=0.4)


class TestIntervals:
    def test_of_a_report(self):
        report = evaluated(*scenes())
        assert report.scores.keys() == {metric.key for metric in SUITE}
        assert report.intervals.keys() == report.scores.keys() - WITHOUT
        assert "hold too few samples" in report.provenance["intervals"]["undefined"]["mce"]
        for key, (low, high) in report.intervals.items():
            assert low <= report.scores[key] <= high or plugins.metrics("classification")[key].gap, key
            assert low < high, key
        about = report.provenance["intervals"]
        assert (about["level"], about["groups"], about["sets"]) == (0.95, 20, 20)
        assert str(report).count("[") >= len(report.intervals)

    def test_the_scores_are_those_without_groups(self):
        codes, labels, z = scenes()
        plain = uq.evaluate(labels, probs=z, logits=True)
        assert plain.intervals == {}
        assert plain.statistics.groups is None
        assert evaluated(codes, labels, z).scores == plain.scores
        assert evaluated(codes, labels, z, intervals=False).intervals == {}

    @pytest.mark.parametrize("method", ["exact", "sketch"])
    def test_they_do_not_depend_on_the_kind_of_statistics(self, method):
        exact = evaluated(*scenes())
        other = evaluated(*scenes(), statistics=method)
        for key, interval in exact.intervals.items():
            assert_allclose(other.intervals[key], interval, atol=1e-3, err_msg=key)

    def test_a_higher_level_is_wider(self):
        wide, narrow = (evaluated(*scenes(), level=level).intervals["brier"] for level in (0.99, 0.5))
        assert wide[0] < narrow[0] < narrow[1] < wide[1]

    @pytest.mark.parametrize(("groups", "counted"), [(1, "1 group is"), (7, "7 groups are")])
    def test_few_groups_have_none_and_say_why(self, groups, counted):
        report = evaluated(*scenes(groups=groups))
        assert report.intervals == {}
        reason = report.provenance["intervals"]["undefined"]["accuracy"]
        assert reason == f"{counted} too few for an interval, which needs 8"

    def test_a_score_that_is_undefined_has_none(self):
        codes, labels, z = scenes()
        probs = softmax(z)
        probs[0] = np.eye(3)[(labels[0] + 1) % 3]
        report = uq.evaluate(labels, probs=probs, groups=codes)
        assert report.intervals.keys() == report.scores.keys() - WITHOUT
        assert "nll" in report.undefined

    def test_it_ends_at_the_range_of_the_metric(self):
        labels = np.arange(80) % 2
        probs = np.where(labels == 1, 0.9, 0.1)
        report = uq.evaluate(labels, probs=probs, groups=np.arange(80) // 8)
        assert report.intervals["accuracy"] == pytest.approx((0.025**0.1, 1.0), rel=1e-9)
        for key, (low, high) in evaluated(*scenes(groups=8, size=12)).intervals.items():
            assert low >= 0, key
            assert high <= (2 if key in ("nll", "brier", "entropy_mean", "ause_brier") else 1), key

    def test_one_label_per_image_serves_its_pixels(self):
        codes, labels, z = scenes(groups=10, size=96)
        shape = (10, 8, 12)
        pixels = {"y_true": labels.reshape(shape), "probs": z.reshape(*shape, 3)}
        mask = np.zeros(shape, dtype=bool)
        mask[:, :2] = True
        options = {"logits": True}
        by_image = uq.evaluate(**pixels, mask=mask, groups=[f"img{k}" for k in range(10)], **options)
        keep = ~mask.reshape(-1)
        flat = uq.evaluate(labels[keep], probs=z[keep], groups=codes[keep], **options)
        for key, interval in flat.intervals.items():
            assert_allclose(by_image.intervals[key], interval, rtol=1e-9, err_msg=key)
        assert by_image.statistics.groups.labels[0] == "img0"

    def test_groups_without_samples_are_no_groups(self):
        codes, labels, z = scenes(groups=10, size=20)
        report = uq.evaluate(labels, probs=z, logits=True, groups=codes, mask=codes < 2)
        assert report.statistics.groups.labels == tuple(range(2, 10))
        assert report.provenance["intervals"]["groups"] == 8

    def test_bad_groups_and_options_are_refused(self):
        codes, labels, z = scenes(groups=8, size=10)
        with pytest.raises(ShapeError, match="groups has shape"):
            evaluated(codes[:-1], labels, z)
        with pytest.raises(InputTypeError, match="groups has no label for 1 sample"):
            evaluated(np.where(np.arange(80) == 3, np.nan, codes), labels, z)
        with pytest.raises(SettingsError, match=r"level is 1\.0"):
            evaluated(codes, labels, z, level=1.0)
        data = uq.Predictions.from_probs(labels, z, logits=True, groups=codes)
        with pytest.raises(SettingsError, match=r"pass groups to Predictions\.from_probs"):
            uq.evaluate(data, groups=codes)
        with pytest.raises(SettingsError, match="no groups"):
            uq.Predictions.from_probs(labels, z, logits=True).label_codes("groups")


class TestStored:
    @pytest.mark.slow
    def test_with_the_statistics(self, tmp_path):
        report = evaluated(*scenes())
        report.to_npz(tmp_path / "report.npz")
        back = uq.Report.from_npz(tmp_path / "report.npz")
        assert back == report
        write_statistics(tmp_path / "statistics.npz", report.statistics)
        tables = read_statistics(tmp_path / "statistics.npz").groups
        assert isinstance(tables, GroupTables)
        assert (tables.labels, tables.members) == (tuple(range(20)), report.statistics.groups.members)
        again = interval_table(tables, SETTINGS, SUITE, scores=report.scores).values
        for key, interval in report.intervals.items():
            assert_allclose(again[key], interval, rtol=1e-5, atol=1e-6, err_msg=key)

    def test_damaged_tables_are_refused(self):
        arrays = evaluated(*scenes(groups=8, size=10)).statistics.to_arrays()
        wide = {**arrays, "groups/table/confusion/bucket": arrays["groups/table/confusion/bucket"] + 9}
        with pytest.raises(FileFormatError, match="outside the confusion matrix"):
            statistics_from_arrays(wide)

    def test_what_is_stored_stays_small_and_still_serves(self):
        tables = grouped(*scenes(groups=600, size=40)).groups
        small = tables.stored(limit=2**19)
        assert sum(values.nbytes for values in small.to_arrays().values()) < 2**19 * 1.2
        assert len(small) < 600
        one, other = (leave_out(part, SETTINGS, SUITE) for part in (tables, small))
        for key in SUMS:  # the sets differ, and 20 of them know a spread to a sixth
            spreads = [
                Influence.left_out(part.estimates(key), part.freedom).standard_error for part in (one, other)
            ]
            assert_allclose(spreads[1], spreads[0], rtol=0.6, err_msg=key)

    def test_many_groups_are_pooled_and_counted(self):
        _, labels, z = scenes(groups=45, size=100)
        tables = grouped(np.arange(4500) // 2, labels, z).groups
        assert (tables.n_groups, len(tables)) == (2250, 563)
        assert tables.tables["confusion"].sums["count"].sum() == 4500

    def test_statistics_that_merge_keep_their_groups(self):
        codes, labels, z = scenes()
        parts = [grouped(codes[k], labels[k], z[k]) for k in (codes < 12, codes >= 8)]
        both = np.concatenate([np.flatnonzero(codes < 12), np.flatnonzero(codes >= 8)])
        whole = grouped(codes[both], labels[both], z[both]).groups
        merged = (parts[0] + parts[1]).groups
        assert (merged.labels, merged.members) == (whole.labels, whole.members)
        one, other = (leave_out(part, SETTINGS, SUITE) for part in (merged, whole))
        for key, values in one.without.items():
            assert_allclose(other.without[key], values, rtol=1e-9, err_msg=key)

    def test_predictions_keep_their_groups(self, tmp_path):
        codes, labels, z = scenes(groups=8, size=10)
        data = uq.Predictions.from_probs(labels, z, logits=True, groups=np.char.add("s", codes.astype(str)))
        back = uq.Predictions.load(data.save(tmp_path / "data.npz"))
        assert (back.groups == data.groups).all()
        assert uq.evaluate(back).intervals == evaluated(data.groups, labels, z).intervals

    @pytest.mark.slow
    @pytest.mark.parametrize("predictions", [True, False])
    def test_a_logged_run_is_rescored_with_them(self, tmp_path, predictions):
        codes, labels, z = scenes()
        uq.log(
            labels, probs=z, logits=True, groups=codes, level=0.9, predictions=predictions,
            run=f"dir:{tmp_path}", figures=False, maps=False, method="m", strict=True,
        )  # fmt: skip
        (run,) = logged_runs(f"dir:{tmp_path}")
        if predictions:
            assert (run.predictions().groups == codes).all()
        assert len(uq.rescore(f"dir:{tmp_path}", n_bins=7).done) == 1
        (run,) = logged_runs(f"dir:{tmp_path}")
        new, wanted = run.report(), evaluated(codes, labels, z, level=0.9, n_bins=7)
        assert new.provenance["intervals"]["level"] == 0.9
        assert new.scores == pytest.approx(wanted.scores, rel=1e-12)
        # ece of a model that is overconfident everywhere is the same for any bins, and keeps its interval
        for key in wanted.intervals.keys() - {"ece"}:
            assert_allclose(new.intervals[key], wanted.intervals[key], rtol=1e-4, atol=1e-5, err_msg=key)

    @pytest.mark.slow
    def test_a_cross_fit_is_made_of_a_stored_run(self, tmp_path):
        codes, labels, z = scenes()
        uq.log(
            labels, probs=z, logits=True, groups=codes, run=f"dir:{tmp_path}", figures=False, maps=False, method="m",
        )  # fmt: skip
        assert len(uq.rescore(f"dir:{tmp_path}", calibration=True).done) == 1
        (run,) = logged_runs(f"dir:{tmp_path}")
        wanted = evaluated(codes, labels, z, calibration=True).recalibration["methods"]["temperature"]
        found = run.report().recalibration["methods"]["temperature"]
        assert found["how"] == "fitted on half of the groups, scored on the others"
        assert found["scores"] == pytest.approx(wanted["scores"], rel=1e-12)


class TestStream:
    @pytest.mark.parametrize("method", ["exact", "sketch"])
    def test_batches_give_the_intervals_of_the_whole(self, method, tmp_path):
        codes, labels, z = scenes(groups=12)
        order = np.roll(
            np.argsort(-codes, kind="stable"), 150
        )  # groups come one after the other, not by label
        acc, other = (uq.Accumulator(logits=True, statistics=method) for _ in range(2))
        for k, part in enumerate(np.array_split(order, 6)):
            (acc if k < 4 else other).update(labels[part], probs=z[part], groups=codes[part])
            if k == 1:
                acc.save(tmp_path / "acc.npz")
                acc = pickle.loads(pickle.dumps(uq.Accumulator.load(tmp_path / "acc.npz")))
        streamed = acc.merge(other).compute()
        whole = evaluated(codes, labels, z, statistics=method)
        assert streamed.statistics.groups.members == whole.statistics.groups.members
        for key, interval in whole.intervals.items():
            assert_allclose(streamed.intervals[key], interval, rtol=1e-9, atol=1e-12, err_msg=key)

    def test_groups_for_all_batches_or_for_none(self):
        codes, labels, z = scenes(groups=8, size=10)
        acc = uq.Accumulator(logits=True)
        acc.update(labels, probs=z)
        with pytest.raises(SettingsError, match="groups was not given for earlier batches"):
            acc.update(labels, probs=z, groups=codes)
        with pytest.raises(SettingsError, match="only over groups"):
            acc.compute(intervals=True)
        with_groups = uq.Accumulator(logits=True)
        with_groups.update(labels, probs=z, groups=codes)
        with pytest.raises(IncompatibleStatisticsError, match="to only one accumulator"):
            acc.merge(with_groups)
        assert with_groups.compute(intervals=False).intervals == {}

    def test_a_logged_stream_takes_the_options_of_intervals(self, tmp_path):
        codes, labels, z = scenes(groups=10, size=20)
        acc = uq.Accumulator(logits=True)
        acc.update(labels, probs=z, groups=codes)
        report = uq.log(acc, run=f"dir:{tmp_path}", figures=False, level=0.5)
        assert report.provenance["intervals"]["level"] == 0.5
        assert report.intervals.keys() == report.scores.keys() - WITHOUT


def paired(one, other):
    found = uq.compare({"one": one, "other": other}, baseline="other")
    return {item.metric: item for item in found.differences if item.how == "paired groups"}


class TestPaired:
    def pair(self, factor=1.2):
        codes, labels, z = scenes()
        return [evaluated(codes, labels, factor_ * z) for factor_ in (1.0, factor)]

    def test_what_is_hard_for_both_cancels(self):
        one, other = self.pair(1.05)
        found = paired(one, other)["nll"]
        assert_allclose(found.value, one.scores["nll"] - other.scores["nll"], rtol=1e-12)
        assert np.ptp(found.interval) < 0.3 * np.ptp(one.intervals["nll"])
        assert found.verdict == "better"

    def test_leaving_out_scenes_literally_gives_the_same_interval(self):
        one, other = self.pair()
        codes, labels, z = scenes()
        found = paired(one, other)["brier"]
        losses = [((softmax(factor * z) - np.eye(3)[labels]) ** 2).sum(axis=1) for factor in (1.0, 1.2)]
        gap = losses[0] - losses[1]
        without = np.asarray([gap[codes != scene].mean() for scene in range(20)])
        moves = (without.mean() - without) * 19 / 20
        error = np.sqrt((moves**2).sum() * 20 / 19)
        skew = stats.skew(moves - moves.mean(), bias=False) / np.sqrt(20)
        kurtosis = stats.kurtosis(moves, fisher=False, bias=False)
        q = stats.t.ppf(0.975, min(19, 40 / (kurtosis - 1)))
        ends = [
            gap.mean() - error * 3 / skew * (np.cbrt(1 + skew * (x - skew / 6)) - 1) for x in (q, -q)
        ]  # Hall (1992)
        plain = gap.mean() - q * error, gap.mean() + q * error
        assert_allclose(found.interval, (min(ends[0], plain[0]), max(ends[1], plain[1])), rtol=1e-6)
        assert found.effect == pytest.approx(gap.mean() / (error * np.sqrt(20)), rel=1e-6)

    def test_equal_models_cannot_be_distinguishable(self):
        assert {item.verdict for item in paired(*self.pair(1.0)).values()} == {"indistinguishable"}

    @pytest.mark.slow
    def test_comparing_logged_runs_pairs_them(self, tmp_path):
        codes, labels, z = scenes()
        for name, factor in (("base", 1.0), ("sharper", 1.05), ("other data", 1.0)):
            own = (labels + 1) % 3 if name == "other data" else labels
            uq.log(
                own, probs=factor * z, logits=True, groups=codes, run=f"dir:{tmp_path}", method=name, figures=False,
                maps=False, predictions=False,
            )  # fmt: skip
        found = uq.compare(f"dir:{tmp_path}", baseline="base")
        difference = found.difference("sharper", "nll")
        assert (difference.how, difference.verdict) == ("paired groups", "worse")
        pair = [evaluated(codes, labels, factor * z) for factor in (1.05, 1.0)]
        expected = paired(*pair)["nll"]
        assert_allclose(difference.interval, expected.interval, rtol=1e-4, atol=1e-6)
        low, high = pair[1].intervals["nll"]
        assert low < pair[0].scores["nll"] < high
        assert found.difference("other data", "nll").how == "from the intervals"
        assert any("Scored on different targets" in text for text in found.warnings)


def test_two_methods_without_errors_are_not_told_apart():
    codes, labels = np.repeat(np.arange(20), 50), np.zeros(1000, dtype=int)

    def sure(doubt):
        return uq.evaluate(labels, probs=np.tile([1 - doubt, doubt], (1000, 1)), groups=codes)

    assert not paired(sure(0.001), sure(0.01))
