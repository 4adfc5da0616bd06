"""One of two processes that count their parts; prints its batch's score, the union's, and its own count."""

from __future__ import annotations

import json
import sys

import torch
from torchmetrics import MetricCollection

from uq_tracking.frameworks.torchmetrics import UncertaintyMetric

rank, parts = int(sys.argv[1]), (slice(0, 150), slice(150, 400))
torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
torch.manual_seed(0)
target = torch.randn(400)
mean, std = target + 0.3 * torch.randn(400), torch.full((400,), 0.3)
collection = MetricCollection([UncertaintyMetric("crps")])
own = parts[rank]
batch = collection(preds=mean[own], target=target[own], std=std[own])["UncertaintyMetric"]
union = [collection.compute()["UncertaintyMetric"].item() for _ in range(2)]
print(json.dumps([batch.item(), *union, collection["UncertaintyMetric"].accumulator.n]))
torch.distributed.destroy_process_group()
