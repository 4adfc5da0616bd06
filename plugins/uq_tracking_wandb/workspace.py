"""A project workspace: the same questions and charts as on every tracker, then W&B's own panels."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from uq_tracking.errors import BackendError
from uq_tracking.formatting import COLORS, looks
from uq_tracking.tracking.names import METHOD_TAG
from uq_tracking.tracking.overview import Card, Overview, overview

TITLE = "Uncertainty at a glance"
_HINT = "a workspace needs wandb-workspaces: pip install 'uq-tracking[wandb-workspace]'"


def save_workspace(entity: str, project: str, names: Iterable[str], methods: Mapping[str, str]) -> str:
    """Create or update the workspace, and return its address.

    Runs have the colors of their methods, by id in ``methods``; they are grouped by method if one has several runs.

    Raises
    ------
    BackendError
        ``wandb-workspaces`` is not installed.
    """
    try:
        with warnings.catch_warnings():  # from its own use of pydantic
            warnings.simplefilter("ignore")
            import wandb_workspaces.workspaces as ws
            from wandb_workspaces.workspaces import internal
    except ImportError as error:
        raise BackendError(f"{_HINT} ({error})") from error

    found = overview(names)
    name, ascending = found.best or ("", False)
    workspace = ws.Workspace(
        entity=entity,
        project=project,
        name=TITLE,
        sections=_sections(found),
        runset_settings=ws.RunsetSettings(
            order=[ws.Ordering(ws.Summary(name), ascending=ascending)] if name else [],
            **_colored(methods),
        ),
        auto_generate_panels=True,
    )
    # One name for every call, so that there is only one workspace of ours.
    digest = hashlib.sha256(f"{entity}/{project}".encode()).hexdigest()
    workspace._internal_name = f"nw-{digest[:11]}-v"
    with suppress(ValueError):  # there is none yet
        workspace._internal_id = internal.View.from_name(entity, project, workspace._internal_name).id
    save: Any = workspace.save
    save()
    return str(workspace.url)


def _colored(methods: Mapping[str, str]) -> dict[str, Any]:
    """Settings of groups, or else of runs, and their colors."""
    import wandb_workspaces.workspaces as ws

    colors = {name: COLORS[look % len(COLORS)] for name, look in looks(methods.values()).items()}
    if len(colors) < len(methods):
        return {"groupby": [ws.Config(METHOD_TAG)], "group_colors": colors}
    return {"run_settings": {run: ws.RunSettings(color=colors[name]) for run, name in methods.items()}}


def _sections(found: Overview) -> list[Any]:
    """Sections with the panels that show runs; curves follow among W&B's own panels, which overlay them."""
    import wandb_workspaces.workspaces as ws

    panels = {
        heading: [p for card in cards for p in _panels(card)] for heading, cards in found.sections.items()
    }
    return [
        ws.Section(name=heading, panels=own, is_open=heading not in found.folded, pinned=True)
        for heading, own in panels.items()
        if own
    ]


def _panels(card: Card) -> Iterable[Any]:
    wr: Any = import_module("wandb_workspaces.reports.v2")
    if card.kind == "bar":
        yield wr.BarPlot(title=card.title, metrics=list(card.names))
    elif card.kind == "scatter":
        x, y = (wr.SummaryMetric(name) for name in card.names)
        yield wr.ScatterPlot(title=card.title, x=x, y=y)
    elif card.kind == "images":
        yield wr.MediaBrowser(title=card.title, media_keys=list(card.names), num_columns=4)
