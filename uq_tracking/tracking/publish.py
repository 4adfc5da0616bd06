"""Make the pieces of a logged run once for all trackers, scores, curves, drawings, tables and files; write them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from uq_tracking import plugins
from uq_tracking.curves.spec import Curve
from uq_tracking.drawings import MapSpec, pictured
from uq_tracking.formatting import axis_label
from uq_tracking.inputs.predictions import Case
from uq_tracking.parallel import begin
from uq_tracking.report import stratum_scores
from uq_tracking.statistics.store import write_statistics
from uq_tracking.tables.formats import csv_of
from uq_tracking.tasks import task_of
from uq_tracking.tracking.backend import Cell, Run, finite
from uq_tracking.tracking.cases import DrawnCases
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
    SETTINGS_TAG,
    STATISTICS_FILE,
    VERDICT_TAG,
    VERSION_TAG,
    curve_name,
    figure_name,
    file_name,
    map_name,
    scalar_name,
    tag_name,
    worst_name,
)
from uq_tracking.tracking.overview import dataset, description, scored_as
from uq_tracking.tracking.places import NOWHERE, scratch_folder
from uq_tracking.tracking.spool import Group
from uq_tracking.tracking.writer import RunWriter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 100
"""Rows of a table of the worst strata."""

Piece = tuple[str, Callable[[], Write]]
"""A name, and the function that makes the piece and returns how to write it to a run."""


def publish(contents: Sequence[Content], writers: Sequence[RunWriter]) -> list[str]:
    """Write the content, one item per output, to every tracker; drawings are made once.

    Content with a seal goes into runs that already hold something: it is written in an order that makes interruptions
    detectable, and writing stops once something is lost.

    If the user interrupts the call, writers that spool calls keep it whole before the interruption propagates; a
    second interruption stops that too.

    Returns
    -------
    list of str
        A sentence for each piece that could not be made; the writers know what could not be delivered.
    """
    try:
        return _publish(contents, writers)
    except BaseException:  # from the user's signal handlers; the writers hold those of trackers
        keeping = [writer for writer in writers if writer.interrupted()]
        if keeping:
            _publish(contents, keeping)
        raise


def _publish(contents: Sequence[Content], writers: Sequence[RunWriter]) -> list[str]:
    unmade: list[str] = []
    seal, is_whole = contents[0].seal, contents[0].options.step is None
    with scratch_folder() if is_whole else nullcontext(NOWHERE) as folder:
        for number, each in enumerate(contents):
            own = folder / str(number) if number else folder
            with suppress(OSError):  # files that cannot be written there fail one by one
                own.mkdir(exist_ok=True)
            for group in _groups(each, own):
                writes = list(_made(group, unmade))  # while the previous group is being written
                for writer in writers:
                    writer.settle()
                    if not (seal and writer.lost):
                        writer.begin(writes)
        if is_whole:
            for writer in writers:
                writer.confirm()
            pages = [("the description", partial(_description, each)) for each in contents]
            described = list(_made(pages, unmade))
            for writer in writers:
                for name, describe in described:
                    writer.present(name, describe)
                if seal and not writer.lost:
                    writer.begin(_sealed(contents[0], unmade))
                writer.page = writer.present("the chart view of all runs", lambda run: run.show())
        for writer in writers:  # while the files exist, for writers that keep them
            writer.close()
    return unmade


def _sealed(content: Content, unmade: list[str]) -> Group:
    """Return the scores with the seal, which is set if they are taken and all else could be made."""
    seal = {tag_name(SCORES_TAG, content.split): scores_digest(content.report), **content.seal}

    def sealed(run: Run, scores: Write) -> None:
        scores(run)
        if not unmade:
            run.seal(seal)

    made = _made([("the scores", partial(_scores, content))], unmade)
    return [(name, partial(sealed, scores=scores)) for name, scores in made]


def _made(group: Iterable[Piece], unmade: list[str]) -> Iterator[tuple[str, Write]]:
    for name, make in group:
        try:
            write = make()
        except (Exception, SystemExit) as error:  # of a plugin's drawing; the others are still drawn
            unmade.append(f"{name} could not be made: {type(error).__name__}: {error}")
            continue
        yield name, write


def _groups(content: Content, folder: Path) -> Iterator[list[Piece]]:
    """Yield groups of pieces to write together: their names, and the functions that make them.

    First the scores, which matter most; then the maps, which are largest, and the figures, while files are being
    packed, for which the verdict leaves no cores. With a seal, the report comes first and the scores last, with the
    seal and their tag: if the two disagree in a run, its writing was interrupted.
    """
    scores: list[Piece] = [("the scores", partial(_scores, content))]
    if content.options.step is not None:
        yield scores
        return
    maps, tables = _maps(content, folder)
    ahead = [(name, begin(draw)) for name, draw in maps[:1]]  # needs no verdict, which is judged meanwhile
    if not content.seal:
        yield scores
    files = list(_files(content, folder))
    if content.seal:
        yield files
    drawings = [*ahead, *maps[1:], *_figures(content)]  # in pairs: one is packed while the other is drawn
    yield from (drawings[first : first + 2] for first in range(0, len(drawings), 2))
    if not content.seal:
        yield files
    yield from ([item] for item in (*tables, *_classes(content), *_worst_strata(content)))


def _scores(content: Content) -> Write:
    """Make scores, tags and curves, to be sent in one request."""
    report, split = content.report, content.split
    built: Callable[[], dict[str, Curve]] = dict
    if content.options.step is None:  # while the verdict is judged
        built = begin(lambda: dict(report.curves))
    scores = logged_scores(report, split, content.options.scores, content.shown)
    scalars = finite({**scores, **recalibrated_scores(content)})
    if content.seal:  # the run may show scores that are undefined now: a tracker that can hide numbers does
        scalars |= {scalar_name(key, split, report.task): math.nan for key in report.undefined}
    tags = {SCHEMA_TAG: str(report.provenance["schema"]), VERSION_TAG: str(report.provenance["version"])}
    if content.options.method is not None:
        tags[METHOD_TAG] = content.options.method
    if content.options.step is None:
        tags[tag_name(VERDICT_TAG, split)] = report.verdict.short
        tags[tag_name(SETTINGS_TAG, split)] = scored_as(report)
        tags |= {} if content.seal else {tag_name(SCORES_TAG, split): scores_digest(report)}
    tags |= {name: str(value) for name, value in (content.options.tags or {}).items()}
    curves = {
        curve_name(name, split, report.settings, report.task): curve
        for name, curve in built().items()
        if content.curves is None or name in content.curves
    }

    model_id, related = content.options.model_id, content.options.dataset

    def write(run: Run) -> None:
        if model_id is not None or related is not None:
            run.relate(model_id, related)
        with run.batch():
            run.set_tags(tags)
            run.log_scalars(scalars, step=content.options.step)
            for name, curve in curves.items():
                run.log_curve(name, curve)

    return write


def _description(content: Content) -> Write:
    """Make the run's description, and the truth as its data set."""
    text, truth = description(content.report, content.split), dataset(content.report, content.split)

    def write(run: Run) -> None:
        run.describe(text)
        run.use_dataset(truth)

    return write


def _files(content: Content, folder: Path) -> Iterator[Piece]:
    """Begin to save the files, while other pieces are made."""
    report, statistics, data = content.report, content.report.statistics, content.predictions
    savers: dict[str, Callable[[Path], object]] = {REPORT_FILE: report.to_json}
    if statistics is not None:
        digest = report.provenance.get("digest")
        savers[STATISTICS_FILE] = lambda path: write_statistics(path, statistics, data=digest)
    if report.recalibration:
        text = json.dumps(report.recalibration, indent=1, allow_nan=False)
        savers[RECALIBRATION_FILE] = lambda path: path.write_text(text, encoding="utf-8")
    if data is not None:
        savers[PREDICTIONS_FILE] = data.save
    wanted = savers.keys() if content.files is None else content.files
    chosen = {file_name(name, content.split): savers[name] for name in savers if name in wanted}
    table = report.class_table
    if table is not None and REPORT_FILE in wanted:
        rows = csv_of({"class": table.labels, **table.to_dict()["columns"]})
        encoded = rows.encode("utf-8", "backslashreplace")  # a name may end with half a character
        chosen[f"{figure_name('classes', content.split)}.csv"] = lambda path: path.write_bytes(encoded)
    for name, save in chosen.items():
        path = folder / name.rpartition("/")[2]
        yield name, partial(_saved, path, name, begin(partial(save, path)))


def _saved(path: Path, name: str, wait: Callable[[], object]) -> Write:
    wait()
    return lambda run: run.log_file(path, name)


def _figures(content: Content) -> Iterator[Piece]:
    known = plugins.figures(content.report.task)
    usual = [spec.name for spec in known.values() if spec.default]
    chosen = usual if content.figures is True else content.figures or ()
    for spec in known.values():
        if spec.name in chosen and not spec.lacks(content.report):
            name = figure_name(spec.name, content.split)
            yield f"{name}.png", partial(_drawn, "log_figure", name, partial(spec.draw, content.report))


def _drawn(method: str, name: str, draw: Callable[[], Figure]) -> Write:
    figure = pictured(draw())
    return lambda run: getattr(run, method)(name, figure)


def _maps(content: Content, folder: Path) -> tuple[list[Piece], list[Piece]]:
    """Make panels of every case on a common color scale; the file of cases, and tables of the worst."""
    report, split, drawn, cases = content.report, content.split, content.drawn, content.drawn.cases
    specs = plugins.maps(report.task).values() if cases else ()
    options = task_of(report).map_options(report) if cases else {}

    @cache
    def colored(spec: MapSpec) -> DrawnCases:
        """Return the cases with their color limits."""
        if drawn.limits is not None or spec.limits is None:
            return drawn
        return replace(drawn, limits=spec.common_limits(cases.values(), **options))

    def panel(spec: MapSpec, number: int, case: Case) -> Figure:
        parts = (report.provenance.get("method"), f"case {number}", content.drawn.notes.get(number))
        more = {**options, **case.parts, "title": ", ".join(part for part in parts if part)}
        if spec.limits is not None:
            more["limits"] = colored(spec).limits
        return spec.draw(*case.arrays.values(), **more, image=case.image)

    panels: list[Piece] = []
    for number, case in cases.items():
        for spec in specs:
            name = map_name(f"{number}", split, spec.name)
            panels.append((name, partial(_drawn, "log_map", name, partial(panel, spec, number, case))))
    tables: list[Piece] = []
    usual = next((spec for spec in specs if spec.name == "uncertainty"), None)
    if usual is not None and content.files is None:

        def file() -> Write:
            found, path = colored(usual), folder / MAPS_FILE
            if content.predictions is not None:  # which hold the arrays
                images = {number: Case({}, case.image) for number, case in found.cases.items()}
                found = replace(found, cases=images)
            found.within(content.room).save(path)
            return lambda run: run.log_file(path, file_name(MAPS_FILE, split))

        tables.append((MAPS_FILE, file))
    if cases:
        tables.append(("the table of cases", partial(_worst_cases, content, cases)))
    return panels, tables


def _worst_cases(content: Content, cases: Mapping[int, Case]) -> Write:
    """Make the table of the drawn cases: number, why each was chosen, error, and the name of its map."""
    report, split, task = content.report, content.split, task_of(content.report)
    errors = {number: task.case_error(case) for number, case in cases.items()}
    known = {number: error for number, error in errors.items() if math.isfinite(error)}
    columns = ["case", "chosen as", axis_label(task.case_score, "target", report.settings.get("unit")), "map"]
    rows: list[list[Cell]] = [
        [float(number), content.drawn.notes.get(number, ""), known[number], map_name(str(number), split)]
        for number in sorted(known, key=lambda number: -known[number])
    ]
    return lambda run: run.log_table(worst_name("cases", split), columns, rows)


def _classes(content: Content) -> Iterator[Piece]:
    """Make the table of the classes, the worst first."""
    table = content.report.class_table
    if table is None:
        return
    columns = table.to_dict()["columns"]
    rows: list[list[Cell]] = [
        [table.labels[place], *(column[place] for column in columns.values())]
        for place in table.worst_first()[:MOST_ROWS].tolist()
    ]
    name = worst_name("classes", content.split)
    yield "the table of classes", lambda: lambda run: run.log_table(name, ["class", *columns], rows)


def _worst_strata(content: Content) -> Iterator[Piece]:
    """Make the table of the labels of ``by``, ranked by the first of their scores that has a direction."""
    strata = stratum_scores(content.report)
    known = plugins.metrics(content.report.task)
    keys = [key for key in dict.fromkeys(key for own in strata.values() for key in own) if key in known]
    judging = next((known[key] for key in keys if known[key].direction is not None), None)
    if judging is None:
        return

    def loss(label: str) -> float:
        value = strata[label].get(judging.key, math.nan)
        return judging.loss(value) if math.isfinite(value) else -math.inf

    columns = ["count", judging.key, *(key for key in keys if key != judging.key)]
    rows: list[list[Cell]] = [
        [label, *(finite(strata[label]).get(key) for key in columns)]
        for label in sorted(strata, key=loss, reverse=True)[:MOST_ROWS]
    ]
    name = worst_name("strata", content.split)
    yield "the table of strata", lambda: lambda run: run.log_table(name, ["stratum", *columns], rows)
