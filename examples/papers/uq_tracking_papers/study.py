"""The study of a paper: its size and seed, where its runs are logged, and the results that it reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from uq_tracking._version import __version__
from uq_tracking.errors import FileFormatError
from uq_tracking.npz import Arrays, read_arrays, write_arrays
from uq_tracking.tracking.deadline import PATIENCE
from uq_tracking.tracking.log import log

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.progress import Progress

Size = Literal["full", "quick", "test"]
Better = Literal["lower", "higher"]
FloatArray = npt.NDArray[np.float64]
T = TypeVar("T")

TAG = "uq.paper"


@dataclass(frozen=True)
class Row:
    """One number of ours beside the paper's.

    Attributes
    ----------
    item : str
        Table or figure of the paper, such as "table 1".
    method, quantity : str
    ours : float or None
        None if the quantity is undefined.
    paper_value : float or None
        None if the paper prints no number.
    low, high : float or None
        Range over repeats.
    """

    item: str
    method: str
    quantity: str
    ours: float | None
    paper_value: float | None = None
    low: float | None = None
    high: float | None = None


HOLDS, DEPENDS, FAILS, UNJUDGED, VARIES = "holds", "depends", "fails", "cannot judge", "varies"
ENOUGH = 0.85
"""Share of the seeds in which a claim must come out true to hold: 17 of 20."""
Outcomes = Mapping[str, npt.ArrayLike]
"""For each variant of the experiment, the main one first, whether a claim came out true with each seed."""


def judged(outcomes: Outcomes, seeds: slice = slice(None), missing: float = 0.0) -> str:
    """Class of a claim by some of the seeds, of which this many fewer need to be true.

    >>> judged({"narrow": [True] * 20, "wide": [False] * 20})
    'depends'
    """
    chosen = [np.asarray(came, dtype=bool)[seeds] for came in outcomes.values()]
    enough = [np.sum(came) >= ENOUGH * len(came) - missing for came in chosen]
    return HOLDS if all(enough) else DEPENDS if any(enough) else FAILS


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, what came of it over seeds and variants, and the evidence.

    Attributes
    ----------
    claim : str
    verdict : {"holds", "depends", "fails", "cannot judge", "varies"}
        "holds" if it came out true in 85 % of the seeds under every variant, "depends" if under some, "fails" if
        under none; "varies" if a half of the seeds (every second one) says otherwise. "class" in files.
    share : float or None
        Share of the seeds in which it came out true, under the main variant; None if it cannot be judged.
    seeds : int
    variants : dict of float
        The share under each variant, the main one first.
    evidence : str
    choice : str
        What distinguishes the variants.
    """

    claim: str
    verdict: str
    share: float | None
    seeds: int
    variants: Mapping[str, float]
    evidence: str
    choice: str = ""

    @classmethod
    def of(cls, claim: str, outcomes: Outcomes, evidence: str, choice: str = "") -> Finding:
        """The finding of these outcomes."""
        shares = {name: float(np.mean(np.asarray(came, dtype=bool))) for name, came in outcomes.items()}
        main, *_ = outcomes
        seeds = np.size(outcomes[main])
        verdict = judged(outcomes)
        halves = {
            judged(outcomes, slice(start, None, 2), missing=0.5) for start in range(2)
        }  # 17 are 9 and 8
        verdict = verdict if halves == {verdict} else VARIES
        return cls(claim, verdict, shares[main], seeds, shares, evidence, choice)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"class" if name == "verdict" else name: value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Finding:
        """Inverse of ``to_dict``."""
        return cls(**{"verdict" if name == "class" else name: value for name, value in values.items()})


@dataclass(frozen=True)
class Diagnostic:
    """A check of our own, such as of the printed values, that is no claim of the paper."""

    statement: str
    holds: bool
    evidence: str


REPRODUCED, ANALOGUE, ABSENT = "reproduced", "analogue", "absent"


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    Attributes
    ----------
    name : str
        "table 1".
    title : str
    status : {"reproduced", "analogue", "absent"}
        Whether the paper's experiment was repeated, one like it on other data, or none.
    note : str
        What the status means here, in a few words.
    text : str
        What was done, and where and why it differs from the paper; paragraphs are separated by an empty line.
    better : dict of {"lower", "higher"}
        Quantities that rank the methods.
    bounds : tuple of str
        Methods that are bounds, which are not ranked.
    """

    name: str
    title: str
    status: str = REPRODUCED
    note: str = ""
    text: str = ""
    better: Mapping[str, Better] = field(default_factory=dict)
    bounds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """A figure as a PNG file beside the page."""

    item: str
    file: str
    caption: str


@dataclass(frozen=True)
class Section:
    """All results for one paper; ``about`` has size, seed, date, versions and seconds."""

    paper: str
    about: Mapping[str, Any] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    rows: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "findings": [finding.to_dict() for finding in self.findings]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Section:
        """Inverse of ``to_dict``."""
        return cls(
            values["paper"],
            dict(values["about"]),
            tuple(Item(**{**item, "bounds": tuple(item["bounds"])}) for item in values["items"]),
            tuple(Row(**row) for row in values["rows"]),
            tuple(Finding.from_dict(finding) for finding in values["findings"]),
            tuple(Drawing(**drawing) for drawing in values["drawings"]),
            tuple(Diagnostic(**diagnostic) for diagnostic in values["diagnostics"]),
        )


@dataclass(eq=False)
class Study:
    """One paper's reproduction while it runs.

    Attributes
    ----------
    paper : str
        Key of the paper.
    folder : Path
        Where figures and finished work are kept.
    size : {"full", "quick", "test"}
        How much to compute; "test" is the smallest size at which the findings still hold.
    seed : int
        Random seed.
    address : str
        Where the paper's runs are logged.
    """

    paper: str
    folder: Path
    size: Size = "full"
    seed: int = 0
    address: str = "dir:uq_runs"
    bar: Progress | None = None
    _items: list[Item] = field(default_factory=list)
    _rows: list[Row] = field(default_factory=list)
    _findings: list[Finding] = field(default_factory=list)
    _drawings: list[Drawing] = field(default_factory=list)
    _diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def quick(self) -> bool:
        """True if less than the paper's own effort is requested."""
        return self.size != "full"

    def pick(self, full: T, quick: T, test: T | None = None) -> T:
        """The value for the size; without one for tests, that of ``quick``."""
        return {"full": full, "quick": quick, "test": quick if test is None else test}[self.size]

    @property
    def seeds(self) -> int:
        """Number of seeds over which quick experiments are repeated; others take ``few_seeds``."""
        return self.pick(20, 6, 2)

    @property
    def few_seeds(self) -> int:
        """Number of seeds of experiments that take longer."""
        return self.pick(10, 4, 2)

    def rng(self, *names: str | int) -> np.random.Generator:
        """A generator that depends only on the seed, the paper and the names."""
        words = [part for name in (self.paper, *names) for part in str(name).encode()]
        return np.random.default_rng(np.random.SeedSequence([self.seed, *words]))

    def item(
        self,
        name: str,
        about: Callable[..., Any] | str,
        *,
        status: str = REPRODUCED,
        note: str = "",
        better: Mapping[str, Better] | None = None,
        bounds: Sequence[str] = (),
        **values: object,
    ) -> None:
        """Start a table or figure of the paper.

        ``about``, the function that makes it or a text like its docstring, is what the page says: a title, then
        paragraphs, in which ``values`` fill the braces.
        """
        text = about if isinstance(about, str) else getdoc(about) or ""
        title, _, rest = (text.format(**values) if values else text).partition("\n")
        paragraphs = (" ".join(part.split()) for part in rest.split("\n\n"))
        self._items.append(
            Item(
                name,
                title.rstrip("."),
                status,
                note,
                "\n\n".join(filter(None, paragraphs)),
                dict(better or {}),
                tuple(bounds),
            )
        )

    def row(
        self,
        item: str,
        method: str,
        quantity: str,
        ours: float | None,
        paper_value: float | None = None,
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        """Report one number; arguments as for `Row`. Non-finite values count as undefined."""
        numbers = (ours, paper_value, low, high)
        kept = (None if x is None or not np.isfinite(x) else float(x) for x in numbers)
        self._rows.append(Row(item, method, quantity, *kept))

    def repeats(
        self, item: str, method: str, quantity: str, values: npt.ArrayLike, paper_value: float | None = None
    ) -> None:
        """Report the median of repeats, with their 5 % and 95 % quantiles; undefined ones are left out."""
        found = np.asarray(values, dtype=float).ravel()
        found = found[np.isfinite(found)]
        low, middle, high = np.quantile(found, [0.05, 0.5, 0.95]).tolist() if len(found) else (None,) * 3
        self.row(item, method, quantity, middle, paper_value, low, high)

    def absent(self, name: str, title: str, why: str) -> None:
        """List a table or figure of the paper that has no counterpart here."""
        self._items.append(Item(name, title, ABSENT, why))

    def finding(
        self, claim: str, outcomes: Outcomes | npt.ArrayLike, evidence: str, *, choice: str = ""
    ) -> None:
        """Report whether a claim was true with each seed, under each variant if there are several."""
        variants = outcomes if isinstance(outcomes, Mapping) else {"": outcomes}
        self._findings.append(Finding.of(claim, variants, evidence, choice))

    def cannot_judge(self, claim: str, why: str) -> None:
        """List a claim that cannot be judged here."""
        self._findings.append(Finding(claim, UNJUDGED, None, 0, {}, why))

    def diagnostic(self, statement: str, holds: object, evidence: str) -> None:
        """Report a check of our own."""
        self._diagnostics.append(Diagnostic(statement, bool(holds), evidence))

    def figure(self, item: str, figure: Figure, caption: str = "") -> None:
        """Save a drawing of an item as ``figures/PAPER-ITEM.png`` beside the page."""
        place = self.folder / "figures"
        place.mkdir(parents=True, exist_ok=True)
        stem = "-".join(re.findall(r"\w+", f"{self.paper} {item}"))
        number = sum(drawing.item == item for drawing in self._drawings)
        file = f"{stem}-{number + 1}.png" if number else f"{stem}.png"
        if self.size == "test":
            figure.set_layout_engine("none")  # which takes most of the time
        figure.savefig(place / file, dpi=self.pick("figure", "figure", 50))
        self._drawings.append(Drawing(item, f"figures/{file}", caption))

    def log(self, y_true: Any, y_pred: Any = None, y_std: Any = None, *, method: str, **options: Any) -> Any:
        """Call `uq_tracking.log` on the paper's runs; same arguments and return value."""
        return log(y_true, y_pred, y_std, method=method, **self._destination(options))

    def _destination(self, options: Mapping[str, Any]) -> dict[str, Any]:
        tags = {TAG: self.paper, **options.get("tags", {})}
        figures = {"figures": self.size != "test", "predictions": False}
        return {"run": self.address, "strict": True, "deadline": PATIENCE, **figures, **options, "tags": tags}

    def cached(self, key: str, compute: Callable[[], Mapping[str, Any]], *, of: str | None = None) -> Arrays:
        """Arrays by name, computed once: a later run of the same size, seed and version reads them.

        Parameters
        ----------
        key : str
            Name of the work within the paper; only characters allowed in file names.
        compute : callable
            Does the work and returns named values that ``numpy.asarray`` accepts. Log inside it, so that a resumed
            reproduction does not log twice.
        of : str, optional
            Name of work shared by several papers, instead of the paper.

        Returns
        -------
        dict of arrays
        """
        place = self.folder / "finished" / f"{self.size}-{self.seed}-{__version__}" / (of or self.paper)
        path = place / f"{key}.npz"
        with suppress(FileNotFoundError, FileFormatError):  # damaged files are recomputed
            return read_arrays(path)
        arrays = {name: np.asarray(value) for name, value in compute().items()}
        place.mkdir(parents=True, exist_ok=True)
        write_arrays(path, arrays, compressed=True)
        return arrays

    def progress(self, values: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
        """The values one by one, with a progress bar on a terminal."""
        if self.bar is None:
            yield from values
            return
        task = self.bar.add_task(f"{self.paper}: {what}", total=total)
        try:
            yield from self.bar.track(values, total=total, task_id=task)
        finally:
            self.bar.remove_task(task)

    def section(self, about: Mapping[str, Any]) -> Section:
        """Everything reported."""
        items, rows, findings = tuple(self._items), tuple(self._rows), tuple(self._findings)
        drawings, diagnostics = tuple(self._drawings), tuple(self._diagnostics)
        return Section(self.paper, dict(about), items, rows, findings, drawings, diagnostics)


def told(values: Mapping[str, float], form: str = ".3g", joint: str = ", ") -> str:
    """Numbers by name, for a sentence.

    >>> told({"a": 0.5, "b": 2})
    'a 0.5, b 2'
    """
    return joint.join(f"{name} {value:{form}}" for name, value in values.items())


def over_seeds(values: npt.ArrayLike, form: str = ".3g") -> str:
    """The median and the range over seeds, for a sentence.

    >>> over_seeds([1.0, 2.0, 4.0])
    '2 (1 to 4)'
    """
    found = np.asarray(values, dtype=float)
    return f"{np.nanmedian(found):{form}} ({np.nanmin(found):{form}} to {np.nanmax(found):{form}})"


def order(values: Mapping[str, float], better: Better = "lower") -> list[str]:
    """Names from the best to the worst value."""
    return sorted(values, key=values.__getitem__, reverse=better == "higher")
