"""The generated pages are what their generator writes now."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

from tests.scenarios.test_scenarios import SCENARIOS
from uq_tracking.metrics.registry import every_metric

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = {
    "api",
    "architecture",
    "benchmarks",
    "changes",
    "contributing",
    "conventions",
    "curves",
    "evidence",
    "metrics",
    "papers",
    "reference",
    "scenarios",
    "threat-model",
    "write-a-backend",
}
"""Pages that are generated, or looked up rather than read."""


def test_the_catalogue_is_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    from catalogue import catalogue

    assert (DOCS / "metrics.md").read_text() == catalogue(), "run `make pages`"


def test_the_page_of_conventions_is_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    from conventions import conventions

    assert (DOCS / "conventions.md").read_text() == conventions(), "run `make pages`"


@pytest.mark.slow
def test_what_the_concept_pages_say_of_their_pictures_is_so(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    from concepts import DRAWN, errors_of_images

    for draw in DRAWN.values():
        assert all(ax.get_title() for ax in draw().axes if ax.get_subplotspec().is_first_row())
    shares = [np.mean(np.abs(errors_of_images(20, 64, smooth, 5)) <= 1.96, axis=(1, 2)) for smooth in (0, 6)]
    stripe = 2.6 * np.sqrt(0.95 * 0.05 / 64**2)
    assert np.sum(np.abs(shares[1] - 0.95) > stripe) == 17
    many = [np.mean(np.abs(errors_of_images(400, 64, smooth, 6)) <= 1.96, axis=(1, 2)) for smooth in (0, 6)]
    assert many[1].std() / many[0].std() == pytest.approx(12, abs=0.5)
    assert 0.95 * 0.05 / many[1].var() == pytest.approx(30, abs=2)


def test_the_scores_of_the_lessons_are_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    from lessons import choose_a_metric, reports

    assert (DOCS / "choose-a-metric.md").read_text() == choose_a_metric(reports()), "run `make pages`"


def test_the_page_of_scenarios_names_all_with_their_truth_and_right_words():
    right_words = run_path(str(DOCS / "scenarios.py"))["right_words"]

    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", (DOCS / "scenarios.md").read_text(), re.MULTILINE
    )
    expected = {name: (each.truth, right_words(each)) for name, each in SCENARIOS.items()}
    assert {name: (truth, words) for name, truth, words in rows} == expected, "run `make pages`"


def test_every_metric_stands_in_the_table_of_agreement_and_agrees():
    rows = re.findall(
        r"^\| `(\w+)` \| ([\w -]+) \| (\S+) \|$", (DOCS / "conventions.md").read_text(), re.MULTILINE
    )
    ours = {m.key for m in every_metric() if not m.needs and m.function.__module__.startswith("uq_tracking.")}
    assert ours <= {key for key, _, _ in rows}, "run `make pages`"
    assert all(float(value) < (1e-6 if peer == "torchmetrics" else 1e-9) for _, peer, value in rows)


def test_the_words_a_reader_searches_for_lead_to_one_place_each():
    tree = ast.parse((DOCS / "conf.py").read_text())
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    (index,) = [ast.literal_eval(node.value) for node in assigned if ast.unparse(node.targets[0]) == "INDEX"]
    for place in index:
        page, _, heading = place.partition("#")
        assert re.search(rf"^#+ {re.escape(heading)}", (DOCS / f"{page}.md").read_text(), re.MULTILINE), place
    words = [word for entries in index.values() for word in entries.split(", ")]
    assert sorted(set(words)) == sorted(words)


def test_guides_and_concepts_hold_22_000_words_at_most():
    pages = [page for page in DOCS.glob("*.md") if page.stem not in REFERENCE]
    assert sum(len(page.read_text().split()) for page in [*pages, DOCS.parent / "README.md"]) <= 22_000


def anchors(page):
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_documents_name_no_file_and_no_heading_that_is_missing():
    for page in [*DOCS.glob("*.md"), *DOCS.parent.glob("*.md")]:
        for target, _, anchor in re.findall(r"\]\(((?!http)[^)#]*)(#([^)]+))?\)", page.read_text()):
            found = page.parent / target if target else page
            assert found.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(found), f"{page.name}: {target}#{anchor}"
