import json
import pickle

import numpy as np
import pytest
import xarray
import zarr
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import (
    EmptyInputError,
    FileFormatError,
    IncompatibleStatisticsError,
    InputTypeError,
    InvalidValueError,
    SettingsError,
    ShapeError,
)
from uq_tracking.statistics.building import BUILD_BLOCK
from uq_tracking.statistics.regression import REGRESSION, joint_counts
from uq_tracking.statistics.statistics import Statistics, by_label

from .made import predictions


def batches(data, size):
    n = len(data[0])
    for start in range(0, n, size):
        yield tuple(column[start : start + size] for column in data)


def counted(data, size=None, **settings):
    accumulator = uq.Accumulator(**settings)
    for batch in batches(data, size or len(data[0])):
        accumulator.update(*batch)
    return accumulator


class TestReport:
    def test_equals_the_sketch_of_the_whole(self):
        data = predictions(n=20_000)
        streamed = counted(data, 777).compute()
        whole = uq.evaluate(*data, statistics="sketch")
        assert streamed.counts == whole.counts
        assert_allclose(list(streamed.scores.values()), list(whole.scores.values()), rtol=1e-12)
        assert streamed.provenance["statistics"] == "sketch"

    def test_exact_equals_the_exact_report(self):
        data = [column.astype(np.float32) for column in predictions(n=3000)]
        assert (
            counted(data, 100, statistics="exact").compute().scores
            == uq.evaluate(*data, statistics="exact").scores
        )

    @pytest.mark.parametrize("size", [1000, 4096, BUILD_BLOCK])
    def test_the_size_of_the_batches_changes_no_bit(self, size):
        data = predictions(n=BUILD_BLOCK + 5000)
        assert counted(data, size).compute() == counted(data).compute()

    def test_settings_reach_the_report(self):
        data = predictions(n=500)
        settings = {"alpha": 0.9, "n_bins": 5, "family": "laplace", "unit": "m", "std_floor": 0.5}
        streamed, whole = (
            counted(data, **settings).compute(),
            uq.evaluate(*data, statistics="sketch", **settings),
        )
        assert streamed.settings == whole.settings
        assert_allclose(list(streamed.scores.values()), list(whole.scores.values()), rtol=1e-12)

    def test_chosen_metrics_only(self):
        assert set(counted(predictions(), metrics=["mae", "nll"]).compute().scores) == {"mae", "nll"}

    def test_counting_goes_on_after_compute(self):
        data = predictions(n=2000)
        accumulator = uq.Accumulator()
        for batch in batches(data, 500):
            accumulator.update(*batch)
            accumulator.compute()
        assert_allclose(accumulator.compute().scores["crps"], uq.evaluate(*data).scores["crps"], rtol=1e-8)

    def test_reset_forgets(self):
        accumulator = counted(predictions(n=100))
        accumulator.reset()
        other = predictions(n=300, seed=1)
        accumulator.update(*other)
        assert accumulator.compute() == counted(other).compute()

    def test_takes_predictions_objects(self):
        y, mean, std = predictions(n=300)
        accumulator = uq.Accumulator()
        accumulator.update(uq.Predictions.from_variance(y, mean, std**2))
        assert_allclose(
            accumulator.compute().scores["nll"], uq.evaluate(y, mean, std).scores["nll"], rtol=1e-12
        )

    def test_the_unit_of_labelled_arrays_is_kept(self):
        y, mean, std = predictions(n=20)
        accumulator = uq.Accumulator()
        accumulator.update(xarray.DataArray(y, attrs={"units": "m"}), mean, std)
        assert accumulator.compute().settings["unit"] == "m"
        with pytest.raises(IncompatibleStatisticsError, match=r"unit differs \(m and km\)"):
            accumulator.update(xarray.DataArray(y, attrs={"units": "km"}), mean, std)

    def test_cross_fitting_needs_rows(self):
        data = predictions(n=400)
        report = counted(data, statistics="exact").compute(calibration=True)
        assert "std_scaling" in report.recalibration["methods"]


class TestBadInput:
    def test_a_refused_batch_is_not_counted(self):
        data = predictions(n=100)
        accumulator = counted(data)
        bad = [column.copy() for column in data]
        bad[2][7] = -1
        with pytest.raises(InvalidValueError, match=r"1 negative value \(first at index \(7,\)\)"):
            accumulator.update(*bad, groups=np.zeros(100))
        assert accumulator.compute() == counted(data).compute()

    def test_dropped_values_are_counted(self):
        y, mean, std = predictions(n=100)
        mean[3], y[4] = np.inf, np.nan
        mask = np.zeros(100, bool)
        mask[50:60] = True
        accumulator = uq.Accumulator(on_invalid="drop")
        accumulator.update(y, mean, std, mask=mask)
        whole = uq.evaluate(y, mean, std, mask=mask, on_invalid="drop")
        assert accumulator.compute().counts == whole.counts
        assert whole.counts["n_invalid"] == 1

    def test_a_batch_without_truth_does_not_stop_the_stream(self):
        y, mean, std = predictions(n=50)
        accumulator = counted((y, mean, std))
        accumulator.update(np.full(50, np.nan), mean, std)
        accumulator.update([], [], [])
        assert accumulator.compute().counts == {**uq.evaluate(y, mean, std).counts, "n_missing": 50}

    def test_nothing_counted_is_an_error(self):
        with pytest.raises(EmptyInputError, match="no sample was counted in 0 batches"):
            uq.Accumulator().compute()

    def test_zero_stds_are_counted(self):
        y, mean, std = predictions(n=50)
        std[:5] = 0
        report = counted((y, mean, std), 20).compute()
        assert report.counts["n_zero_std"] == 5
        assert "nll" in report.undefined
        assert counted((y, mean, std), 20, std_floor=0.1).compute().counts["n_zero_std"] == 5

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"statistics": "auto"}, "choose sketch or exact"),
            ({"bits": 30}, "choose 4 to 14"),
            ({"std_floor": -1}, "std_floor=-1"),
            ({"on_invalid": "ignore"}, "on_invalid='ignore'"),
            ({"alpha": 2}, "alpha is 2"),
            ({"metrics": ["mea"]}, "mea"),
        ],
    )
    def test_wrong_settings_raise_at_once(self, settings, message):
        with pytest.raises(SettingsError, match=message):
            uq.Accumulator(**settings)

    def test_a_floor_of_the_predictions_has_to_be_ours(self):
        with pytest.raises(
            SettingsError, match=r"std_floor of the Predictions is 0\.5, of the Accumulator None"
        ):
            uq.Accumulator().update(uq.Predictions(*predictions(n=9), std_floor=0.5))


class TestMerge:
    def test_adds_counts_digest_and_batches(self):
        data = predictions(n=1000)
        parts = [counted(batch) for batch in batches(data, 300)]
        union = uq.Accumulator()
        for part in parts:
            union.merge(part)
        report, whole = union.compute(), counted(data).compute()
        assert report.counts == whole.counts
        assert report.provenance["digest"] == whole.provenance["digest"]
        assert_allclose(list(report.scores.values()), list(whole.scores.values()), rtol=1e-12)

    def test_leaves_the_other_as_it_is(self):
        one, other = counted(predictions(n=100)), counted(predictions(n=50, seed=1))
        before = other.compute()
        one.merge(other)
        one.update(*predictions(n=10, seed=2))
        assert other.compute() == before

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("std_floor", 0.5),
            ("bits", 8),
            ("alpha", 0.5),
            ("n_bins", 3),
            ("family", "laplace"),
            ("dof", 4.0),
            ("unit", "m"),
            ("metrics", ["mae"]),
            ("on_invalid", "drop"),
            ("statistics", "exact"),
        ],
    )
    def test_differing_settings_are_refused_by_name(self, name, value):
        one, other = counted(predictions(n=20)), counted(predictions(n=20), **{name: value})
        before = one.compute()
        with pytest.raises(IncompatibleStatisticsError, match=f"{name} differs"):
            one.merge(other)
        assert one.compute() == before

    def test_groups_of_one_side_only_are_refused(self):
        one, other = counted(predictions(n=20)), uq.Accumulator()
        other.update(*predictions(n=20), groups=np.zeros(20))
        with pytest.raises(IncompatibleStatisticsError, match="groups was given to one accumulator only"):
            one.merge(other)

    def test_settings_that_change_no_number_may_differ(self):
        one, other = uq.Accumulator(maps=False), uq.Accumulator(maps=3)
        one.update(*predictions(n=20))
        assert one.merge(other) is one

    def test_exact_ones_merge(self):
        data = predictions(n=200)
        one, other = (counted(batch, statistics="exact") for batch in batches(data, 100))
        assert one.merge(other).compute().scores == uq.evaluate(*data).scores

    def test_statistics_have_a_zero(self):
        statistics = counted(predictions(n=200)).statistics
        for total in (statistics + Statistics.zero(REGRESSION), Statistics.zero(REGRESSION) + statistics):
            assert_same_arrays(total.to_arrays(), statistics.to_arrays())


def assert_same_arrays(one, other):
    assert set(one) == set(other)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


class TestDigest:
    def test_depends_on_neither_order_nor_batches_nor_dtype(self):
        y, mean, std = (column.astype(np.float32) for column in predictions(n=500))
        order = np.random.default_rng(0).permutation(500)
        shuffled = tuple(column[order].astype(np.float64) for column in (y, mean, std))
        digests = {
            counted((y, mean, std), 77).compute().provenance["digest"],
            counted(shuffled, 50).compute().provenance["digest"],
        }
        assert len(digests) == 1
        assert digests.pop().startswith("sum64:")

    @pytest.mark.parametrize("column", [0, 1, 2])
    def test_tells_a_single_value_apart(self, column):
        data = predictions(n=500)
        changed = [values.copy() for values in data]
        changed[column][250] = np.nextafter(changed[column][250], np.inf)
        digest = counted(data).compute().provenance["digest"]
        assert counted(changed).compute().provenance["digest"] != digest

    def test_tells_swapped_partners_apart(self):
        y, mean, std = predictions(n=500)
        swapped = std.copy()
        swapped[:2] = std[1::-1]
        digests = {counted((y, mean, s)).compute().provenance["digest"] for s in (std, swapped)}
        assert len(digests) == 2


class TestFiles:
    @pytest.mark.parametrize("method", ["sketch", "exact"])
    @pytest.mark.parametrize("cut", [0, 100, BUILD_BLOCK + 400])
    def test_interrupted_and_resumed_it_gives_the_same_report(self, tmp_path, method, cut):
        data = predictions(n=BUILD_BLOCK + 3000)
        path = tmp_path / "state.npz"
        first = uq.Accumulator(statistics=method)
        if cut:
            first.update(*(column[:cut] for column in data))
        first.save(path)
        resumed = uq.Accumulator.load(path)
        resumed.update(*(column[cut:] for column in data))
        assert resumed.compute() == counted(data, statistics=method).compute()

    def test_labels_and_cases_come_back(self, tmp_path):
        shape = (3, 20, 30)
        data = tuple(column.reshape(shape) for column in predictions(n=1800))
        accumulator = uq.Accumulator(alpha=0.9)
        accumulator.update(*data, groups=["a", "b", "c"], by=[1, 2, 1], images=np.ones((3, 20, 30, 3)))
        accumulator.save(tmp_path / "state")
        again = uq.Accumulator.load(tmp_path / "state")
        assert again.settings == accumulator.settings
        assert set(again.group_statistics) == {"a", "b", "c"}
        for label, statistics in accumulator.stratum_statistics.items():
            assert_same_arrays(again.stratum_statistics[label].to_arrays(), statistics.to_arrays())
        for number, case in accumulator.cases.items():
            np.testing.assert_array_equal(again.cases[number].arrays["target"], case.arrays["target"])
            assert again.cases[number].image.shape == (20, 30, 3)
        assert list(tmp_path.iterdir()) == [tmp_path / "state"]

    def test_pickles_in_the_compact_form(self):
        accumulator = counted(predictions(n=5000))
        data = pickle.dumps(accumulator)
        assert len(data) < 3_000_000
        assert pickle.loads(data).compute() == accumulator.compute()

    def test_a_missing_file_is_not_found(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            uq.Accumulator.load(tmp_path / "nowhere.npz")

    def test_foreign_and_damaged_files_are_named(self, tmp_path):
        foreign = tmp_path / "foreign.npz"
        np.savez(foreign, x=np.ones(3))
        with pytest.raises(FileFormatError, match=r"foreign\.npz was not written by Accumulator\.save"):
            uq.Accumulator.load(foreign)
        path = tmp_path / "state.npz"
        counted(predictions(n=10)).save(path)
        arrays = dict(np.load(path))
        np.savez(tmp_path / "cut.npz", **{k: v for k, v in arrays.items() if k != "counts"})
        with pytest.raises(FileFormatError, match=r"cut\.npz is a damaged accumulator"):
            uq.Accumulator.load(tmp_path / "cut.npz")
        about = json.loads(str(arrays["about"])) | {"version": 99}
        np.savez(tmp_path / "new.npz", **{**arrays, "about": np.asarray(json.dumps(about))})
        with pytest.raises(FileFormatError, match="format version 99"):
            uq.Accumulator.load(tmp_path / "new.npz")


class TestLabels:
    def test_statistics_per_group_add_up(self):
        y, mean, std = predictions(n=3000)
        labels = np.random.default_rng(0).integers(0, 7, 3000)
        accumulator = uq.Accumulator()
        for start in range(0, 3000, 500):
            part = slice(start, start + 500)
            accumulator.update(y[part], mean[part], std[part], groups=labels[part])
        found = accumulator.group_statistics
        assert set(found) == set(range(7))
        for label, statistics in found.items():
            own = labels == label
            assert statistics.n == own.sum()
            assert_allclose(
                statistics.orders["abs_error"].sum("sq_error"), np.sum((y - mean)[own] ** 2), rtol=1e-12
            )
            assert_allclose(statistics.moments["std"].mean, std[own].mean(), rtol=1e-12)
            assert_allclose(statistics.moments["z"].variance(), ((y - mean) / std)[own].var(), rtol=1e-12)
            assert_allclose(statistics.sums["log_std"], np.log(std[own]).sum(), rtol=1e-12)

    @pytest.mark.parametrize("law", ["gamma", "constant", "ties", "huge"])
    def test_a_group_is_a_sketch_of_its_samples(self, law):
        from uq_tracking.statistics.group_tally import STRATUM_BITS, GroupTally
        from uq_tracking.testing.statistics import sketch_statistics

        y, mean, std = predictions(law, 2000)
        codes = np.random.default_rng(1).integers(0, 3, 2000)
        tally = GroupTally(REGRESSION, {"std_floor": None}, STRATUM_BITS, 4)
        tally.add(np.asarray(["x", "y", "z"]), codes, {"target": y, "mean": mean, "std": std})
        made = by_label(tally.tables())
        for code, label in enumerate("xyz"):
            own = codes == code
            reference = sketch_statistics(y[own], mean[own], std[own], bits=STRATUM_BITS)
            for order in REGRESSION.orders:
                one, other = (s.orders[order] for s in (made[label], reference))
                np.testing.assert_array_equal(one.key, other.key)
                np.testing.assert_array_equal(one.width, other.width)
                np.testing.assert_array_equal(one.count, other.count)
                for payload, column in other.sums.items():
                    assert_allclose(one.sums[payload], column, rtol=1e-12)
            joint = joint_counts(reference).coarsened(4)
            np.testing.assert_array_equal(joint_counts(made[label]).key, joint.key)
            np.testing.assert_array_equal(joint_counts(made[label]).count, joint.count)

    def test_a_stratum_is_scored_like_its_samples(self):
        y, mean, std = predictions(n=20_000)
        strata = np.where(y > 0, "above", "below")
        accumulator = uq.Accumulator()
        accumulator.update(y, mean, std, by=strata)
        from uq_tracking.evaluation.scoring import score

        scores = score(accumulator.stratum_statistics["above"]).scores
        whole = uq.evaluate(y[y > 0], mean[y > 0], std[y > 0]).scores
        for key in ("mae", "rmse", "nll", "sharpness"):
            assert_allclose(scores[key], whole[key], rtol=1e-10, err_msg=key)
        for key in ("crps", "ause_rmse", "auce", "coverage_90", "merci"):
            assert_allclose(scores[key], whole[key], rtol=2e-3, atol=1e-4, err_msg=key)

    def test_labels_are_for_all_batches_or_for_none(self):
        accumulator = counted(predictions(n=20))
        with pytest.raises(SettingsError, match="groups was not given for earlier batches"):
            accumulator.update(*predictions(n=20), groups=np.zeros(20))
        accumulator.reset()
        accumulator.update(*predictions(n=20), by=np.zeros(20))
        with pytest.raises(SettingsError, match="by was given for earlier batches"):
            accumulator.update(*predictions(n=20))

    def test_dates_become_text(self):
        accumulator = uq.Accumulator()
        accumulator.update(
            *predictions(n=2), groups=np.asarray(["2020-01-01", "2020-01-02"], "datetime64[D]")
        )
        assert set(accumulator.group_statistics) == {"2020-01-01", "2020-01-02"}

    def test_a_group_takes_little_memory(self):
        shape = (10, 100, 100)
        accumulator = uq.Accumulator(maps=False)
        accumulator.update(*(c.reshape(shape) for c in predictions(n=100_000)), groups=np.arange(10))
        size = sum(
            column.nbytes for s in accumulator.group_statistics.values() for column in s.to_arrays().values()
        )
        assert size < 10 * 200_000


class TestMaps:
    shape = (5, 16, 24)

    def batch(self, seed=0, shape=shape):
        return tuple(c.reshape(shape) for c in predictions(n=int(np.prod(shape)), seed=seed))

    def test_the_first_four_pictures_are_kept(self):
        accumulator = uq.Accumulator()
        one, other = self.batch(0, (3, 16, 24)), self.batch(1)
        accumulator.update(*one)
        accumulator.update(*other)
        assert list(accumulator.cases) == [0, 1, 2, 3]
        np.testing.assert_array_equal(accumulator.cases[3].arrays["mean"], other[1][0])

    def test_chosen_ones_are_kept_over_batches(self):
        accumulator = uq.Accumulator(maps=[1, 7])
        for seed in range(2):
            accumulator.update(*self.batch(seed))
        assert list(accumulator.cases) == [1, 7]
        np.testing.assert_array_equal(accumulator.cases[7].arrays["std"], self.batch(1)[2][2])

    def test_masked_places_are_nan_and_images_come_along(self):
        mask = np.zeros(self.shape, bool)
        mask[0, 0] = True
        accumulator = uq.Accumulator(maps=1)
        accumulator.update(*self.batch(), mask=mask, images=np.arange(5)[:, None, None] * np.ones(self.shape))
        case = accumulator.cases[0]
        assert np.isnan(case.arrays["target"][0]).all()
        assert not np.isnan(case.arrays["target"][1:]).any()
        assert case.image.shape == (16, 24)

    def test_a_batch_that_is_freed_later_is_copied(self):
        data = [column.copy() for column in self.batch()]
        accumulator = uq.Accumulator(maps=1)
        accumulator.update(*data)
        before = data[1][0].copy()
        data[1][:] = 0
        np.testing.assert_array_equal(accumulator.cases[0].arrays["mean"], before)

    def test_merged_streams_keep_the_first(self):
        one, other = uq.Accumulator(maps=3), uq.Accumulator(maps=3)
        one.update(*self.batch(0, (2, 16, 24)))
        other.update(*self.batch(1))
        one.merge(other)
        assert list(one.cases) == [0, 1, 2]
        np.testing.assert_array_equal(one.cases[2].arrays["mean"], self.batch(1)[1][0])

    def test_flat_batches_have_no_pictures(self):
        assert counted(predictions(n=100)).cases == {}
        with pytest.raises(SettingsError, match=r"maps=2 needs batches of shape"):
            counted(predictions(n=100), maps=2)

    def test_images_have_to_match(self):
        with pytest.raises(ShapeError, match="images holds 2 images for 5 cases"):
            uq.Accumulator().update(*self.batch(), images=np.ones((2, 16, 24)))

    def test_the_verb_draws_them(self, tmp_path):
        accumulator = uq.Accumulator(maps=2)
        accumulator.update(*self.batch(0, (5, 32, 48)))
        report = uq.log(accumulator, run=f"dir:{tmp_path}", method="streamed")
        (run,) = tmp_path.iterdir()
        names = {path.name for path in run.iterdir()}
        assert {"uq_map_0.png", "uq_map_1.png", "uq_reliability.png"} <= names
        assert json.loads((run / "uq" / "report.json").read_text())["scores"] == report.scores

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"alpha": 0.9}, "pass alpha to it"),
            ({"unit": "m"}, "pass unit to it"),
            ({"maps": 2}, "maps=2: say so to the Accumulator"),
            ({"images": np.ones((1, 2, 2))}, "images: pass them to"),
            ({"predictions": True}, "an Accumulator holds none"),
        ],
    )
    def test_the_verb_refuses_what_comes_too_late(self, tmp_path, options, message):
        with pytest.raises(SettingsError, match=message):
            uq.log(counted(predictions(n=20)), run=f"dir:{tmp_path}", **options)


class TestBlocks:
    def test_score_like_the_whole(self):
        data = predictions(n=5000)
        seen = []
        report = uq.evaluate_blocks(batches(data, 1000), progress=seen.append, alpha=0.9)
        assert report == counted(data, alpha=0.9).compute()
        assert seen == [1000] * 5

    def test_dicts_and_predictions_are_blocks(self):
        y, mean, std = predictions(n=100)
        blocks = [{"y_true": y, "y_pred": mean, "y_std": std}]
        assert uq.evaluate_blocks(blocks) == uq.evaluate_blocks([uq.Predictions(y, mean, std)])

    def test_other_things_are_not(self):
        with pytest.raises(InputTypeError, match="a block is a int"):
            uq.evaluate_blocks([3])

    def test_memory_maps_and_zarr_are_cut_along_the_first_axis(self, tmp_path):
        from uq_tracking.streams.blocks import array_blocks

        data = [column.reshape(50, 4, 10) for column in predictions(n=2000)]
        for k, column in enumerate(data):
            np.save(tmp_path / f"{k}.npy", column)
            zarr.create_array(tmp_path / f"{k}.zarr", data=column, chunks=(7, 4, 10))
        maps = [np.load(tmp_path / f"{k}.npy", mmap_mode="r") for k in range(3)]
        stores = [zarr.open_array(tmp_path / f"{k}.zarr", mode="r") for k in range(3)]
        whole = counted([column.reshape(-1) for column in data]).compute()
        for arrays in (maps, stores):
            assert uq.evaluate_blocks(array_blocks(*arrays, samples=300), maps=False) == whole
        sizes = [block["y_true"].shape[0] for block in array_blocks(*stores, samples=300)]
        assert sizes == [7] * 7 + [1]

    def test_shapes_have_to_match(self):
        from uq_tracking.streams.blocks import array_blocks

        with pytest.raises(ShapeError, match="shapes differ"):
            list(array_blocks(np.ones(3), np.ones(4), np.ones(3)))
