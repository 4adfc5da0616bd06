"""Predictions that runs hold in their own files: runs that were not logged by this package."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from uq_tracking.errors import SettingsError
from uq_tracking.files import read_predictions
from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.logged_run import LoggedRun
from uq_tracking.report import Report
from uq_tracking.rescoring.request import Request
from uq_tracking.rescoring.source import NothingStoredError, Source, floored
from uq_tracking.tracking.names import PREDICTIONS_FILE


def foreign_source(run: LoggedRun, request: Request, logged: Report | None) -> Source:
    """Predictions from the files of a run that the request names.

    Raises
    ------
    NothingStoredError
        The run has no such file.
    FileFormatError
        A file is damaged, foreign or too large.
    SettingsError
        The columns cannot be found or are ambiguous, or the run's own report is a classification's.
    """
    if logged is not None and logged.task != "regression":
        raise SettingsError(f"its report is a {logged.task}'s; pass split= to put these scores beside it")
    pattern = request.predictions or ""
    names = matching(run.files, pattern)
    if not names:
        raise NothingStoredError(f"it has no file {pattern}; it has {_listed(run.files)}")
    with TemporaryDirectory(prefix="uq_tracking_") as folder:
        paths = [run.fetch(name, Path(folder)) for name in names]
        data = _read(paths, names, Path(folder), request)
    if isinstance(data, ClassPredictions):
        raise SettingsError(
            f"{names[0]} holds classes; rescoring reads means, quantiles, intervals and draws"
        )
    return Source("predictions", predictions=floored(data, request, None))


def _read(paths: list[Path], names: list[str], folder: Path, request: Request) -> Any:
    """One file, one zarr store, or many similar files."""
    roots = zarr_roots(names)
    found = [folder / root for root in roots] or paths
    options: dict[str, Any] = {"unit": request.given.get("unit")}
    return read_predictions(found if len(found) > 1 else found[0], request.columns, **options)


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """Stored files that match a pattern: a file, all files below a folder, or a glob.

    The files that this package stores in ``uq/`` are not among them, unless the pattern names that folder; then its
    predictions are.

    >>> matching(["out/b.npz", "out/a.npz", "log.txt"], "out")
    ['out/a.npz', 'out/b.npz']
    >>> matching(["out/b.npz", "out/a.npz", "log.txt"], "out/*.npz")
    ['out/a.npz', 'out/b.npz']
    """
    wanted = pattern.rstrip("/")
    others = [name for name in names if not name.startswith("uq/")]
    if wanted.split("/")[0] == "uq":
        others = [name for name in names if name.endswith(f"/{PREDICTIONS_FILE}") or name == wanted]
    return sorted(
        name
        for name in others
        if name == wanted or name.startswith(f"{wanted}/") or _is_match(PurePosixPath(name), wanted)
    )


def _is_match(path: PurePosixPath, pattern: str) -> bool:
    """Whether a path, or a folder containing it (a zarr store), matches part by part; ``*`` stays within a part."""
    wanted = PurePosixPath(pattern).parts
    return (
        len(path.parts) >= len(wanted)
        and all(
            fnmatchcase(part, part_pattern) for part, part_pattern in zip(path.parts, wanted, strict=False)
        )
        and (len(path.parts) == len(wanted) or path.parts[len(wanted) - 1].endswith(".zarr"))
    )


def zarr_roots(names: Iterable[str]) -> list[str]:
    """Folders of zarr stores among the files."""
    roots = set()
    for name in names:
        parts = PurePosixPath(name).parts
        ends = [k for k, part in enumerate(parts[:-1], start=1) if part.endswith(".zarr")]
        if ends:
            roots.add("/".join(parts[: ends[0]]))
    return sorted(roots)


def _listed(names: Iterable[str], most: int = 10) -> str:
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "none"
