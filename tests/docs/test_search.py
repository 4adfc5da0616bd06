"""The search of the site finds pages that hold most of the words, and entries all of whose words are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

SCORER = (Path(__file__).parents[2] / "docs" / "scorer.js").read_text()
SPHINX = """
const pages = {ranking: ["ause", "gain", "score"], reports: ["score"], install: ["pip"]};
const Search = {
  _index: {
    docnames: Object.keys(pages), titles: Object.keys(pages), filenames: Object.keys(pages),
    indexentries: {"good ause": [[0, "index-0", true]], "pip cache": [[2, "index-1", true]]},
  },
  performTermsSearch: (words, excluded) => Object.keys(pages)
    .filter((page) => [...words].every((word) => pages[page].includes(word)))
    .map((page) => [page, page, "", null, 5, page, "text"]),
};
const SearchResultKind = {index: "index"}, stopwords = new Set(["is"]);
const splitQuery = (query) => query.split(" ");
class Stemmer { stemWord(word) { return word; } }
"""
"""What Sphinx has loaded before the scorer, in small."""


@pytest.fixture
def found(browser):
    page = browser.new_page()
    page.add_script_tag(content=SPHINX)
    page.add_script_tag(content=SCORER)
    yield lambda *words: page.evaluate(
        "words => Search.performTermsSearch(new Set(words), new Set()).map((each) => [each[0], each[2], each[4]])",
        words,
    )
    page.close()


def test_pages_with_all_words_come_before_those_that_lack_one(found):
    assert found("ause", "score") == [["ranking", "", 5], ["reports", "", -10]]


def test_a_word_that_no_page_holds_hides_none(found):
    assert found("gain", "unheard") == [["ranking", "", -10]]
    assert found("unheard") == []


def test_entries_within_the_question_come_first(found):
    assert found("good", "ause", "unheard")[0] == ["ranking", "#index-0", 2]
    assert all(place == "" for _, place, _ in found("pip"))
