"""Two real processes become one report."""

import json
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import IncompatibleStatisticsError, SettingsError
from uq_tracking.streams import device

from .made import predictions

pytestmark = pytest.mark.faults

PROGRAM = """
import json, os, sys
import numpy as np
import torch.distributed as dist
import uq_tracking as uq

folder = sys.argv[1]
other = os.fork()  # of two that share their imports
rank = int(other == 0)
dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
data = np.load(f"{folder}/data.npy")
own = [column[rank::2].reshape(-1, 20, 25) for column in data]


def ended(**settings):
    accumulator = uq.Accumulator(**settings)
    for batch in zip(*own):
        labels = {} if settings else {"by": np.full(20, f"rank {rank}")}
        accumulator.update(*(part for part in batch), **labels)
    try:
        accumulator.all_reduce()
    except uq.errors.UQTrackingError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    result = {"report": accumulator.compute().to_json(), "strata": sorted(accumulator.stratum_statistics)}
    try:
        accumulator.update([1.0], [1.0], [1.0])
    except uq.errors.SettingsError as error:
        result["again"] = str(error)
    accumulator.reset()
    accumulator.update([1.0], [2.0], [1.0])
    result["after reset"] = accumulator.n
    return result


results = ended(), ended(alpha=(0.9, 0.8)[rank], unit="m")
with open(f"{folder}/{rank}.json", "w") as file:
    json.dump(results, file)
dist.barrier()
dist.destroy_process_group()
if other:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
"""


@pytest.fixture(scope="module")
def data():
    return predictions(n=20_000)


@pytest.fixture(scope="module")
def ended(tmp_path_factory, data):
    """What each of two processes ended with, that count every other sample: with equal and with other settings."""
    folder = tmp_path_factory.mktemp("ranks")
    np.save(folder / "data.npy", np.stack(data))
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return list(zip(*(json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)), strict=True))


def test_two_ranks_and_one_process_agree(data, ended):
    found = ended[0]
    reports = [uq.Report.from_json(result["report"]) for result in found]
    assert reports[0] == reports[1]
    whole = uq.Accumulator()
    whole.update(*data)
    report = whole.compute()
    assert reports[0].counts == report.counts
    assert reports[0].provenance["digest"] == report.provenance["digest"]
    assert_allclose(
        [reports[0].scores[key] for key in report.scores], list(report.scores.values()), rtol=1e-9
    )
    for result in found:
        assert result["strata"] == ["rank 0", "rank 1"]
        assert "has held the samples of all processes since all_reduce()" in result["again"]
        assert result["after reset"] == 1


def test_ranks_with_differing_settings_all_hear_of_it(ended):
    for result in ended[1]:
        assert result["error"].startswith("IncompatibleStatisticsError: alpha differs")


def test_samples_of_other_ranks_that_do_not_fit_cost_none_of_ones_own(monkeypatch):
    ones, others = (uq.Accumulator() for _ in range(2))
    truth, mean, std = predictions(n=2000)
    ones.update(truth, mean, std, groups=np.arange(2000) // 100)
    others.update(truth[:500], mean[:500], std[:500])
    before = ones.compute()
    sent = [each._packed() for each in (others, ones)]
    monkeypatch.setattr(device, "gather", lambda arrays, group: sent)
    with pytest.raises(IncompatibleStatisticsError):
        ones.all_reduce()
    assert ones.compute() == before


def test_without_a_process_group_it_says_so():
    with pytest.raises(SettingsError, match=r"call torch\.distributed\.init_process_group first"):
        uq.Accumulator().all_reduce()
