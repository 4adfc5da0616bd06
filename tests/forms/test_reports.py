"""Distributions of every form through statistics, streams, groups, files and recalibration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

import uq_tracking as uq
from uq_tracking.errors import IncompatibleStatisticsError, SettingsError
from uq_tracking.evaluation.scoring import score
from uq_tracking.metrics.other_forms import NEEDS
from uq_tracking.statistics.collecting import build_statistics, statistics_of_rows
from uq_tracking.statistics.regression import expected_below
from uq_tracking.statistics.store import read_statistics, write_statistics
from uq_tracking.tasks import REGRESSION

from .made import FORMS, arrays, make

SKETCHED = {"rtol": 2e-3, "atol": 2e-3}
"""Buckets of relative width 2^-11 in the normal score of the PIT, and 1e-3 of merci, n_merci and ence."""


def statistics_of(data, how="auto"):
    return build_statistics(REGRESSION.layout_for(data.facts), data, how)


def assert_same(one, other, *, rtol=1e-10, atol=1e-12, skip=()):
    assert one.scores.keys() == other.scores.keys()
    assert one.undefined == other.undefined
    for key, value in one.scores.items():
        if key not in skip:
            assert_allclose(value, other.scores[key], rtol=rtol, atol=atol, err_msg=key)


def literal_below(low, high, p):
    """Expected number of PIT values at or below p, one sample at a time."""
    total = []
    for a, b in zip(low.tolist(), high.tolist(), strict=True):
        total.append(float(a <= p) if b - a <= 1e-9 else min(max((p - a) / (b - a), 0.0), 1.0))
    return math.fsum(total)


@pytest.mark.parametrize("form", FORMS)
class TestEveryForm:
    @pytest.mark.slow
    def test_scores_are_means_of_the_columns(self, form):
        data = make(form)
        report, columns = uq.evaluate(data), data.form.columns
        for key in ("nll", "crps", "crps_ensemble", "pinball", "interval_score", "wis", "quadratic_score"):
            if key in columns:
                assert_allclose(report.scores[key], columns[key].mean(), rtol=1e-12)
            elif key in NEEDS:
                assert key not in report.undefined
            else:
                assert len(report.undefined[key]) > 20
        named = {"interval_coverage": "inside_widest", "interval_width": "width_widest"}
        for key, name in named.items():
            assert (key in report.scores) is (name in columns)
        assert report.settings["distribution"] == data.form.name
        assert report.counts["n_crossed"] == 0

    @pytest.mark.slow
    def test_the_pit_is_spread_as_written_out(self, form):
        data = make(form, n=150)
        low, high = (data.form.columns[name] for name in ("pit_low", "pit_high"))
        report = uq.evaluate(data)
        levels = np.arange(1, 100) / 100
        below = [literal_below(low, high, p) for p in levels]
        assert_allclose(expected_below(report.statistics, levels), below, rtol=1e-9, atol=1e-9)
        error = np.mean((levels - np.asarray(below) / 150) ** 2)
        assert_allclose(report.scores["calibration_error"], error, rtol=1e-9)
        ends = np.concatenate([low, high])
        grid = np.unique([*np.linspace(0, 1, 501), *ends, *np.nextafter(ends, 0), *np.nextafter(ends, 1)])
        gap = max(abs(literal_below(low, high, float(u)) / 150 - u) for u in grid)
        assert (
            gap - 1e-9 <= report.scores["pit_ks"] <= gap + 1 / 150 + 1e-4
        )  # the grid misses where points jump
        if np.array_equal(low, high):
            assert_allclose(report.scores["pit_ks"], stats.kstest(low, "uniform").statistic, rtol=1e-9)
        assert_allclose(report.curves["pit_histogram"].columns["density"].mean(), 1)
        if form in ("draws", "tied draws"):
            for level in (50, 90, 95):
                tails = [literal_below(low, high, (1 + side * level / 100) / 2) for side in (-1, 1)]
                share = (tails[1] - tails[0]) / 150
                assert_allclose(report.scores[f"coverage_{level}"], share, rtol=1e-9)

    @pytest.mark.slow
    def test_a_sketch_scores_alike(self, form):
        data = make(form, n=4000)
        exact, sketch = uq.evaluate(data), uq.evaluate(data, statistics="sketch")
        sums = [key for key in data.form.columns if key in exact.scores]
        assert_same(exact, sketch, **SKETCHED)
        for key in sums:
            assert_allclose(sketch.scores[key], exact.scores[key], rtol=1e-12)
        for key in ("auce", "calibration_error", "mace", "pit_ks"):
            assert_allclose(sketch.scores[key], exact.scores[key], atol=1e-3)

    @pytest.mark.slow
    @pytest.mark.parametrize("how", ["exact", "sketch"])
    def test_parts_merged_equal_the_whole(self, form, how):
        data = make(form)
        keep = np.arange(600) < 217
        parts = [data.part(keep), data.part(~keep)]
        merged = statistics_of(parts[0], how) + statistics_of(parts[1], how)
        assert_same(score(merged), score(statistics_of(data, how)), rtol=1e-9)

    def test_the_order_of_the_samples_changes_nothing(self, form):
        rng = np.random.default_rng(3)
        data = make(form, n=300)
        rows = data.rows()
        order = rng.permutation(300)
        layout = REGRESSION.layout_for(data.facts)
        one = statistics_of_rows(layout, rows, data.facts, "auto")
        other = statistics_of_rows(
            layout, {name: column[order] for name, column in rows.items()}, data.facts, "auto"
        )
        assert_same(score(one), score(other))

    @pytest.mark.slow
    @pytest.mark.parametrize("how", ["exact", "sketch"])
    def test_streams_equal_the_whole(self, form, how):
        data = make(form, groups=np.arange(600) // 30)
        whole = uq.evaluate(data, statistics=how)
        stream = uq.Accumulator(statistics=how)
        for start in (0, 150, 420):
            stop = {0: 150, 150: 420, 420: 600}[start]
            keep = (np.arange(600) >= start) & (np.arange(600) < stop)
            stream.update(data.part(keep))
        found = stream.compute()
        assert_same(found, whole, rtol=1e-9)
        assert found.settings["distribution"] == whole.settings["distribution"]
        for key in ("crps", "coverage_90"):
            if key in whole.intervals:
                low, high = whole.intervals[key]
                assert low <= whole.scores[key] <= high
                assert_allclose(found.intervals[key], whole.intervals[key], rtol=1e-6, atol=1e-9)

    @pytest.mark.slow
    def test_files_of_statistics_streams_and_predictions_hold_everything(self, form, tmp_path):
        data = make(form, groups=np.arange(600) // 30)
        whole = uq.evaluate(data, intervals=False)
        for how in ("exact", "sketch"):
            write_statistics(tmp_path / "s.npz", statistics_of(data, how))
            again = read_statistics(tmp_path / "s.npz")
            assert_same(score(again), score(statistics_of(data, how)), rtol=1e-9)
        data.save(tmp_path / "p.npz")
        assert_same(uq.evaluate(uq.Predictions.load(tmp_path / "p.npz"), intervals=False), whole)
        assert uq.Predictions.load(tmp_path / "p.npz").digest() == data.digest()
        stream = uq.Accumulator()
        stream.update(data)
        stream.save(tmp_path / "a.npz")
        again = uq.Accumulator.load(tmp_path / "a.npz")
        assert_same(again.compute(intervals=False), stream.compute(intervals=False))

    @pytest.mark.slow
    def test_masked_samples_do_not_count(self, form):
        rng = np.random.default_rng(0)
        mask = rng.uniform(size=600) < 0.3
        masked, cut = uq.evaluate(make(form, mask=mask)), uq.evaluate(make(form).part(~mask))
        assert_same(masked, cut)

    @pytest.mark.slow
    def test_after_a_recalibration_only_mean_and_std_are_scored(self, form):
        report = uq.evaluate(make(form), calibration=True, recalibration=["std_scaling", "cdf_isotonic"])
        after = report.recalibration["methods"]["std_scaling"]
        assert "new standard deviation" in after["undefined"]["crps"]
        assert "new standard deviation" in after["undefined"]["coverage_90"]
        assert after["scores"].keys() >= {"rmse", "ence", "z_std", "crps_laplace"}
        table = report.recalibration["methods"]["cdf_isotonic"]
        assert table["scores"].keys() >= {"crps", "coverage_90", "calibration_error"}

    @pytest.mark.slow
    def test_it_is_logged_and_rescored(self, form, tmp_path):
        uq.log(make(form), run=f"dir:{tmp_path}", figures=form in ("draws", "interval"))
        before = uq.evaluate(make(form))
        uq.rescore(f"dir:{tmp_path}", n_bins=7)
        after = uq.evaluate(make(form), n_bins=7)
        run = next(path for path in tmp_path.rglob("report.json"))
        found = uq.Report.from_json(run.read_text())
        assert found.settings["distribution"] == before.settings["distribution"]
        assert_same(found, after)


def test_a_normal_distribution_as_an_object_scores_as_mean_and_std():
    _, y, centre, scale = arrays(2000)
    plain = uq.evaluate(y, centre, scale).scores
    found = uq.evaluate(uq.Predictions.from_distribution(y, stats.norm(centre, scale))).scores
    for key, value in found.items():
        if key in plain:
            assert_allclose(value, plain[key], rtol=1e-9, atol=1e-12, err_msg=key)
    assert set(plain) <= set(found)
    assert {"nll_gaussian", "crps_gaussian"} <= set(found)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["gamma", "t", "two modes"])
@pytest.mark.parametrize("how", ["exact", "sketch"])
def test_true_distributions_are_calibrated_and_unbiased(law, how):
    rng, n = np.random.default_rng(1), 20_000
    scale = rng.gamma(4, 0.25, n)
    if law == "two modes":
        means, stds = np.stack([-scale, scale]), np.full((2, n), 0.2)
        y = np.where(rng.uniform(size=n) < 0.5, -1, 1) * scale + 0.2 * rng.normal(size=n)
        data = uq.Predictions.from_ensemble(y, means, stds, combine="mixture")
    else:
        dist = stats.gamma(2, scale=scale) if law == "gamma" else stats.t(3, 0, scale)
        data = uq.Predictions.from_distribution(dist.rvs(random_state=rng), dist)
    scores = uq.evaluate(data, statistics=how).scores
    for level in (0.5, 0.9, 0.95):
        tolerance = 4 * math.sqrt(level * (1 - level) / n)
        assert abs(scores[f"coverage_{round(100 * level)}"] - level) < tolerance
    assert scores["pit_ks"] < 1.95 / math.sqrt(n) + 5e-4


@pytest.mark.slow
@pytest.mark.parametrize("members", [2, 5, 20, 200])
def test_perfect_draws_of_skewed_forecasts_are_calibrated(members):
    rng, n = np.random.default_rng(members), 20_000
    scale = rng.gamma(4, 0.25, n)
    y, draws = scale * rng.gamma(2, size=n), scale * rng.gamma(2, size=(members, n))
    report = uq.evaluate(uq.Predictions.from_samples(y, draws))
    for level in (0.5, 0.9, 0.95):
        assert abs(report.scores[f"coverage_{round(100 * level)}"] - level) < 4 * math.sqrt(
            level * (1 - level) / n
        )
    assert report.scores["auce"] < 4 * 0.5 / math.sqrt(n)
    assert ("z_std" in report.undefined) is (members <= 3)
    for key, least in (("pinball", 99), ("interval_width_95", 39)):
        assert (key in report.scores) is (members >= least)
        if members < least:
            assert f"{least} draws" in report.undefined[key]
            assert f"are {members}" in report.undefined[key]
    exact = uq.evaluate(uq.Predictions.from_distribution(y, stats.gamma(2, scale=scale)), metrics=["crps"])
    gap = report.scores["crps"] - exact.scores["crps"]
    assert abs(gap) < 4 * 1.3 * 1.5 / math.sqrt(n * members) + 4 * 0.02


def test_quantile_coverage_is_that_of_the_given_levels_alone():
    _, y, centre, scale = arrays(500)
    levels = [0.05, 0.3, 0.95]
    q = centre[:, None] + scale[:, None] * stats.norm.ppf(levels)
    report = uq.evaluate(uq.Predictions.from_quantiles(y, q, levels, y_pred=centre))
    inside = np.mean((q[:, 0] <= y) & (y <= q[:, 2]))
    assert report.scores["coverage_90"] == pytest.approx(inside)
    assert report.scores["interval_coverage"] == pytest.approx(inside)
    reason = "it needs quantiles at 0.25 and 0.75, but those given are at 0.05, 0.3, 0.95"
    assert report.undefined["coverage_50"] == reason
    assert "wis" not in report.scores
    asked = uq.evaluate(uq.Predictions.from_quantiles(y, q, levels, y_pred=centre), metrics=["wis"])
    assert "central intervals and a median" in asked.undefined["wis"]
    assert report.settings["levels"] == levels


def test_crossed_quantiles_are_counted():
    _, y, centre, scale = arrays(50)
    q = np.stack([centre - scale, centre, centre + scale], axis=-1)
    q[:4] = q[:4, ::-1]
    data = uq.Predictions.from_quantiles(y, q, [0.1, 0.5, 0.9])
    assert uq.evaluate(data).counts["n_crossed"] == 4
    assert uq.evaluate(data, statistics="sketch").counts["n_crossed"] == 4


def test_a_truth_of_density_zero_makes_the_log_score_undefined():
    y = np.asarray([-1.0, 1.0, 2.0, 3.0])
    report = uq.evaluate(uq.Predictions.from_distribution(y, stats.expon(scale=np.ones(4))))
    assert report.undefined["nll"].startswith("infinite: 0.25 of the targets have density 0")
    assert "crps" in report.scores


def test_a_distribution_without_a_variance_has_a_location_and_a_scale():
    rng = np.random.default_rng(0)
    scale = rng.gamma(4, 0.25, 3000)
    dist = stats.cauchy(0, scale)
    report = uq.evaluate(uq.Predictions.from_distribution(dist.rvs(random_state=rng), dist))
    assert_allclose(report.scores["coverage_90"], 0.9, atol=4 * math.sqrt(0.09 / 3000))
    assert "no variance" in report.undefined["ence"]
    assert "no variance" in report.undefined["crps_gaussian"]
    assert {"crps", "nll", "spearman", "ause_mae"} <= report.scores.keys()


def test_forms_and_families_do_not_mix():
    with pytest.raises(SettingsError, match=r"\(draws\) and are scored as they are; omit family"):
        uq.evaluate(make("draws"), family="laplace")
    _, y, centre, scale = arrays()
    one, other = statistics_of(make("draws")), statistics_of(make("mixture"))
    with pytest.raises(IncompatibleStatisticsError, match=r"distribution differs \(draws and mixture\)"):
        one + other
    with pytest.raises(IncompatibleStatisticsError, match=r"distribution differs \(draws and mean and std\)"):
        one + statistics_of(uq.Predictions(y, centre, scale))
    stream = uq.Accumulator()
    stream.update(make("draws"))
    with pytest.raises(IncompatibleStatisticsError, match="distribution differs"):
        stream.update(y, centre, scale)


def test_a_scale_sweep_of_a_form_sweeps_the_priors_alone():
    curve = uq.evaluate(make("draws"), curves="scale_sweep").curves["scale_sweep"]
    assert "crps" not in curve.columns
    assert "crps_gaussian" in curve.columns


@pytest.mark.slow
def test_curves_against_members_keep_the_form():
    _, y, centre, scale = arrays(200)
    rng = np.random.default_rng(2)
    draws = uq.Predictions.from_samples(y, centre + scale * rng.normal(size=(8, 200)))
    curves = uq.evaluate(draws, curves="by_members", curve_metrics=["crps", "coverage_90"]).curves
    assert curves["by_members_crps"].columns["members"].tolist() == [2, 4, 8]
    means = np.stack([centre - 0.1, centre, centre + 0.1])
    mixture = uq.Predictions.from_ensemble(y, means, np.stack([scale] * 3), combine="mixture")
    found = uq.evaluate(mixture, curves="by_members", curve_metrics=["nll"]).curves["by_members_nll"]
    assert_allclose(found.columns["mean"][-1], uq.evaluate(mixture).scores["nll"], rtol=1e-12)


@given(st.integers(2, 9), st.integers(1, 40), st.integers(0, 10_000))
@settings(max_examples=25)
@pytest.mark.slow
def test_splitting_draws_anywhere_changes_nothing(members, cut, seed):
    rng = np.random.default_rng(seed)
    y, draws = rng.integers(0, 5, 41).astype(float), rng.integers(0, 5, (members, 41)).astype(float)
    draws[:, 0] = np.arange(members)  # so that no std is zero everywhere
    data = uq.Predictions.from_samples(y, draws)
    keep = np.arange(41) < cut
    for how in ("exact", "sketch"):
        merged = statistics_of(data.part(keep), how) + statistics_of(data.part(~keep), how)
        assert_same(score(merged), score(statistics_of(data, how)), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("how", ["exact", "sketch"])
def test_the_verdict_does_not_punish_few_draws(grouped, how):
    rng, n = np.random.default_rng(0), 3000
    scale = rng.gamma(4, 0.25, n)
    y, draws = scale * rng.normal(size=n), scale * rng.normal(size=(5, n))
    groups = np.arange(n) // 100 if grouped else None
    fine = uq.evaluate(uq.Predictions.from_samples(y, draws, groups=groups), statistics=how)
    assert fine.scores["z_std"] > 1.3  # the std of five draws is noisy
    assert fine.verdict.calibration == "consistent with calibrated"
    assert any("5 draws is noisy" in caveat for caveat in fine.verdict.caveats)
    assert_allclose(fine.verdict.scale.value, 1, atol=0.05)
    narrow = uq.evaluate(uq.Predictions.from_samples(y, draws / 2, groups=groups), statistics=how)
    assert narrow.verdict.calibration == "overconfident"
