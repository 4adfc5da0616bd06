"""A W&B server for the tests: the real ``wandb`` and ``wandb-core`` run online against it on a loopback port.

It knows what this project's use of W&B needs: runs, file stream, artifacts, the public API, resuming. What a client
asks beyond that is collected in ``WandbServer.unknown`` and fails the test (see ``fixtures.wandb_online``). Not
implemented: multipart uploads, parquet history, sweeps, registries, reports, authentication.
"""

from .server import Request, WandbServer

__all__ = ["Request", "WandbServer"]
