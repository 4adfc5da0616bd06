"""What several of the W&B tests do."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import wandb

from uq_tracking_wandb.fragment import Fragment, read_fragment


def train(run: wandb.Run, steps: Iterable[int]) -> None:
    """A training loop that logs its loss with explicit steps."""
    for step in steps:
        run.log({"loss": 1 / (step + 1)}, step=step)


def losses(rows: Iterable[dict]) -> dict[int, float]:
    """The loop's loss by its step, from history rows."""
    return {row["_step"]: row["loss"] for row in rows if "loss" in row}


def expected_losses(steps: Iterable[int]) -> dict[int, float]:
    """What ``losses`` must find after ``train``."""
    return {step: 1 / (step + 1) for step in steps}


def fragment_of(folder: Path, run_id: str) -> Fragment:
    """The first fragment of a finished offline run; wandb-core writes its end a moment after ``finish``."""
    end = time.monotonic() + 10
    while True:
        for path in sorted(folder.glob(f"offline-run-*/run-{run_id}.wandb")):
            content = read_fragment(path)
            if content.exit_code is not None:
                return content
        assert time.monotonic() < end, f"run {run_id} has no exit record"
        time.sleep(0.02)
