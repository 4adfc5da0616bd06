"""Commands that show what is available: the demo, the metrics, the trackers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from uq_tracking.cli.app import command, console, say
from uq_tracking.errors import SettingsError

WIDE = 400
"""Width of a table that goes to a file or a pipe, where nothing should be cut."""


@command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the runs.")] = Path(),
    backend: Annotated[str, typer.Option(help="mlflow, wandb (offline) or dir.")] = "mlflow",
    method: Annotated[list[str] | None, typer.Option(help="Run only this method; repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    fast: Annotated[bool, typer.Option(help="Use a small piece of the terrain, for a quick look.")] = False,
) -> None:
    """Complete real terrain from sparse heights with seven uncertainty methods; log and compare them."""
    from uq_tracking.demo.run import run_demo

    run_demo(output, backend=backend, methods=method, seed=seed, fast=fast)


@command()
def metrics(
    keys: Annotated[
        list[str] | None,
        typer.Argument(help="Metrics to explain in full; if omitted, list all with one line each."),
    ] = None,
) -> None:
    """List all metrics with key, task, unit, direction and meaning; for named ones also formula and source."""
    from uq_tracking.metrics.registry import check_known, every_metric
    from uq_tracking.tables import better_text

    known = every_metric()
    if not keys:
        rows = [(m.key, m.task, m.unit, better_text(m), m.summary) for m in known]
        _show(("key", "task", "unit", "better", "meaning"), rows)
        return
    names = sorted({metric.key for metric in known})
    check_known(keys, names, "no metric is called", "list them all with `uq-tracking metrics`")
    for metric in (metric for key in keys for metric in known if metric.key == key):
        facts = {"task": metric.task, "meaning": metric.summary, "formula": metric.formula}
        facts |= {"source": metric.source, "unit": metric.unit or "none"}
        facts |= {"better": better_text(metric) or "does not judge"}
        console.print(metric.key, style="bold", markup=False, highlight=False)
        for name, text in facts.items():
            say(f"  {name:8}{text}")


@command()
def backends() -> None:
    """List the known trackers, and how to install those that are missing."""
    from uq_tracking import plugins

    rows = []
    for backend in plugins.backends().values():
        status = backend.status()
        schemes = ", ".join(f"{scheme}:" for scheme in (backend.name, *backend.schemes))
        usable = "yes" if status.usable else "no"
        rows.append((status.name, schemes, status.version or "-", usable, status.hint or ""))
    _show(("backend", "addresses", "version", "usable", "hint"), rows)


@command()
def audit(
    function: Annotated[
        str, typer.Argument(help="The function as MODULE:NAME, such as sklearn.metrics:log_loss.")
    ],
    score: Annotated[
        str, typer.Option(help="The score it is meant to compute: ece, brier, crps, ause_rmse ...")
    ],
    kind: Annotated[
        str | None, typer.Option(help="Kind of forecast: event, classes, normal, draws ...")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="Largest relative difference between equal values.")
    ] = 1e-6,
) -> None:
    """Tell which convention a function follows for a score, or where it departs from all known ones."""
    from pkgutil import resolve_name

    from uq_tracking.testing.conformance import audit as audit_function

    sys.path.insert(0, "")  # a module in the working folder
    try:
        resolved = resolve_name(function)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"cannot find {function}: {error}; pass MODULE:NAME") from error
    audits = audit_function(resolved, score, kind=kind, tolerance=tolerance)
    for each in audits:
        say(str(each))
    if not any(each.follows for each in audits):
        raise typer.Exit(1)


def _show(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    table = Table(*header, show_edge=False, pad_edge=False)
    table.columns[0].no_wrap = True  # so that names can be copied
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    (console if console.is_terminal else Console(width=WIDE, emoji=False)).print(table)
