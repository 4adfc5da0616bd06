"""``uq_tracking.reproduce``: run papers, keep what was found, write the page."""

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
from uq_tracking.errors import BackendError, FileFormatError, SettingsError
from uq_tracking.reproduction.page import page
from uq_tracking.reproduction.papers import PAPERS, chosen
from uq_tracking.reproduction.results import Section
from uq_tracking.reproduction.study import Size, Study

OUTPUT = Path("uq_reproduction")
PAGE_FILE, NUMBERS_FILE = "index.html", "reproduction.json"
INSTALL = 'pip install "uq-tracking[papers]"'
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "numpyro", "jax")


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
    """Run the experiments of papers again and set what comes out beside what they print.

    Work that is finished is kept in the folder and not done again, so an interrupted reproduction resumes where it
    was. The page and the numbers hold every paper that the folder has results of.

    Parameters
    ----------
    papers : str or sequence of str
        Keys of `PAPERS`, or "all".
    quick : bool
        Smaller samples and fewer repeats: on two cores three minutes in all instead of fifteen.
    output : path
        Folder of ``index.html``, ``reproduction.json``, the figures, the runs and finished work.
    to : str, optional
        Address that runs are logged to, such as ``mlflow:EXPERIMENT``; by default ``dir:OUTPUT/runs``.
    seed : int
        Seed of everything random: the same seed gives the same numbers.
    size : {"full", "quick", "test"}, optional
        Instead of ``quick``; "test" is the smallest at which the findings still show.
    console : rich.console.Console, optional
        Where progress is shown, and a line for every paper; standard error by default.

    Returns
    -------
    dict of str to Section
        What was found about each of the papers.

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
    folder.mkdir(parents=True, exist_ok=True)
    address = to or f"dir:{folder / 'runs'}"
    console = console or Console(stderr=True)
    columns = TextColumn("{task.description:40}"), BarColumn(), TimeElapsedColumn()
    found = {}
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        for key in keys:
            study = Study(key, folder, size, seed, address, bar if console.is_terminal else None)
            found[key] = section = _run(study)
            held = sum(finding.holds for finding in section.findings)
            console.print(
                f"{key}: {held} of {len(section.findings)} claims hold, {section.about['seconds']:.0f} s"
            )
            write(folder)
    return found


def _run(study: Study) -> Section:
    """Run one paper and keep what it found."""
    start = time.perf_counter()
    try:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):  # the arrays are small: more threads cost more than they bring
            import_module(PAPERS[study.paper].module).reproduce(study)
    except ModuleNotFoundError as error:
        raise BackendError(f"{study.paper} needs {error.name}; install it: {INSTALL}") from error
    section = study.section(
        {
            "size": study.size,
            "seed": study.seed,
            "date": datetime.now(timezone.utc).date().isoformat(),
            "versions": versions(),
            "seconds": round(time.perf_counter() - start, 1),
        }
    )
    place = study.folder / "papers"
    place.mkdir(exist_ok=True)
    _write_json(place / f"{study.paper}.json", section.to_dict())
    return section


def versions() -> dict[str, str]:
    """Versions of Python, this package, and the libraries that models are made with."""
    found = {"python": platform.python_version(), "uq-tracking": __version__}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def read(folder: Path) -> list[Section]:
    """Results of every paper that a folder has, in the order of `PAPERS`.

    Raises
    ------
    FileFormatError
        A file there is not what ``reproduce`` wrote.
    """
    sections = []
    for key in PAPERS:
        path = folder / "papers" / f"{key}.json"
        if not path.exists():
            continue
        try:
            sections.append(Section.from_dict(json.loads(path.read_text(encoding="utf-8"))))
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(f"{path} is no result of a reproduction ({error!r}); delete it") from error
    return sections


def write(folder: Path) -> None:
    """Write the page and the numbers of every paper that a folder has results of."""
    sections = read(folder)
    numbers = {
        name: [{"paper": section.paper, **entry} for section in sections for entry in section.to_dict()[name]]
        for name in ("rows", "findings")
    }
    _write_json(folder / NUMBERS_FILE, numbers)
    (folder / PAGE_FILE).write_text(page(sections), encoding="utf-8")


def _write_json(path: Path, values: Any) -> None:
    path.write_text(json.dumps(values, indent=1, allow_nan=False) + "\n", encoding="utf-8")
