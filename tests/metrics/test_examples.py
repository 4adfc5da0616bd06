"""Examples in docstrings of functions that are made in a loop, which doctest does not find by itself."""

from __future__ import annotations

import doctest

import pytest

from uq_tracking.metrics.registry import every_metric

METRICS = [metric for metric in every_metric() if metric.function.__module__.startswith("uq_tracking.")]


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: f"{m.task}-{m.key}")
def test_the_example_is_true(metric):
    examples = doctest.DocTestFinder().find(metric.function, metric.key, globs={})
    assert any(example.examples for example in examples)
    for example in examples:
        assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
