"""The study of a paper: its size and seed, where its runs are logged, and the results that it reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from uq_tracking._version import __version__
from uq_tracking.errors import FileFormatError
from uq_tracking.npz import Arrays, read_arrays, write_arrays
from uq_tracking.tracking.deadline import PATIENCE
from uq_tracking.tracking.log import log
from uq_tracking.verbs import evaluate

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
    better : dict of {"lower", "higher"}
        Quantities that rank the methods.
    bounds : list of str
        Methods that are bounds, which are not ranked.
    """

    name: str
    title: str
    status: str = REPRODUCED
    note: str = ""
    better: Mapping[str, Better] = field(default_factory=dict)
    bounds: Sequence[str] = field(default_factory=list)


@dataclass(frozen=True)
class Drawing:
    """A figure as a PNG file beside the page."""

    item: str
    file: str
    caption: str


@dataclass
class Section:
    """All results for one paper; ``about`` has size, seed, date, versions and seconds."""

    paper: str
    about: Mapping[str, Any] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "findings": [finding.to_dict() for finding in self.findings]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Section:
        """Inverse of ``to_dict``."""
        return cls(
            values["paper"],
            values["about"],
            [Item(**item) for item in values["items"]],
            [Row(**row) for row in values["rows"]],
            [Finding.from_dict(finding) for finding in values["findings"]],
            [Drawing(**drawing) for drawing in values["drawings"]],
            [Diagnostic(**diagnostic) for diagnostic in values["diagnostics"]],
        )


@dataclass(eq=False)
class Study:
    """One paper's reproduction while it runs.

    Rows, figures and findings belong to the item that was started last.

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
    section : Section
        What was reported so far.
    """

    paper: str
    folder: Path
    size: Size = "full"
    seed: int = 0
    address: str = "dir:uq_runs"
    bar: Progress | None = None
    section: Section = field(init=False)
    _choice: str = ""

    def __post_init__(self) -> None:
        self.section = Section(self.paper)

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
        title: str,
        note: str = "as stated",
        *,
        status: str = REPRODUCED,
        better: Mapping[str, Better] | None = None,
        bounds: Sequence[str] = (),
        choice: str = "",
    ) -> None:
        """Start a table or figure of the paper; ``choice`` is what distinguishes the variants of its claims."""
        self.section.items.append(Item(name, title, status, note, dict(better or {}), list(bounds)))
        self._choice = choice

    def absent(self, name: str, title: str, why: str) -> None:
        """List a table or figure of the paper that has no counterpart here."""
        self.section.items.append(Item(name, title, ABSENT, why))

    @property
    def _item(self) -> str:
        return self.section.items[-1].name

    def row(
        self,
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
        self.section.rows.append(Row(self._item, method, quantity, *kept))

    def repeats(
        self, method: str, quantity: str, values: npt.ArrayLike, paper_value: float | None = None
    ) -> None:
        """Report the median of repeats, with their 5 % and 95 % quantiles; undefined ones are left out."""
        found = np.asarray(values, dtype=float).ravel()
        found = found[np.isfinite(found)]
        low, middle, high = np.quantile(found, [0.05, 0.5, 0.95]).tolist() if len(found) else (None,) * 3
        self.row(method, quantity, middle, paper_value, low, high)

    def finding(self, claim: str, outcomes: Outcomes | npt.ArrayLike, evidence: str) -> None:
        """Report whether a claim was true with each seed, under each variant if there are several."""
        variants = outcomes if isinstance(outcomes, Mapping) else {"": outcomes}
        choice = self._choice if len(variants) > 1 else ""
        self.section.findings.append(Finding.of(claim, variants, evidence, choice))

    def cannot_judge(self, claim: str, why: str) -> None:
        """List a claim that cannot be judged here."""
        self.section.findings.append(Finding(claim, UNJUDGED, None, 0, {}, why))

    def diagnostic(self, statement: str, holds: object, evidence: str) -> None:
        """Report a check of our own."""
        self.section.diagnostics.append(Diagnostic(statement, bool(holds), evidence))

    def figure(self, figure: Figure, caption: str) -> None:
        """Save a drawing of the item as ``figures/PAPER-ITEM.png`` beside the page."""
        place = self.folder / "figures"
        place.mkdir(parents=True, exist_ok=True)
        stem = "-".join(re.findall(r"\w+", f"{self.paper} {self._item}"))
        number = sum(drawing.item == self._item for drawing in self.section.drawings)
        file = f"{stem}-{number + 1}.png" if number else f"{stem}.png"
        if self.size == "test":
            figure.set_layout_engine("none")  # which takes most of the time
        figure.savefig(place / file, dpi=self.pick("figure", "figure", 50))
        self.section.drawings.append(Drawing(self._item, f"figures/{file}", caption))

    def log(self, y_true: Any, y_pred: Any = None, y_std: Any = None, *, method: str, **options: Any) -> Any:
        """Call `uq_tracking.log` on the paper's runs; same arguments and return value."""
        tags = {TAG: self.paper, **options.pop("tags", {})}
        to: Any = {
            "run": self.address,
            "strict": True,
            "deadline": PATIENCE,
            "predictions": False,
            "tags": tags,
        }
        return log(y_true, y_pred, y_std, method=method, **{"figures": self.size != "test", **options, **to})

    def scored(self, *data: Any, method: str | None, metrics: Iterable[str], **options: Any) -> Any:
        """Score by a few metrics; or, given a method's name, log the data, scored by every metric."""
        if method is None:
            return evaluate(*data, metrics=list(metrics), **options)
        return self.log(*data, method=method, **options)

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


def each_over_seeds(values: Mapping[str, npt.ArrayLike], form: str = ".3g") -> str:
    """The median and the range over seeds by name, for a sentence.

    >>> each_over_seeds({"a": [1.0, 2.0, 4.0], "b": [3.0]})
    'a: 2 (1 to 4); b: 3 (3 to 3)'
    """
    return "; ".join(f"{name}: {over_seeds(of, form)}" for name, of in values.items())


def medians(values: Mapping[str, FloatArray | Sequence[float]], form: str = ".3g") -> str:
    """Medians over seeds by name, for a sentence.

    >>> medians({"a": [1.0, 2.0, 4.0], "b": [3.0]})
    'a 2, b 3'
    """
    return told({name: float(np.nanmedian(of)) for name, of in values.items()}, form)


def order(values: Mapping[str, float], better: Better = "lower") -> list[str]:
    """Names from the best to the worst value."""
    return sorted(values, key=values.__getitem__, reverse=better == "higher")
