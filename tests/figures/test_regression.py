import dataclasses

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import StepPatch

import uq_tracking as uq
from uq_tracking import figures, plugins
from uq_tracking.figures import style
from uq_tracking.figures.style import readable

from . import made, seen

FIGURES = {
    spec.figure or spec.name: spec.name
    for spec in plugins.curves().values()
    if spec.name in made.scored("calibrated", n=50).curves
}
"""The curve of each figure of a report on numbers; those on vectors are drawn in test_pictures."""
KINDS = ["calibrated", "overconfident", "underconfident", "biased", "heavy", "tied", "constant", "zeros"]


@pytest.fixture(scope="module")
def calibrated():
    return made.scored("calibrated", n=2000, unit="m")


def column(report, curve, name):
    return np.asarray(report.curves[curve].columns[name])


def test_reliability_points_are_the_bins(calibrated):
    (ax,) = made.draw("reliability", calibrated).axes
    rmv, rmse = (column(calibrated, "reliability", key) for key in ("rmv", "rmse"))
    assert seen.holds_line(ax, rmv, rmse)
    assert ax.get_xlim() == ax.get_ylim()
    np.testing.assert_array_equal(*seen.curve(ax, "calibrated"))


def test_reliability_bars_stand_over_the_range_of_each_bin(calibrated):
    counts = np.asarray([100.0, 50.0, 25.0])
    table = {
        "rmv": [1, 2, 3],
        "rmse": [1, 2, 3],
        "count": counts,
        "std_low": [0.5, 1.5, 2.5],
        "std_high": [1.5, 2.5, 3.2],
    }
    (ax,) = made.draw("reliability", made.report({"reliability": table})).axes
    bars = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in ax.patches]
    np.testing.assert_allclose([bar[0] for bar in bars], table["std_low"], rtol=1e-12)
    np.testing.assert_allclose([bar[1] for bar in bars], [1, 1, 0.7], rtol=1e-12)
    areas = np.asarray([bar[1] * bar[2] for bar in bars])
    np.testing.assert_allclose(areas / areas[0], counts / 100, rtol=1e-12)
    assert "3 bins of 25 to 100 samples" in seen.texts(ax.figure)


@pytest.mark.slow
def test_reliability_turns_logarithmic_over_a_wide_range():
    (wide,) = made.draw("reliability", made.scored("heavy", n=2000)).axes
    (narrow,) = made.draw("reliability", made.scored("calibrated", n=2000)).axes
    assert (wide.get_xscale(), narrow.get_xscale()) == ("log", "linear")
    assert narrow.get_xlim()[0] == 0


def test_calibration_draws_curve_band_and_diagonal_in_the_unit_square(calibrated):
    (ax,) = made.draw("calibration", calibrated).axes
    assert seen.holds_line(
        ax, column(calibrated, "calibration", "expected"), column(calibrated, "calibration", "observed")
    )
    np.testing.assert_array_equal(seen.curve(ax, "calibrated"), [[0, 1], [0, 1]])
    assert ax.get_xlim() == ax.get_ylim() == (0, 1)
    band = ax.collections[-1].get_paths()[0].vertices
    for key in ("low", "high"):
        assert set(column(calibrated, "calibration", key)) <= set(band[:, 1])


def colored(ax, color):
    """Vertices of the filled area of one color."""
    fills = [fill for fill in ax.collections if np.allclose(fill.get_facecolor()[0][:3], to_rgba(color)[:3])]
    paths = [path.vertices for fill in fills for path in fill.get_paths()]
    return np.concatenate(paths) if paths else np.empty((0, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "shown", "absent"),
    [
        ("overconfident", style.OVERCONFIDENT, style.UNDERCONFIDENT),
        ("underconfident", style.UNDERCONFIDENT, style.OVERCONFIDENT),
    ],
)
@pytest.mark.parametrize("name", ["calibration", "coverage"])
def test_the_deviation_is_colored_by_its_side(kind, shown, absent, name):
    (ax,) = made.draw(name, made.scored(kind)).axes

    def reach(color):
        area = colored(ax, color)
        return np.abs(area[:, 1] - area[:, 0]).max(initial=0)

    assert reach(shown) > 0.1
    assert reach(absent) < 0.01


def test_sides_are_named_where_they_are():
    (ax,) = made.draw("calibration", made.scored("calibrated", n=500)).axes
    named = {text.get_position(): text.get_text() for text in ax.texts if "confident" in text.get_text()}
    for (x, y), text in named.items():
        tail_too_heavy = (y > x) == (x < 0.5)  # more targets outside than claimed
        assert text == ("overconfident" if tail_too_heavy else "underconfident")
    assert len(named) == 4


def test_coverage_states_both_areas(calibrated):
    text = seen.texts(made.draw("coverage", calibrated))
    assert f"underconfident\narea {readable(calibrated.scores['auce_under'], padded=True)}" in text
    assert f"overconfident\narea {readable(calibrated.scores['auce_over'], padded=True)}" in text


def test_pit_bars_are_the_densities(calibrated):
    (ax,) = made.draw("pit_histogram", calibrated).axes
    bars = ax.containers[0].patches
    np.testing.assert_allclose(
        [bar.get_height() for bar in bars], column(calibrated, "pit_histogram", "density"), rtol=1e-12
    )
    centers = [bar.get_x() + bar.get_width() / 2 for bar in bars]
    np.testing.assert_allclose(centers, column(calibrated, "pit_histogram", "center"), rtol=1e-12)
    np.testing.assert_array_equal(seen.curve(ax, "calibrated"), [[0, 1], [1, 1]])


def test_steps_over_the_pit_histogram_are_its_band():
    e, s = made.samples("calibrated", 500)
    report = uq.evaluate(e, np.zeros(500), s)
    (ax,) = made.draw("pit_histogram", report).axes
    found = [step.get_data().values for step in ax.patches if isinstance(step, StepPatch)]
    expected = [column(report, "pit_histogram", name) for name in ("chance_low", "chance_high")]
    np.testing.assert_array_equal(found, expected)


def test_sparsification_lines_and_area_are_the_curve(calibrated):
    (ax,) = made.draw("sparsification", calibrated).axes
    for label, key in (("by uncertainty", "model"), ("oracle", "oracle"), ("random", "random")):
        expected = [column(calibrated, "sparsification_rmse", name) for name in ("fraction", key)]
        np.testing.assert_array_equal(seen.curve(ax, label), expected)
    assert ax.get_xlim() == (0, 1)
    np.testing.assert_allclose(ax.get_ylim(), (0, 1.1), rtol=1e-12)


def test_sparsification_axis_grows_with_a_misleading_uncertainty():
    table = {"fraction": [0, 0.5], "model": [1, 1.7], "oracle": [1, 0.4], "random": [1, 1]}
    (ax,) = made.draw("sparsification", made.report({"sparsification_rmse": table})).axes
    assert ax.get_ylim()[1] > 1.7


def test_n_merci_is_drawn_between_oracle_and_constant():
    table = {"alpha": [0.7, 0.8, 0.9, 1.0], "n_merci": [0.6, 0.5, 0.4, 0.3]}
    (ax,) = made.draw("n_merci_by_alpha", made.report({"n_merci_by_alpha": table})).axes
    np.testing.assert_array_equal(seen.curve(ax, "model"), [table["alpha"], table["n_merci"]])
    assert set(seen.curve(ax, "oracle")[1]) == {0}
    assert set(seen.curve(ax, "constant std")[1]) == {1}


def test_n_merci_is_faint_left_of_its_pole():
    table = {"alpha": [0.5, 0.6, 0.65, 0.66, 0.8, 0.9, 1.0], "n_merci": [0.5, -0.3, -20, 30, 1.1, 0.8, 0.5]}
    (ax,) = made.draw("n_merci_by_alpha", made.report({"n_merci_by_alpha": table})).axes
    assert seen.curve(ax, "model")[0].min() == 0.66
    assert seen.holds_line(ax, np.asarray([0.5, 0.6, 0.65]), np.asarray([0.5, -0.3, -20]))
    assert ax.get_ylim()[0] > -1
    assert ax.get_ylim()[1] < 3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reliability", ["Reliability", "ENCE"]),
        ("calibration", ["Calibration", "miscalibration area"]),
        ("coverage", ["Coverage", "AUCE"]),
        ("pit_histogram", ["PIT histogram", "KS distance"]),
        ("sparsification", ["Sparsification", "AUSE"]),
        ("n_merci_by_alpha", ["n-MeRCI"]),
        ("error_vs_std", ["Error against uncertainty", "Spearman"]),
    ],
)
def test_title_names_the_figure_and_its_score(calibrated, name, expected):
    text = seen.texts(made.draw(name, calibrated))
    assert all(part in text for part in expected)


@pytest.mark.parametrize("name", ["reliability", "error_vs_std"])
def test_unit_stands_on_both_axes(calibrated, name):
    ax = made.draw(name, calibrated).axes[0]
    assert ax.get_xlabel().endswith("[m]")
    assert ax.get_ylabel().endswith("[m]")


def test_no_brackets_without_a_unit():
    ax = made.draw("reliability", made.scored("calibrated", n=500)).axes[0]
    assert "[" not in ax.get_xlabel()


def test_interval_of_the_score_stands_in_the_title(calibrated):
    report = dataclasses.replace(calibrated, scores={"ence": 0.1234}, intervals={"ence": (0.1, 0.15)})
    assert "ENCE 0.123 (0.100 to 0.150)" in seen.texts(made.draw("reliability", report))


def test_undefined_score_is_said_to_be_undefined(calibrated):
    report = dataclasses.replace(calibrated, scores={}, undefined={"spearman": "constant"})
    assert "Spearman undefined" in seen.texts(made.draw("error_vs_std", report))


@pytest.mark.parametrize("name", FIGURES)
def test_missing_curve_gives_the_reason(name):
    text = seen.texts(made.draw(name, made.report({})))
    assert "undefined:" in text
    assert FIGURES[name] in text.replace("\n", " ")


@pytest.mark.parametrize("name", FIGURES)
def test_empty_curve_gives_the_reason(calibrated, name):
    empty = {key: [] for key in calibrated.curves[FIGURES[name]].columns}
    text = seen.texts(made.draw(name, made.report({FIGURES[name]: empty})))
    assert "no finite point" in text.replace("\n", " ")


def test_reason_of_the_undefined_score_is_shown():
    report = made.report({}, undefined={"ence": "3 samples are too few for 10 bins"})
    assert "3 samples are too few for 10 bins" in seen.texts(made.draw("reliability", report)).replace(
        "\n", " "
    )


def test_missing_column_is_named():
    text = seen.texts(made.draw("calibration", made.report({"calibration": {"expected": [0.5]}})))
    assert "no column 'observed'" in text.replace("\n", " ")


def test_rows_that_are_not_finite_are_left_out():
    table = {"expected": [0.1, 0.5, 0.9], "observed": [0.2, np.nan, 0.8]}
    (ax,) = made.draw("calibration", made.report({"calibration": table})).axes
    assert seen.holds_line(ax, np.asarray([0.1, 0.9]), np.asarray([0.2, 0.8]))


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_one_point_is_visible(name):
    full = made.scored("calibrated", n=500)
    one = {
        key: values[50:51] if len(values) > 50 else values[:1]
        for key, values in full.curves[FIGURES[name]].columns.items()
    }
    blank = {key: values + 1e-300 for key, values in one.items()}
    figure = made.draw(name, made.report({FIGURES[name]: blank}))
    artists = [*figure.axes[0].lines, *figure.axes[0].patches, *figure.axes[0].collections]
    assert any(getattr(artist, "get_marker", lambda: "")() == "o" for artist in artists) or FIGURES[name] in (
        "pit_histogram",
        "error_vs_std",
    )
    assert seen.thumbnail(figure).std() > 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_every_kind_of_model_is_drawn_without_a_warning_and_legibly(kind):
    report = made.scored(kind, n=1000, unit="m", method="mc-dropout")
    for name in FIGURES:
        figure = made.draw(name, report)
        assert seen.thumbnail(figure).std() > 5, name
        assert min(seen.text_heights(figure)) > 8, name
        assert any("mc-dropout" in text.get_text() for text in figure.texts)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-12, 1e-5, 1e5, 1e12])
def test_any_unit_of_the_target_is_drawn(factor):
    e, s = made.samples("calibrated", 500)
    report = made.report(made.all_curves(e * factor, s * factor))
    for name in FIGURES:
        assert seen.thumbnail(made.draw(name, report)).std() > 5, name


@pytest.mark.slow
def test_all_figures_of_a_run_have_one_size(calibrated):
    assert {figures.to_rgb(made.draw(name, calibrated)).shape for name in FIGURES} == {(800, 800, 3)}
