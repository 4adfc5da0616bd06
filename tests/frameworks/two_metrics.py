"""Two processes that count their parts; each writes its batch's score, the union's, and its own count."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
from torchmetrics import MetricCollection

from uq_tracking.frameworks.torchmetrics import UncertaintyMetric

folder, parts = Path(sys.argv[1]), (slice(0, 150), slice(150, 400))
other = os.fork()
rank = int(other == 0)
torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
torch.manual_seed(0)
target = torch.randn(400)
mean, std = target + 0.3 * torch.randn(400), torch.full((400,), 0.3)
collection = MetricCollection([UncertaintyMetric("crps")])
own = parts[rank]
batch = collection(preds=mean[own], target=target[own], std=std[own])["UncertaintyMetric"]
union = [collection.compute()["UncertaintyMetric"].item() for _ in range(2)]
found = [batch.item(), *union, collection["UncertaintyMetric"].accumulator.n]
(folder / f"{rank}.json").write_text(json.dumps(found))
torch.distributed.destroy_process_group()
if other:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
