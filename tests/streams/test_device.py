"""Tensors counted where they live: equal to the numpy route, and without a wait."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.utils._python_dispatch import TorchDispatchMode

import uq_tracking as uq
from uq_tracking.errors import InputTypeError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.streams.device import TorchSketch

from .made import LAWS, predictions
from .test_accumulate_laws import assert_alike

WAITS = ("_local_scalar_dense", "nonzero", "unique", "masked_select", "bincount", "_to_copy", "item", "equal")
"""Operators that make the host wait for the device, or copy between them."""


@pytest.fixture(autouse=True)
def _one_thread():
    """Small operators on few cores are fastest alone."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def tensors(data, dtype=torch.float32):
    return tuple(torch.as_tensor(column, dtype=dtype) for column in data)


def on_device(**settings):
    return uq.Accumulator(on_device=True, **settings)


def both_routes(batch, **arguments):
    settings = {key: arguments.pop(key) for key in ("std_floor", "on_invalid", "bits") if key in arguments}
    there, here = on_device(**settings), uq.Accumulator(on_device=False, **settings)
    there.update(*batch, **arguments)
    here.update(*batch, **arguments)
    return there, here


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("law", [law for law in LAWS if law not in ("tiny", "huge", "ties")])
def test_equals_the_numpy_route(law, dtype):
    data = predictions(law, 3000)
    there, here = both_routes(tensors([np.clip(c, -6e4, 6e4) for c in data], dtype))
    assert_alike(there.statistics, here.statistics)
    assert there.compute().provenance["digest"] == here.compute().provenance["digest"]


@pytest.mark.parametrize("law", ["tiny", "huge", "ties"])
def test_equals_the_numpy_route_at_extreme_scales(law):
    there, here = both_routes(tensors(predictions(law, 3000), torch.float64))
    assert_alike(there.statistics, here.statistics)


@pytest.mark.slow
def test_integers_and_zeros():
    batch = (torch.tensor([1, 2, 0, -3]), torch.tensor([1, 2, 5, 0]), torch.tensor([0, 1, 0, 2]))
    there, here = both_routes(batch)
    np.testing.assert_array_equal(there.statistics.orders["z"].key, here.statistics.orders["z"].key)
    np.testing.assert_array_equal(there.statistics.orders["z"].count, here.statistics.orders["z"].count)
    assert there.compute().scores == pytest.approx(here.compute().scores, rel=1e-12)
    assert there.compute().undefined == here.compute().undefined


def test_missing_masked_and_floored():
    y, mean, std = predictions(n=2000)
    y[::3], std[::5] = np.nan, 0
    mask = torch.as_tensor(np.random.default_rng(0).random(2000) < 0.3)
    there, here = both_routes(tensors((y, mean, std)), mask=mask, std_floor=0.1)
    assert_alike(there.statistics, here.statistics)
    assert there.compute().counts["n_masked"] > 0


def test_a_numpy_mask_is_taken_along():
    batch = tensors(predictions(n=50))
    mask = np.arange(50) < 10
    there, here = both_routes(batch, mask=mask)
    assert_alike(there.statistics, here.statistics)


def test_batches_of_any_shape_and_with_gradient():
    data = predictions(n=600)
    there = on_device()
    for k in range(3):
        y, mean, std = (c[200 * k : 200 * (k + 1)].reshape(2, 10, 10) for c in tensors(data))
        there.update(y.transpose(1, 2), mean.transpose(1, 2).requires_grad_(), std.transpose(1, 2))
    here = uq.Accumulator()
    here.update(*(c.astype(np.float32) for c in data))
    assert_alike(there.statistics, here.statistics)


def test_long_batches_are_worked_on_in_parts(monkeypatch):
    monkeypatch.setattr("uq_tracking.streams.device.CHUNK", 700)
    there, here = both_routes(tensors(predictions(n=3000)))
    assert_alike(there.statistics, here.statistics)


@pytest.mark.parametrize("bits", [5, 12])
def test_other_resolutions(bits):
    there, here = both_routes(tensors(predictions(n=1000)), bits=bits)
    assert_alike(there.statistics, here.statistics)


def test_values_outside_float32_share_the_outermost_bucket():
    y, mean, std = (torch.zeros(4, dtype=torch.float64) for _ in range(3))
    y[:] = torch.tensor([1e-60, 1e-50, 1e60, 1e70], dtype=torch.float64)
    std[:] = 1.0
    there, _ = both_routes((y, mean, std))
    groups = there.statistics.orders["abs_error"]
    assert groups.count.tolist() == [2, 2]
    assert_allclose(groups.sum("abs_error"), 1e70)


def test_cpu_tensors_go_to_numpy_unless_told():
    accumulator = uq.Accumulator()
    accumulator.update(*tensors(predictions(n=50)))
    assert not accumulator._state.devices
    assert accumulator.n == 50


class Recorder(TorchDispatchMode):
    """Names of the operators that run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append((func.overloadpacket.__name__, args, kwargs or {}))
        return func(*args, **(kwargs or {}))

    def waits(self):
        return [name for name, args, kwargs in self.names if self.is_wait(name, args, kwargs)]

    @staticmethod
    def is_wait(name, args, kwargs):
        if name == "_to_copy":  # a copy within the device, from one dtype to another, waits for nothing
            return "device" in kwargs and kwargs["device"] not in (None, args[0].device)
        if name in ("index", "index_put_"):
            return any(getattr(i, "dtype", None) == torch.bool for i in args[1] if i is not None)
        return name in WAITS


def test_an_update_never_waits_for_the_device():
    y, mean, std = tensors(predictions(n=4 * 20 * 30))
    batch = [c.reshape(4, 20, 30) for c in (y, mean, std)]
    mask = torch.zeros(4, 20, 30, dtype=torch.bool)
    accumulator = on_device(std_floor=0.1, maps=2)
    with Recorder() as recorder:
        for _ in range(3):
            accumulator.update(*batch, mask=mask)
    assert len(recorder.names) > 100
    assert recorder.waits() == []
    with Recorder() as recorder:
        accumulator.compute()
    assert "_local_scalar_dense" in recorder.waits()
    assert "nonzero" in recorder.waits()


def test_the_recorder_sees_what_waits():
    with Recorder() as recorder:
        values = torch.ones(3)
        values[values > 0]
        bool(values.sum() > 0)
        torch.bincount(torch.zeros(2, dtype=torch.int64))
    assert set(recorder.waits()) == {"index", "_local_scalar_dense", "bincount"}


class TestBadValues:
    def batch(self):
        y, mean, std = predictions(n=100)
        mean[3], std[4:6], std[7] = np.nan, -1, np.inf
        return tensors((y, mean, std))

    def test_are_noticed_by_compute(self):
        accumulator = on_device()
        accumulator.update(*tensors(predictions(n=100)))
        accumulator.update(*self.batch())
        with pytest.raises(
            InvalidValueError,
            match=r"1 non-finite values in y_pred and 1 non-finite values in y_std and 2 negative values in "
            r"y_std \(first in batch 1, on cpu\); noticed only now",
        ):
            accumulator.compute()

    def test_are_left_out_when_that_is_accepted(self):
        there = on_device()
        there.update(*self.batch())
        here = uq.Accumulator(on_invalid="drop", on_device=False)
        here.update(*self.batch())
        assert there.compute(on_invalid="drop").counts == here.compute().counts
        assert_alike(there.statistics, here.statistics)

    def test_are_remembered_in_files(self, tmp_path):
        accumulator = on_device()
        accumulator.update(*self.batch())
        accumulator.save(tmp_path / "state.npz")
        with pytest.raises(InvalidValueError, match="negative values in y_std"):
            uq.Accumulator.load(tmp_path / "state.npz").compute()

    def test_where_the_truth_is_missing_do_not_matter(self):
        y, mean, std = predictions(n=100)
        y[3], mean[3], std[3] = np.nan, np.inf, -1
        there, here = both_routes(tensors((y, mean, std)))
        assert there.compute().counts == here.compute().counts

    def test_shapes_are_checked_at_once(self):
        y, mean, std = tensors(predictions(n=10))
        with pytest.raises(ShapeError, match="shapes differ"):
            on_device().update(y, mean[:5], std)
        with pytest.raises(ShapeError, match="mask"):
            on_device().update(y, mean, std, mask=torch.zeros(3, dtype=torch.bool))
        with pytest.raises(InputTypeError, match="mask has dtype"):
            on_device().update(y, mean, std, mask=torch.zeros(10))


class TestLabelsAndMaps:
    def test_labelled_batches_go_to_the_host(self):
        batch = [c.reshape(4, 25) for c in tensors(predictions(n=100))]
        accumulator = on_device()
        accumulator.update(*batch, groups=[1, 2, 3, 4])
        assert accumulator.group_tables.labels == (1, 2, 3, 4)
        with pytest.raises(SettingsError, match="groups or by was given for earlier batches"):
            accumulator.update(*batch)

    def test_cases_are_kept(self):
        batch = [c.reshape(2, 20, 20) for c in tensors(predictions(n=800))]
        mask = torch.zeros(2, 20, 20, dtype=torch.bool)
        mask[0, :, 0] = True
        there, here = both_routes(batch, mask=mask, images=np.ones((2, 20, 20, 3)))
        for number, case in here.cases.items():
            np.testing.assert_array_equal(there.cases[number].image, case.image)
            for name, array in case.arrays.items():
                np.testing.assert_array_equal(there.cases[number].arrays[name], array)


def test_drained_parts_add_up():
    data = predictions(n=3000)
    sketch = TorchSketch(torch.device("cpu"))
    total = None
    for k in range(3):
        sketch.add(*(c[1000 * k : 1000 * (k + 1)] for c in tensors(data)), None, k)
        part, _, _ = sketch.drain()
        total = part if total is None else total + part
    here = uq.Accumulator()
    here.update(*(c.astype(np.float32) for c in data))
    assert_alike(total, here.statistics)
    assert {groups.total for groups in total.orders.values()} == {3000}


def test_streams_of_both_kinds_merge():
    one, other = on_device(), uq.Accumulator()
    first, second = predictions(n=500), predictions(n=500, seed=1)
    one.update(*tensors(first, torch.float64))
    other.update(*second)
    here = uq.Accumulator()
    here.update(*first)
    here.update(*second)
    assert_alike(one.merge(other).statistics, here.statistics)
