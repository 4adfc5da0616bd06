"""One table, rendered for terminals, papers, spreadsheets and notebooks."""

from __future__ import annotations

import csv
import io

import pytest
from rich.console import Console

import uq_tracking as uq
from tests.comparison.conftest import report_of
from uq_tracking.errors import UnknownMetricError
from uq_tracking.tables import GREY, Cell, Column, Row, Table, rank_color
from uq_tracking.tables.formats import table_csv, table_latex, table_markdown, tables_html
from uq_tracking.tables.terminal import View, shortened, tables_text

ESCAPE = "\x1b[2J\x1b[31mname"


def table(*names, **changes):
    columns = (Column("nll", "nats", "lower"), Column("rmse", "m", "lower", headline=False))
    rows = tuple(Row(name, {"nll": Cell(float(k)), "rmse": Cell(0.5)}) for k, name in enumerate(names))
    return Table("method", columns, rows, **{"title": "a title", **changes})


def first_cells(text):
    return [row[0] for row in csv.reader(io.StringIO(text))][1:]


class TestModel:
    def test_a_cell_is_found_by_names(self):
        assert table("a", "b")["b"]["nll"].value == 1

    def test_a_bound_of_a_methods_name_is_not_the_method(self):
        bound = Row("a", {"nll": Cell(9.0), "rmse": Cell()}, "bound")
        made = table("a")
        assert Table("m", made.columns, (bound, *made.rows))["a"]["nll"].value == 0

    def test_the_headline_is_selected_when_nobody_chooses(self):
        assert [column.key for column in table("a").select().columns] == ["nll"]
        assert [column.key for column in table("a").select(["rmse", "nll"]).columns] == ["rmse", "nll"]

    def test_an_unknown_column_is_named(self):
        with pytest.raises(UnknownMetricError, match="no column called crps; it has nll, rmse"):
            table("a").select(["crps"])

    def test_a_spread_and_a_range(self):
        assert Cell(1.5, spread=0.25).text == "1.500 ± 0.25"
        assert Cell(1.0, upper=2.0).text == "1.000 .. 2.000"
        assert Cell().text == "-"
        assert Cell(0.5, mark="better").text == "+0.5000"


class TestSpreadsheets:
    @pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "=cmd|' /C calc'!A0"])
    def test_a_text_that_would_be_a_formula_is_quoted(self, name):
        assert first_cells(table_csv(table(name))) == [f"'{name}"] * 2

    def test_a_line_break_of_any_kind_stays_inside_its_cell(self):
        assert first_cells(table_csv(table("a\rb", "c\r\nd"))) == ["a\nb", "a\nb", "c\nd", "c\nd"]

    def test_numbers_stay_numbers(self):
        rows = list(csv.DictReader(io.StringIO(table_csv(table("a", "b")))))
        assert [row["value"] for row in rows] == ["0.0", "0.5", "1.0", "0.5"]
        negative = Table("method", (Column("nll"),), (Row("a", {"nll": Cell(-1.5)}),))
        assert "a,nll,-1.5," in table_csv(negative)

    def test_a_reason_that_begins_with_a_sign_is_a_text(self):
        made = Table("m", (Column("nll"),), (Row("a", {"nll": Cell(reason="=HYPERLINK(1)")}),))
        assert table_csv(made).rstrip().endswith(",'=HYPERLINK(1)")

    def test_long_names_are_whole_in_files(self):
        name = "n" * 500
        for text in (table_csv(table(name)), table_markdown(table(name)), table_latex(table(name))):
            assert name in text


class TestTerminal:
    def test_nothing_that_a_terminal_obeys_is_printed(self):
        made = table(ESCAPE, title=ESCAPE, warnings=(ESCAPE,), notes=(ESCAPE,), remarks=(ESCAPE,))
        console = Console(file=io.StringIO(), width=80, color_system=None)
        console.print(View([made]))
        for text in (tables_text([made], 80), console.file.getvalue()):
            assert "\x1b" not in text
            assert text.count("name") == 5

    def test_a_title_is_no_markup(self):
        console = Console(file=io.StringIO(), width=80, color_system=None)
        console.print(View([table("[bold]x[/nonsense]")]))
        assert "[bold]x[/nonsense]" in console.file.getvalue()

    @pytest.mark.parametrize("width", [40, 80])
    def test_an_overlong_name_leaves_room_for_the_scores(self, width):
        lines = tables_text([table("n" * 500, "short")], width).splitlines()
        assert max(map(len, lines)) <= width
        assert any("…" in line and "0.5000" in line for line in lines)

    def test_names_that_differ_in_the_middle_stay_distinct(self):
        names = [f"{'a' * 30}{k}{'b' * 30}" for k in range(3)]
        found = shortened(names, 16)
        assert len(set(found)) == 3

    def test_wide_letters_are_aligned_by_what_they_take(self):
        first, second = tables_text([table("日本", "ab")], 80).splitlines()[-2:]
        assert len(second) - len(first) == 2

    @pytest.mark.parametrize(("width", "lines_of_words"), [(200, 1), (60, 2), (25, 0)])
    def test_words_at_the_end_are_folded_or_left_out_where_there_is_no_room(self, width, lines_of_words):
        columns = (Column("nll"), Column("meaning", numeric=False))
        row = Row("a", {"nll": Cell(1.0), "meaning": Cell(words="word " * 15)}, "score")
        lines = tables_text([Table("score", columns, (row,))], width).splitlines()
        assert max(map(len, lines)) <= width
        assert ("meaning" in lines[0]) == (lines_of_words > 0)
        assert sum("word" in line for line in lines) == lines_of_words
        assert sum(line.count("word") for line in lines) == 15 * (lines_of_words > 0)

    def test_sentences_are_folded_between_words(self):
        made = table("a", lead=("so it is " * 20,), remarks=("dir:" + "x" * 90,))
        lines = tables_text([made], 60).splitlines()
        assert lines[0] == " ".join(["so it is"] * 6) + " so it"
        assert lines[-1] == "dir:" + "x" * 90

    def test_a_table_without_units_has_one_heading_line(self):
        made = Table("output", (Column("x"),), (Row("rmse", {"x": Cell(1.0)}, "score"),))
        assert tables_text([made], 80).splitlines() == ["output      x", "-------------", "rmse    1.000"]


class TestHTML:
    def test_every_text_is_escaped(self):
        nasty = "<script>alert(1)</script>"
        cells = {"x": Cell(words=nasty)}
        made = Table(
            nasty,
            (Column("x", nasty, nasty),),
            (Row(nasty, cells, notes=(nasty,)),),
            title=nasty,
            warnings=(nasty,),
            notes=(nasty,),
            remarks=(nasty,),
        )
        html = tables_html([made])
        assert "<script" not in html
        assert html.count("&lt;script&gt;") == 10

    def test_ranks_have_colors(self):
        comparison = uq.compare({name: report_of({"nll": value}) for name, value in (("a", 1.0), ("b", 2.0))})
        html = comparison._repr_html_()
        assert "background: #ffdd40" in html
        assert "background: #a8a8a8" in html


def test_the_color_of_a_method_that_ties_with_the_best_fades():
    plain, tied = Cell(1.0, rank=2, worst_rank=4), Cell(1.0, rank=2, worst_rank=4, mark="tied")
    assert rank_color(Cell(1.0, rank=4, worst_rank=4, mark="worst")) == GREY
    assert rank_color(Cell(1.0, rank=4, worst_rank=4, mark="tied")) != GREY
    brightness = [sum(int(rank_color(cell)[k : k + 2], 16) for k in (1, 3, 5)) for cell in (plain, tied)]
    assert brightness[1] > brightness[0]
    assert rank_color(Cell(1.0)) is None
