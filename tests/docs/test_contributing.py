"""What CONTRIBUTING.md shows of statistics is so."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.settings import Settings

(CODE,) = re.findall(
    r"```python\n(.*?)```", (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(), re.DOTALL
)


@pytest.mark.parametrize("method", ["exact", "sketch"])
def test_statistics_answer_what_is_promised(method):
    rng = np.random.default_rng(0)
    std = rng.gamma(2, 1, 400)
    error = std * rng.normal(size=400)
    names = {
        "statistics": uq.evaluate(error, 0 * std, std, statistics=method).statistics,
        "settings": Settings(),
    }
    exec(compile(CODE, "CONTRIBUTING.md", "exec", dont_inherit=True), names)
    expressions = [
        line.split(" #")[0].rstrip() for line in CODE.splitlines() if re.match(r"[a-z_]+[.(]", line)
    ]
    got = [eval(line, names) for line in expressions if line.count("(") == line.count(")")]
    z = error / std
    expected = [
        z.mean(),
        np.mean(error**2),
        [np.sum(z <= -1.96), np.sum(z <= 1.96)],
        np.sort(np.abs(error))[:3],
        np.sort(np.abs(z))[:3],
        np.add.reduceat((error**2)[np.argsort(std)], [0, 10, 20])[:2],
        np.mean(np.cos(z)),
        1.2815515655446004,
        [np.mean(np.abs(z) <= 0.6744897501960817), np.mean(np.abs(z) <= 1.6448536269514722)],
    ]
    for one, other in zip(got, expected, strict=True):
        assert_allclose(one, other, rtol=1e-9 if method == "exact" else 5e-3)
