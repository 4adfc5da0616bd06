"""The other parts of the page: warnings, agreement, maps, the metrics explained, and the runs."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING

from uq_tracking.comparison import columns, wording
from uq_tracking.comparison.page.markup import MINUS, NOTHING, TIMES, joined, swatch, table, tag, text
from uq_tracking.comparison.page.scores import direction_mark
from uq_tracking.tables import better_text, unit_text

if TYPE_CHECKING:
    from uq_tracking.comparison.maps import MapCase, MapPanel
    from uq_tracking.comparison.result import Comparison

SETTINGS = ("alpha", "n_bins", "family", "std_floor")


def warnings(comparison: Comparison) -> str:
    """A box on top of everything, or nothing."""
    if not comparison.warnings:
        return ""
    items = joined(tag("li", text(warning)) for warning in comparison.warnings)
    head = tag("strong", "Before you compare")
    return tag("section", head + tag("ul", items), class_="warnings", role="alert")


def chips(comparison: Comparison) -> str:
    """One button per method that shows and hides it everywhere."""
    return joined(
        tag("button", swatch(k) + text(name), type="button", class_="chip", data_chip=k, aria_pressed="true")
        for k, name in enumerate(comparison.groups)
    )


def agreement(comparison: Comparison) -> str:
    """Kendall's tau between the rankings of any two metrics, or a sentence why there is none."""
    found = comparison.agreement
    if len(found.keys) < 2:
        return tag("p", "It takes three methods and two metrics that rank them.", class_="quiet")
    attributes = {
        metric.key: {
            "data_key": metric.key,
            "data_family": columns.family(metric),
            "data_headline": metric.key in comparison.headline,
            "hidden": metric.key not in comparison.headline,
        }
        for metric in comparison.metrics
        if metric.key in found.keys
    }
    heads = (tag("th", tag("span", text(key)), scope="col", **attributes[key]) for key in found.keys)
    rows = []
    for key, taus in zip(found.keys, found.tau, strict=True):
        cells = [tag("th", text(key), scope="row")]
        for other, tau in zip(found.keys, taus, strict=True):
            cells.append(_tau(key, other, tau, attributes[other]))
        rows.append(tag("tr", joined(cells), **attributes[key]))
    return table([tag("tr", tag("td", "") + joined(heads))], [rows], class_="agreement")


def _tau(one: str, other: str, tau: float | None, attributes: dict[str, object]) -> str:
    if tau is None:
        return tag("td", NOTHING, title=f"{one}, {other}: too few methods in common", **attributes)
    shade = f"t{round(5 + 5 * tau)}"
    return tag(
        "td", f"{tau:.2f}".replace("-", MINUS), class_=shade, title=f"{one}, {other}: {tau!r}", **attributes
    )


def maps(comparison: Comparison) -> str:
    """Every case, the methods beside each other."""
    return joined(_case(comparison, case) for case in comparison.maps)


def _case(comparison: Comparison, case: MapCase) -> str:
    unit = f" {comparison.unit}" if comparison.unit else ""
    low, high = (wording.number(limit) for limit in case.value_limits)
    top = wording.number(case.error_limits[1])
    bars = joined(
        [
            _bar("value", f"{low}{unit}", f"{high}{unit}", "target and prediction"),
            _bar("error", "0", f"{top}{unit}", "absolute error and rescaled uncertainty, all methods"),
        ]
    )
    target = tag("figure", _picture(case.target, f"target of case {case.name}") + tag("figcaption", "target"))
    cards = [tag("div", tag("h4", "truth") + target, class_="card truth")]
    index = {name: k for k, name in enumerate(comparison.groups)}
    panels = sorted((p for p in case.panels if p.method in index), key=lambda panel: index[panel.method])
    cards += [_card(case, panel, index[panel.method], unit) for panel in panels]
    head = tag("h3", f"Case {text(case.name)}") + tag("div", bars, class_="bars")
    return tag("div", head + tag("div", joined(cards), class_="cards"), class_="case")


def _bar(kind: str, low: str, high: str, meaning: str) -> str:
    scale = tag("span", text(low)) + f'<span class="bar {kind}"></span>' + tag("span", text(high))
    return tag("div", scale + tag("span", text(meaning), class_="quiet"), class_="scale")


def _card(case: MapCase, panel: MapPanel, index: int, unit: str) -> str:
    error, spread = (wording.number(v) for v in (panel.mean_error, panel.mean_uncertainty))
    pictures = [
        (panel.prediction, "prediction", "prediction"),
        (panel.error, "absolute error", f"absolute error, mean {error}{unit}"),
        (panel.uncertainty, "uncertainty", f"{wording.number(panel.scale)} {TIMES} std, mean {spread}{unit}"),
    ]
    figures = joined(
        tag(
            "figure",
            _picture(data, f"{name} of {panel.label}, case {case.name}") + tag("figcaption", text(caption)),
        )
        for data, name, caption in pictures
    )
    return tag(
        "div", tag("h4", swatch(index) + text(panel.method)) + figures, class_="card", data_method=index
    )


def _picture(data: bytes, alternative: str) -> str:
    source = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return f'<img src="{source}" alt="{text(alternative)}">'


def glossary(comparison: Comparison) -> str:
    """What every metric means, family by family."""
    parts = []
    for name, metrics in columns.by_family(comparison.metrics).items():
        entries = []
        for metric in metrics:
            unit = unit_text(metric.unit, comparison.unit)
            facts = [
                f"better: {better_text(metric)}"
                if metric.direction is not None
                else "describes, does not judge"
            ]
            facts += [f"unit: {unit}"] if unit else []
            facts += [f"source: {metric.source}"] if metric.source else []
            head = tag(
                "dt",
                tag("code", text(metric.key)) + " " + text(direction_mark(metric)),
                id=f"metric-{metric.key}",
            )
            body = text(metric.summary) + tag("span", text(metric.formula), class_="formula")
            entries.append(head + tag("dd", body + tag("span", text("; ".join(facts)), class_="quiet")))
        parts.append(tag("h3", text(name)) + tag("dl", joined(entries)))
    return joined(parts)


def runs(comparison: Comparison) -> str:
    """Where every run is, how it was scored, and which runs were left out."""
    heads = ("run", "method", "address", "samples", "statistics", *SETTINGS, "version")
    head = tag("tr", joined(tag("th", text(name), scope="col") for name in heads))
    rows = [tag("tr", joined(tag("td", text(cell)) for cell in cells)) for cells in _run_cells(comparison)]
    shown = tag("div", table([head], [rows], class_="plain"), class_="scroll")
    if not comparison.skipped:
        return shown
    items = joined(
        tag("li", tag("b", text(run.label)) + f" {text(run.uri)}: {text(run.reason)}")
        for run in comparison.skipped
    )
    return shown + tag("h3", f"{len(comparison.skipped)} not compared") + tag("ul", items)


def _run_cells(comparison: Comparison) -> Iterator[list[object]]:
    for run in (run for group in comparison.groups.values() for run in group):
        report = run.report
        settings = [report.settings.get(name) for name in SETTINGS]
        yield [
            run.label,
            run.method,
            run.uri or "this process",
            f"{report.counts.get('n', 0):,}",
            report.provenance.get("statistics", NOTHING),
            *(NOTHING if value is None else value for value in settings),
            report.provenance.get("version", NOTHING),
        ]
