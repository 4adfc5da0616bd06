"""Statistics of groups and strata that are counted on the way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import (
    SettingsError,
)
from uq_tracking.statistics.regression import REGRESSION, joint_counts
from uq_tracking.statistics.statistics import by_label

from .made import counted, predictions


class TestLabels:
    def test_statistics_per_group_add_up(self):
        y, mean, std = predictions(n=3000)
        labels = np.random.default_rng(0).integers(0, 7, 3000)
        accumulator = uq.Accumulator()
        for start in range(0, 3000, 500):
            part = slice(start, start + 500)
            accumulator.update(y[part], mean[part], std[part], groups=labels[part])
        found = by_label(accumulator.group_tables)
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
        from tests.small_statistics import sketch_statistics
        from uq_tracking.statistics.groups import STRATUM_BITS, GroupTally

        y, mean, std = predictions(law, 2000)
        codes = np.random.default_rng(1).integers(0, 3, 2000)
        tally = GroupTally(REGRESSION, {"std_floor": None}, STRATUM_BITS, 4)
        tally.add(np.asarray(["x", "y", "z"]), {"target": y, "mean": mean, "std": std, "codes": codes})
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
        assert set(by_label(accumulator.group_tables)) == {"2020-01-01", "2020-01-02"}

    def test_a_group_takes_little_memory(self):
        shape = (10, 100, 100)
        accumulator = uq.Accumulator(maps=False)
        accumulator.update(*(c.reshape(shape) for c in predictions(n=100_000)), groups=np.arange(10))
        size = sum(
            column.nbytes
            for s in by_label(accumulator.group_tables).values()
            for column in s.to_arrays().values()
        )
        assert size < 10 * 200_000
