"""What the page on Weights & Biases shows runs as it is written there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import wandb
from typer.testing import CliRunner

from uq_tracking.cli import app
from uq_tracking_wandb.offline import OfflineStore

PAGE = Path(__file__).parents[3] / "docs" / "wandb.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.slow
def test_the_example_and_the_offline_commands(
    wandb_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WANDB_DIR")
    (example,) = blocks("python")
    exec(compile(example, str(PAGE), "exec"), {})
    wandb.teardown()
    (stored,) = OfflineStore(tmp_path / "wandb").runs()
    assert stored.tags["uq.method"] == "mc-dropout"
    commands = [line for block in blocks("bash") for line in block.splitlines() if "wandb-offline" in line]
    assert len(commands) == 3
    for command in commands:
        words = shlex.split(command.partition("&&")[0])
        assert words[0] == "uq-tracking"
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, result.output
