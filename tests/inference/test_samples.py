"""Samples that streams keep for their verdict: evenly spread, in their order, however the stream is cut."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq
from tests.scenarios.regression import SCENARIOS, field, sites, spread_stds
from uq_tracking.inference.samples import FEWEST_CASES, RUN_BITS, chosen, halvings_for
from uq_tracking.inference.words import UNORDERED


def streamed(*arrays, batch, **labels):
    made = uq.Accumulator()
    for start in range(0, len(arrays[0]), batch):
        part = slice(start, start + batch)
        made.update(
            *(array[part] for array in arrays), **{name: label[part] for name, label in labels.items()}
        )
    return made


def test_one_of_every_stretch_is_kept():
    for halvings in range(6):
        place = chosen(0, 1000, halvings)
        run = np.unique(place >> RUN_BITS)
        assert np.array_equal(place, np.flatnonzero(np.isin(np.arange(1000) >> RUN_BITS, run)))
        assert (run >> halvings).tolist() == list(range((124 >> halvings) + 1))[: len(run)]
        assert abs(len(place) - 1000 / 2**halvings) <= 1 << RUN_BITS
        if halvings:
            assert np.isin(place, chosen(0, 1000, halvings - 1)).all()
    assert np.array_equal(np.concatenate([chosen(0, 333, 3), chosen(333, 667, 3)]), chosen(0, 1000, 3))


def test_columns_of_an_image_are_kept_alike():
    column = chosen(0, 1 << 22, 9) % 512
    assert np.bincount(column // 64, minlength=8).min() > 750


@pytest.mark.slow
@pytest.mark.parametrize("name", ["varies_too_much", "autocorrelated", "variances", "images", "one_map"])
def test_a_small_stream_has_the_verdict_of_the_whole(name):
    arrays, options = SCENARIOS[name].make(np.random.default_rng(1))
    whole = uq.evaluate(*arrays, **options).verdict
    verdict = streamed(*arrays, batch=max(len(arrays[0]) // 7, 1)).compute().verdict
    assert verdict.text == whole.text
    assert verdict.caveats == whole.caveats


@pytest.fixture(scope="module")
def maps():
    """Thirty maps of 4096 pixels, neighbors alike, 1.5 times too small."""
    rng = np.random.default_rng(2)
    s, mu = spread_stds(rng, (30, 64, 64), 0.3), field(rng, 30, 64, 4)
    return mu + 1.5 * s * field(rng, 30, 64, 3), mu, s


@pytest.mark.slow
def test_what_is_kept_does_not_depend_on_batches_parts_or_files(maps, tmp_path):
    one = streamed(*maps, batch=30)
    for stream in (streamed(*maps, batch=7), streamed(*maps, batch=1)):
        assert stream.compute().verdict == one.compute().verdict
    one.save(tmp_path / "stream.npz")
    assert uq.Accumulator.load(tmp_path / "stream.npz").compute().verdict == one.compute().verdict
    first, second = (streamed(*(each[part] for each in maps), batch=4) for part in (slice(16), slice(16, 30)))
    merged = first.merge(second).compute()
    assert merged.samples.case.max() == 29
    assert merged.verdict.calibration == "overconfident"


def test_large_streams_are_judged_on_what_is_kept(maps):
    report = streamed(*maps, batch=4).compute()
    verdict = report.verdict
    assert halvings_for(maps[0].size) == 1
    assert len(report.samples.rows["std"]) == maps[0].size // 2
    assert verdict.calibration == "overconfident"
    assert verdict.worth < 5000
    assert "is tested on 61,440 of the 122,880 samples, evenly spread." in verdict.caveats[-1]


@pytest.mark.slow
def test_dask_and_sketches_keep_the_same(maps):
    da = pytest.importorskip("dask.array")
    sketch = uq.evaluate(*maps, statistics="sketch")
    for chunks in ((7, 64, 64), (10, 32, 64)):
        lazy = [da.from_array(each, chunks=chunks) for each in maps]
        report = uq.evaluate(*lazy, statistics="sketch")
        assert report.verdict.calibration == sketch.verdict.calibration == "overconfident"
        assert np.array_equal(np.bincount(report.samples.case) > 1500, np.ones(30, dtype=bool))
        assert report.verdict.worth == pytest.approx(sketch.verdict.worth, rel=0.2)
    independent = uq.evaluate(*lazy, statistics="sketch", groups=False).verdict
    assert "Samples were taken for independent, as groups=False says." in independent.caveats
    assert independent.worth is None


def test_few_large_maps_are_not_judged_in_a_stream(maps):
    rng = np.random.default_rng(3)
    s, mu = spread_stds(rng, (3, 160, 160), 0.3), field(rng, 3, 160, 4)
    y = mu + s * field(rng, 3, 160, 3)
    verdict = streamed(y, mu, s, batch=1).compute().verdict
    assert verdict.calibration == "not enough data"
    assert "3 maps are too few to know how correlated neighboring errors are" in verdict.text
    assert FEWEST_CASES == 12
    assert uq.evaluate(y, mu, s).verdict.calibration == "consistent with calibrated"


@pytest.mark.slow
def test_labels_of_a_stream_are_judged():
    z, s, mu, site = sites(np.random.default_rng(4), 20_000)
    y = mu + np.where(site == 3, 1.8, 1) * s * z
    whole = uq.evaluate(y, mu, s, by=site).verdict
    stream = streamed(y[::-1], mu[::-1], s[::-1], by=site[::-1], batch=999)
    assert [each.name for each in stream.compute().verdict.places.strata] == [
        each.name for each in whole.places.strata
    ]
    assert "stratum '3' standard" in stream.compute().verdict.text


@pytest.mark.slow
def test_groups_of_a_stream_are_those_of_its_places():
    (arrays, options) = SCENARIOS["groups"].make(np.random.default_rng(5))
    whole = uq.evaluate(*arrays, **options).verdict
    verdict = streamed(*arrays, batch=300, **options).compute().verdict
    assert verdict.places == whole.places


@pytest.mark.slow
def test_a_pool_of_runs_whose_errors_are_alike_is_not_judged(maps):
    parts = [uq.evaluate(*(each[part] for each in maps)) for part in (slice(15), slice(15, 30))]
    assert uq.pool(parts).verdict.text == f"Not enough data to tell: {UNORDERED}."


@pytest.mark.slow
def test_a_rescored_run_keeps_its_verdict_while_its_settings_hold(maps, tmp_path):
    where = f"dir:{tmp_path}/run"
    uq.log(*(each[:14] for each in maps), run=where, figures=False)
    report = next(tmp_path.rglob("report.json"))
    before = uq.Report.from_json(report.read_text()).verdict
    uq.rescore(where, alpha=0.9)
    assert uq.Report.from_json(report.read_text()).verdict == before
    assert before.worth is not None
    uq.rescore(where, family="laplace")
    after = uq.Report.from_json(report.read_text()).verdict
    assert after.text == f"Not enough data to tell: {UNORDERED}."


@pytest.mark.slow
def test_a_device_keeps_no_samples_and_says_so():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(6)
    stream = uq.Accumulator(on_device=True)
    for _ in range(10):
        y = torch.as_tensor(rng.normal(size=(16, 16)))
        stream.update(y, torch.zeros_like(y), torch.ones_like(y))
    verdict = stream.compute().verdict
    assert verdict.places is None
    assert any("whether neighboring errors are correlated, is not tested" in each for each in verdict.caveats)
