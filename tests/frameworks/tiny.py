"""A model of one layer that predicts mean and standard deviation, for either of the Lightning packages."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, TensorDataset


def loader(n=48, seed=0, batch_size=16, **options):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=generator)
    y = x[:, 0] + 0.5 * torch.randn(n, generator=generator)
    return DataLoader(TensorDataset(x, y), batch_size=batch_size, **options)


def tiny_model(package, change=None):
    """A LightningModule of the package; ``change(outputs, stage, batch_idx)`` replaces what evaluation returns."""

    class Tiny(package.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x):
            mean, log_std = self.layer(x).unbind(-1)
            return mean, log_std.exp()

        def training_step(self, batch, batch_idx):
            x, y = batch
            mean, std = self(x)
            return torch.nn.functional.gaussian_nll_loss(mean, y, std**2)

        def _evaluate(self, batch, stage, batch_idx):
            x, y = batch
            mean, std = self(x)
            outputs = {"target": y, "mean": mean, "std": std}
            return outputs if change is None else change(outputs, stage, batch_idx)

        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            return self._evaluate(batch, self.trainer.state.stage.value, batch_idx)

        def test_step(self, batch, batch_idx, dataloader_idx=0):
            return self._evaluate(batch, "test", batch_idx)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.1)

    return Tiny()
