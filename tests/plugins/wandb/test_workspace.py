"""What W&B shows at a glance: notes of a run, and a workspace of the project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import wandb

import uq_tracking as uq
from tests.plugins.wandb.helpers import fragment_of
from tests.wandb_server import WandbServer
from uq_tracking.formatting import COLORS, looks
from uq_tracking.testing import sample_predictions
from uq_tracking.tracking.overview import overview
from uq_tracking.tracking.resolve import open_store

QUICK = {"figures": False, "strict": True, "deadline": 120}


def spec_of(server: WandbServer) -> str:
    (view,) = server.state.views.values()
    assert view["displayName"] == "Uncertainty at a glance"
    return str(view["spec"])


@pytest.mark.slow
def test_the_verdict_is_a_column_of_the_table_of_runs(wandb_online: WandbServer) -> None:
    with wandb.init(project="p") as run:
        report = uq.log(sample_predictions(), maps=False, **QUICK)
        uq.log(sample_predictions(), maps=False, split="val", step=1, **QUICK)
        other = uq.log(sample_predictions(2), maps=False, split="test", tags={"uq.verdicts": "no"}, **QUICK)
    summary = wandb_online.run("p", run.id).summary
    assert summary["uq/verdict"] == report.verdict.short
    assert summary["uq/test/verdict"] == other.verdict.short
    assert {key for key in summary if "verdict" in key} == {"uq/verdict", "uq/test/verdict"}


@pytest.mark.slow
def test_a_person_is_told_where_the_run_is(
    wandb_online: WandbServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UQ_TRACKING_HINT", "1")
    with wandb.init(project="p") as run:
        uq.log(sample_predictions(), maps=False, step=1, **QUICK)
        assert "uq_tracking: " not in capsys.readouterr().err
        report = uq.log(sample_predictions(), maps=False, **QUICK)
    assert f"uq_tracking: {report.verdict.short}; look: {run.url}\n" in capsys.readouterr().err


@pytest.mark.slow
def test_nobody_is_sent_to_an_offline_run(
    wandb_offline: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UQ_TRACKING_HINT", "1")
    with wandb.init(project="p") as run:
        report = uq.log(sample_predictions(), maps=False, **QUICK)
    assert "uq_tracking: " not in capsys.readouterr().err
    assert fragment_of(wandb_offline, run.id).summary["uq/verdict"] == report.verdict.short


@pytest.mark.slow
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


@pytest.mark.slow
def test_runs_of_a_method_are_a_group_in_its_color(wandb_online: WandbServer) -> None:
    runs = {}
    for number, method in enumerate(("ensemble", "dropout", "ensemble")):
        with wandb.init(project="p") as run:
            uq.log(sample_predictions(number + 1), method=method, maps=False, **QUICK)
        runs[run.id] = method
        if number == 1:
            open_store("wandb:tester/p")[0].show()
            section = json.loads(spec_of(wandb_online))["section"]
            found = looks(runs.values())
            assert section["runSets"][0]["grouping"] == []
            colors = section["customRunColors"]
            assert {run: colors[run] for run in runs} == {
                run: COLORS[found[name]] for run, name in runs.items()
            }
    open_store("wandb:tester/p")[0].show()
    section = json.loads(spec_of(wandb_online))["section"]
    assert section["runSets"][0]["grouping"] == [{"section": "config", "name": "uq.value.method"}]
    assert COLORS[found["ensemble"]] in json.dumps(section["customRunColors"])
    assert json.loads(wandb_online.run("p", run.id).config)["uq"]["value"]["method"] == "ensemble"
