"""What the declarations of curves say holds: columns, scores, settings, drawings, ceilings."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.curves.spec import Curve
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings

RNG = np.random.default_rng(5)
STD = RNG.gamma(3, 0.4, 600)
STATISTICS = {
    "regression": uq.evaluate(RNG.standard_t(4, 600) * STD, 0 * STD, STD).statistics,
    "classification": uq.evaluate(RNG.integers(0, 3, 600), probs=RNG.dirichlet([1, 1, 2], 600)).statistics,
}
VECTORS = uq.evaluate(
    uq.Predictions.from_covariance(RNG.normal(size=(300, 2)), np.zeros((300, 2)), np.eye(2))
).statistics
"""What a curve of whole vectors takes."""
SPECS = [spec for task in STATISTICS for spec in plugins.curves(task).values()]
NAMES = [f"{spec.task}/{spec.name}" for spec in SPECS]
OTHER = {"n_bins": 7, "family": "laplace", "alpha": 0.8}


def built(spec, **settings) -> Curve:
    statistics = VECTORS if spec.name == "joint_coverage" else STATISTICS[spec.task]
    return spec.build(statistics, Settings(**settings))


@pytest.mark.parametrize("spec", SPECS, ids=NAMES)
class TestEveryCurve:
    def test_has_the_columns_of_its_axes_and_increasing_steps(self, spec):
        curve = built(spec)
        assert {spec.x, spec.y} <= curve.columns.keys()
        assert len({len(column) for column in curve.columns.values()}) == 1
        if spec.steps is not None:
            assert np.all(np.diff(curve.steps) > 0)
            assert len(curve.steps) == len(curve.columns[spec.x])

    def test_is_summarized_by_a_metric_of_its_task(self, spec):
        assert spec.score in plugins.metrics(spec.task)

    def test_is_defined_by_the_settings_it_names_and_no_others(self, spec):
        assert set(spec.settings) <= {field.name for field in fields(Settings)}
        usual = built(spec).to_dict()
        for name, value in OTHER.items():
            changed = built(spec, **{name: value}).to_dict() != usual
            assert changed == (name in spec.settings), name

    def test_stays_within_its_ceiling(self, spec):
        if spec.ceiling is not None:
            values = built(spec).columns[spec.y]
            assert np.all((values >= 0) & (values <= spec.ceiling))

    def test_names_a_function_that_draws_it(self, spec):
        assert spec.draw is None or callable(plugins.named(spec.draw))

    def test_has_scores_of_its_task_in_its_header(self, spec):
        assert spec.header.keys() <= plugins.metrics(spec.task).keys()


def everything(task):
    """Reports with every kind of curve: over groups, labels, intervals of the target, members and subsets."""
    label, curves = np.arange(1200) % 30, ["by_members", "stability"]
    labels = {"groups": label, "by": label % 3}
    if task == "classification":
        members = RNG.dirichlet([1, 1, 2], (3, 1200))
        return uq.evaluate(RNG.integers(0, 3, 1200), probs=members, members_axis=0, curves=curves, **labels)
    data = uq.Predictions.from_ensemble(RNG.normal(size=1200), RNG.normal(size=(3, 1200)), **labels)
    return uq.evaluate(data, by_target=1.0, curves=curves)


@pytest.mark.slow
def test_columns_named_as_a_band_hold_the_curve_between_them():
    curves = [curve for task in STATISTICS for curve in everything(task).curves.values()]
    banded = [curve for curve in curves if "low" in curve.columns]
    assert banded
    for curve in banded:
        assert np.all(curve.columns["low"] <= curve.columns[curve.main]), curve.name
        assert np.all(curve.columns[curve.main] <= curve.columns["high"]), curve.name


@pytest.mark.parametrize("task", STATISTICS)
def test_every_figure_and_map_names_a_function(task):
    for spec in (*plugins.figures(task).values(), *plugins.maps(task).values()):
        assert callable(plugins.named(spec.function)), spec.name


def test_the_bins_of_a_classification_are_numbered_with_gaps():
    labels, probs = [0, 0, 1], [[0.55, 0.45, 0.0], [0.95, 0.05, 0.0], [0.0, 1.0, 0.0]]
    curve = uq.evaluate(labels, probs=probs).curves["reliability"]
    assert_array_equal(curve.steps, [5, 9])


def test_limits_leave_out_the_pole_of_n_merci():
    limits = plugins.curves()["n_merci_by_alpha"].limits
    alpha = np.asarray([0.55, 0.6, 0.9, 1.0])
    assert limits(alpha, np.asarray([-80.0, 300.0, 0.5, 0.4])) == (-0.1, 1.6)
    assert limits(alpha, np.asarray([0.0, 0.0, 2.0, 0.4])) == pytest.approx((-0.1, 2.2))
    assert limits(alpha[:2], np.asarray([-1.0, 2.0])) == pytest.approx((-1.1, 2.2))


def test_a_curve_without_a_finite_point_is_undefined():
    spec = replace(SPECS[0], function=lambda *_: {SPECS[0].x: np.asarray([np.nan]), SPECS[0].y: np.ones(1)})
    with pytest.raises(Undefined, match="has no finite point"):
        built(spec)
