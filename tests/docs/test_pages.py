"""The Python of every page runs as written, block after block, with the arrays that its reader has."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import ModuleType

import mlflow
import pytest
import torch

from uq_tracking import plugins

from .preludes import PRELUDES

DOCS = Path(__file__).parents[2] / "docs"
NOT_SCRIPTS = {"architecture", "frameworks", "write-a-backend"}
"""Pages of sketches, of pieces of a plugin that its own tests run, and two that tests of frameworks run."""


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def test_every_page_with_python_is_run():
    assert {page.stem for page in DOCS.glob("*.md") if blocks(page)} - NOT_SCRIPTS == set(PRELUDES)


@pytest.mark.documents
@pytest.mark.filterwarnings("default", "ignore::uq_tracking.errors.TrackingWarning")
@pytest.mark.parametrize("name", PRELUDES)
def test_the_python_of_the_page_runs(name, own_sqlite_uri, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_SILENT", "true")
    page = "\n".join(blocks(DOCS / f"{name}.md"))
    # a database by its whole path: MLflow keeps the connection of a relative one, which is that of an earlier page
    page = page.replace("RUN_ID", "0123abcd").replace('0123abcd"', '" + RUN_ID')
    code = f"{PRELUDES[name]}\n{page}".replace("sqlite:///mlflow.db", own_sqlite_uri)
    monkeypatch.setattr("mlflow.tracking.fluent._active_experiment_id", None)
    module = ModuleType(f"page_{name}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    try:
        exec(compile(code, f"{name}.md", "exec"), module.__dict__)
    finally:
        plugins.reload()  # a page may register one of its own
        mlflow.set_tracking_uri(None)
        os.environ.pop("MLFLOW_EXPERIMENT_ID", None)  # set_experiment leaves it for child processes
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
