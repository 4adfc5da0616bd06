"""Tables of worst cases and strata, with the pictures of their maps, as a server gets them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import wandb
from PIL import Image

import uq_tracking as uq
from tests.wandb_server import WandbServer
from uq_tracking.testing import sample_figure
from uq_tracking.tracking.spool import Origin, keep, read_entry
from uq_tracking_wandb.run import WandbRun

Y = np.random.default_rng(0).normal(size=(3, 16, 20))
ERROR = np.array([1.0, 3.0, 2.0])[:, None, None] * np.ones_like(Y)


def stored(server: WandbServer, collection: str) -> dict[str, bytes]:
    """Files of the artifact whose name begins so; a client adds random letters to those of its tables."""
    (last,) = [each for each in server.state.artifacts.values() if each.collection.startswith(collection)]
    return {name: server.state.blobs[key] for name, key in last.files.items()}


@pytest.mark.pictures
@pytest.mark.slow
def test_the_worst_case_comes_first_with_its_map(wandb_online: WandbServer) -> None:
    with wandb.init(project="p") as run:
        uq.log(Y, Y + ERROR, np.ones_like(Y), unit="m", maps="extremes", figures=False, strict=True)
    files = stored(wandb_online, f"run-{run.id}-uq_worstcases")
    table = json.loads(files["uq_worst/cases.table.json"])
    assert table["columns"] == ["case", "chosen as", "RMSE [m]", "map"]
    assert [row[:3] for row in table["data"]] == [
        [1, "worst of 3 by RMSE", 3.0],
        [2, "median of 3 by RMSE", 2.0],
        [0, "best of 3 by RMSE", 1.0],
    ]
    pictures = [row[3]["path"] for row in table["data"]]
    assert len(set(pictures)) == 3
    assert all(Image.open(io.BytesIO(files[name])).width > 300 for name in pictures)


@pytest.mark.slow
def test_the_worst_stratum_comes_first(wandb_online: WandbServer) -> None:
    label = np.repeat(["hall", "kitchen", "cellar"], Y[0].size).reshape(Y.shape)
    with wandb.init(project="p") as run:
        uq.log(Y, Y + ERROR, np.ones_like(Y), by=label, maps=False, figures=False, strict=True)
    table = json.loads(stored(wandb_online, f"run-{run.id}-uq_worststrata")["uq_worst/strata.table.json"])
    assert table["columns"][:3] == ["stratum", "count", "rmse"]
    np.testing.assert_allclose([row[2] for row in table["data"]], [3, 2, 1], rtol=1e-12)
    assert [row[0] for row in table["data"]] == ["kitchen", "cellar", "hall"]


@pytest.mark.slow
def test_a_table_that_could_not_be_sent_is_sent_later(
    wandb_online: WandbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [["1", 2.0, "uq_map/1"]]
    groups = [
        [("map", lambda run: run.log_map("uq_map/1", sample_figure(0.7)))],
        [("table", lambda run: run.log_table("uq_worst/cases", ["case", "RMSE", "map"], rows))],
    ]
    entry = keep(Origin(tracker="wandb", place="", uri="wandb:tester/p/x", step=None), groups)
    with wandb.init(project="p") as run:
        read_entry(entry).send(WandbRun(run))
    table = json.loads(stored(wandb_online, f"run-{run.id}-uq_worstcases")["uq_worst/cases.table.json"])
    assert table["data"][0][2]["_type"] == "image-file"
