"""The runs of an Aim repository, with what is kept of them in its folder ``uq``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from uq_tracking.tracking.backend import StoredRun
from uq_tracking.tracking.folder import KEPT, FolderStore, KeptStore
from uq_tracking_aim.run import AIM, QUIET, AimRun


class AimStore(KeptStore):
    """The runs of the repository in the folder ``root``; a run's id is Aim's hash."""

    scheme, tracker, evidence = "aim", "Aim", "data of Aim"

    def __init__(self, root: Path) -> None:
        super().__init__(root / AIM / KEPT)
        self.root, self.chunks = root, root.absolute() / AIM / "meta" / "chunks"

    def is_run(self, folder: Path) -> bool:
        """Whether Aim has a run of this name."""
        return (self.chunks / folder.name).is_dir()

    def folders(self) -> Iterable[Path]:
        """Return what is kept, or would be, of every run of the repository."""
        return (self.path / chunk.name for chunk in self.chunks.glob("*"))

    def started(self, folder: Path) -> float:
        """Return when this package first wrote to the run, else when Aim created its database."""
        for run in FolderStore(folder).runs():
            return datetime.fromisoformat(run.created).timestamp()
        return (self.chunks / folder.name / "IDENTITY").stat().st_mtime

    def last_scalars(self, folder: Path) -> dict[str, float]:
        """Read the numbers without a context of a run that ``aim storage reindex`` or ``aim up`` has indexed."""
        from aim import Repo

        run = Repo(str(self.root)).get_run(folder.name)
        metrics = [] if run is None else [each for each in run.metrics() if not each.context.to_dict()]
        return {each.name: points_of(each)[-1][1] for each in metrics}

    def opened(self, folder: Path) -> AimRun:
        """Open a run for writing."""
        return AimRun(self.root, folder.name)

    def create(self, name: str, tags: Mapping[str, str] | None = None) -> AimRun:
        """Create a run of that name, and the repository if there is none."""
        from aim import Repo, Run

        live = Run(repo=Repo.from_path(str(self.root), init=True), **QUIET)
        live.name = name
        run = AimRun(self.root, live.hash, own=live)
        FolderStore(self.path / run.hash).open(KEPT, name)
        run.set_tags(tags or {})
        return run

    def _stored(self, folder: Path, started: float) -> StoredRun:
        return replace(super()._stored(folder, started), uri=f"aim:{self.root / folder.name}")


def points_of(metric: Any) -> list[tuple[int, float]]:
    """Return step and value of every point of a metric of Aim, by step."""
    steps, (values, *_) = metric.data.items_list()
    return list(zip(steps, values, strict=True))
