"""The command `uq-tracking reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    papers: Annotated[
        list[str] | None, typer.Argument(help="merci, n-merci, gustafsson, xiong, levi; default: all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use smaller samples and fewer seeds.")] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the page, the numbers and the runs.")
    ] = Path("uq_reproduction"),
    to: Annotated[str | None, typer.Option(help="Where to log the runs, e.g. mlflow:EXPERIMENT.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
) -> None:
    """Rerun the papers' experiments and show our tables and figures beside theirs."""
    from uq_tracking_papers import run

    found = run.reproduce(papers or "all", quick=quick, output=output, to=to, seed=seed)
    for key, section in found.items():
        typer.echo(key)
        for finding in section.findings:
            typer.echo(f"  {finding.verdict:12}  {finding.claim}")
    typer.echo(f"tables and figures, to open in a browser: {(output / run.PAGE_FILE).resolve().as_uri()}")
