from __future__ import annotations

from tests.wandb_server.fixtures import wandb_home, wandb_offline

__all__ = ["wandb_home", "wandb_offline"]
