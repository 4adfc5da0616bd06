"""What Levi et al. find, at the smallest size at which it shows: two seeds, 10 000 samples in place of 50 000."""

import pytest

import uq_tracking as uq
from uq_tracking_papers.datasets import linear_noise
from uq_tracking_papers.levi import MeanAndStd
from uq_tracking_papers.networks import Training
from uq_tracking_papers.run import reproduce


@pytest.fixture(scope="module")
def section(tmp_path_factory):
    return reproduce("levi", size="test", output=tmp_path_factory.mktemp("papers"))["levi"]


@pytest.mark.parametrize(
    "part",
    [
        "independent of the target can be perfectly calibrated",
        "calibrates random standard deviations almost perfectly",
        "By ENCE random standard deviations are clearly not calibrated",
        "leaves the coefficient of variation of random standard deviations as it is",
        "One factor does as well as the interval method",
        "random standard deviations of all four outputs are far from calibrated",
        "ENCE tells random from trained",
        "Both recalibrations improve",
        "factor above 1",
    ],
)
def test_a_finding_holds(section, part):
    (found,) = [one for one in section.findings if part in one.claim]
    assert found.verdict == "holds", found.evidence


def test_a_method_is_one_factor_and_how_far_the_two_lie_apart_is_a_number(section):
    (check,) = section.diagnostics
    assert check.holds
    assert "exactly that before" in check.statement
    assert "the two factors differ by" in check.evidence


def test_table_1_has_four_outputs_and_three_stages(section):
    rows = [row for row in section.rows if row.item == "table 1"]
    assert len({row.method for row in rows}) == 4
    assert len({row.quantity for row in rows}) == 6
    assert all(row.paper_value is not None and row.ours > 0 for row in rows)


def test_every_item_is_listed(section):
    names = {item.name for item in section.items}
    assert names == {"equation 4", "table 1", *(f"figure {number}" for number in range(1, 7))}


def test_the_branch_of_the_std_minimizes_the_log_score():
    """No other linear output on the frozen layers has a better one: checked by small steps in every direction."""
    data = linear_noise(3000, 0)
    x, y = data.x[None], data.y[None]
    network = MeanAndStd(1, 0, (8, 8))
    network.fit_mean(x, y, Training(5, 200, 5e-3)).fit_std(x, y)

    def nll():
        return uq.evaluate(y[0], network.mean(x)[0], network.std(x)[0], metrics=["nll"]).scores["nll"]

    best, heads = nll(), network.heads.copy()
    for place in range(heads.shape[1]):
        for step in (-0.05, 0.05):
            network.heads = heads.copy()
            network.heads[0, place] += step
            assert nll() >= best - 1e-6
