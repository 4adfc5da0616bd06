"""Plugins: what their modules declare and return is found, in order, once, and a broken one is named and skipped."""

from __future__ import annotations

import pkgutil
import re
import sys
import types
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
import uq_tracking.curves
import uq_tracking.metrics
from uq_tracking import plugins
from uq_tracking.curves import CurveSpec, build_curves, curve
from uq_tracking.drawings import FigureSpec
from uq_tracking.errors import PluginError, SettingsError, TrackingWarning
from uq_tracking.hookspecs import hookimpl
from uq_tracking.metrics.registry import FAMILIES, Metric, Undefined, metric
from uq_tracking.settings import Settings

WORDS = {"family": "spread", "direction": None, "summary": "Largest std", "formula": "max s", "source": "-"}
AXES = {"x": "x", "y": "x", "x_label": "x", "y_label": "x", "title": "X"}


def largest(statistics, settings):
    return statistics.moments["std"].high


def metric_of(key, function=largest, **options):
    return metric(key, **(WORDS | options))(lambda *given: function(*given))


@pytest.fixture
def register():
    """Register plugins for the length of a test."""
    plugins.reload()

    def add(name, **contents):
        module = types.ModuleType(name)
        vars(module).update(contents)
        plugins.manager().register(module, name)
        plugins.forget()
        return module

    yield add
    plugins.reload()


def test_what_a_module_declares_needs_no_hook(register):
    register("largest", largest_std=metric_of("largest_std"))
    assert uq.evaluate([1.0, 2.0], [1.0, 1.0], [0.5, 2.0]).scores["largest_std"] == 2.0


def test_the_function_says_what_the_declaration_does_not():
    @metric(family="spread", direction=None, formula="max s")
    def widest(statistics, settings):
        """Largest std.

        Of all samples.
        """

    @curve(**AXES)
    def rising(statistics, settings):
        """A line."""

    (number,), (line,) = vars(widest)["uq_metrics"], vars(rising)["uq_curves"]
    assert (number.key, number.summary, line.name) == ("widest", "Largest std", "rising")
    with pytest.raises(PluginError, match="metric '<lambda>': the name is also used for files"):
        metric(family="spread", direction=None, formula="max s")(lambda statistics, settings: 1.0)


def test_what_a_hook_returns_is_found_beside_what_is_declared(register):
    made = Metric("two", **WORDS, function=lambda statistics, settings: 2.0)
    register("both", one=metric_of("one"), uq_metrics=hookimpl(lambda: [made]))
    assert {"one", "two"} <= plugins.metrics().keys()


def test_a_function_that_two_modules_hold_is_offered_once(register):
    shared = metric_of("largest_std")
    register("home", largest_std=shared)
    register("guest", largest_std=shared)
    assert plugins.metrics()["largest_std"].key == "largest_std"


def test_a_plugin_that_claims_a_name_of_another_is_skipped_naming_both(register):
    register("one", largest=metric_of("largest_std"))
    register("other", largest=metric_of("largest_std", lambda statistics, settings: 0.0))
    told = "plugin 'other' was skipped: PluginError: 'regression/largest_std' is taken by 'one'; rename it"
    with pytest.warns(TrackingWarning, match=told):
        scores = uq.evaluate([1.0, 2.0], [1.0, 1.0], [0.5, 2.0]).scores
    assert scores["largest_std"] == 2.0


@pytest.mark.usefixtures("register")
@pytest.mark.parametrize(
    ("key", "options", "fault"),
    [
        ("mae", {}, "'regression/mae' is taken by 'uq_tracking.metrics.accuracy'; rename it"),
        ("own", {"task": "regresion"}, "no plugin brings the task"),
    ],
)
def test_a_module_that_is_skipped_is_named_when_it_is_registered(monkeypatch, key, options, fault):
    notebook = types.ModuleType("notebook")
    notebook.declared = metric_of(key, **options)
    monkeypatch.setitem(sys.modules, "notebook", notebook)
    with pytest.warns(TrackingWarning, match=f"plugin 'notebook' was skipped: PluginError: {fault}"):
        plugins.register("notebook")
    assert plugins.metrics()["mae"].is_built_in


def test_every_file_with_a_declaration_is_built_in():
    for package in (uq_tracking.metrics, uq_tracking.curves):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            functions = vars(import_module(found.name)).values()
            declares = any(
                getattr(function, "__module__", "") == found.name
                and {"uq_metrics", "uq_curves"} & vars(function).keys()
                for function in functions
                if isinstance(function, types.FunctionType)
            )
            assert not declares or found.name in plugins.BUILT_IN, (
                f"add {found.name} to BUILT_IN in plugins.py"
            )


def test_a_task_that_no_plugin_brings_is_named(register):
    register("mistaken", one=metric_of("one", task="regresion"))
    told = r"plugin 'mistaken' was skipped: PluginError: no plugin brings the task 'regresion' \(did you mean 'regr"
    with pytest.warns(TrackingWarning, match=told):
        assert "one" not in plugins.metrics()


def test_the_same_name_may_stand_in_both_tasks(register):
    register("tasks", one=metric_of("twice"), other=metric_of("twice", task="classification"))
    assert plugins.metrics()["twice"] is not plugins.metrics("classification")["twice"]


def test_a_plugin_that_raises_is_skipped_by_name(register):
    def broken():
        raise RuntimeError("no such file")

    register("broken", uq_metrics=hookimpl(broken))
    with pytest.warns(
        TrackingWarning, match="plugin 'broken' was skipped: RuntimeError: no such file"
    ) as told:
        assert "rmse" in plugins.metrics()
    assert told[0].filename == __file__


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_metrics_are_in_the_order_of_their_families(task, register):
    register("late", early=metric_of("early", family="accuracy", task=task))
    families = [found.family for found in plugins.metrics(task).values()]
    assert families == sorted(families, key=list(FAMILIES).index)
    assert "early" in list(plugins.metrics(task))[:7]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            {"family": "calibratoin"},
            "family is 'calibratoin' (did you mean 'calibration'?); choose from 'accuracy'",
        ),
        ({"unit": "m"}, "unit is 'm'; choose from 'target'"),
        ({"needs": ("samples",)}, "needs is 'samples'; choose from 'predictions'"),
        ({"direction": "up"}, "direction is 'up'; pass 'lower', 'higher', a target value or None"),
        ({"bounds": (1, 0)}, "bounds are (1, 0); pass the smaller one first"),
        ({"key": "a score/1"}, "the name is also used for files; use only letters, digits and underscores"),
    ],
)
def test_a_metric_that_cannot_be_is_refused_where_it_is_declared(said, message):
    said = {"key": "odd", **said}
    with pytest.raises(PluginError, match=f"^metric {said['key']!r}: {re.escape(message)}"):
        metric_of(**said)


@pytest.mark.parametrize(
    ("returned", "fault"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: None, r"TypeError: float\(\) argument must be"),
        (lambda: np.ones(3), "TypeError: only "),
    ],
)
def test_a_metric_whose_function_fails_costs_its_own_score_only(register, returned, fault):
    register("odd", odd=metric_of("odd", lambda *_: returned()))
    with pytest.warns(TrackingWarning, match=f"metric 'odd' of {__name__} failed: {fault}.*; it is left out"):
        report = uq.evaluate([1.0, 2.0], [1.0, 1.0], [0.5, 2.0])
    assert re.match(f"metric 'odd' of {__name__} failed: {fault}", report.undefined["odd"])
    assert report.scores["mae"] == 0.5


def test_nan_is_not_called_an_overflow(register):
    register("odd", odd=metric_of("odd", lambda *_: float("nan")), far=metric_of("far", lambda *_: -np.inf))
    undefined = uq.evaluate([1.0, 2.0], [1.0, 1.0], [0.5, 2.0]).undefined
    assert undefined["odd"].startswith("the value is NaN")
    assert undefined["far"].startswith("the value overflows")


def test_a_whole_number_may_be_the_target(register):
    register("target", odd=metric_of("odd", direction=1))
    assert plugins.metrics()["odd"].loss(0.9) < plugins.metrics()["odd"].loss(1.2)


def test_a_metric_put_over_no_function_says_so(register):
    register("bare", uq_metrics=hookimpl(lambda: [Metric("odd", **WORDS)]))
    with pytest.warns(
        TrackingWarning, match=r"the metric has no function; decorate one with @metric\(\.\.\.\)"
    ):
        uq.evaluate([1.0, 2.0], [1.0, 1.0], [0.5, 2.0])


HEADLINE = {
    "regression": "rmse nll crps coverage_95 calibration_error ence z_std ause_rmse n_merci",
    "classification": "accuracy miou mdice auroc nll brier ece event_ratio cal_slope ause_brier aurc failure_auroc",
}


@pytest.mark.parametrize("task", HEADLINE)
def test_the_headline_metrics_and_those_with_a_floor(task):
    found = plugins.metrics(task).values()
    assert [each.key for each in found if each.headline] == HEADLINE[task].split()
    for each in found:
        if each.gap:
            assert each.family == "calibration"
            assert each.bounds[0] == 0


def test_a_curve_needs_no_more_than_its_declaration(register):
    @curve("span", x="s", y="n", x_label="std", y_label="samples", title="Span", settings=("alpha",))
    def span(statistics, settings):
        std = statistics.moments["std"]
        return {"s": np.asarray([std.low, std.high]), "n": np.asarray([1.0, np.inf])}

    register("spans", span=span)
    built = uq.evaluate([1.0, 2.0], [1.0, 1.0], [0.5, 2.0]).curves["span"]
    assert built.columns["s"].tolist() == [0.5]  # what 64-bit numbers cannot hold is left out
    assert (built.main, built.steps, built.title) == ("n", None, "Span")


def test_a_curve_may_need_the_predictions_or_be_built_when_asked_for(register):
    labels = {"x_label": "place", "y_label": "error", "title": "Errors"}

    @curve("errors", x="place", y="error", needs=("predictions",), **labels)
    def errors(inputs, settings):
        target, mean, _ = inputs.predictions.flat()
        return {"place": np.arange(len(mean)), "error": np.asarray(target - mean)}

    @curve("asked", x="x", y="x", default=False, **labels)
    def asked(statistics, settings):
        return {"x": np.zeros(1)}

    register("curves", errors=errors, asked=asked)
    report = uq.evaluate([1.0, 2.0], [1.0, 1.5], [0.5, 2.0])
    assert report.curves["errors"].columns["error"].tolist() == [0.0, 0.5]
    assert "asked" not in report.curves
    assert "errors" not in build_curves(report.statistics, Settings())
    again = uq.evaluate([1.0, 2.0], [1.0, 1.5], [0.5, 2.0], curves="asked")
    assert {"asked", "errors"} <= again.curves.keys()
    with pytest.raises(SettingsError, match=r"curve called aksed; choose from .*, asked"):
        uq.evaluate([1.0, 2.0], [1.0, 1.5], [0.5, 2.0], curves="aksed")


def test_a_curve_asked_for_says_why_it_is_not_there(register):
    @curve("never", **AXES, default=False)
    def never(statistics, settings):
        raise Undefined("nothing to see")

    register("never", never=never)
    report = uq.evaluate([1.0, 2.0], [1.0, 1.5], [0.5, 2.0], curves=["never"])
    assert report.verdicts["never"] == "not made: nothing to see"


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        (lambda: 1 / 0, "of tests.* failed: ZeroDivisionError: division by zero"),
        (lambda: {"y": np.ones(2)}, "returns no column 'x'"),
        (lambda: {"x": np.ones(2), "y": np.ones(3)}, "shapes .*return 1-D columns of equal length"),
        (lambda: {"x": np.ones((2, 2))}, "shapes .*return 1-D columns of equal length"),
    ],
)
def test_a_curve_whose_function_fails_is_left_out_by_name(register, columns, fault):
    register("odd", odd=curve("odd", **AXES)(lambda *_: columns()))
    with pytest.warns(TrackingWarning, match=f"curve 'odd'.*{fault}.*; it is left out"):
        curves = dict(uq.evaluate([1.0, 2.0], [1.0, 1.0], [0.5, 2.0]).curves)
    assert "odd" not in curves
    assert "calibration" in curves


def test_a_curve_of_unknown_settings_is_refused_where_it_is_declared():
    with pytest.raises(PluginError, match=r"curve 'odd': settings is 'nbins' \(did you mean 'n_bins'"):
        curve("odd", **AXES, settings=("nbins",))(largest)


def test_the_hook_returns_curves_too(register):
    spec = CurveSpec("flat", **AXES, function=lambda statistics, settings: {"x": np.zeros(2)})
    register("flat", uq_curves=hookimpl(lambda: [spec]))
    assert plugins.curves()["flat"] is spec


def test_a_figure_may_be_given_as_a_function_or_by_its_name(register):
    by_name = FigureSpec("named", "math.sqrt")
    assert by_name.draw(4) == FigureSpec("given", lambda report: report / 2).draw(4) == 2
    register("figures", uq_figures=hookimpl(lambda: [by_name]))
    assert plugins.figures()["named"] is by_name


def test_the_curve_in_the_guide_does_what_the_text_says(register):
    guide = (Path(__file__).parents[1] / "docs" / "curves.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)[-1]
    register("guide", **{k: v for k, v in run_code(code).items() if k == "error_quantiles"})
    error = np.random.default_rng(0).normal(size=400)
    columns = uq.evaluate(error, 0 * error, np.ones(400)).curves["error_quantiles"].columns
    expected = np.quantile(np.abs(error), columns["share"], method="inverted_cdf")
    assert_allclose(columns["abs_error"], expected, rtol=1e-12)


def run_code(code):
    names = {}
    exec(compile(code, "docs/curves.md", "exec", dont_inherit=True), names)
    return names


@pytest.fixture
def pinned(monkeypatch):
    """Pin the plugins of other distributions for the length of a test."""

    def pin(names):
        monkeypatch.setenv(plugins.PIN_VARIABLE, names)
        plugins.reload()

    yield pin
    monkeypatch.undo()
    plugins.reload()


def test_the_environment_pins_the_plugins_of_other_distributions(pinned):
    pinned("mlflow, tensorboard")
    assert set(plugins.backends()) == {"dir", "mlflow", "tensorboard"}
    pinned("")
    assert set(plugins.backends()) == {"dir"}
    assert "rmse" in plugins.metrics()


def test_a_pinned_plugin_that_is_not_installed_is_refused(pinned):
    pinned("mlflow,comet")
    with pytest.raises(PluginError, match=r"names comet, but the installed plugins are .*mlflow"):
        plugins.backends()


def test_a_plugin_that_offers_nothing_is_named(pinned, monkeypatch):
    empty = EntryPoint("empty", "math", plugins.GROUP)
    monkeypatch.setattr(plugins.metadata, "entry_points", lambda group: [empty])
    pinned("empty")
    with pytest.warns(
        TrackingWarning, match="plugin 'empty' offers nothing: math holds nothing under @metric"
    ):
        assert "rmse" in plugins.metrics()


def test_an_entry_point_that_cannot_be_loaded_is_skipped_by_name(pinned, monkeypatch):
    broken = EntryPoint("broken", "no_such_module_here", plugins.GROUP)
    monkeypatch.setattr(plugins.metadata, "entry_points", lambda group: [broken])
    pinned("broken")
    with pytest.warns(TrackingWarning, match="plugin 'broken' was skipped: ModuleNotFoundError"):
        assert set(plugins.backends()) == {"dir"}


@pytest.mark.usefixtures("register")  # a manager of its own
def test_a_module_of_this_process_is_registered_by_its_name(monkeypatch):
    notebook = types.ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", notebook)
    for value in (1.0, 2.0):  # a cell that runs again replaces what it declared

        @metric(
            family="accuracy", direction="lower", unit="target", formula="c", source="ours", bounds=(0, 9)
        )
        def of_notebook(statistics, settings, value=value):
            """A constant."""
            return value

        notebook.of_notebook = of_notebook
        plugins.register("notebook")
        assert uq.evaluate([1.0, 2.0], [1.0, 1.0], [1.0, 1.0]).scores["of_notebook"] == value
