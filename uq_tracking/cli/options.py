"""Options of the commands, each declared once: its name, help, and how its text is parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from uq_tracking.errors import SettingsError

RUNS = "Runs: mlflow:EXPERIMENT, wandb:ENTITY/PROJECT, dir:PATH; add an id for one run, mlflow:EXPERIMENT/RUN_ID."

Runs = Annotated[list[str], typer.Argument(help=RUNS)]
OneRun = Annotated[str, typer.Argument(help="A logged run, e.g. mlflow:EXPERIMENT/RUN_ID.")]

_HELP: Mapping[type[Any], Mapping[str, str]] = {
    str: {
        "where": "Filter expression, in the tracker's own syntax.",
        "split": "Split or output of the runs, e.g. test.",
        "method": "Name of the uncertainty method.",
        "metrics": "Metrics: comma-separated keys.",
        "baseline": "Method to compare the others with.",
        "calibration": "JSON file of a fitted recalibration, or 'halves' to cross-fit.",
        "calibration_split": "Split of each run on which to fit recalibrations, e.g. val.",
        "recalibration": "Recalibrations to fit: comma-separated methods.",
        "scores": "Scores the tracker shows: headline (the default) or all.",
        "columns": "Column names in the file: target=y,mean=mu,std=sigma; 0.1=q10,0.9=q90; labels=y,probs=p_*.",
        "on_invalid": "Invalid predictions: raise an error (the default), or drop and count them.",
        "family": "gaussian (the default), laplace, uniform, logistic or student_t.",
        "unit": "Unit of the target, e.g. m.",
    },
    float: {
        "alpha": "Share of the errors that MeRCI covers; by default 0.95.",
        "dof": "Degrees of freedom of student_t; by default 5.",
        "std_floor": "Raise smaller stds to this value.",
        "level": "Confidence level of intervals; by default 0.95.",
    },
    int: {
        "n_bins": "Number of bins for ENCE and reliability; by default 10.",
        "workers": "Number of runs to process in parallel; by default 1.",
    },
}
_FLAGS: Mapping[str, str] = {
    "dry_run": "Only say what would be done; write nothing.",
    "keep": "Keep files after they are sent.",
    "force": "Include runs that already have these scores.",
}
SHARED: Mapping[str, Any] = {
    **{
        name: Annotated[kind | None, typer.Option(help=text)]
        for kind, texts in _HELP.items()
        for name, text in texts.items()
    },
    **{
        name: Annotated[bool | None, typer.Option(f"--{name.replace('_', '-')}", help=text)]
        for name, text in _FLAGS.items()
    },
    "figures": Annotated[
        bool | None, typer.Option(help="Draw all figures, or none; by default those whose numbers changed.")
    ],
}
"""Options by the names that the package's functions give them; None where they are not given."""
SETTINGS = ("alpha", "n_bins", "family", "dof", "unit")
"""Options that affect the numbers; those of logged runs are kept where none are given."""


def parse_columns(text: str) -> dict[str, str]:
    """``target=y,mean=mu`` as a dict."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    if any(not (name and equals and value) for name, equals, value in pairs):
        raise SettingsError(
            f"cannot parse --columns {text!r}; write role=name pairs: target=y,mean=mu,std=sigma"
        )
    return {name.strip(): value.strip() for name, _, value in pairs}


def parse_list(text: str) -> list[str] | None:
    """``a,b`` as a list; None for an empty text."""
    return [item.strip() for item in text.split(",") if item.strip()] or None


PARSERS: Mapping[str, Callable[[str], Any]] = {
    "calibration": lambda text: True if text == "halves" else text,  # a cross-fit
    "columns": parse_columns,
    "metrics": parse_list,
    "recalibration": parse_list,
}
