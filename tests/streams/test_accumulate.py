"""A stream gives the report of the whole, whatever its batches; refuses bad ones, and merges."""

import numpy as np
import pytest
import xarray
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import (
    EmptyInputError,
    IncompatibleStatisticsError,
    InvalidValueError,
    SettingsError,
    TrackingWarning,
)
from uq_tracking.statistics.layout import BUILD_BLOCK
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.statistics import Statistics

from .made import assert_same_arrays, batches, counted, predictions


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

    @pytest.mark.slow
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

    @pytest.mark.parametrize("calibration", [True, "std_isotonic", "second set", "fitted"])
    def test_a_sketch_is_logged_with_the_reason_why_it_has_no_scores_after(self, tmp_path, calibration):
        data, second = predictions(n=500), predictions(seed=1, n=500)
        given = {"second set": second, "fitted": uq.recalibrate(second)}.get(calibration, calibration)
        with pytest.warns(TrackingWarning, match="no scores after recalibration: .*statistics='exact'"):
            report = uq.log(
                counted(data), calibration=given, run=f"dir:{tmp_path}", figures=False, strict=True
            )
        (entry,) = report.recalibration["methods"].values()
        assert "are a sketch" in entry["refused"]
        (stored,) = uq.compare(f"dir:{tmp_path}").runs
        assert stored.report.scores == counted(data).compute().scores

    def test_classes_of_a_stream_are_logged_with_the_reason(self, tmp_path):
        accumulator = uq.Accumulator()
        accumulator.update([0, 1, 1], probs=[0.2, 0.9, 0.4])
        with pytest.warns(TrackingWarning, match="logistic: no scores after recalibration: .*probabilities"):
            report = uq.log(accumulator, calibration=True, run=f"dir:{tmp_path}", strict=True)
        assert report.scores


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
        with pytest.raises(EmptyInputError, match="no samples were counted in 0 batches"):
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
            ({"statistics": "auto"}, "choose 'sketch' or 'exact'"),
            ({"bits": 30}, "choose 4 to 14"),
            ({"std_floor": -1}, "std_floor is -1"),
            ({"on_invalid": "ignore"}, "on_invalid is 'ignore'"),
            ({"alpha": 2}, "alpha is 2"),
            ({"metrics": ["mea"]}, "mea"),
        ],
    )
    def test_wrong_settings_raise_at_once(self, settings, message):
        with pytest.raises(SettingsError, match=message):
            uq.Accumulator(**settings)

    def test_a_floor_of_the_predictions_has_to_be_ours(self):
        with pytest.raises(
            SettingsError, match=r"std_floor is 0\.5 for the Predictions but None for the Accumulator"
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
        with pytest.raises(IncompatibleStatisticsError, match="groups was given to only one accumulator"):
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
        for total in (
            statistics + Statistics.counted(REGRESSION, []),
            Statistics.counted(REGRESSION, []) + statistics,
        ):
            assert_same_arrays(total.to_arrays(), statistics.to_arrays())


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
