"""The metric of torchmetrics, in a collection, in Lightning's ``self.log``, and over two processes."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torchmetrics import MeanSquaredError, MetricCollection

import uq_tracking as uq
from uq_tracking.errors import UnknownMetricError
from uq_tracking.frameworks.torchmetrics import UncertaintyMetric

from .tiny import loader, tiny_model
from .trainers import lightning, trainer

torch.manual_seed(0)
TARGET = torch.randn(400)
MEAN, STD = TARGET + 0.3 * torch.randn(400), torch.full((400,), 0.3)
ALL = uq.evaluate(TARGET, MEAN, STD, statistics="sketch").scores


def batches(size=100):
    for start in range(0, 400, size):
        part = slice(start, start + size)
        yield {"preds": MEAN[part], "target": TARGET[part], "std": STD[part]}


def test_a_collection_counts_it_beside_others():
    collection = MetricCollection([MeanSquaredError(), UncertaintyMetric(["crps", "coverage_95"])])
    for batch in batches():
        found = collection(**batch)
        alone = uq.evaluate(batch["target"], batch["preds"], batch["std"], statistics="sketch").scores
        assert found["crps"].item() == pytest.approx(alone["crps"], rel=1e-6)
    found = {name: value.item() for name, value in collection.compute().items()}
    wanted = {"MeanSquaredError": ALL["rmse"] ** 2, "crps": ALL["crps"], "coverage_95": ALL["coverage_95"]}
    assert found == pytest.approx(wanted, rel=1e-6)
    again = pickle.loads(pickle.dumps(collection))
    assert again["UncertaintyMetric"].accumulator.n == 400
    collection.reset()
    assert collection["UncertaintyMetric"].accumulator.n == 0


def test_two_of_them_do_not_share_what_they_count():
    pair = MetricCollection({"one": UncertaintyMetric("crps"), "other": UncertaintyMetric("nll")})
    for batch in batches():
        pair.update(**batch)
    found = {name: value.item() for name, value in pair.compute().items()}
    assert found == pytest.approx({"one": ALL["crps"], "other": ALL["nll"]}, rel=1e-6)


def test_it_takes_probabilities_and_says_which_way_is_better():
    labels, probs = torch.tensor([0, 1, 1]), torch.tensor([[0.8, 0.2], [0.1, 0.9], [0.6, 0.4]])
    metric = UncertaintyMetric("accuracy")
    assert metric(probs, labels).item() == pytest.approx(2 / 3)
    directions = [
        UncertaintyMetric(key).higher_is_better for key in ("accuracy", "crps", "coverage_95", ["crps"])
    ]
    assert directions == [True, False, None, None]
    undefined = UncertaintyMetric("r2")
    undefined.update(torch.zeros(3), torch.ones(3), torch.ones(3))
    assert undefined.compute().isnan()
    with pytest.raises(UnknownMetricError, match=r"no metric is called crsp \(did you mean 'crps'\?\)"):
        UncertaintyMetric("crsp")


@pytest.mark.filterwarnings("default")
def test_lightning_logs_it_over_an_epoch():
    made = None

    def log_it(outputs, stage, batch_idx):
        made.score(outputs["mean"], outputs["target"], outputs["std"])
        made.log("crps", made.score, on_epoch=True)
        return outputs

    made = tiny_model(lightning.pytorch, log_it)
    made.score = UncertaintyMetric("crps")
    data = loader(40, seed=1)
    (found,) = trainer().validate(made, data, verbose=False)
    x, y = data.dataset.tensors
    mean, std = (part.detach() for part in made(x))
    assert found["crps"] == pytest.approx(
        uq.evaluate(y, mean, std, statistics="sketch").scores["crps"], rel=1e-6
    )


@pytest.mark.faults
def test_two_processes_score_their_union_and_keep_their_own_count(tmp_path):
    script = Path(__file__).with_name("two_metrics.py")
    subprocess.run([sys.executable, script, tmp_path], check=True, timeout=300)
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert found[0][1:3] == found[1][1:3] == pytest.approx([ALL["crps"]] * 2, rel=1e-6)
    assert found[0][0] != found[1][0]
    assert [each[3] for each in found] == [150, 250]
