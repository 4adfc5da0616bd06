"""Make the pieces of a logged run once (scores, curves, figures, maps, tables, files), write them to each tracker."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from uq_tracking import plugins
from uq_tracking.drawings import MapSpec, pictured
from uq_tracking.errors import RunNotFoundError, TrackerUnreachableError
from uq_tracking.formatting import axis_label
from uq_tracking.inputs.base import Case, PredictionsBase, case_place
from uq_tracking.parallel import begin
from uq_tracking.report import Report, stratum_scores
from uq_tracking.statistics.store import write_statistics
from uq_tracking.streams.map_samples import case_image
from uq_tracking.tasks import task_of
from uq_tracking.tracking.backend import Cell, Run, finite
from uq_tracking.tracking.cases import LARGEST, DrawnCases
from uq_tracking.tracking.content import Content, logged_scores, recalibrated_scores, scores_digest
from uq_tracking.tracking.journal import Write
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
    tag_name,
    worst_name,
)
from uq_tracking.tracking.overview import dataset, description
from uq_tracking.tracking.places import NOWHERE, scratch_folder
from uq_tracking.tracking.writer import RunWriter


def publish(content: Content, writers: Sequence[RunWriter]) -> list[str]:
    """Write the content to every tracker; drawings are made once.

    Content with a seal goes into runs that already hold something: it is written in an order that makes interruptions
    detectable, and writing stops once something is lost.

    If the user interrupts the call, writers that spool calls keep it whole before the interruption propagates; a
    second interruption stops that too.

    Returns
    -------
    list of str
        A sentence for each piece that could not be made; the writers know what could not be delivered.
    """
    with scratch_folder() if content.step is None else nullcontext(NOWHERE) as folder:
        try:
            return _publish(content, writers, folder)
        except BaseException:  # from the user's signal handlers; the writers hold those of trackers
            keeping = [writer for writer in writers if writer.interrupted()]
            if keeping:
                _publish(content, keeping, folder)
            raise


def _publish(content: Content, writers: Sequence[RunWriter], folder: Path) -> list[str]:
    unmade: list[str] = []
    for number, each in enumerate((content, *content.also)):
        own = folder / str(number) if number else folder
        with suppress(OSError):  # files that cannot be written there fail one by one
            own.mkdir(exist_ok=True)
        for group in groups_of_pieces(each, own):
            writes = list(_made(group, unmade))  # while the previous group is being written
            for writer in writers:
                writer.settle()
                if not (content.seal and writer.lost):
                    writer.begin(writes)
    for writer in writers:
        writer.settle()
    if content.seal:
        _seal(content, writers, unmade)
    else:
        _describe(content, writers, unmade)
    if content.step is None:
        names = {name for each in (content, *content.also) for name in names_of(each)}
        for writer in writers:
            writer.page = writer.present("the chart view of all runs", lambda run: run.show(names))
    for writer in writers:  # while the files exist, for writers that keep them
        writer.close()
    return unmade


def _describe(content: Content, writers: Sequence[RunWriter], unmade: list[str]) -> None:
    """Describe the run and the truth."""
    for each in (content, *content.also) if content.step is None else ():
        for name, describe in _made([("the description", partial(description_piece, each))], unmade):
            for writer in writers:
                writer.present(name, describe)


def _seal(content: Content, writers: Sequence[RunWriter], unmade: list[str]) -> None:
    """Write the scores, the description and, if all else has arrived, the seal in one request."""
    contents, seal = (content, *content.also), {**scores_tag(content), **content.seal}

    def made(name: str, make: Callable[[Content], Write]) -> list[Write]:
        return [write for _, write in _made([(name, partial(make, each)) for each in contents], unmade)]

    scores, told = made("the scores", scores_piece), made("the description", description_piece)

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
        except Exception:  # the description, which is only for display, may be what was refused
            end(run, ())

    for writer in writers:
        if not writer.lost:
            writer.write("the scores", write)


def _made(group: Iterable[Piece], unmade: list[str]) -> Iterator[tuple[str, Write]]:
    for name, make in group:
        try:
            write = make()
        except Exception as error:  # a plugin's drawing may raise anything; the others are still drawn
            unmade.append(f"{name} could not be made: {type(error).__name__}: {error}")
            continue
        yield name, write


PREDICTIONS_LIMIT = 256 * 2**20
"""Predictions larger than this, in bytes, are not stored by ``predictions="auto"``."""

Piece = tuple[str, Callable[[], Write]]
"""A name, and the function that makes the piece and returns how to write it to a run."""
_log = logging.getLogger("uq_tracking")


def groups_of_pieces(content: Content, folder: Path) -> Iterator[list[Piece]]:
    """Yield groups of pieces to write together: their names, and the functions that make them.

    First the scores, which matter most; then the maps, which are largest, and the figures, while files are being
    packed. With a seal, the report comes first and the scores last, with the seal and their tag: if the two
    disagree in a run, its writing was interrupted.
    """
    scores = [("the scores", lambda: scores_piece(content))]
    if content.step is not None:
        yield scores
        return
    files = list(_files(content, folder))
    yield files if content.seal else scores
    maps, tables = _maps(content, folder)
    drawings = [*maps, *_figures(content)]  # in pairs: one is packed while the other is drawn
    yield from (drawings[first : first + 2] for first in range(0, len(drawings), 2))
    if not content.seal:
        yield files
    yield from ([item] for item in tables)


def _maps(content: Content, folder: Path) -> tuple[list[Piece], list[Piece]]:
    """Panels of every case on a common color scale; the cases themselves, and tables of the worst."""
    drawn = DrawnCases(dict(_cases(content)), content.notes, content.limits)
    panels, tables = _panels(content, drawn, folder) if drawn.cases else ([], [])
    if drawn.cases:
        tables.append(
            (
                "the table of cases",
                lambda: _table(
                    "cases", worst_cases(content.report, drawn.cases, drawn.notes, content.split), content
                ),
            )
        )
    strata = worst_strata(content.report)
    if strata is not None:
        tables.append(("the table of strata", lambda: _table("strata", strata, content)))
    return panels, tables


def _table(name: str, worst: Worst, content: Content) -> Write:
    return lambda run: run.log_table(worst_name(name, content.split), worst.columns, worst.rows)


def scores_piece(content: Content) -> Write:
    """Scores, tags and curves, in one request."""
    scores = logged_scores(content.report, content.split, content.scores, content.shown)
    scalars = finite({**scores, **recalibrated_scores(content)})
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


def description_piece(content: Content) -> Write:
    """The run's description, and the truth as its data set."""
    told, truth = description(content.report, content.split), dataset(content.report, content.split)

    def write(run: Run) -> None:
        run.describe(told)
        run.use_dataset(truth)

    return write


def names_of(content: Content) -> set[str]:
    """Names of all scalars, curves and maps."""
    report, split = content.report, content.split
    curves = [name for name, curve in report.curves.items() if curve.steps is not None]
    cases = (*content.kept, *content.cases) if content.predictions is not None or content.kept else ()
    return {
        *logged_scores(report, split, content.scores, content.shown),
        *recalibrated_scores(content),
        *(curve_name(name, split, report.settings, report.task) for name in curves),
        *(map_name(_case_name(number, spec), split) for number in cases for spec in _maps_of(report)),
    }


def _tags(content: Content) -> dict[str, str]:
    provenance = content.report.provenance
    tags = {SCHEMA_TAG: str(provenance["schema"]), VERSION_TAG: str(provenance["version"])}
    if content.method is not None:
        tags[METHOD_TAG] = content.method
    if content.step is None:
        tags[tag_name(VERDICT_TAG, content.split)] = content.report.verdict.short
        tags |= {} if content.seal else scores_tag(content)
    return tags | {name: str(value) for name, value in content.tags.items()}


def scores_tag(content: Content) -> dict[str, str]:
    """The tag that says which report a run's scores belong to."""
    return {tag_name(SCORES_TAG, content.split): scores_digest(content.report)}


def _files(content: Content, folder: Path) -> Iterator[Piece]:
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


def _file(content: Content, path: Path, save: Callable[[Path], object]) -> Piece:
    """A file, written while others are."""
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
        "predictions of %.0f MB are not stored, only their statistics; to store them, pass predictions=True",
        size / 2**20,
    )
    return False


def _figures(content: Content) -> Iterator[Piece]:
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
    """Cases to draw, sliced one at a time without copying the rest."""
    yield from content.kept.items()
    data = content.predictions
    if data is None:
        return
    for number in content.cases:
        shape = data.shape
        place = case_place(number, shape)
        yield number, data.case(place, case_image(content.images, place, shape))


def _panels(content: Content, drawn: DrawnCases, folder: Path) -> tuple[list[Piece], list[Piece]]:
    """The panels, and the file of cases from which they can be redrawn."""
    options = task_of(content.report).map_options(content.report)

    @cache
    def limited(spec: MapSpec) -> DrawnCases:
        """The cases with their color limits."""
        if drawn.limits is not None or spec.limits is None:
            return drawn
        return replace(drawn, limits=spec.common_limits(drawn.cases.values(), **options))

    specs = _maps_of(content.report)
    panels: list[Piece] = []
    for number, case in drawn.cases.items():
        for spec in specs:
            name = map_name(_case_name(number, spec), content.split)
            title = _map_title(content, number)
            panels.append((name, partial(_map, name, spec, case, {**options, "title": title}, limited)))
    usual = next((spec for spec in specs if spec.name == "uncertainty"), None)
    if usual is None or content.files is not None:
        return panels, []
    path = folder / MAPS_FILE
    return panels, [
        (
            MAPS_FILE,
            lambda: _file(content, path, lambda path: limited(usual).within(LARGEST).save(path))[1](),
        ),
    ]


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


MOST_ROWS = 100


@dataclass(frozen=True)
class Worst:
    """A table, worst first."""

    columns: list[str]
    rows: list[list[Cell]]


def worst_cases(
    report: Report, cases: Mapping[int, Case], notes: Mapping[int, str], split: str | None
) -> Worst:
    """The drawn cases: number, why each was chosen, error, and the name of its map."""
    task = task_of(report)
    errors = {number: task.case_error(case) for number, case in cases.items()}
    known = {number: error for number, error in errors.items() if math.isfinite(error)}
    unit = axis_label(task.case_score, "target", report.settings.get("unit"))
    rows: list[list[Cell]] = [
        [float(number), notes.get(number, ""), known[number], map_name(str(number), split)]
        for number in sorted(known, key=lambda number: -known[number])
    ]
    return Worst(["case", "chosen as", unit, "map"], rows)


def worst_strata(report: Report) -> Worst | None:
    """The labels of ``by``, ranked by the first of their scores that has a direction; None if there is none."""
    strata = stratum_scores(report)
    known = plugins.metrics(report.task)
    keys = [key for key in dict.fromkeys(key for own in strata.values() for key in own) if key in known]
    judging = next((known[key] for key in keys if known[key].direction is not None), None)
    if judging is None:
        return None

    def loss(label: str) -> float:
        value = strata[label].get(judging.key, math.nan)
        return judging.loss(value) if math.isfinite(value) else -math.inf

    ordered = sorted(strata, key=loss, reverse=True)[:MOST_ROWS]
    columns = ["count", judging.key, *(key for key in keys if key != judging.key)]
    rows: list[list[Cell]] = [
        [label, *(_finite(strata[label].get(key)) for key in columns)] for label in ordered
    ]
    return Worst(["stratum", *columns], rows)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
