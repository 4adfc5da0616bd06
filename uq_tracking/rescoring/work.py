"""Rescore one run: read, score, keep what is still valid, write, and finally mark it done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from uq_tracking import plugins
from uq_tracking.errors import BackendError, RecalibrationError, UQTrackingError, redact
from uq_tracking.logged_run import LoggedRun
from uq_tracking.report import Report
from uq_tracking.rescoring.carry_over import carried_over, same_curve
from uq_tracking.rescoring.common import CommonPredictor
from uq_tracking.rescoring.foreign import foreign_source
from uq_tracking.rescoring.integrity import check_scores
from uq_tracking.rescoring.request import Request
from uq_tracking.rescoring.scoring import recalibrated_anew, recalibrated_as_before, scored
from uq_tracking.rescoring.source import NothingStoredError, Source, read_source, stored_report
from uq_tracking.rescoring.summary import Outcome
from uq_tracking.settings import Settings
from uq_tracking.tasks import task_of
from uq_tracking.tracking.cases import DrawnCases
from uq_tracking.tracking.content import Content, scores_digest
from uq_tracking.tracking.deadline import PATIENCE
from uq_tracking.tracking.names import (
    MAPS_FILE,
    RECALIBRATION_FILE,
    REPORT_FILE,
    SCORES_TAG,
    STATISTICS_FILE,
    curve_name,
    figure_name,
    scalar_name,
    tag_name,
)
from uq_tracking.tracking.places import run_lock
from uq_tracking.tracking.publish import publish
from uq_tracking.tracking.resolve import Opened, Target
from uq_tracking.tracking.writer import RunWriter


@dataclass(frozen=True)
class Work:
    """What is done with each run; may be called from several threads, each with one run at a time."""

    request: Request
    common: CommonPredictor | None = None
    force: bool = False
    dry_run: bool = False
    _drawing: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, run: LoggedRun) -> Outcome:
        """Rescore the run; anything wrong with it becomes its outcome."""
        run = replace(run, split=self.request.split, limit=self.request.limit)
        if not self.force and self.request.is_done(run.stored.tags):
            return _outcome(run, "skipped", "it already has these scores")
        try:
            with nullcontext() if self.dry_run else run_lock(run.stored.uri, PATIENCE):
                return self._rescored(run)
        except NothingStoredError as nothing:
            split = run.settled().split
            if split == run.split or self.common is not None or self.request.predictions is not None:
                return _outcome(run, "skipped", str(nothing))
            return replace(self, request=replace(self.request, split=split))(run)
        except Exception as error:  # strangers' files and trackers may raise anything; go on with the others
            kind = "" if isinstance(error, UQTrackingError) else f"{type(error).__name__}: "
            return _outcome(run, "failed", redact(f"{kind}{error}"), error=error)

    def _rescored(self, run: LoggedRun) -> Outcome:
        request, written = self.request, replace(run, split=self.request.written_split)
        logged = stored_report(run)
        shown = logged if request.prefix is None else stored_report(written)
        source = self._source(run, logged)
        is_own = self.common is None and request.predictions is None
        # a floor is applied to the source, whose digest already ties it to the report
        then = _as_then(source, request, logged)
        if logged is not None and is_own and not self.force and not request.changes_floor(logged):
            check_scores(logged, then, source.name)
        report = new_report(run, source, request, logged, then, is_other=self.common is not None)
        if not self.dry_run:
            content = self._content(written, report, shown, source)
            with self._lock(content):
                write(run, content)
        as_before = {*report.provenance.get("kept", ()), *report.provenance.get("exact", ())}
        unchanged = len(as_before & report.scores.keys())
        told = f"{len(report.scores)} scores" + (f", {unchanged} of them unchanged" if unchanged else "")
        return _outcome(run, "done", told, source=source.name)

    def _source(self, run: LoggedRun, logged: Report | None) -> Source:
        if self.common is not None:
            return self.common.source(run, self.request, logged)
        if self.request.predictions is not None:
            if logged is not None and not self.force and "files" not in _rescored(logged):
                raise NothingStoredError(
                    "it was logged by uq_tracking, whose scores would be replaced; omit predictions=, or pass "
                    "split= to put these scores beside them"
                )
            return foreign_source(run, self.request, logged)
        return read_source(run, self.request, logged)

    def _content(self, written: LoggedRun, report: Report, shown: Report | None, source: Source) -> Content:
        """What to write: whatever differs from what the run shows."""
        shown = None if self.force or not _is_whole(written, shown) else shown
        curves = changed_curves(report, shown)
        drawn = self._maps(written, report, shown)
        return Content(
            report.labelled(method=written.method, split=written.split),
            scores=self.request.scores,
            shown=_shown(written, report),
            split=written.split,
            curves=curves,
            figures=self._figures(written, report, shown, curves),
            files=_files(report, shown, source),
            keep_predictions=False,
            kept={} if drawn is None else drawn.cases,
            notes={} if drawn is None else drawn.notes,
            limits=None if drawn is None else drawn.limits,
            seal=self.request.seal(scores_digest(report)),
        )

    def _figures(
        self, written: LoggedRun, report: Report, shown: Report | None, curves: Collection[str]
    ) -> bool | list[str]:
        if self.request.figures != "auto":
            return self.request.figures
        stale = [
            spec.name
            for spec in plugins.figures(report.task).values()
            if _is_stale(spec.needs, report, shown, curves)
        ]
        return [name for name in stale if f"{figure_name(name, written.split)}.png" in written.files]

    def _maps(self, written: LoggedRun, report: Report, shown: Report | None) -> DrawnCases | None:
        """The cases that the run drew, if they look different now or all are requested; else None."""
        request = self.request
        own = self.common is None and request.predictions is None and not request.changes_floor(shown)
        if request.figures is False or not own:
            return None
        options = task_of(report).map_options
        if request.figures is not True and shown is not None and options(shown) == options(report):
            return None
        return written.read(MAPS_FILE, DrawnCases.load) if written.has(MAPS_FILE) else None

    def _lock(self, content: Content) -> AbstractContextManager[Any]:
        """Lock for figures: Matplotlib must draw in one thread at a time."""
        return self._drawing if content.figures or content.kept else nullcontext()


def _as_then(source: Source, request: Request, logged: Report | None) -> Callable[[], Report]:
    """Scores the source under the logged report's settings, once; each score on first access."""
    before = Settings() if logged is None else Settings.from_dict(logged.settings)
    return cache(lambda: scored(source, before, request, logged, later=True))


def new_report(
    run: LoggedRun,
    source: Source,
    request: Request,
    logged: Report | None,
    then: Callable[[], Report],
    *,
    is_other: bool = False,
) -> Report:
    """The report of a source, with what is still valid in the logged one unless that is about other predictions."""
    settings = request.settings(logged)
    report = scored(source, settings, request, logged)
    is_new = logged is None or is_other or request.predictions is not None
    changed = logged is not None and request.changes(logged)
    if logged is not None and logged.recalibration and changed and not is_new:
        with suppress(RecalibrationError):  # what it showed is kept, marked with the old settings
            report = recalibrated_as_before(report, source, settings, logged)
    if logged is not None and not is_new:
        report = carried_over(report, logged, then if changed else None)
    if request.recalibrates:
        calibration = _calibration(run, request)
        report = recalibrated_anew(report, source, settings, request, calibration)
    about = {"from": source.name, **_origin(source, request, logged)}
    asked = {"asked": list(_asked(request, logged))} if _asked(request, logged) else {}
    kept = {name: value for name, value in report.provenance.items() if name != "asked"}
    return replace(report, provenance={**kept, **asked, "rescored": about})


def _asked(request: Request, logged: Report | None) -> dict[str, None]:
    """Scores requested by name, now or when the run was logged."""
    before = () if logged is None else logged.provenance.get("asked", ())
    return dict.fromkeys((*before, *request.metrics))


def _shown(run: LoggedRun, report: Report) -> list[str]:
    """Scores that the run already shows."""
    return [key for key in report.scores if scalar_name(key, run.split, report.task) in run.stored.scalars]


def _rescored(report: Report) -> Mapping[str, Any]:
    """What a report says about its rescoring."""
    found: Mapping[str, Any] = report.provenance.get("rescored") or {}
    return found


def _origin(source: Source, request: Request, logged: Report | None) -> dict[str, Any]:
    """Digest of the stored predictions, or the files of a run not logged by this package."""
    if request.predictions is not None:
        return {"files": request.predictions}
    known = (
        {}
        if logged is None
        else {k: v for k, v in _rescored(logged).items() if k in ("files", "predictions")}
    )
    return known if source.stored_digest is None else {**known, "predictions": source.stored_digest}


def _calibration(run: LoggedRun, request: Request) -> Any:
    """What to fit on, or what was fitted."""
    if request.calibration_split is None:
        return request.calibration
    try:
        return replace(run, split=request.calibration_split).scored()
    except FileNotFoundError:
        raise RecalibrationError(
            f"nothing was logged under the split {request.calibration_split!r} to fit on; log it with split="
        ) from None


def _is_whole(run: LoggedRun, report: Report | None) -> bool:
    """Whether the run shows what its report says: the scores' tag is set once all else has arrived."""
    tag = tag_name(SCORES_TAG, run.split)
    return report is not None and run.stored.tags.get(tag) == scores_digest(report)


def changed_curves(report: Report, shown: Report | None) -> list[str]:
    """Names of the curves that the run does not yet show."""
    return [name for name in report.curves if shown is None or not _shows(shown, report, name)]


def _shows(shown: Report, report: Report, name: str) -> bool:
    """Whether the run shows a curve of the new report, under the same name."""
    if name not in shown.curves or not same_curve(shown.curves[name], report.curves[name]):
        return False
    names = [curve_name(name, settings=each.settings, task=each.task) for each in (shown, report)]
    return names[0] == names[1]


def _is_stale(needs: Collection[str], report: Report, shown: Report | None, curves: Collection[str]) -> bool:
    """Whether a figure's curves, or the scores printed in it, changed."""
    if shown is None:
        return True
    known = plugins.metrics(report.task)
    if not needs:
        return shown.scores != report.scores
    keys = [report.curves[name].score for name in needs if name in report.curves]
    changed = any(key in known and shown.scores.get(key) != report.scores.get(key) for key in keys if key)
    return changed or any(name in curves for name in needs)


def _files(report: Report, shown: Report | None, source: Source) -> list[str]:
    """Files to write: statistics only if the run has none of these predictions."""
    files = [REPORT_FILE]
    is_same = shown is not None and shown.provenance.get("digest") == report.provenance.get("digest")
    if source.statistics is None and not is_same:
        files.append(STATISTICS_FILE)
    if shown is None or shown.recalibration != report.recalibration:
        files.append(RECALIBRATION_FILE)
    return files


def write(run: LoggedRun, content: Content) -> None:
    """Write to the run; BackendError if something did not arrive, in which case the run is not marked done."""
    store, stored = run.store, run.stored

    def opened() -> Opened:
        reopened = store.reopen(stored.run_id)
        return Opened(reopened, lambda: store.close_run(reopened))

    writer = RunWriter(Target(stored.uri.partition(":")[0], stored.uri, opened))
    unmade = publish(content, [writer])
    problem = writer.problem()
    if problem or unmade:
        raise BackendError(" ".join([*unmade, *([problem] if problem else [])])) from writer.error


def _outcome(run: LoggedRun, status: Any, reason: str, **more: Any) -> Outcome:
    return Outcome(run.stored.uri, run.name, status, reason, **more)
