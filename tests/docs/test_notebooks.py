"""The notebooks of examples/ run from top to bottom, and are stored without what they print."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.documents

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["first-steps", "maps", "recalibrate"]


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """What a notebook shows, run once."""

    @cache
    def run(path):
        notebook = nbformat.read(path, as_version=4)
        assert not any(cell.get("outputs") for cell in notebook.cells)
        folder = tmp_path_factory.mktemp(path.stem)
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
        return [output for cell in notebook.cells for output in cell.get("outputs", ())]

    return run


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_shows_figures_with_a_text_in_their_place(path, executed):
    drawn = [output for output in executed(path) if "image/png" in output.get("data", {})]
    assert drawn
    assert all(output["metadata"]["image/png"]["alt"] for output in drawn)


@pytest.mark.filterwarnings("default")
def test_first_steps_show_a_method_that_ranks_errors_and_no_warning(executed):
    shown = executed(NOTEBOOKS[0])
    told = [output.get("text", "") + output.get("data", {}).get("text/html", "") for output in shown]
    assert any("The uncertainty ranks errors" in text for text in told)
    assert not any("differs" in text or "Warning:" in text.replace("TqdmWarning:", "") for text in told)
