"""MeRCI's and n-MeRCI's experiments at the smallest size: two seeds, small ensembles, a coarse terrain."""

from types import SimpleNamespace

import numpy as np
import pytest

from uq_tracking_papers.moukari import MAPPED, maps
from uq_tracking_papers.run import reproduce


@pytest.fixture(scope="module")
def sections(tmp_path_factory):
    return reproduce(["merci", "n-merci"], size="test", output=tmp_path_factory.mktemp("papers"))


def finding(section, part):
    (found,) = [one for one in section.findings if part in one.claim]
    return found


def value(section, item, method, quantity):
    (row,) = [row for row in section.rows if (row.item, row.method, row.quantity) == (item, method, quantity)]
    return row.ours


def test_merci_is_constant_under_scaling_while_other_scores_move(sections):
    found = finding(sections["merci"], "constant under scaling")
    assert found.share == 1, found.evidence
    assert finding(sections["merci"], "Coverage is only sensitive to calibration").verdict == "holds"


def test_both_test_ranges_are_an_unstated_choice(sections):
    for key, part in (("merci", "Bagging is the best method by every score"), ("n-merci", "Bagging is best")):
        found = finding(sections[key], part)
        assert list(found.variants) == ["test x in [-4, 4]", "test x in [-6, 6]"]
        assert "range of the test inputs" in found.choice


def test_rows_are_told_beside_the_papers_numbers(sections):
    bagging = [row for row in sections["merci"].rows if row.item == "table 1" and row.method == "Bagging"]
    assert {row.quantity: row.paper_value for row in bagging}["merci"] == 53
    assert all(row.low <= row.ours <= row.high for row in bagging)
    printed = {row.method: row.paper_value for row in sections["n-merci"].rows if row.item == "figure 2"}
    assert printed == {"Multi Inits": None, "Bagging": 0.22, "Monte Carlo Dropout": 0.9, "Multi Epochs": 0.48}


def test_bounds_are_what_merci_says_they_are(sections):
    section = sections["merci"]
    for item in ("table 1", "table 3"):
        oracle, constant = (value(section, item, name, "merci") for name in ("Oracle", "Constant"))
        assert 0 < oracle < constant
    found = finding(section, "lower MeRCI than the oracle")
    assert found.share == 1, found.evidence
    assert "alpha 0.74" in found.evidence


def test_other_maps_are_shown_as_they_differ_from_the_best():
    truth = np.linspace(0, 1, 48).reshape(6, 8)
    scene = SimpleNamespace(target=truth, image=np.empty(0))
    std = {method: [0.1 * (1 + place) * (0.1 + truth)] for place, method in enumerate(MAPPED)}
    found = SimpleNamespace(scene=scene, target=lambda seed: truth, base=[truth * 0.8], std=std)
    figure = maps(found, 0, (slice(None), slice(None)), apart=True)
    shown = [ax.images[0] for ax in figure.axes if ax.get_title()]
    assert [image.get_cmap().name for image in shown[3:]] == ["inferno"] + ["RdBu_r"] * 5
    for image in shown[4:]:  # scaled to cover the errors, multiples of one another are the same map
        np.testing.assert_allclose(image.get_array(), 0, atol=1e-12)


def test_every_item_of_both_papers_is_listed(sections):
    names = [item.name for item in sections["merci"].items]
    assert sorted(names) == sorted([f"figure {n}" for n in range(1, 7)] + [f"table {n}" for n in range(1, 5)])
    assert [item.name for item in sections["n-merci"].items] == [f"figure {n}" for n in range(1, 6)]
    for section in sections.values():
        assert {drawing.item for drawing in section.drawings} >= {
            name.name for name in section.items if "figure" in name.name
        }


def test_the_wrong_patch_raises_merci(sections):
    rows = {(row.method, row.quantity): row.ours for row in sections["merci"].rows if row.item == "figure 6"}
    pairs = [
        (rows[method, "MeRCI, right truth"], rows[method, "MeRCI, wrong truth"])
        for method in {key[0] for key in rows}
    ]
    assert len(pairs) == 6
    assert all(np.isfinite(pair).all() and pair[0] != pair[1] for pair in pairs)
