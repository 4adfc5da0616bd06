"""What CONTRIBUTING.md shows is so; tests/recalibration/test_plugin.py has its recalibration."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from tests.figures.seen import curve, holds_line, texts
from uq_tracking import plugins
from uq_tracking.figures.style import readable
from uq_tracking.hookspecs import hookimpl
from uq_tracking.settings import Settings

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()


def code_of(section):
    """Return the Python under a heading of the page."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return code


CODE = code_of("Add a metric")


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


@pytest.fixture
def register():
    """Register a module's content as a plugin for the length of a test."""

    def add(name, content):
        module = ModuleType(name)
        vars(module).update(content)
        plugins.manager().register(module, name)
        plugins.forget()

    plugins.reload()
    yield add
    plugins.reload()


def run(section):
    names = {}
    exec(compile(code_of(section), "CONTRIBUTING.md", "exec", dont_inherit=True), names)
    return names


@pytest.fixture
def scored():
    rng = np.random.default_rng(0)
    std = rng.gamma(2, 1, 400)
    error = std * rng.normal(size=400)
    return lambda: uq.evaluate(error, 0 * std, std, unit="m"), error[np.argsort(std)]


def test_the_curve_is_scored_and_drawn_from_its_declaration(register, scored):
    evaluate, error = scored
    register("guide", {"rmse_of_surest": run("Add a curve")["rmse_of_surest"]})
    report = evaluate()
    rmse = np.sqrt(np.cumsum(error**2) / np.arange(1, 401))[3::4]
    assert_allclose(report.curves["rmse_of_surest"].columns["rmse"], rmse, rtol=1e-9)
    figure = report.plot("rmse_of_surest")
    assert holds_line(figure.axes[0], *report.curves["rmse_of_surest"].columns.values())
    assert "RMSE of the most certain" in texts(figure)
    assert "RMSE [m]" in texts(figure)
    assert f"ause_rmse {readable(report.scores['ause_rmse'], padded=True)}" in texts(figure)


def test_the_curve_is_drawn_by_hand(register, scored):
    function, names = run("Add a figure")["filled"], run("Add a curve")
    (spec,) = vars(names["rmse_of_surest"])["uq_curves"]
    by_hand = replace(spec, draw=function, header={"ause_rmse": "AUSE"})
    register("guide", {"uq_curves": hookimpl(lambda: [by_hand])})
    report = scored[0]()
    figure = report.plot("rmse_of_surest")
    (ax,) = figure.axes
    assert_allclose(curve(ax, "all samples")[1], report.scores["rmse"])
    assert ax.get_ylim()[0] == 0
    assert f"AUSE {readable(report.scores['ause_rmse'], padded=True)}" in texts(figure)


def test_the_form_is_scored_counted_and_kept(register, tmp_path):
    names = run("Add a form")
    register("guide", {"uq_forms": names["uq_forms"]})
    rng = np.random.default_rng(0)
    std = rng.gamma(2, 1, 400)
    y = std * rng.normal(size=400)
    expected = uq.evaluate(y, 0 * y, std)
    assert uq.evaluate(y, value=0 * y, expanded=2 * std).scores == expected.scores
    assert uq.evaluate(y, value=0 * y, expanded=4 * std, coverage_factor=4.0).scores == expected.scores
    count = uq.Accumulator(statistics="exact")
    count.update(y, value=0 * y, expanded=2 * std)
    assert count.compute().scores == expected.scores
    data = uq.Predictions.of(names["Expanded"], y, {"value": 0 * y, "expanded": 2 * std})
    back = uq.Predictions.load(data.save(tmp_path / "measured.npz"))
    assert isinstance(back.form, names["Expanded"])
    assert uq.evaluate(back).scores == expected.scores


@pytest.mark.slow
def test_the_backend_is_logged_to_compared_and_rescored(register, scored):
    names = run("Add a backend")
    register("guide", {"uq_backends": names["uq_backends"]})
    error = scored[1]
    for method, std in (("narrow", 0.5), ("wide", 2.0)):
        uq.log(error, 0 * error, std * np.linspace(0.5, 2, 400), method=method, run="memory:here")
    assert set(uq.compare("memory:here").methods) == {"narrow", "wide"}
    before = {name: dict(held["scalars"]) for name, held in names["RUNS"].items()}
    outcome = uq.rescore("memory:here", n_bins=5)
    assert not outcome.failed
    for name, held in names["RUNS"].items():
        assert held["scalars"]["uq/ence"] != before[name]["uq/ence"]
        assert held["scalars"]["uq/rmse"] == before[name]["uq/rmse"]
