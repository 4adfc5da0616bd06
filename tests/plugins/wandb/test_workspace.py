"""What W&B shows at a glance: notes of a run, and a workspace of the project."""

from __future__ import annotations

import json

import wandb

import uq_tracking as uq
from tests.wandb_server import WandbServer
from uq_tracking.testing import sample_predictions
from uq_tracking.tracking.overview import overview
from uq_tracking.tracking.resolve import open_store

QUICK = {"figures": False, "strict": True, "deadline": 120}


def spec_of(server: WandbServer) -> str:
    (view,) = server.state.views.values()
    assert view["displayName"] == "Uncertainty at a glance"
    return str(view["spec"])


def test_a_project_has_one_workspace_that_shows_the_headline(wandb_online: WandbServer) -> None:
    for split in (None, "val"):
        with wandb.init(project="p", notes="Mine.") as run:
            report = uq.log(sample_predictions(), split=split, maps=[1], **QUICK)
            uq.log(sample_predictions(), split=split, maps=False, **QUICK)
        start = "uq_tracking: " if split is None else "uq_tracking val: "
        assert wandb_online.run("p", run.id).details["notes"] == f"Mine.\n\n{start}{report.verdict.text}"
        store, _ = open_store("wandb:tester/p")
        address = store.show()
        assert address is not None
        assert address.startswith(f"{wandb_online.url}/tester/p?nw=")
        shown = spec_of(wandb_online)
        assert ("uq/val/coverage_95" in shown) is (split == "val")
    sections = json.loads(shown)["section"]["panelBankConfig"]["sections"]
    named = {section["name"] for section in sections}
    scalars = {name for found in store.runs() for name in found.scalars}
    assert set(overview(scalars).sections) | {"Maps"} <= named
    assert "uq_map/val/1" in shown
