"""Write the pieces of a logged run to every tracker, in an order that makes interruptions detectable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

from uq_tracking.errors import RunNotFoundError, TrackerUnreachableError
from uq_tracking.tracking.backend import Run
from uq_tracking.tracking.content import Content
from uq_tracking.tracking.operations import Write
from uq_tracking.tracking.pieces import (
    Piece,
    description_piece,
    groups_of_pieces,
    names_of,
    scores_piece,
    scores_tag,
)
from uq_tracking.tracking.places import NOWHERE, scratch_folder
from uq_tracking.tracking.run_writer import RunWriter


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
