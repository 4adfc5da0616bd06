import matplotlib.cbook as cbook
import numpy as np
import pytest
from matplotlib.text import Text

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.figures import panels, to_png
from uq_tracking.figures.maps import uncertainty_map

from . import seen


@pytest.fixture(scope="module")
def terrain():
    with cbook.get_sample_data("jacksboro_fault_dem.npz") as dem:
        target = dem["elevation"].astype(np.float64)
    rng = np.random.default_rng(0)
    std = 5 + 10 * rng.random(target.shape)
    return target, target + std * rng.normal(size=target.shape), std


def images(figure):
    """The drawn arrays by the first word of their title."""
    panels = {
        ax.get_title().split(",")[0]: ax.images[0] for ax in figure.axes if ax.images and ax.get_title()
    }
    return {title: (np.ma.asarray(image.get_array()), image.get_clim()) for title, image in panels.items()}


def test_panels_hold_the_numbers(terrain):
    target, mean, std = terrain
    shown = images(uncertainty_map(*terrain, scale=2.0))
    np.testing.assert_array_equal(shown["target"][0], target)
    np.testing.assert_array_equal(shown["prediction"][0], mean)
    np.testing.assert_array_equal(shown["error"][0], np.abs(mean - target))
    np.testing.assert_array_equal(shown["2 \N{MULTIPLICATION SIGN} std"][0], 2 * std)


@pytest.mark.slow
def test_pairs_share_their_color_scale(terrain):
    shown = images(uncertainty_map(*terrain, scale=2.0))
    assert shown["target"][1] == shown["prediction"][1]
    assert shown["error"][1] == shown["2 \N{MULTIPLICATION SIGN} std"][1]
    error = np.abs(terrain[1] - terrain[0])
    np.testing.assert_allclose(shown["error"][1], (0, np.percentile(error, 99)), rtol=1e-12)


def test_titles_state_mean_error_and_mean_rescaled_std(terrain):
    target, mean, std = terrain
    text = seen.texts(uncertainty_map(*terrain, scale=2.0, unit="m", title="case 7"))
    assert f"error, mean {np.abs(mean - target).mean():.3g}" in text
    assert f"2 \N{MULTIPLICATION SIGN} std, mean {2 * std.mean():.3g}" in text
    assert "case 7" in text
    assert "value [m]" in text
    assert "error [m]" in text


def test_no_ground_truth_is_masked_in_target_and_error(terrain):
    target = terrain[0].copy()
    target[10:20, 30:50] = np.nan
    target[0, 0] = np.inf
    shown = images(uncertainty_map(target, *terrain[1:], scale=1.0))
    for panel in ("target", "error"):
        np.testing.assert_array_equal(np.ma.getmaskarray(shown[panel][0]), ~np.isfinite(target))
    assert not np.ma.getmaskarray(shown["prediction"][0]).any()


def test_masked_arrays_are_missing_truth(terrain):
    hole = np.zeros(terrain[0].shape, dtype=bool)
    hole[:5] = True
    shown = images(uncertainty_map(np.ma.masked_array(terrain[0], hole), *terrain[1:], scale=1.0))
    np.testing.assert_array_equal(np.ma.getmaskarray(shown["target"][0]), hole)


def test_all_nan_target_says_so_and_keeps_the_prediction(terrain):
    figure = uncertainty_map(np.full(terrain[0].shape, np.nan), *terrain[1:], scale=1.0)
    assert seen.texts(figure).count("no ground truth") == 2  # target and error
    np.testing.assert_array_equal(images(figure)["prediction"][0], terrain[1])


def test_nothing_finite_at_all_is_drawn():
    nothing = np.full((5, 7), np.nan)
    assert seen.thumbnail(uncertainty_map(nothing, nothing, nothing, scale=1.0)).std() > 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 4), (1, 400), (400, 1), (60, 400), (400, 60), (2, 3000), (40, 40), (30, 40)]
)
@pytest.mark.parametrize("with_image", [False, True])
def test_any_shape_is_drawn(shape, with_image):
    rng = np.random.default_rng(0)
    target = rng.normal(size=shape)
    picture = rng.random((*shape, 3)) if with_image else None
    figure = uncertainty_map(target, target + 0.1, np.ones(shape), scale=0.2, image=picture, title="a case")
    assert len(images(figure)) == 4 + with_image
    assert seen.thumbnail(figure).std() > 5
    assert max(figure.get_size_inches()) < 17


@pytest.mark.slow
def test_constant_maps_are_drawn():
    flat = np.full((20, 30), 5.0)
    shown = images(uncertainty_map(flat, flat, 0 * flat, scale=0.0))
    low, high = shown["target"][1]
    assert low < 5 < high
    assert shown["error"][1] == (0, 1)


def bar_ticks(figure):
    """Labels of the ticks of each color bar, by the panel at whose edge it is drawn."""
    figure.draw_without_rendering()
    panels = [ax for ax in figure.axes if ax.images]
    return {
        ax.get_title(): [label.get_text() for label in bar.yaxis.get_ticklabels() if label.get_text()]
        for ax in panels
        for bar in ax.child_axes
    }


@pytest.mark.slow
def test_a_constant_map_has_one_tick_at_its_value(terrain):
    flat = np.full_like(terrain[0], 0.566)
    assert bar_ticks(uncertainty_map(flat, flat, flat, scale=1.0))["prediction"] == ["0.566"]
    assert len(bar_ticks(uncertainty_map(*terrain, scale=1.0))["prediction"]) > 1


@pytest.mark.slow
def test_each_part_of_the_std_has_a_color_bar(terrain):
    target, mean, std = terrain
    found = bar_ticks(uncertainty_map(target, mean, std, scale=1.0, epistemic=std / 2, aleatoric=std / 3))
    assert found["epistemic std"] == found["aleatoric std"] != []


def test_the_error_comes_first_and_the_std_beside_it(terrain):
    figure = uncertainty_map(*terrain, scale=2.0, title="deep ensemble, case 7")
    titles = [ax.get_title().split(",")[0] for ax in figure.axes]
    assert titles == ["error", "2 \N{MULTIPLICATION SIGN} std", "target", "prediction"]
    (left, low), (beside, same) = (ax.get_position().p0 for ax in figure.axes[:2])
    assert low == same
    assert left < beside


def test_the_title_is_legible_at_256_pixels(terrain):
    for image in (None, terrain[0]):
        figure = uncertainty_map(*terrain, scale=2.0, title="ensemble, case 7", image=image)
        (title,) = figure.texts
        assert title.get_fontsize() / 72 * 256 / figure.get_figwidth() > 10


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 40), (60, 400), (400, 60)])
def test_no_text_is_cut_or_covered(shape):
    rng = np.random.default_rng(0)
    target = 1e6 * rng.normal(size=shape)
    std = 1e6 * rng.gamma(4, 0.25, shape)
    figure = uncertainty_map(target, target + std, std, scale=2.0, unit="m", epistemic=std, title="a case")
    figure.draw_without_rendering()
    width, height = figure.bbox.max
    boxes = []
    for ax in figure.axes:
        bars = [text for bar in ax.child_axes for text in bar.findobj(Text)]
        boxes += [
            text.get_window_extent() for text in (ax.title, *bars) if text.get_visible() and text.get_text()
        ]
    for box in boxes:
        assert -1 <= box.x0 <= box.x1 <= width + 1
        assert -1 <= box.y0 <= box.y1 <= height + 1
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:number])


def test_color_bars_are_pointed_where_values_lie_beyond():
    target = np.linspace(0, 1, 10_000).reshape(100, 100)
    inside = uncertainty_map(
        np.repeat([[0.0, 1.0]], 50, 0), np.repeat([[0.0, 1.0]], 50, 0), np.zeros((50, 2)), scale=1
    )
    beyond = uncertainty_map(target, 3 * target, target, scale=100.0)

    def extends(figure):
        return [image.colorbar.extend for ax in figure.axes for image in ax.images if image.colorbar]

    assert extends(inside) == ["neither"] * 2
    assert extends(beyond) == ["max", "both"]


@pytest.mark.slow
def test_huge_maps_are_reduced_by_block_means():
    rng = np.random.default_rng(0)
    target = rng.normal(size=(2050, 3001)).astype(np.float32)
    mean = target + rng.normal(size=target.shape).astype(np.float32)
    target[104:112, 208:216] = np.nan
    shown = images(uncertainty_map(target, mean, np.ones_like(target), scale=1.0))
    error = shown["error"][0]
    assert panels.shown_pixels(2050 / 3001) == 336
    assert error.shape == (
        257,
        376,
    )  # blocks of 8: with those of 9 there would be fewer pixels than are shown
    exact = np.abs(mean.astype(np.float64) - target)[:8, :8].mean()
    np.testing.assert_allclose(error[0, 0], exact, rtol=1e-12)
    assert error.mask[13, 26]
    ragged = np.abs(mean.astype(np.float64) - target)[2048:, 3000:].mean()
    np.testing.assert_allclose(error[-1, -1], ragged, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int16, np.uint8, bool])
def test_any_real_dtype_is_drawn(dtype):
    target = (np.arange(600).reshape(20, 30) % 2).astype(dtype)
    shown = images(uncertainty_map(target, np.zeros((20, 30)), np.ones((20, 30)), scale=1.0))
    np.testing.assert_array_equal(shown["error"][0], target.astype(float))


@pytest.mark.slow
def test_image_comes_first_and_keeps_its_colors():
    flat, picture = np.ones((20, 30)), np.zeros((40, 60, 3), dtype=np.uint8)
    picture[..., 0] = 255
    figure = uncertainty_map(flat, flat, flat, scale=1.0, image=picture)
    assert figure.axes[0].get_title() == "input"
    np.testing.assert_array_equal(images(figure)["input"][0], np.broadcast_to([1.0, 0.0, 0.0], (40, 60, 3)))


@pytest.mark.parametrize("picture", [np.zeros((20, 30)), np.zeros((20, 30, 1)), np.zeros((20, 30, 4))])
def test_kinds_of_images(picture):
    flat = np.ones((20, 30))
    assert "input" in images(uncertainty_map(flat, flat, flat, scale=1.0, image=picture))


@pytest.mark.slow
def test_scattered_measurements_are_gathered_until_they_can_be_seen(terrain):
    known = np.random.default_rng(0).random(terrain[0].shape) < 0.05
    figure = uncertainty_map(*terrain, scale=1.0, image=np.where(known, terrain[0], np.nan))
    picture = images(figure)["input"][0]
    assert np.ma.getmaskarray(picture).mean() < 0.5
    assert "input, 5 % known" in seen.texts(figure)


def test_user_text_is_no_mathtext(terrain):
    small = [array[:20, :30] for array in terrain]
    figure = uncertainty_map(*small, scale=1.0, unit="$_m^2", title="$broken_ {case")
    assert "$broken_ {case" in seen.texts(figure)


def test_shapes_must_agree():
    with pytest.raises(ShapeError, match=r"equal 2-D shape, got \(3, 4\), \(3, 4\) and \(4, 3\)"):
        uncertainty_map(np.ones((3, 4)), np.ones((3, 4)), np.ones((4, 3)), scale=1.0)
    with pytest.raises(ShapeError, match="pass one case at a time"):
        uncertainty_map(*[np.ones((2, 3, 4))] * 3, scale=1.0)
    with pytest.raises(ShapeError, match=r"image has shape \(3, 20, 30\)"):
        uncertainty_map(*[np.ones((20, 30))] * 3, scale=1.0, image=np.ones((3, 20, 30)))


@pytest.mark.parametrize("scale", [np.nan, np.inf, -1.0])
def test_scale_must_be_a_finite_factor(scale):
    with pytest.raises(SettingsError, match="pass a finite factor >= 0"):
        uncertainty_map(*[np.ones((3, 4))] * 3, scale=scale)


@pytest.mark.slow
def test_same_map_gives_the_same_bytes(terrain):
    small = [array[:50, :60] for array in terrain]
    assert to_png(uncertainty_map(*small, scale=1.0)) == to_png(uncertainty_map(*small, scale=1.0))
