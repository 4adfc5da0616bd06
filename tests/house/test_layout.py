"""Data flows one way: every file imports only from rooms that stand above its own, inside functions too."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import uq_tracking

from . import imports

ROOT = Path(uq_tracking.__file__).parent

PAGE = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
(LAYERS,) = re.findall(r"```text layers\n(.*?)```", PAGE, re.DOTALL)
LEVEL = {room: level for level, line in enumerate(LAYERS.splitlines()) for room in line.split()}

MODULES = imports.modules()


@pytest.fixture(scope="module")
def graph():
    return imports.graph(MODULES)


def room_of(module):
    return module.split(".")[1] if "." in module else module


def test_no_file_reaches_itself(graph):
    assert imports.circles(graph) == []


def test_a_circle_would_be_found():
    assert imports.circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_an_import_by_name_would_be_found():
    code = (
        'NAME = "uq_tracking.figures.picture:picture"\nresolve_name(NAME)\nnamed("uq_tracking.report.Report")'
    )
    assert imports.imported(ast.parse(code), MODULES) == {"uq_tracking.figures.picture", "uq_tracking.report"}


def test_every_room_has_a_place_in_the_layers():
    assert {room_of(module) for module in MODULES} == set(LEVEL)


def test_files_import_only_from_above(graph):
    level = {module: LEVEL[room_of(module)] for module in MODULES}
    against = {
        f"{module} imports {other}"
        for module in graph
        for other in graph[module]
        if level[other] > level[module]
    }
    assert against == set()


def test_what_scores_and_logs_finds_figures_through_plugins(graph):
    importers = {room_of(module) for module, found in graph.items() if "figures" in map(room_of, found)}
    assert importers == {"figures", "drawings", "comparison"}


def test_figures_import_nothing_that_computes(graph):
    found = {room_of(one) for module, found in graph.items() if room_of(module) == "figures" for one in found}
    assert found <= {"figures", "formatting", "errors", "plugins"}


def test_only_figures_import_matplotlib():
    importers = {
        room_of(module)
        for module, path in MODULES.items()
        for node in imports.executed(imports.tree(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and "matplotlib" in ((getattr(node, "module", "") or "") + " ".join(a.name for a in node.names))
    }
    assert importers <= {"figures", "demo", "testing"}


def test_plugins_do_not_import_each_other():
    plugins = {path.name: path for path in (ROOT.parent / "plugins").iterdir() if path.is_dir()}
    for name, folder in plugins.items():
        text = "".join(path.read_text() for path in folder.rglob("*.py"))
        assert not {other for other in plugins if other != name and other in text}, name


def test_one_function_issues_warnings():
    paths = [*MODULES.values(), *(ROOT.parent / "plugins").rglob("*.py")]
    found = [
        path for path in paths if re.search(r"warnings\.warn|stacklevel", path.read_text(encoding="utf-8"))
    ]
    assert [path.name for path in found] == ["errors.py"]


HEAVY = ["matplotlib", "mlflow", "wandb", "torch", "dask", "pandas", "scipy", "sklearn", "rich", "typer"]


def test_importing_loads_nothing_heavy():
    modules = "uq_tracking, uq_tracking_mlflow, uq_tracking_wandb"
    code = f"import sys, {modules}; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_public_name_exists_and_is_documented():
    for name in uq_tracking.__all__:
        assert getattr(uq_tracking, name).__doc__ or name == "__version__", name
