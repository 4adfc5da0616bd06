"""The result of an evaluation and its files."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking import plugins
from uq_tracking.checks import check_text, check_values, check_version, path_of, read_json, written
from uq_tracking.curves import Curve
from uq_tracking.errors import BackendError, FileFormatError, RecalibrationError, SettingsError, closest
from uq_tracking.formatting import encodable
from uq_tracking.metrics.registry import Later, LaterScores
from uq_tracking.npz import read_arrays, write_arrays
from uq_tracking.settings import Settings
from uq_tracking.statistics.blocks import BlockCounter, Blocks
from uq_tracking.statistics.store import statistics_from_arrays
from uq_tracking.typed import DAMAGE, cached_property, plain, read, record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from uq_tracking.inference import ClassSamples, Judgement, NoiseFloor, Samples, Verdict
    from uq_tracking.inference.classes import ClassTable
    from uq_tracking.inference.doctor import Suspicion
    from uq_tracking.inference.intervals import LeftOut
    from uq_tracking.statistics.statistics import Statistics
    from uq_tracking.tables.report import BeforeAfter

SCHEMA = 1
"""Version of the file format; increased when older readers would misread new files."""

REPORT_KEY = "report.json"
INLINE_DPI = 70
"""Resolution of figures in notebooks: about 700 pixels wide."""
ROUNDING = 1e-12
"""Scores below this fraction of their scale are shown as 0."""
SAME_TARGETS = 1e-6
"""Relative difference of the targets' moments that is allowed for a float32 copy of the data."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Report:
    """Scores, curves and where they came from.

    Attributes
    ----------
    task : str
    scores : dict of float
        Finite scores by metric key; ``uq-tracking metrics`` explains each.
    undefined : dict of str
        Metrics without a value for this input, with the reason.
    curves : dict of Curve
        The numbers behind the figures.
    counts : dict of int
        Number of samples that count (``n``) and that were left out, by reason.
    settings : dict
        The options that affect the numbers.
    provenance : dict
        Package and schema versions, kind of statistics, digest of the data.
    statistics : Statistics or None
        The statistics from which everything above is computed; None in a report read from JSON.
    recalibration : dict or None
        What was fitted, to which data, and the scores afterwards.
    intervals : dict of (low, high)
        Confidence intervals of the scores, if groups were given.
    verdicts : dict of str
        If requested, a sentence per metric on whether the test set is large enough for it, and one on the scale of
        the uncertainties.
    """

    task: str
    scores: Later[Mapping[str, float]] = Later()
    undefined: Later[Mapping[str, str]] = Later()
    curves: Later[Mapping[str, Curve]] = Later()
    counts: Mapping[str, int]
    settings: Mapping[str, Any]
    provenance: Later[Mapping[str, Any]] = Later()
    statistics: Statistics | None = None
    recalibration: Mapping[str, Any] | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    verdicts: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, Report] = field(default_factory=dict)
    """Reports of the labels of ``by``, unless this report was read from a file."""
    judgement: Judgement | None = None
    """Noise floors and verdict as stored; computed from the statistics if absent."""
    stored_classes: ClassTable | None = None
    """Scores of each class as stored; computed from the statistics if absent."""
    samples: Samples | ClassSamples | None = None
    """The samples in the order given, from which the verdict is computed when it is first asked for."""
    among: int = 1
    """Number of reports that are judged together, as outputs and strata are: each has its share of the levels."""
    left_out: LeftOut | None = None
    """Scores without each set of groups, by which `compare` pairs this report with others; None without groups."""
    counted_blocks: Blocks | None = None
    """``blocks`` as counted from a stream, or as stored; by default counted from the samples when first asked for."""

    def scores_of(self, keys: Collection[str]) -> dict[str, float]:
        """Scores of these metrics, where they have a value, without computing the others."""
        given = vars(self)["scores"]
        if isinstance(given, LaterScores):
            return given(keys)
        return {key: value for key, value in self.scores.items() if key in keys}

    @property
    def noise(self) -> Mapping[str, NoiseFloor]:
        """What a calibrated forecast would score on as much data, for every score that finite data inflate."""
        return self._judged.noise

    @property
    def verdict(self) -> Verdict:
        """Whether the model is over- or underconfident, by how much, and whether it knows where it errs."""
        return self._judged.verdict

    @cached_property
    def _judged(self) -> Judgement:
        from uq_tracking.inference import judge

        if self.judgement is not None:
            return self.judgement
        settings = Settings.from_dict(self.settings)
        names = self.settings.get("classes")
        return judge(self.statistics, self.task, settings, self.scores, self.samples, self.among, names)

    @cached_property
    def class_table(self) -> ClassTable | None:
        """Scores of each class, with intervals over groups; None if the report holds none."""
        if self.stored_classes is not None or self.statistics is None:
            return self.stored_classes
        if "confusion" not in self.statistics.tables:
            return None
        from uq_tracking.inference.classes import class_table

        return class_table(self.statistics, self.settings.get("classes"))

    @property
    def classes(self) -> DataFrame:
        """Scores of each class as a pandas DataFrame, one row per class, in their order.

        ``support`` is the number of its samples, ``observed`` their share; ``recall``, ``precision``, ``iou`` and
        ``dice`` are NaN for a class that does not occur or is never predicted. With eight or more groups,
        ``recall_low`` and ``recall_high`` and so on are limits at 95 %, NaN for a class in too few groups.

        Raises
        ------
        SettingsError
            The report is not of classes, or holds neither its statistics nor this table.
        BackendError
            pandas is not installed.
        """
        table = self.class_table
        if table is None:
            raise SettingsError(
                f"this report of a {self.task} holds no scores of classes; evaluate labels and probs, or read it "
                "with Report.from_npz"
            )
        return _pandas().DataFrame(table.columns(), index=_pandas().Index(table.labels, name="class"))

    @cached_property
    def blocks(self) -> Blocks | None:
        """Sums of losses over consecutive samples, by which `compare` pairs this report with others; None without."""
        if self.counted_blocks is not None or self.samples is None or self.statistics is None:
            return self.counted_blocks
        settings = Settings.from_dict(self.settings)
        made = BlockCounter(self.statistics.layout, self.statistics.facts, settings)
        made.add(self.samples.rows)
        return made.finished()

    @property
    def suspicions(self) -> tuple[Suspicion, ...]:
        """Likely mistakes in the input, such as a variance passed as a standard deviation; each has a ``fix``."""
        return self.verdict.suspicions

    def shown(self, key: str) -> tuple[float, tuple[float, float] | None]:
        """A score and its interval as displayed, with 0 for what differs from it only by rounding.

        That means below 1e-12 times the RMSE for scores in the target's unit, and below 1e-12 for others.

        Parameters
        ----------
        key : str
            Key of a score in the report.

        Returns
        -------
        float, (float, float) or None
        """
        metric = plugins.metrics(self.task).get(key)
        scaled = metric is not None and "target" in metric.unit
        least = ROUNDING * (self.scores.get("rmse", 0.0) if scaled else 1.0)

        def told(value: float) -> float:
            return 0.0 if abs(value) < least else value

        interval = self.intervals.get(key)
        return told(self.scores[key]), None if interval is None else (told(interval[0]), told(interval[1]))

    @property
    def strata(self) -> Reports:
        """A report of each label of ``by``; print it, or take ``to_frame()``, for a table.

        A report that was read from a file knows the counts and the scores of its curves.
        """
        found = Reports(self.parts)
        found.whole = self
        for label, own in () if self.parts else stratum_scores(self).items():
            found[label] = Report(
                task=self.task,
                scores={key: value for key, value in own.items() if key != "count"},
                undefined={},
                curves={},
                counts={"n": int(own["count"])},
                settings=self.settings,
                provenance={"statistics": self.provenance.get("statistics")},
            )
        return found

    @property
    def recalibrations(self) -> Mapping[str, Any]:
        """What each method of recalibration fitted, and the scores afterwards."""
        return dict((self.recalibration or {}).get("methods", {}))

    def scored_methods(self) -> dict[str, Any]:
        """Entries of the recalibrations that have scores, in order."""
        return {name: entry for name, entry in self.recalibrations.items() if "scores" in entry}

    def after(self, method: str | None = None) -> Report:
        """The report after a recalibration, by default the first, for drawings and comparisons.

        Raises
        ------
        RecalibrationError
            The report has no scores after it.
        """
        check_text("method", method, "'std_scaling'")
        done = self.scored_methods()
        if not done or (method is not None and method not in done):
            raise RecalibrationError(
                f"the report has scores after {', '.join(done) or 'no recalibration'}; evaluate with calibration="
            )
        entry = done[method or next(iter(done))]
        return Report(
            task=self.task,
            scores=dict(entry["scores"]),
            undefined=dict(entry["undefined"]),
            curves={name: Curve.from_dict(curve) for name, curve in entry["curves"].items()},
            counts=self.counts,
            settings=self.settings,
            provenance=self.provenance,
            among=self.among,
        )

    def labelled(
        self, *, method: str | None = None, split: str | None = None, not_stored: str | None = None
    ) -> Report:
        """The same report, labelled with method and split, as its figures are, and with what its run lacks."""
        given = {"method": method, "split": split, "not_stored": not_stored}
        known = {name: label for name, label in given.items() if label is not None}
        if not known:
            return self
        # Not `replace`, which would trigger deferred computations, and forget what was computed.
        made = object.__new__(Report)
        vars(made).update(vars(self), provenance={**self.provenance, **known})
        return made

    def to_dict(self) -> dict[str, Any]:
        """Everything except the statistics, as plain values."""
        stored = {name: getattr(self, name) for name in STORED}
        return {
            "schema": SCHEMA,
            **{name: dict(value) if isinstance(value, Mapping) else value for name, value in stored.items()},
            "curves": {name: curve.to_dict() for name, curve in self.curves.items()},
            "intervals": {key: list(interval) for key, interval in self.intervals.items()},
            **({} if self.class_table is None else {"classes": self.class_table.to_dict()}),
            **plain(self._judged),
            "left_out": plain(self.left_out),
            "blocks": plain(self.blocks),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], statistics: Statistics | None = None) -> Report:
        """Inverse of ``to_dict``; FileFormatError for anything else."""
        check_version("the report", values.get("schema") if isinstance(values, Mapping) else None, SCHEMA)
        try:
            check_values(values)
            Settings(unit=values["settings"].get("unit"))  # which refuses a text that is none
            known = {"recalibration": None, "verdicts": {}, **values}
            found = {name: read(known[name], kind, name) for name, kind in STORED.items()}
            for name, curve in found["curves"].items():
                if not all(np.isfinite(column).all() for column in curve.columns.values()):
                    raise ValueError(f"the curve {name} holds a non-finite number")
            for name, entry in (found["recalibration"] or {}).get("methods", {}).items():
                for part in ("scalars", "scores"):
                    read(entry.get(part, {}), Mapping[str, float], f"{part} after {name}")
            return cls(**found, statistics=statistics, **_stored(values))
        except DAMAGE as error:
            raise FileFormatError(f"this is not a uq_tracking report ({error!r})") from error

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the report as strict JSON; also write it to ``path`` if given."""
        return written(_lines(self.to_dict()), path)

    @classmethod
    def from_json(cls, source: str | Path) -> Report:
        """Read what ``to_json`` returned or wrote: the text, or the path of its file."""
        return cls.from_dict(read_json(source, parse_constant=_refuse))

    def to_npz(self, path: str | Path) -> None:
        """Write the report and its statistics to one compressed file."""
        arrays = {} if self.statistics is None else self.statistics.to_arrays()
        write_arrays(path_of(path), {**arrays, REPORT_KEY: np.asarray(self.to_json())}, compressed=True)

    @classmethod
    def from_npz(cls, path: str | Path) -> Report:
        """Read what ``to_npz`` wrote; FileFormatError names a damaged or foreign file."""
        arrays = read_arrays(path_of(path))
        if REPORT_KEY not in arrays:
            raise FileFormatError(f"{path} holds no report; if it holds only statistics, use read_statistics")
        report = cls.from_json(str(arrays.pop(REPORT_KEY)))
        return replace(report, statistics=statistics_from_arrays(arrays)) if arrays else report

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Report) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        later = ("scores", "undefined", "curves", "provenance")
        state = {**vars(self), **{name: getattr(self, name) for name in later}}
        if self.samples is None:
            return state
        return {**state, "judgement": self._judged, "counted_blocks": self.blocks, "samples": None}

    def __str__(self) -> str:
        from uq_tracking.tables.report import part_tables, report_table
        from uq_tracking.tables.terminal import tables_text

        return encodable(tables_text([report_table(self), *part_tables(self)]))

    def __repr__(self) -> str:
        from uq_tracking.tables.report import report_summary

        return encodable(report_summary(self))

    def _repr_html_(self) -> str:
        from uq_tracking.tables.report import report_html

        png = BytesIO()
        self.plot().savefig(png, format="png", dpi=INLINE_DPI)
        return report_html(self, png.getvalue())

    def plot(self, figure: str = "overview", *, ax: Axes | None = None) -> Figure:
        """Draw a figure of the report.

        Parameters
        ----------
        figure : str, optional
            One of ``report.figures``, such as ``"reliability"``; ``"overview"`` shows the most important ones on one
            sheet.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, for a figure with a single panel; by default a new figure, not registered with pyplot.

        Returns
        -------
        matplotlib.figure.Figure
            Shown inline in notebooks; save it with ``savefig``.

        Raises
        ------
        SettingsError
            There is no such figure, it has several panels, or the report lacks its curves.

        Examples
        --------
        >>> import uq_tracking as uq
        >>> report = uq.evaluate([1.0, 2.0, 3.0], [1.1, 1.9, 3.3], [0.1, 0.2, 0.3])
        >>> report.plot("calibration").axes[0].get_xlabel()
        'Predicted quantile level'
        """
        check_text("figure", figure, "'reliability'")
        known = plugins.figures(self.task)
        if figure not in known:
            raise SettingsError(
                f"there is no figure {figure!r}{closest(figure, known)}; this report has {', '.join(self.figures)}"
            )
        if lacking := known[figure].lacks(self):
            raise SettingsError(lacking)
        return known[figure].draw(self, ax)

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of the figures that `plot` can draw from this report."""
        known = plugins.figures(self.task)
        return tuple(name for name, spec in known.items() if not spec.lacks(self))

    def to_frame(self) -> DataFrame:
        """The scores as a pandas DataFrame by key: value, interval, score by chance alone, unit, meaning.

        Raises
        ------
        BackendError
            pandas is not installed.
        """
        from uq_tracking.tables.report import score_rows

        return _pandas().DataFrame(score_rows(self)).set_index("score")


class Reports(dict[str, Report]):
    """One report per output or per label of ``by``, in their order.

    Verdicts of regressions are judged together: each test of one of K reports has 1/K of its level, so that about one
    set of calibrated reports in twenty contains a false word on calibration.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> boxes = uq.evaluate([[0.0, 5.0], [1.0, 6.0]], [[0.1, 4.0], [0.8, 6.5]], [[0.1, 1.0], [0.2, 1.0]],
    ...                     outputs=["x", "y"], metrics=["mae", "rmse"])
    >>> round(boxes["y"].scores["mae"], 3)
    0.75
    >>> print(boxes)
    Too few data in each of 2 to judge it alone.
    x: Not enough data to tell: 2 samples are too few; a test needs 20.
    y: Not enough data to tell: 2 samples are too few; a test needs 20.
    <BLANKLINE>
    output       x       y
    ----------------------
    mae     0.1500  0.7500
    rmse    0.1581  0.7906
    """

    whole: Report | None = None
    """The report of all samples, of which these are strata."""

    @property
    def text(self) -> str:
        """Which of them are wrong, the worst first, in a sentence, and which are only when judged together."""
        from uq_tracking.inference.words import of_parts

        verdicts = {name: report.verdict for name, report in self.items()}
        return of_parts(verdicts, None if self.whole is None else self.whole.verdict)

    def to_frame(self) -> DataFrame:
        """Scores and number of samples (``count``) as a pandas DataFrame, one row per report.

        Raises
        ------
        BackendError
            pandas is not installed.
        """
        rows = {name: {"count": report.counts["n"], **report.scores} for name, report in self.items()}
        return _pandas().DataFrame.from_dict(rows, orient="index")

    def before_after(self, metrics: str | Sequence[str] = ("ence", "cv")) -> BeforeAfter:
        """Scores before and after each recalibration, one row per report.

        Parameters
        ----------
        metrics : str or sequence of str
            Keys.

        Returns
        -------
        BeforeAfter
            A printable table.

        References
        ----------
        .. [1] Levi et al., 2019, table 1.
        """
        from uq_tracking.tables.report import before_after

        return before_after(self, metrics)

    def __str__(self) -> str:
        from uq_tracking.tables.report import outputs_table
        from uq_tracking.tables.terminal import tables_text

        return encodable(tables_text([outputs_table(self, self.text)], width=1000))

    def _repr_html_(self) -> str:
        from uq_tracking.tables.formats import tables_html
        from uq_tracking.tables.report import outputs_table

        return tables_html([outputs_table(self, self.text)])


def stratum_scores(report: Report) -> dict[str, dict[str, float]]:
    """Return ``count`` and the scores that the report's curves hold for each label of ``by``."""
    found: dict[str, dict[str, float]] = {}
    for name, curve in report.curves.items():
        if name.startswith("by_group_") and curve.labels is not None:
            keys = ("count", name.removeprefix("by_group_"))
            columns = (curve.columns[key].tolist() for key in keys)
            for label, *values in zip(curve.labels, *columns, strict=True):
                found.setdefault(label, {}).update(zip(keys, values, strict=True))
    return found


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise BackendError('to_frame needs pandas; run pip install "pandas"') from error
    return pandas


STORED: dict[str, Any] = {
    "task": str,
    "scores": Mapping[str, float],
    "undefined": Mapping[str, str],
    "curves": Mapping[str, Curve],
    "counts": Mapping[str, int],
    "settings": Mapping[str, Any],
    "provenance": Mapping[str, Any],
    "recalibration": Mapping[str, Any] | None,
    "intervals": Mapping[str, tuple[float, float]],
    "verdicts": Mapping[str, str],
}
"""What every stored report holds, and its types."""


def _stored(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a report computes when it is first asked for, from the values of one that was stored."""
    from uq_tracking.inference import Judgement
    from uq_tracking.inference.classes import ClassTable
    from uq_tracking.inference.intervals import LeftOut

    kinds: dict[str, Any] = {"classes": ClassTable, "left_out": LeftOut, "blocks": Blocks}
    known = {key: kind.from_dict(values[key]) for key, kind in kinds.items() if values.get(key) is not None}
    fields_of = {"classes": "stored_classes", "left_out": "left_out", "blocks": "counted_blocks"}
    made: dict[str, Any] = {fields_of[key]: found for key, found in known.items()}
    if "verdict" in values:
        made["judgement"] = record(Judgement, {name: values[name] for name in ("noise", "verdict")})
    return made


def _lines(values: Mapping[str, Any], level: int = 1) -> str:
    """Strict JSON with one line per entry, down to the second level; json's own indentation is slow."""
    lines = []
    for name, value in values.items():
        is_nested = level == 1 and isinstance(value, dict) and value
        text = _lines(value, 2) if is_nested else json.dumps(value, allow_nan=False)
        lines.append(f"{' ' * level}{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + f"\n{' ' * (level - 1)}}}"


def _refuse(constant: str) -> float:
    """Reject NaN and infinity, which are not JSON but which Python's reader accepts."""
    raise ValueError(f"{constant} is not a JSON number")


def targets_of(report: Report) -> dict[str, float] | None:
    """Moments of the targets, or None if the report lacks them."""
    values = report.provenance.get("targets")
    if not isinstance(values, Mapping):
        return None
    return {str(name): float(value) for name, value in values.items() if isinstance(value, int | float)}


def same_targets(one: Report, other: Report) -> bool:
    """Whether two reports are known to be of the same targets, up to their order and precision."""
    if one.counts.get("n") != other.counts.get("n"):
        return False
    first, second = targets_of(one), targets_of(other)
    if first is None or second is None or first.keys() != second.keys():
        return False
    scale = max((abs(value) for value in (*first.values(), *second.values())), default=0.0)
    return all(abs(first[name] - second[name]) <= SAME_TARGETS * scale for name in first)
