"""Make everything a logged run holds, once, and write it to every tracker."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from uq_tracking import plugins
from uq_tracking.drawings import MapSpec, pictured
from uq_tracking.errors import RunNotFoundError, TrackerUnreachableError
from uq_tracking.inputs.base import Case, PredictionsBase
from uq_tracking.parallel import begin
from uq_tracking.report import Report
from uq_tracking.statistics.store import write_statistics
from uq_tracking.streams.map_samples import case_image
from uq_tracking.tasks import task_of
from uq_tracking.tracking.backend import Run, finite
from uq_tracking.tracking.description import dataset, description
from uq_tracking.tracking.map_file import LARGEST, DrawnCases, Limits
from uq_tracking.tracking.names import (
    MAPS_FILE,
    METHOD_TAG,
    PREDICTIONS_FILE,
    RECALIBRATION_FILE,
    REPORT_FILE,
    SCHEMA_TAG,
    SCORES_TAG,
    STATISTICS_FILE,
    VERDICT_TAG,
    VERSION_TAG,
    curve_name,
    figure_name,
    file_name,
    map_name,
    parameter_name,
    recalibrated_name,
    scalar_name,
    tag_name,
    worst_name,
)
from uq_tracking.tracking.places import NOWHERE, scratch_folder
from uq_tracking.tracking.run_writer import RunWriter
from uq_tracking.tracking.worst import Worst, worst_cases, worst_strata

Scores = Literal["headline", "all"]
PREDICTIONS_LIMIT = 256 * 2**20
"""Bytes of predictions up to which ``predictions="auto"`` stores them."""

Write = Callable[[Run], None]
T = TypeVar("T")
_log = logging.getLogger("uq_tracking")


@dataclass(frozen=True)
class Content:
    """Everything one call may log.

    ``scores`` says which scores the tracker shows, ``shown`` names those that the run shows already. ``figures``,
    ``curves`` and ``files`` may name those to write, where the run holds the others already; ``seal`` are tags that
    are set last, with that of the scores, once all else has arrived.
    """

    report: Report
    predictions: PredictionsBase | None = None
    scores: Scores = "headline"
    shown: Collection[str] = ()
    split: str | None = None
    step: int | None = None
    method: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    figures: bool | Collection[str] = True
    cases: Sequence[int] = ()
    images: Any = None
    keep_predictions: Literal["auto"] | bool = "auto"
    curves: Collection[str] | None = None
    files: Collection[str] | None = None
    seal: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[int, Case] = field(default_factory=dict)
    """Cases of a stream, whose predictions are gone, by their number."""
    notes: Mapping[int, str] = field(default_factory=dict)
    """Why cases were chosen, by their number."""
    limits: Limits | None = None
    """Colour limits of the maps; those of these cases by default."""
    also: Sequence[Content] = ()
    """What goes into the same runs besides, such as further outputs."""


def publish(content: Content, writers: Sequence[RunWriter]) -> list[str]:
    """Write the content to every tracker; drawings are made once.

    Content with a seal goes into runs that hold something already: it is written in the order in which an
    interruption can be told, and no further once something is lost.

    A call that the user interrupts is kept whole by those writers that keep calls, before the interruption goes on; a
    second one ends that too.

    Returns
    -------
    list of str
        What could not be made, each a sentence; what could not be delivered stands in the writers.
    """
    with scratch_folder() if content.step is None else nullcontext(NOWHERE) as folder:
        try:
            return _publish(content, writers, folder)
        except BaseException:  # of the user's signal handlers: those of trackers stand in the writers
            keeping = [writer for writer in writers if writer.interrupted()]
            if keeping:
                _publish(content, keeping, folder)
            raise


def _publish(content: Content, writers: Sequence[RunWriter], folder: Path) -> list[str]:
    unmade: list[str] = []
    for number, each in enumerate((content, *content.also)):
        own = folder / str(number) if number else folder
        with suppress(OSError):  # files that cannot be made in it say so one by one
            own.mkdir(exist_ok=True)
        groups = (list(_made(group, unmade)) for group in _groups(each, own))
        for writes in chain(islice(groups, 1), _one_behind(groups)):
            for writer in writers:
                if not (content.seal and writer.lost):
                    writer.write_together(writes)
    if content.seal:
        _seal(content, writers, unmade)
    else:
        _describe(content, writers, unmade)
    if content.step is None:
        names = {name for each in (content, *content.also) for name in _names(each)}
        for writer in writers:
            writer.page = writer.present("the page of all runs", lambda run: run.show(names))
    for writer in writers:  # while the files are there, for those that keep them
        writer.close()
    return unmade


def _one_behind(groups: Iterator[T]) -> Iterator[T]:
    """Each group once the next is made: its pictures are packed while that one's are drawn."""
    before = list(islice(groups, 1))
    for group in groups:
        yield from before
        before = [group]
    yield from before


def _describe(content: Content, writers: Sequence[RunWriter], unmade: list[str]) -> None:
    """Describe the run and the truth."""
    for each in (content, *content.also) if content.step is None else ():
        for name, describe in _made([("the description", partial(_description, each))], unmade):
            for writer in writers:
                writer.present(name, describe)


def _seal(content: Content, writers: Sequence[RunWriter], unmade: list[str]) -> None:
    """Write the scores, the description and, if all else has arrived, the seal in one request."""
    contents, seal = (content, *content.also), {**_scores_tag(content), **content.seal}

    def made(name: str, make: Callable[[Content], Write]) -> list[Write]:
        return [write for _, write in _made([(name, partial(make, each)) for each in contents], unmade)]

    scores, told = made("the scores", _scores), made("the description", _description)

    def end(run: Run, described: Sequence[Write]) -> None:
        with run.batch():
            for write in (*scores, *described):
                write(run)
            if not unmade:
                run.seal(seal)

    def write(run: Run) -> None:
        try:
            end(run, told)
        except (TrackerUnreachableError, RunNotFoundError):
            raise
        except Exception:  # the description, which is only there to be looked at, may be what is refused
            end(run, ())

    for writer in writers:
        if not writer.lost:
            writer.write("the scores", write)


def _description(content: Content) -> Write:
    told, truth = description(content.report, content.split), dataset(content.report, content.split)

    def write(run: Run) -> None:
        run.describe(told)
        run.use_dataset(truth)

    return write


def _names(content: Content) -> set[str]:
    """Names of all scalars, curves and maps."""
    report, split = content.report, content.split
    curves = [name for name, curve in report.curves.items() if curve.steps is not None]
    cases = (*content.kept, *content.cases) if content.predictions is not None or content.kept else ()
    return {
        *logged_scores(report, split, content.scores, content.shown),
        *_recalibrated(content),
        *(curve_name(name, split, report.settings, report.task) for name in curves),
        *(map_name(_case_name(number, spec), split) for number in cases for spec in _maps_of(report)),
    }


def _made(group: Iterable[tuple[str, Callable[[], Write]]], unmade: list[str]) -> Iterator[tuple[str, Write]]:
    for name, make in group:
        try:
            write = make()
        except Exception as error:  # a plugin's drawing may raise anything; the others are still drawn
            unmade.append(f"{name} could not be made: {type(error).__name__}: {error}")
            continue
        yield name, write


def _groups(content: Content, folder: Path) -> Iterator[list[tuple[str, Callable[[], Write]]]]:
    """Yield the names of what is written together, and the functions that make it.

    First the scores, which matter most; files are packed while figures are drawn. With a seal first the report, and
    no scores, which come with the seal and their tag: a run in which the two do not fit has been interrupted.
    """
    scores = [("the scores", lambda: _scores(content))]
    if content.step is not None:
        yield scores
        return
    files = list(_files(content, folder))
    yield files if content.seal else scores
    yield from ([item] for item in _figures(content))
    if not content.seal:
        yield files
    yield from ([item] for item in _maps(content, folder))


def _maps(content: Content, folder: Path) -> Iterator[tuple[str, Callable[[], Write]]]:
    """Maps of cases and what is worst, as maps and as tables."""
    drawn = DrawnCases(dict(_cases(content)), content.notes, content.limits)
    if drawn.cases:
        yield from _all_maps(content, drawn, folder)
        yield (
            "the table of cases",
            lambda: _table(
                "cases", worst_cases(content.report, drawn.cases, drawn.notes, content.split), content
            ),
        )
    strata = worst_strata(content.report)
    if strata is not None:
        yield "the table of strata", lambda: _table("strata", strata, content)


def _table(name: str, worst: Worst, content: Content) -> Write:
    return lambda run: run.log_table(worst_name(name, content.split), worst.columns, worst.rows)


def chosen_scores(
    report: Report, scores: Mapping[str, float], choice: Scores = "headline", shown: Collection[str] = ()
) -> dict[str, float]:
    """Those of the scores that a tracker shows: the headline and what was asked for by name, or all.

    All as well where the headline is empty, as in a task of a plugin that declares none.
    """
    known = plugins.metrics(report.task)
    asked = (key for key, metric in known.items() if metric.headline or metric.needs or not metric.default)
    wanted = {*asked, *report.provenance.get("asked", ()), *shown}
    found = {key: value for key, value in scores.items() if choice == "all" or key in wanted}
    return found or dict(scores)


def logged_scores(
    report: Report, split: str | None = None, choice: Scores = "headline", shown: Collection[str] = ()
) -> dict[str, float]:
    """The scores that a tracker shows, by the names they have in a run."""
    chosen = chosen_scores(report, report.scores, choice, shown)
    return {scalar_name(key, split, report.task): value for key, value in chosen.items()}


def _scores(content: Content) -> Write:
    scores = logged_scores(content.report, content.split, content.scores, content.shown)
    scalars = finite({**scores, **_recalibrated(content)})
    tags = _tags(content)
    settings = content.report.settings
    curves = {
        curve_name(name, content.split, settings, content.report.task): curve
        for name, curve in (content.report.curves.items() if content.step is None else ())
        if content.curves is None or name in content.curves
    }

    def write(run: Run) -> None:
        with run.batch():
            run.set_tags(tags)
            run.log_scalars(scalars, step=content.step)
            for name, curve in curves.items():
                run.log_curve(name, curve)

    return write


def _recalibrated(content: Content) -> dict[str, float]:
    """Parameters and scores after recalibration; those of the first method have the short name."""
    methods: Mapping[str, Any] = (content.report.recalibration or {}).get("methods", {})
    found: dict[str, float] = {}
    for place, (method, entry) in enumerate(methods.items()):
        for name, value in entry.get("scalars", {}).items():
            found[parameter_name(name, content.split)] = value
        scores = entry.get("scores", {})
        for key, value in chosen_scores(content.report, scores, content.scores, content.shown).items():
            found[recalibrated_name(key, content.split, method if place else None)] = value
    return found


def _tags(content: Content) -> dict[str, str]:
    provenance = content.report.provenance
    tags = {SCHEMA_TAG: str(provenance["schema"]), VERSION_TAG: str(provenance["version"])}
    if content.method is not None:
        tags[METHOD_TAG] = content.method
    if content.step is None:
        tags[tag_name(VERDICT_TAG, content.split)] = content.report.verdict.short
        tags |= {} if content.seal else _scores_tag(content)
    return tags | {name: str(value) for name, value in content.tags.items()}


def _scores_tag(content: Content) -> dict[str, str]:
    return {tag_name(SCORES_TAG, content.split): scores_digest(content.report)}


def scores_digest(report: Report) -> str:
    """Sixteen hexadecimal digits of a report's scores and settings."""
    values = [report.scores, report.settings, (report.recalibration or {}).get("methods")]
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _files(content: Content, folder: Path) -> Iterator[tuple[str, Callable[[], Write]]]:
    for path, save in _savers(content, folder):
        if content.files is None or path.name in content.files:
            yield _file(content, path, save)


def _savers(content: Content, folder: Path) -> Iterator[tuple[Path, Callable[[Path], object]]]:
    report = content.report
    yield folder / REPORT_FILE, report.to_json
    statistics = report.statistics
    if statistics is not None:
        yield (
            folder / STATISTICS_FILE,
            lambda path: write_statistics(path, statistics, data=report.provenance.get("digest")),
        )
    if report.recalibration:
        text = json.dumps(report.recalibration, indent=1, allow_nan=False)
        yield folder / RECALIBRATION_FILE, lambda path: path.write_text(text, encoding="utf-8")
    predictions = content.predictions
    if predictions is not None and _keeps(predictions, content.keep_predictions):
        yield folder / PREDICTIONS_FILE, predictions.save


def _file(content: Content, path: Path, save: Callable[[Path], object]) -> tuple[str, Callable[[], Write]]:
    """A file, which is written while others are."""
    name, saved = file_name(path.name, content.split), begin(partial(save, path))

    def make() -> Write:
        saved()
        return lambda run: run.log_file(path, name)

    return name, make


def _keeps(predictions: PredictionsBase, keep: Literal["auto"] | bool) -> bool:
    size = predictions.nbytes
    if keep != "auto" or size <= PREDICTIONS_LIMIT:
        return bool(keep)
    _log.warning(
        "predictions of %.0f MB are not stored, their statistics are; or pass predictions=True", size / 2**20
    )
    return False


def _figures(content: Content) -> Iterator[tuple[str, Callable[[], Write]]]:
    known = plugins.figures(content.report.task)
    usual = [spec.name for spec in known.values() if spec.default]
    chosen = usual if content.figures is True else content.figures or ()
    for spec in known.values():
        if spec.name in chosen and spec.has_curves(content.report.curves):
            name = figure_name(spec.name, content.split)
            yield f"{name}.png", _figure(name, spec.draw, content.report)


def _figure(name: str, draw: Callable[[Report], Any], report: Report) -> Callable[[], Write]:
    def make() -> Write:
        figure = pictured(draw(report))
        return lambda run: run.log_figure(name, figure)

    return make


def _cases(content: Content) -> Iterator[tuple[int, Case]]:
    """Cases to draw, cut out one at a time without copying the rest."""
    yield from content.kept.items()
    data = content.predictions
    if data is None:
        return
    for number in content.cases:
        shape = data.shape
        place = np.unravel_index(number, shape[:-2]) if len(shape) > 2 else ()
        yield number, data.case(place, case_image(content.images, place, shape))


def _all_maps(content: Content, drawn: DrawnCases, folder: Path) -> Iterator[tuple[str, Callable[[], Write]]]:
    """Panels of every case on common colours, and the cases themselves, from which they can be drawn again."""
    options = task_of(content.report).map_options(content.report)
    found: list[DrawnCases] = []

    def limited(spec: MapSpec) -> DrawnCases:
        """The cases with the limits of their colours, which are found once."""
        if drawn.limits is not None or spec.limits is None:
            return drawn
        if not found:
            found.append(replace(drawn, limits=spec.common_limits(drawn.cases.values(), **options)))
        return found[0]

    specs = _maps_of(content.report)
    for number, case in drawn.cases.items():
        for spec in specs:
            name = map_name(_case_name(number, spec), content.split)
            title = _map_title(content, number)
            yield name, partial(_map, name, spec, case, {**options, "title": title}, limited)
    usual = next((spec for spec in specs if spec.name == "uncertainty"), None)
    if usual is not None and content.files is None and drawn.nbytes <= LARGEST:
        yield _file(content, folder / MAPS_FILE, lambda path: limited(usual).save(path))


def _map_title(content: Content, number: int) -> str:
    method = content.report.provenance.get("method")
    note = content.notes.get(number)
    return ", ".join(part for part in (method, f"case {number}", note) if part)


def _maps_of(report: Report) -> Iterable[MapSpec]:
    return plugins.maps(report.task).values()


def _case_name(number: int, spec: MapSpec) -> str:
    return f"{number}" if spec.name == "uncertainty" else f"{number}_{spec.name}"


def _map(
    name: str,
    spec: MapSpec,
    case: Case,
    options: Mapping[str, Any],
    limited: Callable[[MapSpec], DrawnCases],
) -> Write:
    limits = {} if spec.limits is None else {"limits": limited(spec).limits}
    figure = pictured(spec.draw(*case.arrays.values(), **options, **case.parts, **limits, image=case.image))
    return lambda run: run.log_map(name, figure)
