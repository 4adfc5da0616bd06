"""The example runs, and shows what its text says."""

import importlib.util
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "gallery" / "segmentation.py"


def test_the_ensemble_knows_better_what_it_does_not_know(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("segmentation", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.chdir(tmp_path)
    single, ensemble = example.run(2, to="dir:runs").values()
    for key in ("nll", "brier", "ece", "aurc"):
        assert ensemble.scores[key] < single.scores[key], key
    for report in (single, ensemble):
        after = report.recalibration["methods"]["temperature"]
        assert after["scalars"]["temperature"] > 1
        assert after["scores"]["nll"] < report.scores["nll"]
    assert len(list(tmp_path.rglob("uq_map*.png"))) == 2
