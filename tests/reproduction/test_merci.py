"""MeRCI's findings at the smallest size at which they show."""

import pytest

import uq_tracking as uq


@pytest.fixture(scope="module")
def section(tmp_path_factory):
    return uq.reproduce("merci", size="test", output=tmp_path_factory.mktemp("merci"))["merci"]


def finding(section, part):
    (found,) = [one for one in section.findings if part in one.claim]
    return found


def test_merci_is_constant_under_scaling_while_other_scores_move(section):
    assert finding(section, "constant under scaling").holds
    merci = {row.ours for row in section.rows if row.item == "figure 2" and row.method == "merci"}
    assert max(merci) == pytest.approx(min(merci), rel=1e-12)
