"""What a person sees first: a few charts of all runs, under the questions they answer; the description of one run.

It is made from names alone, so whoever logs next can bring a tracker's page up to date.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from uq_tracking import plugins
from uq_tracking.formatting import format_score
from uq_tracking.metrics.registry import Metric, every_metric, headline_or_all
from uq_tracking.report import Report
from uq_tracking.tables import unit_text
from uq_tracking.tables.formats import markdown_escaped, table_markdown
from uq_tracking.tables.report import report_table
from uq_tracking.tracking.names import (
    CURVES,
    HEADLINE,
    MAPS,
    METHOD_TAG,
    SECTIONS,
    VERDICT_TAG,
    figure_name,
    split_order,
    tag_name,
)

QUESTIONS = {
    "Accurate?": ("accuracy", "scoring"),
    "Honest?": ("calibration", "spread"),
    "Knows where it errs?": ("ranking",),
}
"""Headings, and the families of metrics and curves below each."""
_ARROWS = {"lower": " \N{DOWNWARDS ARROW}", "higher": " \N{UPWARDS ARROW}"}
"""Which way is better, as written in the tables of papers."""
WHOLE = "without a split"
"""Heading of scores without a split, where there are also some with."""
MOST_MAPS = 6
"""Number of cases whose panels are shown."""


@dataclass(frozen=True)
class Card:
    """One chart of all runs: bars, a curve and its variants, one name against another, or images."""

    kind: Literal["bar", "line", "scatter", "images"]
    names: tuple[str, ...]
    title: str


@dataclass(frozen=True)
class Overview:
    """Charts by heading, and whatever else a page of runs needs.

    Attributes
    ----------
    sections : dict of tuple of Card
        Headings are questions; or the splits if there are several, the test split first.
    columns : tuple of str
        The few scores to show in a table of runs, next to the tags.
    tags : tuple of str
        Tags to show in it.
    best : (str, bool) or None
        The score to sort runs by, and whether the lowest comes first.
    hidden : tuple of str
        Our own names that have no chart.
    folded : tuple of str
        Headings whose charts are not shown at first.
    """

    sections: dict[str, tuple[Card, ...]]
    columns: tuple[str, ...]
    tags: tuple[str, ...]
    best: tuple[str, bool] | None
    hidden: tuple[str, ...]
    folded: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Name:
    """A logged name, parsed."""

    whole: str
    section: str
    split: str
    key: str

    @classmethod
    def of(cls, whole: str) -> _Name:
        section, _, rest = whole.partition("/")
        split, _, key = rest.rpartition("/")
        return cls(whole, section, split, key)


def overview(names: Iterable[str]) -> Overview:
    """The charts of everything logged under these names; other programs' names are left alone.

    >>> found = overview(["uq/crps", "uq/coverage_95", "uq_ranking/spearman", "loss"])
    >>> {heading: [card.names[0] for card in cards] for heading, cards in found.sections.items()}
    {'Accurate?': ['uq/crps'], 'Honest?': ['uq/coverage_95']}
    >>> found.hidden
    ('uq_ranking/spearman',)
    """
    ours = [name for name in map(_Name.of, sorted(set(names))) if name.section in (*SECTIONS, CURVES, MAPS)]
    sections: dict[str, list[Card]] = {}
    columns, tags, best = list[str](), [METHOD_TAG], None
    splits = sorted({name.split for name in ours if name.section == HEADLINE}, key=split_order)
    for split in splits:
        found = {name.key: name.whole for name in ours if name.section == HEADLINE and name.split == split}
        headline = [metric for metric in _metrics() if metric.key in found]
        curves = [name for name in ours if name.section == CURVES and name.split == split]
        asked = {
            heading: list(_cards([m for m in headline if m.family in families], found, curves))
            for heading, families in QUESTIONS.items()
        }
        first = {metric.family: metric for metric in reversed(headline)}
        if "accuracy" in first and "ranking" in first:
            sides = (first["accuracy"].key, first["ranking"].key)
            names = tuple(found[key] for key in sides)
            asked["All at once"] = [Card("scatter", names, " against ".join(sides))]
        if len(splits) == 1:
            sections = asked
        else:  # one score of each kind before the others
            lead = {found[metric.key] for metric in first.values()}
            cards = [card for part in asked.values() for card in part]
            ahead = [card for card in cards if card.kind == "bar" and card.names[0] in lead]
            sections[split or WHOLE] = [*ahead, *(card for card in cards if card not in ahead)]
        if split != splits[0]:
            continue
        # One score from each family that judges uncertainty: more would push the verdict out of sight.
        columns += [found[first[own].key] for own in ("scoring", "calibration", "ranking") if own in first]
        tags.append(tag_name(VERDICT_TAG, split))
        if "scoring" in first:
            best = found[first["scoring"].key], first["scoring"].direction != "higher"
    maps = [name for name in ours if name.section == MAPS]
    sections["Maps"] = [
        # the split comes last, as it may be cut off
        Card("images", (name.whole,), f"case {name.key}" + (f", {name.split}" if name.split else ""))
        for name in maps[:MOST_MAPS]
    ]
    shown = {name for cards in sections.values() for card in cards for name in card.names}
    return Overview(
        {heading: tuple(cards) for heading, cards in sections.items() if cards},
        tuple(columns),
        tuple(tags),
        best,
        tuple(name.whole for name in ours if name.whole not in shown and name.section != MAPS),
        tuple(split or WHOLE for split in splits[1:]),
    )


def _cards(headline: Collection[Metric], found: Mapping[str, str], curves: Iterable[_Name]) -> Iterable[Card]:
    """Bars of the headline scores, then the curve of each."""
    for metric in headline:  # titles are short: trackers cut them at the width of a small chart
        wanted = f"want {metric.direction:g}" if isinstance(metric.direction, float) else ""
        glance = metric.glance or wanted
        told = f": {glance}" if glance else _ARROWS.get(str(metric.direction), "")
        yield Card("bar", (found[metric.key],), f"{metric.key}{told}")
    lines: dict[str, list[str]] = {}
    for name in curves:
        lines.setdefault(name.key.partition("-")[0], []).append(name.whole)
    for metric in headline:
        # curves with limits must be cut to be readable
        specs = (spec for spec in plugins.curves(metric.task).values() if spec.steps and not spec.limits)
        spec = next((spec for spec in specs if spec.score == metric.key and spec.overlaid), None)
        if spec is not None:
            title = f"{spec.title}: {spec.y_label}"
            for key, own in lines.items():
                if key.partition(".")[0] == spec.name:  # the part after a dot states its settings
                    yield Card("line", tuple(own), title)


def _metrics() -> Iterable[Metric]:
    """Headline metrics of all tasks, each key once."""
    found: dict[str, Metric] = {}
    for metric in every_metric():
        if metric.headline:
            found.setdefault(metric.key, metric)
    return sorted(found.values(), key=lambda metric: metric.place)


COLUMNS = ("value", "unit", "better", "interval", "by chance")


@dataclass(frozen=True)
class Description:
    """Text for the page of a run.

    Attributes
    ----------
    lead : str
        The verdict, in Markdown.
    body : str
        The headline scores, in Markdown.
    verdict : str
        The verdict, as plain text.
    split : str or None
        The split it describes; each has its own part.
    figures : dict of str
        Figures that belong to it, if the run holds them: titles by name, without suffix.
    """

    lead: str
    body: str
    verdict: str
    split: str | None = None
    figures: dict[str, str] | None = None

    @property
    def text(self) -> str:
        """All of it except the figures."""
        return f"{self.lead}\n\n{self.body}"


def description(report: Report, split: str | None = None) -> Description:
    """Describe a report: trackers show three lines until asked for more, so headline and verdict come first."""
    table = report_table(report, headline_or_all(report.task, report.scores))
    named = {column.key: column for column in table.columns}
    shown = tuple(named[key] for key in COLUMNS if key in named)
    lost = filter(None, [report.provenance.get("not_stored")])
    plain = replace(table, columns=shown, lead=(), notes=(), remarks=(*report.verdict.caveats, *lost))
    of_split = f"**{markdown_escaped(split)}:** " if split else ""
    by_chance = "*by chance*: what a calibrated forecast would score on the same amount of data."
    title = f"{table.title}; {scored_as(report)}; {by_chance}"
    of_curves = {curve.figure for curve in plugins.curves(report.task).values()}
    figures = {  # of one panel: wider ones would push MLflow's side column, and the ends of lines, out of sight
        figure_name(spec.name, split): spec.name.replace("_", " ")
        for spec in plugins.figures(report.task).values()
        if spec.default and spec.name in of_curves and not spec.lacks(report)
    }
    first: dict[str, str] = {}  # one score of each family, as in the table of runs
    for key in headline_or_all(report.task, report.scores):
        metric = plugins.metrics(report.task).get(key)
        if metric is not None and key in report.scores:
            unit = unit_text(metric.unit, report.settings.get("unit"))
            first.setdefault(metric.family, f"{key} {format_score(report.shown(key)[0])} {unit}".rstrip())
    lead = of_split + markdown_escaped(
        ". ".join(filter(None, [", ".join(first.values()), report.verdict.text]))
    )
    return Description(lead, f"{table_markdown(plain)}\n{title}", report.verdict.text, split, figures)


def scored_as(report: Report) -> str:
    """Return how a report was scored, in a few words.

    >>> import uq_tracking as uq
    >>> scored_as(uq.evaluate([1.0, 2.0, 3.0], [1.1, 1.9, 3.3], [0.1, 0.2, 0.3]))
    'alpha 0.95, 10 bins, gaussian, no groups, no recalibration'
    """
    known, groups = report.settings, report.provenance.get("intervals", {}).get("groups")
    law = known.get("distribution") or known.get("family")
    dof = f" with {known['dof']:g} degrees of freedom" if law == "student_t" else ""
    methods = [
        f"{name}{' (of half)' if 'split' in found else ''}" for name, found in report.recalibrations.items()
    ]
    parts = (
        f"alpha {known['alpha']:g}" if "alpha" in known else "",
        f"{known['n_bins']} bins" if "n_bins" in known else "",
        f"{law}{dof}" if law else "",
        f"std at least {known['std_floor']:g}" if known.get("std_floor") else "",
        f"{groups} groups" if groups else "no groups",
        f"before and after {', '.join(methods)}" if methods else "no recalibration",
    )
    return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class Dataset:
    """The truth that was scored; runs with the same digest are comparable."""

    name: str
    digest: str
    n: int


def dataset(report: Report, split: str | None = None) -> Dataset:
    """The truth of a report: equal for equal truth, whatever its order or batching."""
    targets = {name: f"{value:.6g}" for name, value in report.provenance.get("targets", {}).items()}
    text = json.dumps([report.counts["n"], targets], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Dataset(split or "truth", digest, report.counts["n"])


ASKED = "UQ_TRACKING_HINT"
"""1 always writes the line, 0 never."""


def hint(report: Report, pages: Iterable[str | None]) -> None:
    """Write the line to an interactive terminal or notebook; stay silent in an unattended job."""
    where, asked = next((page for page in pages if page), None), os.environ.get(ASKED)
    with suppress(OSError, ValueError, AttributeError):  # of a stream that is closed, cut off or None
        is_watched = "ipykernel" in sys.modules or sys.stderr.isatty()
        if where is not None and (asked == "1" if asked in ("0", "1") else is_watched):
            label = "look" if where.startswith("http") else "look with"
            sys.stderr.write(f"uq_tracking: {report.verdict.short}; {label}: {where}\n")
