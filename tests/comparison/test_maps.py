"""Maps of the same cases on one color scale."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.comparison import Comparison
from uq_tracking.errors import SettingsError
from uq_tracking.figures import compared
from uq_tracking.figures.maps import limits_of

QUICK = {"figures": False, "maps": False}


def pixels(png):
    return imread(io.BytesIO(png))


def spatial(rng, scale=1.0, shape=(20, 24)):
    truth = np.linspace(0, 10, np.prod(shape)).reshape(shape)
    return truth, truth + scale * rng.normal(size=shape), np.full(shape, scale)


def test_cases_hold_one_panel_per_method(folder):
    found = uq.compare(f"dir:{folder}", maps=3)
    assert [case.name for case in found.maps] == ["0", "1", "2"]
    assert [[panel.method for panel in case.panels] for case in found.maps] == [["small", "large"]] * 3
    assert all(pixels(panel.error).shape[:2] == (20, 24) for case in found.maps for panel in case.panels)


def test_auto_draws_two_and_false_none(folder):
    assert len(uq.compare(f"dir:{folder}").maps) == 2
    assert uq.compare(f"dir:{folder}", maps=False).maps == ()


def test_no_ground_truth_is_grey(folder):
    (case,) = uq.compare(f"dir:{folder}", maps=[0]).maps
    for picture in (case.target, case.panels[0].error):
        assert_allclose(pixels(picture)[0, 0, :3], 0xD9 / 255, atol=1e-6)


def test_errors_of_all_methods_share_one_scale(store):
    rng = np.random.default_rng(0)
    for method, scale in (("near", 1.0), ("far", 4.0)):
        uq.log(*spatial(rng, scale), run=f"dir:{store.path}", method=method, **QUICK)
    (case,) = uq.compare(f"dir:{store.path}").maps
    runs = {run.name: run for run in store.runs()}
    errors = []
    for panel in case.panels:
        data = uq.Predictions.load(
            store.fetch(runs[panel.method].run_id, "uq/predictions.npz", store.path / "x")
        )
        errors.append(np.abs(data.mean - data.truth))
        assert_allclose(panel.mean_error, errors[-1].mean(), rtol=1e-12)
    limits = case.scales["error"].low, case.scales["error"].high
    assert_allclose(limits, (0, np.percentile(errors, 99)), rtol=1e-12)
    for panel, error in zip(case.panels, errors, strict=True):
        assert panel.error == compared.map_png(error, limits, "error")


def test_segmentations_show_classes_errors_and_entropies(store):
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((400, 24)) < 0.1, 255, rng.integers(0, 3, (400, 24)))
    names = ["road", "sky", "tree"]
    given = {}
    for method, sharpness in (("sharp", 20.0), ("vague", 1.0)):
        given[method] = rng.dirichlet(np.full(3, 1 / sharpness), labels.shape)
        options = {"ignore_label": 255, "classes": names, "method": method, **QUICK}
        uq.log(labels, probs=given[method], run=f"dir:{store.path}", **options)
    found = uq.compare(f"dir:{store.path}", maps=[0])
    (case,) = found.maps
    middle = np.s_[1::2]  # of blocks of two rows and two columns
    assert case.shape == (200, 12)
    colors = {name: to_rgb(color) for name, color in case.classes}
    assert list(colors) == [*names, "no label"]
    wanted = [colors[names[k]] if k < 3 else colors["no label"] for k in labels[middle, middle].ravel()]
    assert_allclose(pixels(case.target)[..., :3].reshape(-1, 3), wanted, atol=1e-6)
    known = labels != 255
    for panel in case.panels:
        p = given[panel.method]
        chosen = p.argmax(axis=-1)
        shown = [colors[names[k]] for k in chosen[middle, middle].ravel()]
        assert_allclose(pixels(panel.prediction)[..., :3].reshape(-1, 3), shown, atol=1e-6)
        assert_allclose(panel.mean_error, np.mean((chosen != labels)[known]), rtol=1e-12)
        entropy = -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=-1)[known]
        assert_allclose(panel.mean_uncertainty, entropy.mean(), rtol=1e-6)
    assert Comparison.from_json(found.to_json()).maps == found.maps
    page = found.to_html()
    assert all(f"<span>{name}</span>" in page for name in colors)
    assert f".x{case.classes[0][1][1:]} {{ background: {case.classes[0][1]}; }}" in page


@pytest.mark.slow
def test_drawn_cases_are_shown_without_stored_predictions(store):
    rng = np.random.default_rng(0)
    truth, mean, std = spatial(rng, shape=(5, 20, 24))
    images = rng.random((5, 20, 24, 3))
    names = {"first": "auto", "second": [0, 1, 3, 4]}
    for method, maps in names.items():
        options = {"maps": maps, "predictions": False, "figures": False, "method": method, "images": images}
        uq.log(truth, mean, std, run=f"dir:{store.path}", **options)
    found = uq.compare(f"dir:{store.path}")
    assert [case.name for case in found.maps] == ["0", "1"]  # auto drew 0, 1, 3, 4
    assert [[panel.method for panel in case.panels] for case in found.maps] == [list(names)] * 2
    assert_allclose(pixels(found.maps[1].image)[..., :3], images[1], atol=0.5 / 255 + 1e-6)
    assert Comparison.from_json(found.to_json()).maps == found.maps
    assert 'alt="input of case 1"' in found.to_html()
    uq.log(truth, mean, std, run=f"dir:{store.path}", method="third", **QUICK)
    found = uq.compare(f"dir:{store.path}")
    assert [(case.name, len(case.panels)) for case in found.maps] == [("0", 3), ("1", 3)]
    found = uq.compare(f"dir:{store.path}", maps=[1, 2])
    assert [[panel.method for panel in case.panels] for case in found.maps] == [[*names, "third"], ["third"]]
    assert found.warnings == tuple(f"No maps of {name} for 2: it stored only other cases." for name in names)
    assert_allclose(found.maps[0].panels[2].mean_error, np.abs(truth - mean)[1].mean(), rtol=1e-12)


def test_the_scale_makes_the_std_cover_the_errors(store):
    rng = np.random.default_rng(0)
    report = uq.log(*spatial(rng), run=f"dir:{store.path}", method="m", **QUICK)
    (case,) = uq.compare(f"dir:{store.path}").maps
    assert_allclose(case.panels[0].mean_uncertainty, report.scores["merci"], rtol=1e-12)


def test_a_method_without_predictions_is_named(store):
    rng = np.random.default_rng(0)
    uq.log(*spatial(rng), run=f"dir:{store.path}", method="kept", **QUICK)
    uq.log(*spatial(rng), run=f"dir:{store.path}", method="bare", predictions=False, **QUICK)
    found = uq.compare(f"dir:{store.path}")
    assert [panel.method for panel in found.maps[0].panels] == ["kept"]
    assert found.warnings == ("No maps of bare: it stored no predictions.",)


@pytest.mark.slow
def test_predictions_that_were_too_large_are_compared_by_the_cases_that_were_drawn(store, caplog):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(3, 800, 700))
    options = {"run": f"dir:{store.path}", "figures": False, "maps": [2]}
    for method, dtype in (("large", "f8"), ("kept", "f4")):
        target = truth.astype(dtype)
        uq.log(
            target, target + 1, np.ones_like(target), method=method, predictions=method == "kept", **options
        )
    found = uq.compare(f"dir:{store.path}")
    assert [(case.name, len(case.panels)) for case in found.maps] == [("2", 2)]
    other = uq.compare(f"dir:{store.path}", maps=[0])
    assert [panel.method for panel in other.maps[0].panels] == ["kept"]
    assert "No maps of large for 0: it stored only other cases." in other.warnings


def test_damaged_predictions_cost_the_maps_only(store):
    rng = np.random.default_rng(0)
    for method in ("fine", "broken"):
        uq.log(*spatial(rng), run=f"dir:{store.path}", method=method, **QUICK)
    broken = next(run for run in store.runs() if run.name == "broken")
    (store.path / broken.run_id / "uq" / "predictions.npz").write_bytes(b"PK nothing")
    found = uq.compare(f"dir:{store.path}")
    assert set(found.methods) == {"fine", "broken"}
    assert [panel.method for panel in found.maps[0].panels] == ["fine"]
    assert "Maps of broken: FileFormatError" in found.warnings[0]


def test_another_target_or_shape_is_left_out(store):
    rng = np.random.default_rng(0)
    truth, mean, std = spatial(rng)
    uq.log(truth, mean, std, run=f"dir:{store.path}", method="a", **QUICK)
    uq.log(truth + 1, mean, std, run=f"dir:{store.path}", method="b", **QUICK)
    uq.log(truth.T, mean.T, std.T, run=f"dir:{store.path}", method="c", **QUICK)
    found = uq.compare(f"dir:{store.path}")
    assert [panel.method for panel in found.maps[0].panels] == ["a"]
    assert any(text == "No map of b, case 0: its target differs from that of a." for text in found.warnings)
    assert any(text.startswith("No maps of c: its predictions have shape") for text in found.warnings)


@pytest.mark.parametrize("shape", [(20, 24), (900, 1100)])
@pytest.mark.slow
def test_a_target_in_float32_is_that_in_float64(store, shape):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=shape)
    for method, target in (("full", truth), ("narrow", truth.astype("f4")), ("other", truth * (1 + 1e-5))):
        arrays = (target, target + 1, np.ones_like(target))
        uq.log(*arrays, run=f"dir:{store.path}", method=method, predictions=True, **QUICK)
    found = uq.compare(f"dir:{store.path}", maps=[0])
    assert [panel.method for panel in found.maps[0].panels] == ["full", "narrow"]
    assert any("No map of other, case 0: its target differs" in warning for warning in found.warnings)


def test_predictions_that_are_no_maps_are_not_drawn(store):
    uq.log(np.arange(50.0), np.arange(50.0) + 1, np.ones(50), run=f"dir:{store.path}", **QUICK)
    assert uq.compare(f"dir:{store.path}").maps == ()
    with pytest.raises(SettingsError, match=r"maps=True needs predictions of shape"):
        uq.compare(f"dir:{store.path}", maps=True)


def test_asked_for_maps_that_nobody_stored(reports):
    with pytest.raises(SettingsError, match="no run stored drawable predictions"):
        uq.compare(reports, maps=2)


class TestPictures:
    def test_large_maps_are_reduced_by_block_means(self):
        values = np.arange(700 * 650, dtype=float).reshape(700, 650)
        values[0, 0] = np.nan
        found = compared.reduced(values)
        assert found.shape == (234, 217)
        assert_allclose(found[1, 1], values[3:6, 3:6].mean(), rtol=1e-12)
        assert_allclose(found[0, 0], np.nanmean(values[:3, :3]), rtol=1e-12)

    def test_a_block_without_values_has_none(self):
        values = np.ones((640, 640))
        values[:2, :2] = np.nan
        assert np.isnan(compared.reduced(values)[0, 0])
        assert compared.reduced(values)[0, 1] == 1

    def test_the_same_values_give_the_same_bytes(self):
        values = np.random.default_rng(0).random((10, 10))
        assert compared.map_png(values, (0, 1), "error") == compared.map_png(values.copy(), (0, 1), "error")

    @pytest.mark.parametrize("errors", [[np.zeros((2, 2))], [np.full((2, 2), np.nan)], [np.eye(40)[:1] * 0]])
    def test_maps_without_errors_have_limits(self, errors):
        low, high = limits_of(errors, "error")
        assert low == 0 < high

    def test_a_constant_target_has_limits(self):
        assert limits_of([np.full((3, 3), 5.0)], "value") == (4.95, 5.05)

    def test_colors_end_at_those_of_the_map(self):
        assert compared.color_stops("error")[0] == "#000004"
        assert len(compared.color_stops("value")) == 9
