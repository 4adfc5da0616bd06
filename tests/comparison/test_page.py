"""The page as text: complete in itself, escaped, and guarded by a policy."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import uq_tracking as uq
from tests.comparison.conftest import samples
from uq_tracking.errors import FileFormatError
from uq_tracking.formatting import COLORS

NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" ' &amp;"


@pytest.fixture(scope="module")
def page(folder):
    return uq.compare(f"dir:{folder}", baseline="large").to_html()


@pytest.fixture(scope="module")
def nasty(reports):
    made = {NASTY: reports["informed"], "b": reports["constant"], "c": reports["shuffled"]}
    return uq.compare(made, baseline=NASTY).to_html()


class Elements(HTMLParser):
    """All start tags with their attributes, and tags left open or closed twice."""

    VOID = ("meta", "input", "img", "br", "link", "hr")

    def __init__(self, page):
        super().__init__()
        self.found, self.open, self.wrong = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


@pytest.mark.slow
def test_elements_are_closed_in_order(page, nasty):
    for text in (page, nasty):
        elements = Elements(text)
        assert elements.wrong == []
        assert elements.open == []


def test_nothing_is_loaded_from_anywhere(page):
    elements = Elements(page)
    sources = [
        value for _, attributes in elements.found for name, value in attributes.items() if name == "src"
    ]
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not elements.all("link")
    assert not elements.all("iframe")
    assert all(attributes["href"].startswith("#") for attributes in elements.all("a"))
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_allows_this_script_and_this_style_alone(page):
    policy = next(
        attributes["content"]
        for attributes in Elements(page).all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for kind, pattern in (("script", r"<script>(.*?)</script>"), ("style", r"<style>(.*?)</style>")):
        content = re.search(pattern, page, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"


def test_the_chart_library_is_the_pinned_one_with_its_licenses(page):
    bundle = files("uq_tracking.comparison").joinpath("templates", "plot.min.js").read_text(encoding="utf-8")
    charts = Path(__file__).parents[2] / "charts"
    assert hashlib.sha256(bundle.encode()).hexdigest() == (charts / "plot.min.js.sha256").read_text().strip()
    pinned = json.loads((charts / "package.json").read_text())["devDependencies"]["@observablehq/plot"]
    licenses, _, program = bundle.partition("*/")
    assert f"@observablehq/plot {pinned}" in licenses
    assert "Copyright 2020-2025 Observable, Inc." in licenses
    assert "Mike Bostock" in licenses
    assert "</script" not in program  # it would end the element that holds it
    assert bundle in page


def test_no_element_has_a_style_or_a_handler_of_its_own(page, nasty):
    for text in (page, nasty):
        names = {name for _, attributes in Elements(text).found for name in attributes}
        assert "style" not in names
        assert not [name for name in names if name.startswith("on")]


def test_names_are_text_wherever_they_stand(nasty):
    elements = Elements(nasty)
    assert len(elements.all("script")) == 2  # the data and the program
    assert elements.all("img") == []
    assert any(attributes.get("data-name") == NASTY for attributes in elements.all("tr"))
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', nasty, re.S)[1]
    assert NASTY in json.loads(data)["methods"]


def test_the_same_comparison_gives_the_same_page(folder, page):
    assert uq.compare(f"dir:{folder}", baseline="large").to_html() == page


def test_every_metric_is_explained(page):
    from uq_tracking import plugins

    identifiers = {attributes.get("id") for attributes in Elements(page).all("dt")}
    metrics = plugins.metrics().values()
    usual = {
        f"metric-{each.key}" for each in metrics if each.default and not each.needs and each.when is None
    }
    assert usual <= identifiers


def test_a_few_metrics_of_every_kind_are_shown_first(page):
    shown = [a["data-key"] for a in Elements(page).all("th") if "data-key" in a and "hidden" not in a]
    assert shown[: len(set(shown))][:3] == ["rmse", "nll", "crps"]


@pytest.mark.slow
def test_skipped_runs_and_warnings_are_on_the_page(reports):
    from tests.comparison.conftest import report_of

    other = report_of({"accuracy": 1.0}, task="classification")
    short = report_of({"nll": 1.0})
    text = uq.compare({**reports, "cls": other, "short": short}).to_html()
    assert "it scores classification, but the first run scores regression" in text
    assert "Scored on different data" in text


def test_methods_have_the_colors_of_the_figures(page):
    assert re.findall(r"--c(\d+): (#\w+);", page)[: len(COLORS)] == [
        (str(k), color) for k, color in enumerate(COLORS)
    ]


def test_a_color_from_a_file_cannot_leave_the_style(folder):
    values = json.loads(uq.compare(f"dir:{folder}").to_json())
    escape = "red;} body {display: none"
    values["maps"][0]["scales"]["error"]["colors"] = [escape, "#00000g", "#123456"]
    values["maps"][0]["classes"] = [[escape, escape]]
    text = uq.Comparison.from_json(json.dumps(values)).to_html()
    assert "display: none}" not in text
    assert "linear-gradient(to right, #808080, #808080, #123456)" in text
    values["maps"][0]["scales"][escape] = values["maps"][0]["scales"]["value"]
    with pytest.raises(FileFormatError, match="color scales"):
        uq.Comparison.from_json(json.dumps(values))


def test_one_method_alone_makes_a_page(reports):
    text = uq.compare({"only": reports["informed"]}).to_html()
    assert Elements(text).wrong == []
    assert "It takes three methods" in text


def test_it_is_written_where_asked(folder, tmp_path, page):
    uq.compare(f"dir:{folder}", baseline="large").to_html(tmp_path / "c.html")
    assert (tmp_path / "c.html").read_text(encoding="utf-8") == page


def test_maps_stand_in_the_order_of_the_rows(folder):
    comparison = uq.compare(f"dir:{folder}")
    found = [
        attributes["data-method"]
        for attributes in Elements(comparison.to_html()).all("div")
        if "data-method" in attributes
    ]
    assert found == ["0", "1"] * len(comparison.maps)


def test_methods_without_a_verdict_say_why(reports):
    truth, mean, std = (column[:5] for column in samples())
    few = uq.evaluate(truth, mean, std)
    alone = uq.compare({"few": few, "fewer": uq.evaluate(truth[:4], mean[:4], std[:4])}).to_html()
    mixed = uq.compare({"few": few, "many": reports["informed"]}).to_html()
    for page in (alone, mixed):
        assert '<section id="verdicts">' in page
        assert "few</b>: Not enough data to tell: 5 samples are too few" in page
    assert "Not judged" not in uq.compare({"many": reports["informed"]}).to_html()


def one_lucky_sample(seed):
    """Standard deviations that say nothing of the errors, but for the largest of 100."""
    rng = np.random.default_rng(seed)
    truth, error, std = rng.normal(size=100), 0.5 * rng.normal(size=100), rng.uniform(0.9, 1.1, 100)
    error[0], std[0] = 10, 2
    return truth, truth + error, std


@pytest.mark.slow
def test_one_lucky_sample_is_no_ranking():
    rankings = [uq.evaluate(*one_lucky_sample(seed), metrics=["rmse"]).verdict.ranking for seed in range(200)]
    assert rankings.count("useful") <= 10  # 2.5 %, at two standard errors; 15 with the sample
    assert rankings.count("worse than constant") <= 10


@pytest.mark.slow
def test_a_star_is_for_errors_found_beyond_chance(reports):
    lucky = uq.evaluate(*one_lucky_sample(0))
    assert lucky.verdict.ranking == "no better than constant"
    assert lucky.verdict.recovered > reports["informed"].verdict.recovered
    page = uq.compare({"lucky": lucky, **reports}).to_html()
    found = re.findall(r'<tr data-of="\d+">.*?title="(\w+)".*?<td class="ranking">(.*?)</td>', page, re.S)
    assert [name for name, cell in found if "★" in cell] == ["informed", "overconfident"]
    assert len(found) == 5
    alone = uq.compare({"lucky": lucky, "constant": reports["constant"]}).to_html()
    assert "★" not in re.search(r"<tbody>(.*?)</tbody>", alone, re.S)[1]


def test_only_bands_that_are_drawn_are_explained(reports):
    probabilities = np.random.default_rng(0).dirichlet(np.ones(3), 300)
    classes = uq.evaluate(np.arange(300) % 3, probs=probabilities)
    found = []
    bare = {"sparsification_rmse": reports["informed"].curves["sparsification_rmse"]}
    for report in (reports["informed"], classes, replace(reports["informed"], curves=bare)):
        page = uq.compare({"a": report}).to_html()
        curves = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])["curves"]
        lines = [line for curve in curves for line in curve["lines"]]
        drawn = [any(key in line for line in lines) for key in ("low", "chance")]
        assert ["Bands in a method's color" in page, "The grey band holds" in page] == drawn
        found += drawn
    assert set(found) == {True, False}
