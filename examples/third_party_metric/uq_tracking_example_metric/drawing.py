"""The figure of the curve; imported when drawn, so that finding the plugin does not load matplotlib."""

from __future__ import annotations

from matplotlib.figure import Figure

from uq_tracking import Report


def tails(report: Report) -> Figure:
    """Draw the observed against the claimed quantiles of |z|, with a band if there are groups."""
    columns = report.curves["tails"].columns
    figure = Figure(figsize=(5, 4.5), layout="constrained")
    ax = figure.add_subplot(xlabel="claimed quantile of |z|", ylabel="observed quantile of |z|")
    if "low" in columns:
        ax.fill_between(columns["claimed"], columns["low"], columns["high"], alpha=0.3, label="interval")
    ax.plot(columns["claimed"], columns["observed"], label="model")
    ax.plot(columns["claimed"], columns["claimed"], "k--", label="calibrated")
    ratio = report.scores.get("tail_ratio")  # missing if the report was limited to other scores
    ax.set_title("Tails" if ratio is None else f"Tails: ratio {ratio:.2f}")
    ax.legend()
    return figure
