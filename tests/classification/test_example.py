"""The example runs, and shows what its text says."""

from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import numpy as np
import pytest

import uq_tracking as uq

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"


@pytest.mark.slow
def test_the_organ_that_is_stated_too_often_is_named():
    example = SimpleNamespace(**run_path(str(GALLERY / "organs.py")))
    labels, probs = example.patients()
    verdicts = {
        name: uq.evaluate(labels, probs=stated, groups=np.arange(12), classes=example.NAMES).verdict.text
        for name, stated in example.methods(probs).items()
    }
    assert verdicts["calibrated"].startswith("Consistent with calibrated")
    assert verdicts["too sure of the tumour"].startswith(
        "Miscalibrated in classes: class tumour is stated 1.5"
    )
    assert verdicts["too sure of everything"].startswith("Overconfident")


@pytest.mark.slow
def test_the_ensemble_knows_better_what_it_does_not_know(tmp_path, monkeypatch):
    example = SimpleNamespace(**run_path(str(GALLERY / "segmentation.py")))
    monkeypatch.chdir(tmp_path)
    single, ensemble = example.run(2, to="dir:runs").values()
    for key in ("nll", "brier", "ece", "aurc"):
        assert ensemble.scores[key] < single.scores[key], key
    for report in (single, ensemble):
        after = report.recalibration["methods"]["temperature"]
        assert after["scalars"]["temperature"] > 1
        assert after["scores"]["nll"] < report.scores["nll"]
    assert len(list(tmp_path.rglob("uq_map*.png"))) == 2
