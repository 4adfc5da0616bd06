"""What fuzzing has found, each once: values of another type or size than their place in a file allows."""

from __future__ import annotations

import json
import struct
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import zarr
from tensorboard.summary.writer.record_writer import masked_crc32c
from tensorboardX import SummaryWriter

import uq_tracking as uq
from tests.fuzz.test_readers import packed, sound
from uq_tracking.errors import FileFormatError, InputError, InvalidValueError, SettingsError, TrackingWarning
from uq_tracking.files.reading import read_predictions
from uq_tracking_tensorboard.backend import TensorBoardStore

__all__ = ["sound"]


def with_value(content, path, value):
    values = json.loads(content)
    inner = values
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(values).encode()


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("report.json", ("noise", "pit_ks", "p"), None),
        ("report.json", ("verdict", "enough_data"), "yes"),
        ("report.json", ("curves", "calibration", "steps"), [10**30]),
        ("report.json", ("task",), 5),
        ("report.json", ("settings", "unit"), "m" * 101),
        ("report.json", ("recalibration", "methods", "std_scaling"), None),
        ("recalibration.json", ("methods", "std_scaling"), None),
        ("comparison.json", ("headline",), ["no such metric"]),
        ("comparison.json", ("level",), "high"),
    ],
)
def test_json(sound, tmp_path, name, path, value):
    content, read = sound[name]
    (tmp_path / name).write_bytes(with_value(content, path, value))
    with pytest.raises(FileFormatError):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "entry", "path", "value"),
    [
        ("stream.npz", "state", ("facts",), []),
        ("classes.npz", "about", ("version",), float("inf")),
    ],
)
def test_facts_in_archives(sound, tmp_path, name, entry, path, value):
    content, read = sound[name]
    (tmp_path / name).write_bytes(content)
    with np.load(tmp_path / name) as archive:
        arrays = {key: archive[key] for key in archive.files}
    arrays[entry] = np.asarray(with_value(str(arrays[entry]), path, value).decode())
    (tmp_path / name).write_bytes(packed(arrays))
    with pytest.raises(FileFormatError):
        read(tmp_path / name)


@pytest.mark.parametrize("n_bins", [float("inf"), float("nan"), 1e308, 10**30])
def test_numbers_of_bins(n_bins):
    with pytest.raises(SettingsError, match="n_bins is"):
        uq.evaluate([1.0], [1.0], [1.0], n_bins=n_bins)


@pytest.mark.parametrize("label", [[], 0.5, "background"])
def test_labels_to_ignore(label):
    with pytest.raises(SettingsError, match="ignore_label="):
        uq.evaluate([0, 1], probs=[0.2, 0.9], ignore_label=label)


def as_npz(folder, columns):
    np.savez_compressed(folder / "x.npz", **columns)
    return folder / "x.npz"


def as_csv(folder, columns):
    pd.DataFrame(columns).to_csv(folder / "x.csv.gz", index=False)
    return folder / "x.csv.gz"


def as_parquet(folder, columns):
    pd.DataFrame(columns).to_parquet(folder / "x.parquet")
    return folder / "x.parquet"


def as_zarr(folder, columns):
    group = zarr.open_group(folder / "x.zarr", mode="w")
    for name, values in columns.items():  # no chunk is written: all is the fill value
        group.create_array(name, shape=values.shape, chunks=(1000,), dtype="f8", fill_value=0.0)
    return folder / "x.zarr"


@pytest.mark.parametrize("write", [as_npz, as_csv, as_parquet, as_zarr])
def test_a_bomb_of_a_stranger_is_not_unpacked(tmp_path, monkeypatch, write):
    path = write(tmp_path, dict.fromkeys(("target", "mean", "std"), np.zeros(2**17)))
    monkeypatch.setenv("UQ_TRACKING_READ_LIMIT", str(2**18))
    with pytest.raises(FileFormatError, match=r"unpacks? to .* UQ_TRACKING_READ_LIMIT"):
        read_predictions(path)
    monkeypatch.setenv("UQ_TRACKING_READ_LIMIT", str(2**30))
    assert read_predictions(path, on_invalid="drop").shape == (2**17,)
    monkeypatch.setenv("UQ_TRACKING_READ_LIMIT", "1 GB")
    with pytest.raises(SettingsError, match="whole number of bytes"):
        read_predictions(path)


def test_a_chunk_that_is_larger_than_its_array_is_not_unpacked(tmp_path):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    for name in ("target", "mean", "std"):
        group.create_array(name, shape=(4,), chunks=(2**40,), dtype="f8")
    with pytest.raises(FileFormatError, match="would unpack to"):
        read_predictions(tmp_path / "x.zarr")


def test_a_damaged_event_file_hides_no_other_run(tmp_path):
    """Its record has the right checksum, and is no event."""
    for name in ("damaged", "sound"):
        with SummaryWriter(str(tmp_path / name)) as writer:
            writer.add_scalar("x", 1.0, 0)
    (file,) = (tmp_path / "damaged").glob("*tfevents*")
    data, head = b"\x1a\xff\xff", struct.pack("<Q", 3)
    file.write_bytes(
        head + struct.pack("<I", masked_crc32c(head)) + data + struct.pack("<I", masked_crc32c(data))
    )
    with pytest.warns(TrackingWarning, match="run skipped"):
        assert [run.run_id for run in TensorBoardStore(tmp_path).runs()] == ["sound"]


@pytest.mark.parametrize("logits", [float("inf"), "x", 1])
def test_logits_that_are_neither_true_nor_false(logits):
    with pytest.raises(SettingsError, match="logits is"):
        uq.evaluate([0, 1], probs=[0.2, 0.9], logits=logits)


@pytest.mark.parametrize("images", [[[0.5], 0.5], "x", [["a", "b"], ["c", "d"]]])
def test_images_that_are_none(images):
    with pytest.raises(InputError, match="images"):
        uq.log([1.0], [1.0], [1.0], images=images, maps=False, run="dir:never")


def test_labels_too_large_for_a_machine():
    with pytest.raises(InputError, match="do not fit in 64 bits"):
        uq.evaluate([1.0, 2.0], [1.0, 2.0], [1.0, 2.0], groups=[10**30, 1])


@pytest.mark.parametrize("deadline", [1e308, float("inf")])
def test_a_deadline_longer_than_a_thread_can_wait(tmp_path, deadline):
    uq.log([1.0], [1.0], [1.0], figures=False, run=f"dir:{tmp_path}", deadline=deadline, strict=True)


def test_intervals_beyond_the_largest_number(tmp_path):
    """A standard deviation far below all others makes limits that overflow; the report says so and can be stored."""
    rng = np.random.default_rng(0)
    truth, std = rng.normal(size=8), np.full(8, 0.5)
    std[2] = 1e-150
    report = uq.evaluate(truth, truth + 0.5, std, intervals=True)
    assert "limits overflow" in " ".join(report.provenance["intervals"]["undefined"].values())
    assert uq.Report.from_json(report.to_json()) == report


@pytest.mark.slow
@pytest.mark.parametrize("tiny", [1e-160, 1e-300, 1e-320])
@pytest.mark.parametrize(
    "options", [{}, {"statistics": "sketch"}, {"calibration": True}, {"intervals": True}]
)
def test_a_standard_deviation_next_to_zero_costs_the_scores_that_overflow(tiny, options):
    """Their reasons are told, and nothing fails."""
    rng = np.random.default_rng(0)
    truth, std = rng.normal(size=120), rng.uniform(0.5, 2.0, 120)
    std[7] = tiny
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no scores after std_scaling", TrackingWarning)
        report = uq.evaluate(truth, truth + 0.5, std, **options)
    assert "overflow" in report.undefined["nll"]
    assert np.isfinite(list(report.scores.values())).all()
    assert uq.Report.from_json(report.to_json()) == report


def test_bins_whose_value_overflows_cost_the_band_of_chance():
    rng = np.random.default_rng(0)
    truth, std = rng.normal(size=120), np.sort(rng.uniform(0.5, 2.0, 120))
    std[-30:] = 1e300
    report = uq.evaluate(truth, truth + 0.5, std)
    columns = report.curves["reliability"].columns
    assert 0 < len(columns["rmv"]) < 10
    assert "chance_low" not in columns


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [-150, -30, 70, 150])
def test_units_far_from_one_leave_reports_that_read_back(exponent):
    """With groups there are floors, bands, verdicts and spreads of recalibration, all of squares and more."""
    rng = np.random.default_rng(0)
    unit, std = 10.0**exponent, rng.uniform(0.5, 2.0, 240)
    error = 1.5 * std * rng.normal(size=240)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrackingWarning)
        report = uq.evaluate(
            0 * error, unit * error, unit * std, groups=np.arange(240) // 12, calibration=True
        )
    assert (
        report.verdict.calibration == "miscalibrated in places"
    )  # all of the error is a bias by the prediction
    assert uq.Report.from_json(report.to_json()) == report


@pytest.mark.parametrize("weight", [1e-101, 1e101, 5e-324])
def test_weights_whose_squares_are_no_numbers_are_refused(weight):
    with pytest.raises(InvalidValueError, match=r"1e-100"):
        uq.evaluate([1.0, 2.0, 3.0], [1.1, 2.2, 2.9], [0.1, 0.2, 0.3], weights=[1.0, weight, 1.0])


@pytest.mark.parametrize("seed", [-1, 1.5, "a", True])
def test_a_seed_that_is_none_is_refused_before_anything_is_scored(seed):
    with pytest.raises(SettingsError, match="seed is"):
        uq.evaluate([1.0, 2.0, 3.0], [1.1, 2.2, 2.9], [0.1, 0.2, 0.3], seed=seed)


@pytest.mark.slow
def test_a_report_with_very_many_scores_is_printed_at_once():
    values = json.loads(uq.evaluate([1.0, 2.0, 4.0], [1.5, 2.0, 3.0], [1.0, 0.5, 1.0]).to_json())
    values["scores"].update({f"score{number}": 1.0 for number in range(5000)})
    start = time.process_time()
    assert "score4999" in str(uq.Report.from_json(json.dumps(values)))
    assert time.process_time() - start < 20  # it took minutes when each cell measured its column
