"""The example of a method of one's own in CONTRIBUTING.md does what the text says."""

from __future__ import annotations

import re
import types
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.errors import TrackingWarning

from .samples import overconfident

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture
def plugin():
    section = GUIDE.read_text(encoding="utf-8").partition("\n## Add a recalibration\n")[2]
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]
    module = types.ModuleType("added_noise_plugin")
    exec(compile(code, str(GUIDE), "exec", dont_inherit=True), module.__dict__)
    plugins.reload()
    plugins.manager().register(module, "noise")
    yield module
    plugins.reload()


def test_a_method_of_ones_own_is_like_the_others(plugin):
    y, mu, s = overconfident()
    one = uq.recalibrate((y, mu, s), "added_noise")
    assert_allclose(np.mean(one.apply_std(s) ** 2), np.mean((y - mu) ** 2), rtol=1e-9)
    assert uq.Recalibration.from_json(one.to_json()) == one
    report = uq.evaluate(y, mu, s, calibration="added_noise")
    entry = report.recalibration["methods"]["added_noise"]
    assert entry["scores"]["nll"] < report.scores["nll"]
    assert entry["scalars"] == one.scalars()


def test_a_method_whose_name_is_taken_is_skipped(plugin):
    other = types.ModuleType("other")
    another = type("Another", (plugin.AddedNoise,), {})
    other.uq_recalibrators = lambda: [another]
    plugins.manager().register(other, "other")
    with pytest.warns(
        TrackingWarning, match="plugin 'other' was skipped: .* 'added_noise' is taken by 'noise'"
    ):
        assert uq.recalibrate(overconfident(50), "added_noise").method == "added_noise"
