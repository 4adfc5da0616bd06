"""Text, Markdown, LaTeX, CSV, JSON and the notebook's table."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from rich.console import Console

import uq_tracking as uq
from tests.comparison.conftest import report_of
from uq_tracking.comparison import Comparison
from uq_tracking.errors import FileFormatError

NASTY = "<script>alert(1)</script> | `x` & $y_1$ %\n\x1b[31m"


@pytest.fixture(scope="module")
def comparison(reports):
    return uq.compare(reports, baseline="constant")


@pytest.fixture(scope="module")
def nasty(reports):
    return uq.compare({NASTY: reports["informed"], "plain": reports["shuffled"]}, baseline="plain")


class TestText:
    def test_marks_tell_best_and_worst_without_color(self, comparison):
        table = comparison.to_text(["nll"]).partition("difference to")[0].splitlines()
        rows = {line.split()[0]: line for line in table if line.strip()}
        assert rows["informed"].endswith("(1)*")
        assert rows["overconfident"].endswith("(4)!")

    def test_bounds_stand_above_the_methods(self, comparison):
        lines = comparison.to_text(["n_merci"]).partition("method ")[2].splitlines()  # verdicts stand above
        names = [line.split()[0] for line in lines if line.startswith(("oracle ", "constant ", "informed "))]
        assert names[:3] == ["oracle", "constant", "informed"]

    @pytest.mark.parametrize("width", [50, 80, 120])
    def test_tables_keep_to_the_width(self, comparison, width):
        table = [line for line in comparison.to_text("all", width=width).splitlines() if "  " in line]
        assert max(len(line) for line in table) <= width

    def test_every_metric_is_there_when_asked_for(self, comparison):
        text = comparison.to_text("all")
        assert all(metric.key in text for metric in comparison.metrics)

    def test_seeds_are_mean_and_spread(self, seeds):
        text = uq.compare(seeds, metrics=["crps"]).to_text()
        assert re.search(r"good \(4 runs\) +[\d.]+ ± [\d.]+ \(\d\)[*=]", text)
        assert "= not distinguishable from the best at 95%" in text

    @pytest.mark.slow
    def test_skipped_runs_and_warnings_are_listed(self, reports):
        other = report_of({"accuracy": 1.0}, task="classification")
        text = str(uq.compare({**reports, "cls": other}))
        assert "skipped cls: it scores classification" in text
        many = uq.compare({**reports, **{f"c{k}": other for k in range(6)}})
        assert "skipped c0, c1, c2, c3 and 2 more: it scores classification" in " ".join(str(many).split())

    def test_control_characters_do_not_reach_the_terminal(self, nasty):
        assert "\x1b" not in str(nasty)

    def test_rich_prints_the_same_words(self, comparison):
        console = Console(file=io.StringIO(), width=100, color_system=None)
        console.print(comparison)
        printed = [line.rstrip() for line in console.file.getvalue().splitlines()]
        assert [line for line in printed if "(1)*" in line] == [
            line for line in str(comparison).splitlines() if "(1)*" in line
        ]

    def test_colors_go_from_yellow_to_red_and_the_worst_is_grey(self, comparison):
        console = Console(file=io.StringIO(), width=300, force_terminal=True, color_system="truecolor")
        console.print(comparison)
        rows = [line for line in console.file.getvalue().splitlines() if "(1)" in line or "(4)" in line]
        line = next(line for line in rows if "overconfident" in line)
        assert "48;2;168;168;168" in line
        best = next(line for line in rows if "informed" in line)
        assert "48;2;255;221;64" in best


class TestMarkup:
    def test_markdown_is_one_table_of_equal_rows(self, comparison):
        rows = [line for line in comparison.to_markdown().splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
        assert len(rows) == 2 + 2 + 4

    def test_markdown_marks_best_and_worst(self, comparison):
        text = comparison.to_markdown(["nll"])
        assert re.search(r"\| informed \| \*\*[\d.-]+\*\* \(1\)\\\* \|", text)
        assert re.search(r"\| overconfident \| \*[\d.-]+\* \(4\)\\! \|", text)

    def test_markdown_escapes_names(self, nasty):
        text = nasty.to_markdown()
        assert "<script>" not in text
        assert r"\<script\>" in text

    def test_latex_escapes_names(self, nasty):
        text = nasty.to_latex()
        assert r"\textless{}script\textgreater{}" in text
        assert r"\& \$y\_1\$ \%" in text

    def test_latex_rows_have_equal_columns(self, comparison):
        rows = [line for line in comparison.to_latex().splitlines() if line.endswith(r"\\")]
        assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1

    def test_latex_colors_by_rank(self, comparison):
        text = comparison.to_latex(["nll"])
        assert re.search(r"informed & \\cellcolor\{red!0!yellow!35\}\\textbf", text)
        assert re.search(r"overconfident & \\textcolor\{gray\}", text)

    def test_csv_has_all_digits_and_all_metrics(self, comparison, reports):
        rows = list(csv.DictReader(io.StringIO(comparison.to_csv())))
        assert len(rows) == 4 * len(comparison.metrics)
        for row in rows:
            expected = reports[row["method"]].scores.get(row["metric"])
            lacking = "inf" if row["undefined"].startswith("infinite: ") else ""
            assert row["value"] == (lacking if expected is None else repr(expected))

    def test_csv_gives_reasons(self, comparison):
        rows = csv.DictReader(io.StringIO(comparison.to_csv()))
        row = next(row for row in rows if (row["method"], row["metric"]) == ("constant", "spearman"))
        assert "standard deviations are equal" in row["undefined"]

    def test_csv_keeps_names_as_they_are(self, nasty):
        assert {row["method"] for row in csv.DictReader(io.StringIO(nasty.to_csv()))} == {NASTY, "plain"}

    def test_the_notebook_shows_text_not_markup(self, nasty):
        html = nasty._repr_html_()
        assert "<script>" not in html
        assert "&lt;script&gt;" in html


class TestJSON:
    def test_what_is_read_back_is_equal(self, folder, tmp_path):
        made = uq.compare(f"dir:{folder}", baseline="large")
        text = made.to_json(tmp_path / "c.json")
        again = Comparison.from_json(tmp_path / "c.json")
        assert again == made
        assert hash(again) == hash(made)
        assert again.to_json() == text
        assert again.to_html() == made.to_html()
        assert again.to_csv() == made.to_csv()
        assert str(again) == str(made)

    @pytest.mark.slow
    def test_reports_in_memory_are_equal_when_read_back(self, comparison, seeds, reports):
        other = uq.compare(seeds, {"unknown": report_of({"acme": 1.0})})
        assert Comparison.from_json(comparison.to_json()) == comparison
        assert Comparison.from_json(other.to_json()) == other
        assert other != comparison
        assert uq.compare(reports, level=0.9) != uq.compare(reports)

    def test_other_programs_find_the_table(self, comparison):
        derived = json.loads(comparison.to_json())["derived"]
        assert derived["table"]["informed"]["nll"]["rank"] == 1
        assert derived["bounds"]["constant"]["n_merci"]["low"] == 1
        assert len(derived["agreement"]["kendall_tau"]) == len(derived["agreement"]["metrics"])

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda d: d.pop("runs"), "damaged comparison"),
            (lambda d: d.update(runs=[{}]), "damaged comparison"),
            (lambda d: d.update(schema=99), "schema 99"),
            (lambda d: d.update(schema="1"), "schema 1"),
            (lambda d: d.update(format="x"), "not a uq_tracking comparison"),
            (lambda d: d["metrics"][0].update(direction="sideways"), "direction 'sideways'"),
            (lambda d: d.update(maps=[{"name": "0"}]), "damaged comparison"),
        ],
    )
    def test_damage_is_named(self, comparison, change, words):
        values = json.loads(comparison.to_json())
        change(values)
        with pytest.raises(FileFormatError, match=words):
            Comparison.from_json(json.dumps(values))

    @pytest.mark.parametrize("text", ["{", "{}", '{"format": 1}'])
    def test_foreign_text(self, text):
        with pytest.raises(FileFormatError, match=r"is not JSON|is not a uq_tracking comparison"):
            Comparison.from_json(text)

    @pytest.mark.slow
    def test_a_metric_unknown_here_keeps_its_direction(self, comparison):
        values = json.loads(comparison.to_json())
        for metric in values["metrics"]:
            if metric["key"] == "nll":
                metric["key"] = "acme"
        for run in values["runs"]:
            run["report"]["scores"]["acme"] = run["report"]["scores"].pop("nll")
        values.update(differences=[], ties=[], headline=["acme"])
        again = Comparison.from_json(json.dumps(values))
        assert again.table["overconfident"]["acme"].rank == 4


def test_repr_is_short(comparison):
    assert repr(comparison) == f"Comparison(4 methods, 4 runs, {len(comparison.metrics)} metrics)"


class TestVerdicts:
    @pytest.mark.slow
    def test_each_method_has_its_reports_verdict(self, comparison, reports):
        assert comparison.verdicts["overconfident"].calibration == "overconfident"
        for name, verdict in comparison.verdicts.items():
            assert verdict.text == reports[name].verdict.text
            assert f"{name}: {verdict.text}" in " ".join(str(comparison).split())  # lines are broken
            assert verdict.text in comparison.to_html().replace("&#39;", "'").replace("</b>", "")

    def test_of_several_runs_they_are_counted(self, seeds, reports):
        first, other = reports["overconfident"], reports["overconfident"]
        other = replace(other, provenance={**other.provenance, "digest": "of another seed"})
        overconfident = [first, other]
        found = uq.compare({"mixed": [*seeds["bad"][:1], *overconfident]}).verdicts["mixed"]
        assert found.calibration == "overconfident"
        assert found.text.startswith("Of 3 runs, ")
        same = uq.compare({"same": overconfident}).verdicts["same"]
        assert same.text.startswith("Of 2 runs, all overconfident (")
        assert f"x in the median); ranking of errors: all {same.ranking}." in same.text

    def test_reports_that_could_not_be_judged_have_none(self):
        assert uq.compare({"a": report_of({"nll": 1.0})}).verdicts == {}
