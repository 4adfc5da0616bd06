"""Train with two processes, and write down what each of them saw; run by test_lightning.py."""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
import lightning.pytorch as package  # noqa: E402
import torch  # noqa: E402
from lightning.pytorch.loggers import CSVLogger  # noqa: E402

from uq_tracking.errors import TrackingWarning  # noqa: E402
from uq_tracking.frameworks.lightning import UncertaintyCallback  # noqa: E402

warnings.filterwarnings("always", category=TrackingWarning)
HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("tiny", HERE / "tiny.py")
tiny = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tiny)


def spoil(outputs, stage, batch_idx):
    """In the last epoch, the second process predicts NaN."""
    if trainer.current_epoch == 2 and trainer.global_rank == 1:
        outputs["mean"] = outputs["mean"] * float("nan")
    return outputs


class Witness(package.Callback):
    def on_validation_end(self, trainer, pl_module):
        if trainer.sanity_checking:
            return
        stem = f"epoch{trainer.current_epoch}_rank{trainer.global_rank}"
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        Path(sys.argv[1], f"{stem}.json").write_text(json.dumps(metrics))
        torch.save(pl_module.state_dict(), Path(sys.argv[1], f"{stem}.pt"))


if __name__ == "__main__":
    folder = sys.argv[1]
    trainer = package.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp_fork",
        max_epochs=3,
        logger=CSVLogger(folder),
        callbacks=[UncertaintyCallback(method="two", statistics="exact"), Witness()],
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    trainer.fit(tiny.tiny_model(package, spoil), tiny.loader(), tiny.loader(40, seed=1, batch_size=8))
