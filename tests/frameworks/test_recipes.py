"""Every whole script of docs/recipes.md runs as written with the real library, and its tracker has the report."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import InputTypeError
from uq_tracking.tracking.resolve import open_store

pytestmark = pytest.mark.filterwarnings("default")

PAGE = Path(__file__).parents[2] / "docs/recipes.md"
RECIPES = dict(
    re.findall(r"^### (.+?)\n.*?^```py\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
)
LONGEST = 15
HEADLINE = {"uq/crps", "uq/nll"}
QUANTILES = {"uq/crps", "uq_calibration/coverage_90"}
CLASSES = {"uq/val/ece", "uq/val/accuracy", "uq_curve/val/reliability"}
MLFLOW = {
    "Hugging Face Trainer": [{"uq/val/crps", "eval_crps", "uq_curve/val/reliability"}],
    "Hugging Face classifier": [CLASSES | {"eval_ece"}],
    "Keras": [{"uq/val/crps", "uq_curve/val/reliability"}],
    "Keras classifier": [CLASSES],
    "Lightning on two processes": [{"uq/test/crps", "uq_curve/test/reliability"}],
    "XGBoost quantiles": [QUANTILES],
    "LightGBM quantiles": [QUANTILES],
    "NGBoost": [HEADLINE],
    "GPyTorch": [HEADLINE],
    "BoTorch": [HEADLINE],
    "Evaluating a classifier in MLflow": [{"uq/ece", "uq/nll"}],
    "Optuna": [set(), HEADLINE, HEADLINE, HEADLINE],
    "Cross-validation and grid search": [HEADLINE],
    "MLflow autolog": [HEADLINE | {"training_r2_score"}],
    "A gate in CI": [HEADLINE],
}
"""Scores that the MLflow runs of a recipe have at least, run by run."""
FOLDERS = {
    "accelerate": ("dir:uq_runs", 1),
    "Ray Tune": ("dir:runs", 2),
    "Ray Train": ("dir:runs", 1),
    "Hydra": ("dir:runs", 4),
    "Sweeps, offline": ("wandb-offline:wandb", 4),
    "MAPIE": ("dir:uq_runs", 1),
    "dask": ("dir:uq_runs", 1),
    "Spark": ("dir:uq_runs", 1),
    "Ray Data": ("dir:uq_runs", 1),
    "DVCLive": ("dvclive:.", 1),
    "Aim": ("aim:.", 1),
}
"""Where the other recipes log, and how many runs."""
ENGINES = {"Spark", "Ray Data", "DVCLive", "Aim"}
"""Recipes with a library of the extra `engines`."""


def marked(name):
    return pytest.param(name, marks=pytest.mark.engines if name in ENGINES else pytest.mark.frameworks)


@pytest.mark.parametrize("name", [marked(name) for name in RECIPES])
def test_the_recipe_runs_and_its_tracker_has_the_report(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = RECIPES[name]
    assert len([line for line in code.splitlines() if line.strip()]) <= LONGEST
    (tmp_path / "train.py").write_text(code)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    quiet = {
        "MLFLOW_TRACKING_URI": uri,
        "KERAS_BACKEND": "torch",
        "WANDB_SILENT": "true",
        "HF_HUB_OFFLINE": "1",
    }
    arguments = ["--multirun", "alpha=1e-6,1", "seed=0,1"] if name == "Hydra" else []
    command = [sys.executable, "train.py", *arguments]
    done = subprocess.run(
        command, env=os.environ | quiet, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    if name in MLFLOW:
        import mlflow

        client = mlflow.MlflowClient(uri)
        runs = client.search_runs([each.experiment_id for each in client.search_experiments()])
        found = sorted((set(run.data.metrics) for run in runs), key=len)
        assert len(found) == len(MLFLOW[name])
        for wanted, has in zip(MLFLOW[name], found, strict=True):
            assert wanted <= has
    else:
        address, number = FOLDERS[name]
        runs = list(open_store(address)[0].runs())
        assert len(runs) == number
        assert all(any(key.endswith("crps") for key in run.scalars) for run in runs)


@pytest.mark.frameworks
def test_columns_of_datasets_are_read():
    import datasets

    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet([1, 1, 1], 60), rng.integers(0, 3, 60)
    data = datasets.Dataset.from_dict({"probs": probs.tolist(), "label": labels.tolist()})
    named = data.cast_column("label", datasets.ClassLabel(names=["cat", "dog", "bird"]))
    wanted = uq.evaluate(labels, probs=probs)
    assert uq.evaluate(data["label"], probs=data["probs"]).scores == wanted.scores
    found = uq.evaluate(named["label"], probs=named["probs"])
    assert found.scores == wanted.scores
    assert found.settings["classes"] == ["cat", "dog", "bird"]
    with pytest.raises(InputTypeError, match=r"is a whole datasets.Dataset; pick one variable"):
        uq.evaluate(data, probs=data["probs"])
