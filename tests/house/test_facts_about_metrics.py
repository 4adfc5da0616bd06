"""What is known of a metric is declared beside it: no other module holds a table of metric keys."""

from __future__ import annotations

import ast
from pathlib import Path

import uq_tracking
from uq_tracking.metrics.registry import every_metric

from . import imports

ROOT = Path(uq_tracking.__file__).parent
KEYS = {metric.key for metric in every_metric()}
MOST = 2
"""A pair may be meant as such (an area and its counterpart); from three on it is a table."""

ALLOWED = {
    "metrics": "declares them",
    "inputs": "columns that a form computes for every sample, named as the scores they become",
    "statistics": "losses of every sample, named as the scores they become",
    "figures": "reading order of the panels of one picture",
    "demo": "reading order of a table of 80 columns",
}
"""Folders that may hold such collections, and why."""


def collections_of_keys(tree):
    """Line and keys of every literal collection with more than a pair of metric keys."""
    for node in ast.walk(tree):
        elements = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else ()
        if isinstance(node, ast.Dict):
            elements = [key for key in node.keys if key is not None]
        found = [each.value for each in elements if isinstance(each, ast.Constant) and each.value in KEYS]
        if len(found) > MOST:
            yield node.lineno, found


def test_no_other_module_holds_a_table_of_metric_keys():
    found = {
        f"{path.relative_to(ROOT)}:{line} holds {keys}; make it a field of Metric"
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] not in {*ALLOWED, "reproduction"}
        for line, keys in collections_of_keys(imports.tree(path))
    }
    assert found == set()


def test_a_table_would_be_found():
    tree = ast.parse(
        'A = {"rmse": 1, "nll": 2, "crps": 3, **B}\nC = ("ence", "uce")\nD = ["mae", "rmse", "x", "r2"]'
    )
    assert [line for line, _ in collections_of_keys(tree)] == [1, 3]
