"""The examples and the code of docs/frameworks.md run as written."""

from __future__ import annotations

import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

with warnings.catch_warnings():  # the packages' own imports warn
    warnings.simplefilter("ignore")
    import lightning.pytorch  # noqa: F401  (the scripts import it without the warnings being caught)
    import mlflow
    import mlflow.models.evaluation.evaluator_registry
    import mlflow.store.tracking.sqlalchemy_store

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings(r"ignore:::(lightning|torch|mlflow|sklearn)(\.|$)")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a script in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(path, *arguments):
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        runpy.run_path(str(path), run_name="__main__")

    yield call
    mlflow.set_tracking_uri(None)


@pytest.mark.slow
def test_the_lightning_example(run, own_sqlite_uri, capsys):
    uri = own_sqlite_uri
    run(ROOT / "examples/gallery/lightning_callback.py", "--epochs", "2", "--tracking-uri", uri)
    (stored,) = mlflow.MlflowClient(uri).search_runs(["1"])
    assert {"uq/val/nll", "uq/test/nll"} <= set(stored.data.metrics)
    assert f"{stored.data.metrics['uq/test/nll']:8.4f}" in capsys.readouterr().out


@pytest.mark.slow
def test_the_sklearn_example(run, tmp_path, capsys):
    run(ROOT / "examples/gallery/sklearn_gp.py")
    header, *lines = capsys.readouterr().out.splitlines()
    place = header.split().index("coverage_95")
    coverage = {line[:18].strip(): float(line[18:].split()[place]) for line in lines}
    assert len(coverage) == 5
    assert coverage["gaussian process"] == pytest.approx(0.95, abs=0.02)
    assert coverage["random forest"] == pytest.approx(0.65, abs=0.05)  # as its docstring says
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_code_of_the_page_runs_in_order(run, own_sqlite_uri, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/frameworks.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 5
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks).replace("sqlite:///mlflow.db", own_sqlite_uri))
    run(script)
    client = mlflow.MlflowClient(own_sqlite_uri)
    stored = client.search_runs([item.experiment_id for item in client.search_experiments()])
    assert sorted(run.data.tags.get("uq.method", "") for run in stored) == ["", "gp", "mean-variance"]
    assert sorted(path.name.rpartition("-")[2] for path in tmp_path.glob("uq_runs/*")) == [
        "GaussianProcessRegressor",
        "forest",
    ]
