"""What Levi et al. find, at the smallest size at which it shows: 10 000 samples in place of 50 000."""

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.demo.network import Schedule
from uq_tracking_papers.datasets import linear_noise
from uq_tracking_papers.levi import MeanAndStd
from uq_tracking_papers.run import reproduce


@pytest.fixture(scope="module")
def section(tmp_path_factory):
    return reproduce("levi", size="test", output=tmp_path_factory.mktemp("papers"))["levi"]


@pytest.mark.parametrize(
    "part",
    [
        "independent of the target can be perfectly calibrated",
        "Calibration error is blind to random standard deviations, ENCE is not",
        "coefficient of variation",
        "ENCE tells random from trained",
        "Both recalibrations improve",
        "factor above 1",
    ],
)
def test_a_finding_holds(section, part):
    (found,) = [one for one in section.findings if part in one.claim]
    assert found.holds, found.evidence


def test_table_1_has_four_outputs_and_three_stages(section):
    rows = [row for row in section.rows if row.item == "table 1"]
    assert len({row.method for row in rows}) == 4
    assert len({row.quantity for row in rows}) == 6
    assert all(row.paper_value is not None and row.ours > 0 for row in rows)


def test_the_branch_of_the_std_minimizes_the_log_score():
    """No other linear output on the frozen layers has a better one: checked by small steps in every direction."""
    data = linear_noise(3000, 0)
    network = MeanAndStd(np.random.default_rng(0), (8, 8))
    network.fit_mean(data.x, data.y, Schedule(epochs=5, batch=200, rate=5e-3)).fit_std(data.x, data.y)

    def nll():
        return uq.evaluate(data.y, network.mean(data.x), network.std(data.x), metrics=["nll"]).scores["nll"]

    best, head = nll(), network.head.copy()
    for place in range(len(head)):
        for step in (-0.05, 0.05):
            network.head = head.copy()
            network.head[place] += step
            assert nll() >= best - 1e-6
