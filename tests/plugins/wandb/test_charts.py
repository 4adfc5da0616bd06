"""Curves as tables and charts, figures as pixels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import wandb
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from tests.plugins.wandb.helpers import fragment_of
from uq_tracking.curves import Curve
from uq_tracking_wandb.charts import MAX_POINTS, chart, line_columns, rgb, rows
from uq_tracking_wandb.run import WandbRun


def test_one_line_is_a_line_plot_of_a_table_with_every_column(curve: Curve) -> None:
    band = {**curve.columns, "low": curve.columns["observed"] - 0.1, "high": curve.columns["observed"] + 0.1}
    made = chart(replace(curve, columns=band))
    assert made.spec.spec_name == "wandb/line/v0"
    assert (made.spec.fields["x"], made.spec.fields["y"]) == ("expected", "observed")
    assert made.table.columns == ["expected", "observed", "low", "high"]
    np.testing.assert_allclose(
        np.array(made.table.data), np.stack(list(band.values()), axis=1), rtol=0, atol=0
    )


def test_several_lines_are_a_long_table_without_the_counts(sparsification: Curve) -> None:
    made = chart(sparsification)
    assert made.spec.spec_name == "wandb/area-under-curve/v0"
    assert made.spec.fields == {"x": "x", "y": "y", "class": "series"}
    assert made.spec.string_fields["x-axis-title"] == "fraction removed"
    assert made.table.columns == ["x", "y", "series"]
    assert {row[2] for row in made.table.data} == {"model", "oracle", "random"}


def test_a_line_has_at_most_200_points_with_both_ends(sparsification: Curve) -> None:
    model = [row for row in chart(sparsification).table.data if row[2] == "model"]
    assert len(model) == MAX_POINTS == 200
    assert (model[0][:2], model[-1][:2]) == ([0.0, 1.0], [0.99, 1 - 0.99 / 2])


def test_a_curve_without_steps_is_a_table_with_all_its_rows(sparsification: Curve) -> None:
    made = chart(replace(sparsification, steps=None))
    assert isinstance(made, wandb.Table)
    assert made.columns == ["fraction", "model", "oracle", "random", "count"]
    assert len(made.data) == 500


def test_a_hole_in_a_band_leaves_the_line_whole(curve: Curve) -> None:
    low = np.where(curve.columns["expected"] == 0.5, np.nan, 0.0)
    made = chart(replace(curve, columns={**curve.columns, "low": low}))
    assert len(made.table.data) == 11
    assert [row[0] for row in made.table.data if row[2] is None] == [0.5]


def test_points_that_are_not_finite_are_left_out(curve: Curve) -> None:
    observed = np.where(curve.columns["expected"] == 0.5, np.nan, curve.columns["observed"])
    kept = rows(replace(curve, columns={**curve.columns, "observed": observed}), ["expected", "observed"])
    assert [row[0] for row in kept] == [row[0] for row in rows(curve, ["expected"]) if row[0] != 0.5]


def test_the_main_column_is_drawn_whatever_its_name(curve: Curve) -> None:
    counts = replace(
        curve, columns={"expected": curve.columns["expected"], "count": np.ones(11)}, main="count"
    )
    assert line_columns(counts) == ["count"]


@pytest.mark.slow
def test_figures_keep_their_colors(wandb_offline: Path) -> None:
    """``wandb.Image`` makes a black picture of a float array."""
    figure = Figure(figsize=(2, 1), dpi=50, facecolor=(0.2, 0.4, 0.8))
    with wandb.init(project="p") as sdk_run:
        run = WandbRun(sdk_run)
        run.log_figure("uq_calibration", figure)
        run.log_map("uq_map/case 1", figure)
    found = fragment_of(wandb_offline, sdk_run.id)
    for key in ("uq_calibration", "uq_map/case 1"):
        pixels = plt.imread(found.media[found.summary[key]["path"]])
        assert pixels.shape[:2] == (50, 100)
        np.testing.assert_allclose(pixels[..., :3], np.full((50, 100, 3), (0.2, 0.4, 0.8)), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("face", "expected"), [("black", 0), ("none", 255), ((0, 0, 0, 0.5), 128)])
def test_pixels_are_uint8_over_white(face: object, expected: int) -> None:
    pixels = rgb(Figure(figsize=(1, 1), dpi=20, facecolor=face))
    assert (pixels.dtype, pixels.shape) == (np.uint8, (20, 20, 3))
    np.testing.assert_allclose(pixels, expected, rtol=0, atol=1)


def test_a_figure_keeps_its_canvas() -> None:
    figure = Figure()
    canvas = figure.canvas
    rgb(figure)
    assert figure.canvas is canvas


@pytest.mark.slow
def test_a_dot_in_a_key_becomes_a_hyphen(wandb_offline: Path, curve: Curve) -> None:
    with wandb.init(project="p") as sdk_run:
        WandbRun(sdk_run).log_curve("uq_curve/reliability.bins20", curve)
    found = fragment_of(wandb_offline, sdk_run.id)
    assert "uq_curve/reliability-bins20_table" in found.summary
