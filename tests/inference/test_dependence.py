"""Samples that are alike are found in the order and the shape in which they were given."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import ndimage, signal, special

import uq_tracking as uq
from tests.scenarios.regression import field, series
from uq_tracking.errors import SettingsError
from uq_tracking.inference.samples import Samples, _period, clipped, correlation_reach, find_season
from uq_tracking.inputs import Predictions


def in_order(shape, valid=None, *, spatial=True):
    return Samples({}, group=None, independent=False, shape=shape, valid=valid, spatial=spatial)


def of(z, *, spatial):
    return in_order(z.shape, spatial=spatial).alike(z.reshape(-1))


def test_cases_are_put_together_into_at_most_64_groups():
    rng = np.random.default_rng(0)
    for cases, groups in ((12, 12), (64, 64), (65, 33), (200, 50)):
        found = of(rng.normal(size=(cases, 16, 16)), spatial=True)
        assert (found.kind, found.group.max() + 1) == ("cases", groups)
    assert of(rng.normal(size=(300, 3)), spatial=False).kind == "cases"


def test_maps_are_cut_into_tiles_longer_than_errors_are_alike():
    rng = np.random.default_rng(1)
    found = of(field(rng, 1, 128, 3), spatial=True)
    assert found.kind == "tiles"
    assert 5 <= found.reach <= 14
    assert 128 // np.sqrt(found.group.max() + 1) >= 3 * found.reach
    assert 50 < found.worth < 500
    assert found.alike


def test_a_smooth_map_has_too_few_independent_areas():
    found = of(field(np.random.default_rng(2), 1, 96, 12), spatial=True)
    assert (found.kind, found.group) == ("too few", None)


def test_missing_pixels_do_not_count():
    rng = np.random.default_rng(3)
    z = field(rng, 1, 96, 2)
    valid = rng.random(z.shape) < 0.8
    found = in_order(z.shape, valid).alike(z[valid])
    assert len(found.group) == valid.sum()
    assert abs(found.reach - of(z, spatial=True).reach) <= 2
    assert correlation_reach(np.where(valid, z, np.nan)) == found.reach


def test_a_series_is_cut_into_blocks_only_if_neighbors_are_alike():
    rng = np.random.default_rng(4)
    assert of(rng.normal(size=2000), spatial=False).kind == "independent"
    found = of(series(rng, 5000, 0.8), spatial=False)
    assert found.kind == "blocks"
    assert 300 < found.worth < 1500  # 5000 x (1 - .8) / (1 + .8) = 556


def test_stations_that_take_turns_are_found():
    """An offset of each for good; fewer than twelve are no sample of stations."""
    rng = np.random.default_rng(10)
    z = rng.normal(size=(100, 24)) + rng.normal(size=24)
    found = of(z.reshape(-1), spatial=False)
    assert found.kind == "cases"
    assert np.array_equal(found.group, np.arange(2400) % 24)
    assert of(z[:, :7].reshape(-1), spatial=False).kind == "independent"


def test_stations_whose_errors_change_slowly_are_cut_into_blocks_of_whole_turns():
    rng = np.random.default_rng(11)
    z = np.stack([series(rng, 300, 0.8) for _ in range(20)], axis=1)
    found = of(z.reshape(-1), spatial=False)
    assert found.kind == "blocks"
    assert 100 < found.worth < 4000  # 6000 x (1 - .8) / (1 + .8) = 667, from nine blocks
    assert not any(np.unique(np.diff(found.group.reshape(300, 20), axis=1)))


WITHOUT_PERIOD = {
    "normal": lambda rng: rng.normal(size=800),
    "heavy": lambda rng: rng.standard_t(3, size=800),
    "slow": lambda rng: series(rng, 800, 0.95),
    "drift": lambda rng: rng.normal(size=800) * np.linspace(0.8, 2, 800),
}


@pytest.mark.slow
@pytest.mark.parametrize("draw", WITHOUT_PERIOD)
def test_periods_are_rarely_seen_where_there_are_none(draw):
    rng = np.random.default_rng(12)
    found = (_period((z, clipped(z)))[0] for z in (WITHOUT_PERIOD[draw](rng) for _ in range(60)))
    assert sum(period > 0 for period in found) <= 1


def test_cases_that_follow_each_other_are_cut_into_blocks():
    rng = np.random.default_rng(13)
    noise = field(rng, 300, 8, 1)
    z = noise.copy()
    for time in range(1, 300):
        z[time] = 0.6 * z[time - 1] + 0.8 * noise[time]
    found = of(z, spatial=True)
    assert (found.kind, len(np.unique(found.group))) == ("blocks", 9)
    assert of(noise, spatial=True).kind == "cases"
    valid = rng.random(z.shape) < 0.7
    assert in_order(z.shape, valid).alike(z[valid]).kind == "blocks"
    assert of(z[:20], spatial=True).kind == "too few"
    drift = noise * np.linspace(0.7, 1.5, 300)[:, None, None] + np.linspace(-1, 1, 300)[:, None, None]
    assert of(drift, spatial=True).kind == "cases"


def test_few_frames_that_follow_each_other_share_their_tiles():
    rng = np.random.default_rng(17)
    still = np.repeat(field(rng, 1, 96, 1), 6, axis=0) + 0.3 * field(rng, 6, 96, 1)
    found = of(still, spatial=True)
    assert found.kind == "tiles"
    assert np.array_equal(found.group.reshape(6, -1)[0], found.group.reshape(6, -1)[5])
    apart = of(field(rng, 6, 96, 1), spatial=True)
    assert not np.intersect1d(apart.group.reshape(6, -1)[0], apart.group.reshape(6, -1)[5]).size
    smooth = np.repeat(field(rng, 1, 48, 4), 6, axis=0)
    assert of(smooth, spatial=True).kind == "too few"


def test_classes_that_occur_like_before_are_alike_though_top_labels_are_not():
    rng = np.random.default_rng(18)
    probs = special.softmax(rng.normal(size=(1500, 3)), axis=1)
    latent = special.ndtr(series(rng, 1500, 0.95))[:, None]
    labels = (latent > probs.cumsum(axis=1)).sum(axis=1).clip(max=2)
    verdict = uq.evaluate(labels, probs=probs).verdict
    assert verdict.worth is not None
    assert verdict.worth < 500
    assert uq.evaluate(labels[rng.permutation(1500)], probs=probs).verdict.worth is None


def test_what_is_claimed_of_samples_that_are_gone_says_what_it_takes_for_granted():
    rng = np.random.default_rng(19)
    logits, sentence = rng.normal(size=(2000, 3)), "This assumes independent samples: if some belong together"
    probs, labels = (
        special.softmax(2 * logits, axis=1),
        (logits + rng.gumbel(size=logits.shape)).argmax(axis=1),
    )
    right = special.softmax(logits, axis=1)
    for stated, is_said in ((probs, True), (right, False)):
        stream = uq.Accumulator(metrics=["ece"])
        stream.update(labels, probs=stated)
        report = stream.compute()
        assert sentence not in report.verdict.text
        assert (sentence in uq.evaluation.scoring.score(report.statistics).verdict.text) == is_said


@pytest.mark.slow
def test_a_stream_of_classes_is_judged_like_the_same_classes_in_memory():
    rng = np.random.default_rng(20)
    probs = special.softmax(rng.normal(size=(1500, 3)), axis=1)
    latent = special.ndtr(series(rng, 1500, 0.9))[:, None]
    labels = (latent > probs.cumsum(axis=1)).sum(axis=1).clip(max=2)
    by = rng.permutation(1500) % 2
    streams = [uq.Accumulator(statistics="exact") for _ in range(3)]
    for start in range(0, 1500, 100):
        part = slice(start, start + 100)
        for stream in (streams[0], streams[1 if start < 700 else 2]):
            stream.update(labels[part], probs=probs[part], by=by[part])
    merged = pickle.loads(pickle.dumps(streams[1])).merge(streams[2])
    expected = uq.evaluate(labels, probs=probs, by=by).verdict
    for stream in (streams[0], merged):
        found = stream.compute().verdict
        assert found.text == expected.text
        assert found.worth == pytest.approx(expected.worth, rel=1e-6)


def test_neighbors_are_found_alike_in_the_runs_that_a_long_stream_keeps():
    rng, streams = np.random.default_rng(23), [uq.Accumulator() for _ in range(3)]
    probs = rng.uniform(size=300_000)
    happened = special.ndtr(series(rng, 300_000, 0.8)) < probs
    for start in range(0, 300_000, 10_000):
        part = slice(start, start + 10_000)
        streams[start // 100_000].update(happened[part].astype(int), probs=probs[part])
    verdict = streams[0].merge(streams[1]).merge(streams[2]).compute().verdict
    assert "of 300,000, count as about" in verdict.text
    assert verdict.worth < 20_000


def test_rows_of_a_table_are_no_map():
    rng = np.random.default_rng(24)
    alike = np.sqrt(0.2) * rng.normal(size=(100, 1)) + np.sqrt(0.8) * rng.normal(size=(100, 40))
    assert of(alike, spatial=True).kind == "cases"
    assert of(field(rng, 1, 128, 3)[0], spatial=True).kind == "tiles"


def test_masked_maps_of_a_stream_are_judged_as_in_memory():
    rng = np.random.default_rng(25)
    errors, mask = field(rng, 4, 48, 3), rng.random((4, 48, 48)) < 0.1
    stream = uq.Accumulator(statistics="exact")
    for one, hidden in zip(errors, mask, strict=True):
        stream.update(one[None], np.zeros_like(one)[None], np.ones_like(one)[None], mask=hidden[None])
    whole = uq.evaluate(errors, np.zeros_like(errors), np.ones_like(errors), mask=mask)
    assert stream.compute().verdict.text == whole.verdict.text


def test_few_maps_of_classes_in_a_long_stream_are_not_judged():
    rng, stream = np.random.default_rng(21), uq.Accumulator()
    for _ in range(2):
        probs = rng.dirichlet(np.ones(3), size=(1, 256, 256))
        stream.update((rng.random((1, 256, 256, 1)) > probs.cumsum(axis=-1)).sum(axis=-1), probs=probs)
    assert "2 maps are too few to know how correlated neighboring errors are" in stream.compute().verdict.text


def test_a_slow_forecast_is_no_covariate():
    """Past errors move it, so that its own errors seem to depend on it."""
    walk = np.cumsum(np.random.default_rng(14).normal(size=610))
    report = uq.evaluate(walk[10:], walk[:600], np.full(600, np.sqrt(10)))
    assert "mean" not in report.verdict.places.parts
    std = np.random.default_rng(15).uniform(0.5, 1.5, 5000)
    quick = uq.evaluate(std * series(np.random.default_rng(16), 5000, 0.8), std[::-1], std)
    assert "mean" in quick.verdict.places.parts


def test_sorted_rows_are_no_series():
    rng = np.random.default_rng(5)
    z = rng.normal(size=1000)
    y = np.sort(z)
    assert in_order((1000,), spatial=False).alike(y, (y,)).kind == "sorted"


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_few_samples_do_no_harm(n):
    assert of(np.random.default_rng(n).normal(size=n), spatial=False).group is None


def test_a_verdict_says_how_many_samples_there_really_are():
    rng = np.random.default_rng(6)
    y = field(rng, 20, 32, 3)
    report = uq.evaluate(y, np.zeros_like(y), np.ones_like(y))
    assert "20,480 samples count as about" in report.verdict.text
    assert report.verdict.worth < 1000
    assert uq.Report.from_json(report.to_json()).verdict.worth == report.verdict.worth


INDEPENDENT = "Samples were taken for independent, as groups=False says."


@pytest.mark.slow
def test_groups_false_takes_samples_for_independent(tmp_path):
    y = field(np.random.default_rng(7), 20, 32, 3)
    given = (y, np.zeros_like(y), np.ones_like(y))
    data = Predictions(*given, groups=False)
    data.save(tmp_path / "data.npz")
    again = Predictions.load(tmp_path / "data.npz")
    for report in (
        uq.evaluate(*given, groups=False),
        uq.evaluate(again),
        uq.evaluate(data.replace(std=2 * data.std)),
        uq.log(*given, groups=False, run=f"dir:{tmp_path}", figures=False, maps=False),
    ):
        assert INDEPENDENT in report.verdict.caveats
        assert report.verdict.worth is None
        assert not report.intervals
    assert INDEPENDENT not in uq.evaluate(data.replace(groups=np.arange(20))).verdict.caveats


@pytest.mark.slow
def test_groups_false_with_intervals_still_tests_places():
    rng = np.random.default_rng(8)
    std = rng.uniform(1, 2, 400)
    report = uq.evaluate(rng.normal(0, std), np.zeros(400), std, groups=False, intervals=True)
    assert INDEPENDENT in report.verdict.caveats
    assert report.verdict.places is not None
    assert report.intervals


def test_groups_false_is_no_order():
    with pytest.raises(SettingsError, match="omit groups="):
        uq.evaluate([1.0, 2.0], [1.0, 2.0], [1.0, 1.0], groups=False, order=[0, 1])


@pytest.mark.parametrize("order", [np.sort, np.random.default_rng(0).permutation])
def test_copies_of_rows_count_once(order):
    rng = np.random.default_rng(22)
    std, mean = rng.uniform(1, 2, 400), rng.normal(size=400)
    y = mean + std * rng.normal(size=400)
    row = order(np.repeat(np.arange(400), 3))
    verdict = uq.evaluate(y[row], mean[row], std[row]).verdict
    assert verdict.worth == 400
    assert "the 400 different ones of 1,200 were judged." in verdict.text
    counts = rng.poisson(5, 1000).astype(float)
    honest = uq.evaluate(counts, rng.poisson(5, 1000).astype(float), np.full(1000, 3.0)).verdict
    assert honest.worth is None


def cycle(rng, n, period, amplitude):
    """Noise with a cycle."""
    return amplitude * np.sin(2 * np.pi * np.arange(n) / period) + rng.normal(size=n)


@pytest.mark.parametrize(("n", "period"), [(600, 12), (700, 7), (2000, 24), (8000, 24), (16_000, 168)])
def test_errors_that_recur_are_found_with_their_period(n, period):
    rng = np.random.default_rng(14)
    found = [find_season((z, clipped(z))) for z in (cycle(rng, n, period, 0.8) for _ in range(10))]
    assert found.count(period) >= 9, found


WITHOUT_SEASON = {
    **WITHOUT_PERIOD,
    "slower": lambda rng: series(rng, 2000, 0.99),
    "walk": lambda rng: np.cumsum(rng.normal(size=1500)),
    "trend": lambda rng: rng.normal(size=2000) + np.linspace(-1, 1, 2000),
    "stations": lambda rng: np.stack([series(rng, 100, 0.8) for _ in range(24)], axis=1).ravel(),
    "damped": lambda rng: signal.lfilter([1], [1, -1.8, 0.9], rng.normal(size=2000)),
}


@pytest.mark.slow
@pytest.mark.parametrize("draw", WITHOUT_SEASON)
def test_errors_that_do_not_recur_have_no_season(draw):
    rng = np.random.default_rng(15)
    assert not any(find_season((z, clipped(z))) for z in (WITHOUT_SEASON[draw](rng) for _ in range(100)))


def test_a_masked_column_of_a_smooth_map_brings_no_warning():
    rng = np.random.default_rng(0)
    error = ndimage.gaussian_filter(rng.normal(size=(40, 60)), 8)
    mean, mask = rng.normal(size=error.shape), np.zeros(error.shape, dtype=bool)
    mask[:, 5] = True
    verdict = uq.evaluate(mean + error / error.std(), mean, np.ones(error.shape), mask=mask).verdict
    assert verdict.calibration == "not enough data"


def test_a_period_by_chance_makes_independent_samples_no_few():
    rng = np.random.default_rng([12, 5000, 1])  # alike every 377 rows, which cut them into 14
    std, mean = np.exp(0.6 * rng.normal(size=5000)), rng.normal(size=5000)
    y = 2 * mean + std * rng.normal(size=5000)
    assert uq.evaluate(y, mean, std).verdict.calibration != "not enough data"
