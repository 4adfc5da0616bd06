"""Which file of the package imports which: inside functions too, but not what only type checkers read."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

import uq_tracking

ROOT = Path(uq_tracking.__file__).parent
BY_NAME = ("import_module", "named", "resolve_name")
"""Functions that import what a string names; tables of plugins, which hold such names, call neither."""


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = ("uq_tracking", *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    """Return what a file says."""
    return ast.parse(path.read_text(encoding="utf-8"))


def graph(known: dict[str, Path]) -> dict[str, set[str]]:
    """What each module imports of the package itself; the package imports what its public names live in."""
    edges = {name: imported(tree(path), known) for name, path in known.items()}
    edges["uq_tracking"] |= {f"uq_tracking.{home}" for home in uq_tracking._HOME.values()}
    return {name: found - {name} for name, found in edges.items()}


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes below this one, without those under ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING"):
            yield child
            yield from executed(child)


def imported(tree: ast.AST, known: Container[str]) -> set[str]:
    """The known modules that a file imports, by statement or by name."""
    dotted: set[str] = set()
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    texts = {getattr(name, "id", ""): node.value for node in assigned for name in node.targets}
    for node in executed(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            dotted |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            dotted |= {alias.name for alias in node.names}
        elif (
            isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in BY_NAME
        ):
            given = (texts.get(one.id) if isinstance(one, ast.Name) else one for one in node.args)
            dotted |= {str(one.value).replace(":", ".") for one in given if isinstance(one, ast.Constant)}
    modules = {name if name in known else name.rpartition(".")[0] for name in dotted}
    return {name for name in modules if name in known}


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Sets of modules that reach one another (Tarjan's strongly connected components of more than one)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == number[name]:
            circle = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(circle) > 1:
                found.append(sorted(circle))

    for name in edges:
        if name not in number:
            visit(name)
    return found
