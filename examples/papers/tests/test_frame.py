"""What a study keeps, what is read back, and the page; the papers here are made up."""

import json
import sys
import types
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import uq_tracking as uq
from uq_tracking.cli import app
from uq_tracking.errors import BackendError, FileFormatError, SettingsError, UnknownBackendError
from uq_tracking.figures.style import line, new_figure, style_axes
from uq_tracking.runs.read import logged_runs
from uq_tracking_papers import uq_commands
from uq_tracking_papers.page import PAPERS, Paper, grid
from uq_tracking_papers.run import read, reproduce
from uq_tracking_papers.study import Finding, Item, Row, Study


def drawn():
    figure = new_figure()
    line(style_axes(figure.subplots(), "x", "y"), [0, 1], [1, 2])
    return figure


SET_UP = "A paper.\n\nFirst\nof <2>.\n\nSecond."


class MadeUp:
    """A paper of two items, which counts how often it computes."""

    computed = 0

    def reproduce(self, study):
        study.item("table 1", "Scores <of> methods", "", better={"nll": "lower"}, bounds=["Oracle"])
        study.row("Oracle", "nll", 0.0)
        study.row("good", "nll", 1.0, 1.5, 0.9, 1.1)
        study.row("bad", "nll", 3.0, 2.5)
        study.row("lost", "nll", np.nan)
        study.item("figure 2", "A line", "a straight one", status="analogue", choice="the season")
        study.figure(drawn(), "caption")
        study.figure(drawn(), "another")
        study.repeats("good", "mae", study.cached("work", self.work)["values"])
        study.finding("one is less than two", np.full(20, 1 < 2), "1 < 2")
        study.finding("two is less than one", np.full(20, 2 < 1), "2 > 1")
        warm = {"in summer": np.full(20, True), "in winter": np.full(20, False)}
        study.finding("it is warm", warm, "20 and 0 degrees")
        study.absent("figure 3", "A photograph", "its data are lost")
        study.cannot_judge("pigs can fly", "there are none here")
        study.diagnostic("the numbers add up", np.bool_(True), "1 + 1 = 2")

    def work(self):
        self.computed += 1
        return {"values": np.arange(101.0)}


@pytest.fixture
def made_up(monkeypatch):
    paper = MadeUp()
    monkeypatch.setitem(
        sys.modules, "made_up", types.SimpleNamespace(reproduce=paper.reproduce, __doc__=SET_UP)
    )
    monkeypatch.setitem(PAPERS, "made-up", Paper("A paper", "Nobody, 1900", "made_up"))
    return paper


def test_numbers_page_and_figures(made_up, tmp_path):
    found = reproduce("made-up", output=tmp_path, size="test")["made-up"]
    numbers = json.loads((tmp_path / "reproduction.json").read_text())
    good = {"item": "table 1", "method": "good", "quantity": "nll", "ours": 1.0, "paper_value": 1.5}
    assert numbers["rows"][1] == {"paper": "made-up", **good, "low": 0.9, "high": 1.1}
    assert numbers["rows"][3]["ours"] is None
    assert numbers["rows"][4] == {
        "paper": "made-up", "item": "figure 2", "method": "good", "quantity": "mae",
        "ours": 50.0, "paper_value": None, "low": 5.0, "high": 95.0,
    }  # fmt: skip
    verdicts = ["holds", "fails", "depends", "cannot judge"]
    assert [finding["class"] for finding in numbers["findings"]] == verdicts
    assert [finding["choice"] for finding in numbers["findings"]] == ["", "", "the season", ""]
    assert numbers["findings"][2] == {
        "paper": "made-up", "claim": "it is warm", "class": "depends", "share": 1.0, "seeds": 20,
        "variants": {"in summer": 1.0, "in winter": 0.0}, "evidence": "20 and 0 degrees", "choice": "the season",
    }  # fmt: skip
    assert numbers["items"] == [
        {"paper": "made-up", "item": item, "title": title, "status": status, "note": note}
        for item, title, status, note in (
            ("table 1", "Scores <of> methods", "reproduced", ""),
            ("figure 2", "A line", "analogue", "a straight one"),
            ("figure 3", "A photograph", "absent", "its data are lost"),
        )
    ]
    page = (tmp_path / "index.html").read_text()
    assert "Table 1: Scores &lt;of&gt; methods</h3>" in page
    assert "<p>First of &lt;2&gt;.</p>\n<p>Second.</p>" in page
    assert "paper 1.5" in page
    for words in (
        "does not hold",
        "Depends on the season. 20 and 0 degrees",
        "0 of 20: in winter",
        "its data are lost",
    ):
        assert words in page
    assert "Figure 3: A photograph" not in page  # it is in the list of items only
    for drawing in found.drawings:
        assert (tmp_path / drawing.file).read_bytes().startswith(b"\x89PNG")
        assert f'src="{drawing.file}"' in page
    assert len({drawing.file for drawing in found.drawings}) == 2
    assert found.about["size"] == "test"
    assert found.about["versions"]["uq-tracking"] == uq.__version__


def test_finished_work_is_not_done_again(made_up, tmp_path):
    first = reproduce("made-up", output=tmp_path)["made-up"]
    assert reproduce("made-up", output=tmp_path)["made-up"].rows == first.rows
    assert made_up.computed == 1
    reproduce("made-up", output=tmp_path, quick=True)
    reproduce("made-up", output=tmp_path, seed=1)
    assert made_up.computed == 3
    (work,) = (tmp_path / "finished" / f"full-0-{uq.__version__}").rglob("work.npz")
    work.write_bytes(b"damaged")
    assert reproduce("made-up", output=tmp_path)["made-up"].rows == first.rows
    assert made_up.computed == 4


def test_what_is_written_is_read_back(made_up, tmp_path):
    found = reproduce("made-up", output=tmp_path)["made-up"]
    assert read(tmp_path) == [found]
    (tmp_path / "papers" / "made-up.json").write_text("{}")
    with pytest.raises(FileFormatError, match=r"made-up\.json is not a result of a reproduction"):
        read(tmp_path)


def test_methods_are_ranked_by_ours_and_by_the_papers_numbers():
    item = Item("table 1", "", better={"crps": "lower", "cover": "higher"}, bounds=("Oracle",))
    rows = [
        Row("table 1", "Oracle", "crps", 0.0),
        Row("table 1", "a", "crps", 1.0, 9.0),
        Row("table 1", "b", "crps", 2.0, 8.0),
        Row("table 1", "c", "crps", 1.0),
        Row("table 1", "a", "cover", 0.9),
        Row("table 1", "b", "cover", 0.8),
        Row("table 2", "a", "cover", 0.1),
    ]
    table = grid(item, rows)
    column = {method: table.entries[method]["crps"] for method in table.methods}
    assert [column[name].cell.rank for name in table.methods] == [None, 1, 3, 1]
    assert [column[name].paper.rank for name in table.methods] == [None, 2, 1, None]
    assert column["b"].cell.mark == "worst"
    assert table.entries["a"]["cover"].cell.mark == "best"
    assert table.entries["c"]["cover"] is None
    assert grid(Item("table 3", ""), rows) is None


@pytest.mark.parametrize(
    ("true", "verdict"),
    [
        ({"": 20}, "holds"),
        ({"": 17}, "holds"),
        ({"": 13}, "fails"),
        ({"a": 20, "b": 18}, "holds"),
        ({"a": 20, "b": 3}, "depends"),
        ({"a": 3, "b": 20}, "depends"),
        ({"a": 3, "b": 4}, "fails"),
    ],
)
def test_a_claim_holds_with_seventeen_of_twenty_seeds_under_every_variant(true, verdict):
    outcomes = {name: np.arange(20) < count for name, count in true.items()}
    found = Finding.of("it holds", outcomes, "", "the variant")
    assert (found.verdict, found.share) == (verdict, next(iter(true.values())) / 20)


def test_a_claim_varies_if_the_halves_of_the_seeds_disagree():
    came = np.ones(20, bool)
    came[:6:2] = False  # three of the even seeds, none of the odd ones
    assert came.mean() == 0.85
    assert Finding.of("it holds", {"": came}, "").verdict == "varies"
    came[::2] = False
    assert Finding.of("it holds", {"": came}, "").verdict == "varies"


def test_generators_depend_on_seed_paper_and_names(tmp_path):
    draws = {
        Study(paper, tmp_path, seed=seed).rng(*names).random()
        for paper in ("a", "b")
        for seed in (0, 1)
        for names in ((), ("x",), ("x", 1))
    }
    assert len(draws) == 12
    assert Study("a", tmp_path).rng("x").random() == Study("a", tmp_path).rng("x").random()


def test_runs_are_logged_with_their_paper(tmp_path):
    study = Study("a", tmp_path, address=f"dir:{tmp_path / 'runs'}")
    study.log([1.0, 2.0], [1.5, 1.0], [1.0, 1.0], method="one", tags={"x": "1"}, figures=False)
    study.log([0, 1], probs=[[0.6, 0.4], [0.5, 0.5]], method="two", figures=False)
    tags = {run.stored.tags["uq.method"]: run.stored.tags for run in logged_runs(study.address)}
    assert {name: tag["uq.paper"] for name, tag in tags.items()} == {"one": "a", "two": "a"}
    assert tags["one"]["x"] == "1"


def test_mistakes_are_named(made_up, monkeypatch, tmp_path):
    with pytest.raises(
        SettingsError, match=r"no paper is called 'mercy'; choose from merci.*did you mean 'merci'"
    ):
        reproduce("mercy", output=tmp_path)
    with pytest.raises(SettingsError, match="size is 'huge'; choose full, quick or test"):
        reproduce("made-up", output=tmp_path, size="huge")
    with pytest.raises(UnknownBackendError, match="no installed backend is called 'mlfow'"):
        reproduce("made-up", output=tmp_path / "new", to="mlfow:x")
    assert not (tmp_path / "new").exists()
    monkeypatch.setitem(PAPERS, "made-up", Paper("", "", "no_such_module"))
    with pytest.raises(
        BackendError, match=r"needs no_such_module; install it: pip install uq-tracking-papers"
    ):
        reproduce("made-up", output=tmp_path)


def test_progress_passes_the_values_on(tmp_path):
    assert list(Study("a", tmp_path).progress([1, 2], "counting")) == [1, 2]


def test_the_command_says_what_holds_and_where_the_page_is(made_up, tmp_path):
    assert [command.__name__ for command in uq_commands()] == ["reproduce"]
    (point,) = metadata.distribution("uq-tracking-papers").entry_points.select(group="uq_tracking")
    assert point.value == "uq_tracking_papers"
    done = CliRunner().invoke(app, ["reproduce", "made-up", "--quick", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[:3] == [
        "made-up",
        "  holds         one is less than two",
        "  fails         two is less than one",
    ]
    assert (tmp_path / "index.html").as_uri() in done.stdout
    assert "error: no paper is called 'mercy'" in CliRunner().invoke(app, ["reproduce", "mercy"]).output


def test_the_documentation_says_of_a_class_what_it_needs_and_turns_wide_tables(
    made_up, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "docs"))
    import papers

    reproduce("made-up", output=tmp_path, size="test")
    (section,) = read(tmp_path)
    text = "\n".join(papers.claims([section]))
    assert "Two halves of the seeds agree about 3 of 3 claims." in text
    assert (
        "### Holds\n\n| claim | seeds |\n|---|---|\n| **made-up** | |\n| one is less than two | 20 of 20 |"
        in text
    )
    assert "| two is less than one | 0 of 20 | 2 > 1 |" in text.replace("\\", "")
    assert "| pigs can fly | there are none here |" in text
    wide = Item("table 1", "")
    section.rows[:] = [Row("table 1", name, f"q{n}", 1.0) for name in ("A", "B") for n in range(8)]
    lines = "\n".join(papers.item(tmp_path, section, wide)).splitlines()
    assert lines[2:5] == ["| | A | B |", "|---|--:|--:|", "| q0 | 1.000 | 1.000 |"]
