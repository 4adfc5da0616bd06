"""Data flows one way: every file imports only from rooms that stand above its own."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import uq_tracking

ROOT = Path(uq_tracking.__file__).parent

ORDER = [
    ["errors", "_version", "hookspecs"],
    ["plugins"],
    ["formatting"],
    ["settings", "families"],
    ["inputs"],
    ["files"],
    ["statistics"],
    ["metrics"],
    ["curves"],
    ["recalibration"],
    ["inference"],
    ["report"],
    ["tables"],
    ["bootstrap"],
    ["evaluation"],
    ["streams"],
    ["figures", "drawings"],
    ["tracking"],
    ["logged_run"],
    ["rescoring", "comparison"],
    ["testing", "demo", "frameworks"],
    ["cli"],
]
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}


def room_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(tree):
    """Rooms imported when the module is: imports inside functions and for type checkers are another matter."""
    for node in top_level(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("uq_tracking."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.module == "uq_tracking":
            yield from (alias.name for alias in node.names if alias.name in LEVEL)
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("uq_tracking."))


def top_level(node):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            continue
        yield child
        yield from top_level(child)


MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_from_above(path):
    room = room_of(path)
    assert room in LEVEL, f"give {room} a place in ORDER"
    below = {other for other in imported_rooms(ast.parse(path.read_text())) if LEVEL[other] > LEVEL[room]}
    assert not below


def test_only_figures_import_matplotlib():
    importers = {
        room_of(path)
        for path in MODULES
        for node in top_level(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and "matplotlib" in ((getattr(node, "module", "") or "") + " ".join(a.name for a in node.names))
    }
    assert importers <= {"figures"}


def test_tracking_does_not_import_figures():
    for path in (ROOT / "tracking").rglob("*.py"):
        assert "uq_tracking.figures" not in path.read_text(), path


def test_plugins_do_not_import_each_other():
    plugins = {path.name: path for path in (ROOT.parent / "plugins").iterdir() if path.is_dir()}
    for name, folder in plugins.items():
        text = "".join(path.read_text() for path in folder.rglob("*.py"))
        assert not {other for other in plugins if other != name and other in text}, name


HEAVY = ["matplotlib", "mlflow", "wandb", "torch", "dask", "pandas", "scipy", "sklearn", "rich", "typer"]


@pytest.mark.parametrize("module", ["uq_tracking", "uq_tracking_mlflow", "uq_tracking_wandb"])
def test_importing_loads_nothing_heavy(module):
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_evaluating_loads_no_tracker_and_no_figures():
    code = (
        "import sys, uq_tracking as uq; uq.evaluate([1.0, 2.0], [1.5, 1.0], [1.0, 1.0]);"
        "print([name for name in ['matplotlib', 'mlflow', 'wandb', 'torch'] if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_public_name_exists_and_is_documented():
    for name in uq_tracking.__all__:
        assert getattr(uq_tracking, name).__doc__ or name == "__version__", name
