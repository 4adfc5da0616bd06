"""Run papers, keep the results, write the page."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from uq_tracking._version import __version__
from uq_tracking.errors import BackendError, FileFormatError, SettingsError, closest
from uq_tracking.tracking.resolve import targets_of
from uq_tracking_papers.page import PAPERS, page
from uq_tracking_papers.study import HOLDS, Section, Size, Study

OUTPUT = Path("uq_reproduction")
PAGE_FILE, NUMBERS_FILE = "index.html", "reproduction.json"
INSTALL = "pip install uq-tracking-papers"
EVERY = "all"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "scikit-image", "torch")


def reproduce(
    papers: str | Sequence[str] = "all",
    *,
    quick: bool = False,
    output: str | Path = OUTPUT,
    to: str | None = None,
    seed: int = 0,
    size: Size | None = None,
    console: Console | None = None,
) -> dict[str, Section]:
    """Rerun the papers' experiments and show our results beside theirs.

    Finished work is kept in the folder and not repeated, so an interrupted reproduction resumes where it stopped. The
    page and the numbers cover every paper for which the folder has results.

    Parameters
    ----------
    papers : str or sequence of str
        Keys of `PAPERS`, or "all".
    quick : bool
        Smaller samples and fewer seeds: on two cores, less than four minutes in total instead of less than forty.
    output : path
        Folder for ``index.html``, ``reproduction.json``, the figures, the runs and finished work.
    to : str, optional
        Address to log runs to, such as ``mlflow:EXPERIMENT``; by default ``dir:OUTPUT/runs``.
    seed : int
        Random seed: the same seed gives the same numbers.
    size : {"full", "quick", "test"}, optional
        Overrides ``quick``; "test" is the smallest size at which the findings still hold.
    console : rich.console.Console, optional
        Where to show progress, and a line for every paper; by default standard error.

    Returns
    -------
    dict of str to Section
        The results for each paper.

    Raises
    ------
    SettingsError
        There is no such paper or size.
    BackendError
        A library that a paper needs is not installed, or the tracker failed.
    """
    keys = chosen(papers)
    size = size or ("quick" if quick else "full")
    if size not in ("full", "quick", "test"):
        raise SettingsError(f"size is {size!r}; choose full, quick or test")
    folder = Path(output)
    address = to or f"dir:{folder / 'runs'}"
    targets_of(address, None, name="reproduction")  # before anything is written
    folder.mkdir(parents=True, exist_ok=True)
    console = console or Console(stderr=True, emoji=False)
    columns = TextColumn("{task.description:40}"), BarColumn(), TimeElapsedColumn()
    found = {}
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        for key in keys:
            study = Study(key, folder, size, seed, address, bar if console.is_terminal else None)
            found[key] = section = _run(study)
            held = sum(finding.verdict == HOLDS for finding in section.findings)
            seconds = section.about["seconds"]
            console.print(f"{key}: {held} of {len(section.findings)} claims hold, {seconds:.0f} s")
            write(folder)
    return found


def chosen(papers: str | Sequence[str]) -> list[str]:
    """Keys of the papers, in the order of `PAPERS`.

    Raises
    ------
    SettingsError
        There is no such paper.
    """
    asked = [papers] if isinstance(papers, str) else list(papers)
    unknown = [name for name in asked if name != EVERY and name not in PAPERS]
    if unknown:
        raise SettingsError(
            f"no paper is called {unknown[0]!r}; choose from {', '.join(PAPERS)}, {EVERY}"
            f"{closest(unknown[0], list(PAPERS))}"
        )
    return [name for name in PAPERS if name in asked or EVERY in asked or not asked]


def _run(study: Study) -> Section:
    """Run one paper and keep its results."""
    start = time.perf_counter()
    try:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):  # the arrays are small, so more threads cost more than they gain
            module = import_module(PAPERS[study.paper].module)
            module.reproduce(study)
    except ModuleNotFoundError as error:
        raise BackendError(f"{study.paper} needs {error.name}; install it: {INSTALL}") from error
    paragraphs = (module.__doc__ or "").split("\n\n")[1:]
    section = study.section
    section.about = {
        "size": study.size,
        "seed": study.seed,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "versions": versions(),
        "seconds": round(time.perf_counter() - start, 1),
        "set_up": [" ".join(paragraph.split()) for paragraph in paragraphs],
    }
    place = study.folder / "papers"
    place.mkdir(exist_ok=True)
    _write_json(place / f"{study.paper}.json", section.to_dict())
    return section


def versions() -> dict[str, str]:
    """Versions of Python, this package, and the libraries behind the models."""
    found = {"python": platform.python_version(), "uq-tracking": __version__}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def read(folder: Path) -> list[Section]:
    """All papers' results in a folder, in the order of `PAPERS`.

    Raises
    ------
    FileFormatError
        A file there was not written by ``reproduce``.
    """
    sections = []
    for key in PAPERS:
        path = folder / "papers" / f"{key}.json"
        if not path.exists():
            continue
        try:
            sections.append(Section.from_dict(json.loads(path.read_text(encoding="utf-8"))))
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(
                f"{path} is not a result of a reproduction ({error!r}); delete it"
            ) from error
    return sections


def write(folder: Path) -> None:
    """Write the page and the numbers of every paper for which a folder has results."""
    sections = read(folder)
    numbers = {
        name: [{"paper": section.paper, **entry} for section in sections for entry in section.to_dict()[name]]
        for name in ("rows", "findings", "diagnostics")
    }
    numbers["items"] = [
        {"paper": of.paper, "item": item.name, "title": item.title, "status": item.status, "note": item.note}
        for of in sections
        for item in of.items
    ]
    _write_json(folder / NUMBERS_FILE, numbers)
    (folder / PAGE_FILE).write_text(page(sections), encoding="utf-8")


def _write_json(path: Path, values: Any) -> None:
    path.write_text(json.dumps(values, indent=1, allow_nan=False) + "\n", encoding="utf-8")
