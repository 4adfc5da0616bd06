"""Cases that a stream keeps for maps, and how the verbs draw them."""

import json

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import (
    SettingsError,
    ShapeError,
)

from .made import counted, predictions


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
            ({"alpha": 0.9}, "pass alpha when making it"),
            ({"unit": "m"}, "pass unit when making it"),
            ({"maps": 2}, "maps=2 comes too late; pass maps= when making the Accumulator"),
            ({"images": np.ones((1, 2, 2))}, "images cannot be passed here; pass them to"),
            ({"predictions": True}, "the Accumulator holds none"),
        ],
    )
    def test_the_verb_refuses_what_comes_too_late(self, tmp_path, options, message):
        with pytest.raises(SettingsError, match=message):
            uq.log(counted(predictions(n=20)), run=f"dir:{tmp_path}", **options)
