import numpy as np
import pytest

from . import made, seen


def cells(**columns):
    return made.draw("error_vs_std", made.report({"error_vs_std": columns}))


def drawn(figure):
    """Corners (cells, 4, 2) and counts of the drawn cells."""
    (cells,) = [found for found in figure.axes[0].collections if found.get_array() is not None]
    return 10 ** np.asarray([path.vertices[:4] for path in cells.get_paths()]), np.asarray(cells.get_array())


def test_cells_stand_where_the_curve_says():
    figure = cells(std_low=[1, 2], std_high=[2, 4], error_low=[0.5, 1], error_high=[1, 8], count=[10, 30])
    corners, count = drawn(figure)
    np.testing.assert_array_equal(count, [10, 30])
    np.testing.assert_allclose(corners.min(axis=1), [[1, 0.5], [2, 1]], rtol=1e-12)
    np.testing.assert_allclose(corners.max(axis=1), [[2, 1], [4, 8]], rtol=1e-12)


def test_lines_are_one_and_two_standard_deviations():
    ax = made.draw("error_vs_std", made.scored("calibrated", n=1000)).axes[0]
    x, y = seen.curve(ax, "|e| = std")
    np.testing.assert_allclose(x, y, rtol=1e-12)
    x, y = seen.curve(ax, "|e| = 2 std")
    np.testing.assert_allclose(2 * x, y, rtol=1e-12)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_zeros_have_a_strip_of_their_own():
    figure = cells(std_low=[0, 1], std_high=[0, 10], error_low=[0, 1], error_high=[1e-3, 10], count=[5, 5])
    corners, count = drawn(figure)
    assert len(count) == 2
    assert 0 < corners[0].max(axis=0)[0] < 1
    assert 0 < corners[0].max(axis=0)[1] < 1
    assert seen.texts(figure).split("\n").count("0") == 2


def test_all_zero_is_drawn():
    figure = cells(std_low=[0], std_high=[0], error_low=[0], error_high=[0], count=[5])
    assert len(drawn(figure)[1]) == 1
    assert seen.thumbnail(figure).std() > 5


def test_cells_without_width_are_drawn_with_one():
    corners, _ = drawn(cells(std_low=[2], std_high=[2], error_low=[3], error_high=[3], count=[1]))
    assert (np.ptp(corners, axis=1) > 0).all()


def test_a_thin_tail_of_tiny_errors_is_stated_instead_of_drawn():
    figure = cells(
        std_low=[1] * 3,
        std_high=[2] * 3,
        error_low=[1e-9, 0.5, 1],
        error_high=[2e-9, 1, 2],
        count=[4, 496, 500],
    )
    assert len(drawn(figure)[1]) == 2
    assert "0.4 % of errors below the axis" in seen.texts(figure)
    assert figure.axes[0].get_ylim()[0] > 0.1


def test_a_thick_tail_is_drawn():
    figure = cells(
        std_low=[1] * 3,
        std_high=[2] * 3,
        error_low=[1e-9, 0.5, 1],
        error_high=[2e-9, 1, 2],
        count=[40, 460, 500],
    )
    assert len(drawn(figure)[1]) == 3
    assert "below the axis" not in seen.texts(figure)


@pytest.mark.parametrize(("error", "corner"), [(0.02, "upper left"), (50.0, "lower right")])
def test_legend_stands_in_the_emptier_corner(error, corner):
    rng = np.random.default_rng(0)
    s = np.exp(rng.normal(0, 1, 4000))
    e = np.where(rng.random(4000) < 0.5, s, error) * np.exp(rng.normal(0, 0.3, 4000))
    figure = made.draw("error_vs_std", made.report(made.all_curves(e, s)))
    seen.texts(figure)
    ax = figure.axes[0]
    box = ax.get_legend().get_window_extent().transformed(ax.transAxes.inverted())
    assert (box.x0 < 0.5) == (corner == "upper left")


def test_color_bar_counts_samples():
    figure = made.draw("error_vs_std", made.scored("calibrated", n=1000))
    assert figure.axes[1].get_ylabel() == "samples per cell"
