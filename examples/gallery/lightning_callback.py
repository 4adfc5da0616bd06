"""A mean-variance network under Lightning
=======================================

Score the uncertainty after every epoch, and log it to MLflow.

The target is y = sin(3 x) plus noise whose standard deviation grows with abs(x). The callback passes the validation
NLL to Lightning, and training stops when it no longer improves; figures and the full report are logged at the end::

    python examples/gallery/lightning_callback.py
    mlflow ui --backend-store-uri sqlite:///mlflow.db
"""

from __future__ import annotations

import argparse

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.loggers import MLFlowLogger
from torch.utils.data import DataLoader, TensorDataset

from uq_tracking.frameworks.lightning import UncertaintyCallback


def draw(n: int, seed: int) -> TensorDataset:
    """Points with known noise: std = 0.1 + 0.3 |x|."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.empty(n, 1).uniform_(-1.5, 1.5, generator=generator)
    noise = torch.randn(n, 1, generator=generator)
    return TensorDataset(x, torch.sin(3 * x) + (0.1 + 0.3 * x.abs()) * noise)


class MeanVariance(LightningModule):
    """Two hidden layers; the output is the mean and the logarithm of the variance."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(1, 64),
            torch.nn.Tanh(),
            torch.nn.Linear(64, 64),
            torch.nn.Tanh(),
            torch.nn.Linear(64, 2),
        )

    def forward(self, x):
        """Mean and variance."""
        mean, log_variance = self.layers(x).chunk(2, dim=-1)
        return mean, log_variance.exp()

    def training_step(self, batch, batch_idx):
        """Negative log-likelihood of a batch."""
        x, y = batch
        mean, variance = self(x)
        return torch.nn.functional.gaussian_nll_loss(mean, y, variance)

    def validation_step(self, batch, batch_idx):
        """What the callback reads."""
        x, y = batch
        mean, variance = self(x)
        return {"target": y, "mean": mean, "std": variance.sqrt()}

    test_step = validation_step

    def configure_optimizers(self):
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=5e-3)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Score the uncertainty after every epoch, and log it to MLflow."
    )
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--tracking-uri", default="sqlite:///mlflow.db")
    options = parser.parse_args()
    seed_everything(0, verbose=False)
    train, val, test = (
        DataLoader(draw(n, seed), batch_size=256) for seed, n in enumerate((4096, 1024, 1024))
    )
    trainer = Trainer(
        max_epochs=options.epochs,
        accelerator="cpu",
        logger=MLFlowLogger("lightning", tracking_uri=options.tracking_uri),
        callbacks=[UncertaintyCallback(method="mean-variance"), EarlyStopping("uq/val/nll", patience=5)],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = MeanVariance()
    trainer.fit(model, train, val)
    trainer.test(model, test, verbose=False)
    for key in ("rmse", "nll", "crps", "ence", "ause_rmse", "coverage_95"):
        print(f"uq/test/{key:12} {trainer.callback_metrics[f'uq/test/{key}']:8.4f}")


if __name__ == "__main__":
    main()
