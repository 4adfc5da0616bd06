"""What MLflow's pages show: a view of an experiment's charts, made by a program, and the description of a run.

MLflow keeps shared views in tags of the experiment, ``mlflow.sharedViewState.<key>``, in a format that is internal to
its pages and has no version. It is written here in the form that 2.16 to 3.17 read, with every field that any of them
needs; a page that does not understand it shows its own layout. Everything else about the experiment is in the
reader's own view, which stays unchanged.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from typing import Any
from urllib.parse import quote

from uq_tracking.formatting import COLORS, checksum, free_look
from uq_tracking.tracking.backend import is_at_least
from uq_tracking.tracking.names import METHOD_TAG, SCHEMA_TAG, split_order
from uq_tracking.tracking.overview import Card, Description, Overview, overview
from uq_tracking_mlflow.connection import CLASSIC, LONG_TAGS, base_address

KEY = "uq-overview"
TAG = f"mlflow.sharedViewState.{KEY}"
_FORM = "deflate;"
_LIMITS = {True: 20_000, False: 5000}
"""Maximum characters of an experiment's tag, from LONG_TAGS on and before."""
_SHOWN_RUNS = 20
_METHODS = "uqMethods"
"""A field of the state that MLflow's pages do not know and leave alone."""
_MOST_METHODS = 32
_GROUP = {"mode": "tag", "groupByData": METHOD_TAG}
_CARD_HEIGHT = 240
"""Pixels: two rows of charts on a screen, where MLflow's default of 360 shows one."""
_CARDS_IN_A_ROW = 2
"""With MLflow's default of three, titles are cut after a few letters."""


def view_link(tracking_uri: str, experiment_id: str) -> str | None:
    """Address that opens the view; None without a server."""
    base = base_address(tracking_uri)
    page = f"#/experiments/{quote(experiment_id)}/runs{CLASSIC}&viewStateShareKey={KEY}&compareRunsMode=CHART"
    return None if base is None else f"{base}/{page}"


def updated(
    known: str | None,
    names: Collection[str],
    version: str,
    *,
    method: str | None = None,
    grouped: bool = False,
    anew: bool = False,
) -> str | None:
    """The tag's new value once these names have also been logged; None if it is unchanged or too long.

    Parameters
    ----------
    known
        The value of the tag, if it is set.
    version
        MLflow's version, which determines the longest tag.
    method
        Method of the run they were logged to, which gets the next color.
    grouped
        Group the runs by method, as some method has several; a view that does so goes on.
    anew
        Rebuild it even if it already names all of them.
    """
    before, methods = set() if known is None else _names_in(known), _methods_in(known)
    is_new = method is not None and _mark(method) not in methods and len(methods) < _MOST_METHODS
    was_grouped = known is not None and _read(known).get("groupBy") is not None
    if known is not None and not anew and not is_new and grouped <= was_grouped and before >= set(names):
        return None
    methods += [_mark(method)] if is_new and method is not None else []
    limit = _LIMITS[is_at_least(version, LONG_TAGS)]
    found = overview(before | set(names))
    for hidden in (found.hidden, ()):
        state = {**_state(found, hidden, grouped=grouped or was_grouped), _METHODS: methods}
        text = json.dumps(state, separators=(",", ":")).encode()
        value = _FORM + base64.b64encode(zlib.compress(text, 9)).decode()
        if len(value) <= limit:
            return None if value == known else value
    return None


def color(value: str | None, method: str) -> str:
    """The color of a method's runs: by name, unless a method that was logged earlier has it."""
    taken: dict[str, int] = {}
    for mark in (*_methods_in(value), _mark(method)):
        if mark not in taken:
            taken[mark] = free_look(int(mark, 16), taken.values())
    return COLORS[taken[_mark(method)] % len(COLORS)]


def has_method(value: str | None, method: str) -> bool:
    """Whether runs of a method have been logged to the view."""
    return _mark(method) in _methods_in(value)


def _mark(method: str) -> str:
    return f"{checksum(method):08x}"


def _names_in(value: str) -> set[str]:
    """Names of the charts in a view made here; empty if it cannot be read."""
    found = _read(value).get("compareRunCharts")
    cards = [card for card in found if isinstance(card, dict)] if isinstance(found, list) else []
    keys = [card.get("dataAccessKey") or card.get("metricKey") for card in cards]
    lists = (
        key for card in cards for field in ("imageKeys", "selectedMetricKeys") for key in card.get(field, ())
    )
    return {key for key in (*keys, *lists) if key}


def _methods_in(value: str | None) -> list[str]:
    """Marks of the methods whose runs have colors, in order of appearance."""
    found = {} if value is None else _read(value).get(_METHODS)
    return [mark for mark in found if isinstance(mark, str)] if isinstance(found, list) else []


def _read(value: str) -> dict[str, Any]:
    """The state of a view; empty if it cannot be read."""
    try:
        state = json.loads(zlib.decompress(base64.b64decode(value.removeprefix(_FORM))))
    except Exception:  # a value written by another program
        return {}
    return state if isinstance(state, dict) else {}


def _state(found: Overview, hidden: Iterable[str], *, grouped: bool) -> dict[str, Any]:
    """The state of MLflow's page, every field of it.

    Charts show every run: those of groups have colors that MLflow chooses, not ours.
    """
    headings = list(found.sections)
    charts = [
        chart
        for number, heading in enumerate(headings)
        for card in found.sections[heading]
        for chart in _charts(card, f"uq-section-{number}")
    ]
    scores = [f"metrics.`{name}`" for name in found.columns]
    order, ascending = found.best or ("attributes.start_time", False)
    return {
        "searchFilter": f"tags.`{SCHEMA_TAG}` != ''",  # no parents of nested runs, which have no scores
        "orderByKey": f"metrics.`{order}`" if found.best else order,
        "orderByAsc": ascending,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": [*(f"tags.`{tag}`" for tag in found.tags), *scores],
        "runsHiddenMode": "FIRST_20_RUNS",
        "compareRunCharts": [*charts, *map(_tombstone, hidden)],
        "compareRunSections": [
            {
                "uuid": f"uq-section-{number}",
                "name": heading,
                "display": heading not in found.folded,
                "isReordered": True,
                "deleted": False,
                "isGenerated": False,
                "columns": _CARDS_IN_A_ROW,
                "cardHeight": _CARD_HEIGHT,
            }
            for number, heading in enumerate(headings)
        ],
        "isAccordionReordered": True,
        "viewMaximized": False,
        "runListHidden": False,
        "useGroupedValuesInCharts": False,
        "hideEmptyCharts": True,
        "groupBy": {"aggregateFunction": "average", "groupByKeys": [_GROUP]} if grouped else None,
        "groupsExpanded": {".".join(_GROUP.values()): True},  # of the runs without a method
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "runsVisibilityMap": {},
        "autoRefreshEnabled": False,
        "globalLineChartConfig": {"xAxisKey": "step", "lineSmoothness": 0, "selectedXAxisMetricKey": ""},
    }


def _charts(card: Card, section: str) -> Iterator[dict[str, Any]]:
    """The chart of a card; and if it has our title, whatever keeps MLflow from adding its own chart."""
    name = card.names[0]
    if card.kind == "bar":
        yield _chart("BAR", card, section, metricKey=card.title, dataAccessKey=name)
        yield _tombstone(name)
    elif card.kind == "line":
        yield _chart("LINE", card, section, metricKey=name, selectedMetricKeys=list(card.names), **_LINE)
        yield from map(_tombstone, card.names[1:])
    elif card.kind == "scatter":
        axes = {
            axis: {"key": key, "type": "METRIC"}
            for axis, key in zip(("xaxis", "yaxis"), card.names, strict=True)
        }
        yield _chart("SCATTER", card, section, **axes)
    else:
        yield _chart("IMAGE", card, section, imageKeys=list(card.names), step=0)


_LINE: dict[str, Any] = {
    "xAxisKey": "step",
    "selectedXAxisMetricKey": "",
    "scaleType": "linear",
    "xAxisScaleType": "linear",
    "lineSmoothness": 0,
    "range": {},
    "yAxisKey": "metric",
    "yAxisExpressions": [],
    "ignoreOutliers": False,
    "useGlobalXaxisKey": True,
    "useGlobalLineSmoothing": True,
}


def _chart(kind: str, card: Card, section: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": f"uq-{kind.lower()}-{'-'.join(card.names)}",
        "type": kind,
        "runsCountToCompare": _SHOWN_RUNS,
        "metricSectionId": section,
        "deleted": False,
        "isGenerated": False,
        "displayName": card.title,
        **more,
    }


def _tombstone(name: str) -> dict[str, Any]:
    """A chart, marked deleted, that MLflow would otherwise add by itself."""
    return {"type": "BAR", "metricKey": name, "isGenerated": True, "deleted": True}


NOTE_TAG = "mlflow.note.content"
LONGEST_NOTE = 7500
"""Maximum characters; MLflow silently cuts a tag at 8000."""
_CLASSIC = "get-artifact?path={file}&run_uuid={run_id}"


def with_part(text: str, description: Description, run_id: str, files: Collection[str]) -> str | None:
    """The text with our part inserted, or replacing the one it has.

    Parameters
    ----------
    text
        The run's current description.
    description
        What to say; figures not among ``files``, the names at the artifact root, are left out.

    Returns
    -------
    str or None
        None if even the shortest form would not fit.
    """
    name = f"uq_tracking{'' if description.split is None else f' {description.split}'}"
    first, last = f"[//]: # ({name})", f"[//]: # (end of {name})"  # links that no renderer shows
    before, after = text, ""
    found = re.search(f"{re.escape(first)}.*?{re.escape(last)}", text, re.DOTALL)
    later = [  # parts of splits that follow this one: the test split comes first
        mark.start()
        for mark in re.finditer(r"\[//\]: # \(uq_tracking(?: ([^)]*))?\)", text)
        if split_order(mark[1]) > split_order(description.split)
    ]
    if found:
        before, after = text[: found.start()], text[found.end() :]
    elif later:
        before, after = text[: later[0]], text[later[0] :]
    figures = [
        f"![{title}]({_CLASSIC.format(file=f'{name}.png', run_id=run_id)})"
        for name, title in (description.figures or {}).items()
        if f"{name}.png" in files
    ]
    for part in (f"{description.text}\n\n{' '.join(figures)}", description.text, description.lead):
        shown = part.strip().replace("\\<", "&lt;")  # MLflow's renderer shows the backslash
        joined = "\n\n".join(piece for piece in (before.strip(), first, shown, last, after.strip()) if piece)
        if len(joined) <= LONGEST_NOTE:
            return joined
    return None
