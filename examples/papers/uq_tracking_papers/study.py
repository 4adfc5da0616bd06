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


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, whether it held here, and the evidence."""

    claim: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    Attributes
    ----------
    name : str
        "table 1".
    title : str
    text : str
        What was done, and where and why it differs from the paper; paragraphs are separated by an empty line.
    better : dict of {"lower", "higher"}
        Quantities that rank the methods.
    bounds : tuple of str
        Methods that are bounds, which are not ranked.
    """

    name: str
    title: str
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Section:
        """Inverse of ``to_dict``."""
        return cls(
            values["paper"],
            dict(values["about"]),
            tuple(Item(**{**item, "bounds": tuple(item["bounds"])}) for item in values["items"]),
            tuple(Row(**row) for row in values["rows"]),
            tuple(Finding(**finding) for finding in values["findings"]),
            tuple(Drawing(**drawing) for drawing in values["drawings"]),
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

    @property
    def quick(self) -> bool:
        """True if less than the paper's own effort is requested."""
        return self.size != "full"

    def pick(self, full: T, quick: T, test: T | None = None) -> T:
        """The value for the size; without one for tests, that of ``quick``."""
        return {"full": full, "quick": quick, "test": quick if test is None else test}[self.size]

    def rng(self, *names: str | int) -> np.random.Generator:
        """A generator that depends only on the seed, the paper and the names."""
        words = [part for name in (self.paper, *names) for part in str(name).encode()]
        return np.random.default_rng(np.random.SeedSequence([self.seed, *words]))

    def item(
        self,
        name: str,
        about: Callable[..., Any] | str,
        *,
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

    def finding(self, claim: str, holds: object, evidence: str) -> None:
        """Report whether a claim held: the truth of ``holds``, computed from the results."""
        self._findings.append(Finding(claim, bool(holds), evidence))

    def figure(self, item: str, figure: Figure, caption: str = "") -> None:
        """Save a drawing of an item as ``figures/PAPER-ITEM.png`` beside the page."""
        place = self.folder / "figures"
        place.mkdir(parents=True, exist_ok=True)
        stem = "-".join(re.findall(r"\w+", f"{self.paper} {item}"))
        number = sum(drawing.item == item for drawing in self._drawings)
        file = f"{stem}-{number + 1}.png" if number else f"{stem}.png"
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
        return Section(self.paper, dict(about), items, rows, findings, tuple(self._drawings))


def told(values: Mapping[str, float], form: str = ".3g", joint: str = ", ") -> str:
    """Numbers by name, for a sentence.

    >>> told({"a": 0.5, "b": 2})
    'a 0.5, b 2'
    """
    return joint.join(f"{name} {value:{form}}" for name, value in values.items())


def order(values: Mapping[str, float], better: Better = "lower") -> list[str]:
    """Names from the best to the worst value."""
    return sorted(values, key=values.__getitem__, reverse=better == "higher")
