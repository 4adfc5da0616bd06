"""Options shared by several commands, and how their text is parsed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from uq_tracking.errors import SettingsError, closest

if TYPE_CHECKING:
    from uq_tracking.tracking.content import Scores as ShownScores

Choice = TypeVar("Choice", bound=str)

RUNS = "Runs: mlflow:EXPERIMENT, wandb:ENTITY/PROJECT, dir:PATH; add an id for one run, mlflow:EXPERIMENT/RUN_ID."

Runs = Annotated[list[str], typer.Argument(help=RUNS)]
OneRun = Annotated[str, typer.Argument(help="A logged run, e.g. mlflow:EXPERIMENT/RUN_ID.")]
Where = Annotated[str | None, typer.Option(help="Filter expression, in the tracker's own syntax.")]
Scores = Annotated[str, typer.Option(help="Scores the tracker shows: headline or all.")]
Split = Annotated[str | None, typer.Option(help="Split or output of the runs, e.g. test.")]
Columns = Annotated[
    str,
    typer.Option(
        help="Column names in the file: target=y,mean=mu,std=sigma; 0.1=q10,0.9=q90; labels=y,probs=p_*."
    ),
]
Method = Annotated[str | None, typer.Option(help="Name of the uncertainty method.")]
Unit = Annotated[str | None, typer.Option(help="Unit of the target, e.g. m.")]
StdFloor = Annotated[float | None, typer.Option(help="Raise smaller stds to this value.")]
ALPHA = "Share of the errors that MeRCI covers."
BINS = "Number of bins for ENCE and reliability."
Alpha = Annotated[float | None, typer.Option(help=ALPHA)]
Bins = Annotated[int | None, typer.Option(help=BINS)]
FamilyName = Annotated[str | None, typer.Option(help="gaussian, laplace, uniform, logistic or student_t.")]
Dof = Annotated[float | None, typer.Option(help="Degrees of freedom of student_t.")]


def parse_columns(text: str) -> dict[str, str] | None:
    """``target=y,mean=mu`` as a dict; None for an empty text."""
    if not text:
        return None
    pairs = [pair.partition("=") for pair in text.split(",")]
    wrong = [name for name, equals, value in pairs if not (name and equals and value)]
    if wrong:
        raise SettingsError(
            f"cannot parse --columns {text!r}; write role=name pairs: target=y,mean=mu,std=sigma"
        )
    return {name.strip(): value.strip() for name, _, value in pairs}


def parse_list(text: str) -> list[str] | None:
    """``a,b`` as a list; None for an empty text."""
    return [item.strip() for item in text.split(",") if item.strip()] or None


def parse_scores(text: str) -> ShownScores:
    """Which scores the tracker shows."""
    from uq_tracking.tracking.content import SCORES

    return _chosen("--scores", text, SCORES)


def parse_policy(text: str) -> Literal["raise", "drop"]:
    """What to do with invalid predictions."""
    return _chosen("--on-invalid", text, ("raise", "drop"))


def _chosen(option: str, text: str, choices: Sequence[Choice]) -> Choice:
    for choice in choices:
        if choice == text:
            return choice
    raise SettingsError(f"{option} is {text!r}; choose {' or '.join(choices)}{closest(text, choices)}")
