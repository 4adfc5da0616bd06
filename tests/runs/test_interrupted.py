"""A rescoring that is interrupted between the report and what shows it: the next call writes all of it."""

from __future__ import annotations

import pytest

import uq_tracking as uq
from tests.runs.places import predictions
from uq_tracking.runs import RescoreOptions
from uq_tracking.tracking.content import logged_scores, scores_digest
from uq_tracking.tracking.folder import FolderRun
from uq_tracking.tracking.names import SCORES_TAG

pytestmark = pytest.mark.faults

ASKED = {"alpha": 0.8, "n_bins": 7}


def pictures(place, folder):
    run = place.run()
    return {name: run.fetch(name, folder).read_bytes() for name in run.files if name.endswith(".png")}


@pytest.mark.parametrize("method", ["log_figure", "log_scalars"])
@pytest.mark.pictures
def test_figures_and_scores_catch_up_with_the_report(dir_place, tmp_path, monkeypatch, method):
    data = predictions(n=100)
    dir_place.log(data, figures=True)
    before = pictures(dir_place, tmp_path / "before")

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FolderRun, method, interrupt)
        with pytest.raises(KeyboardInterrupt):
            uq.rescore(dir_place.uri, **ASKED)
    run = dir_place.run()
    assert run.scored().settings["n_bins"] == ASKED["n_bins"]  # the report is new
    assert run.stored.tags[SCORES_TAG] != scores_digest(run.scored())

    assert len(uq.rescore(dir_place.uri, **ASKED).done) == 1
    found = pictures(dir_place, tmp_path / "after")
    uq.rescore(dir_place.uri, **ASKED, options=RescoreOptions(figures=True))
    assert found == pictures(dir_place, tmp_path / "wanted")
    assert found["uq_reliability.png"] != before["uq_reliability.png"]
    assert dir_place.run().stored.tags[SCORES_TAG] == scores_digest(dir_place.run().scored())


def test_nothing_more_is_written_once_something_is_refused(dir_place, monkeypatch):
    before = dir_place.log(predictions(n=100))
    tags = dict(dir_place.run().stored.tags)

    def refuse(*arguments, **options):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(FolderRun, "log_file", refuse)
        (outcome,) = uq.rescore(dir_place.uri, **ASKED).failed
    assert "disk full" in outcome.reason
    run = dir_place.run()
    assert run.stored.tags == tags
    assert run.stored.scalars == logged_scores(before)
    assert run.scored().scores == before.scores


@pytest.mark.parametrize(("method", "is_sealed"), [("describe", True), ("log_scalars", False)])
def test_a_run_is_sealed_without_its_description_and_not_without_its_scores(
    dir_place, monkeypatch, method, is_sealed
):
    dir_place.log(predictions(n=100))

    def refuse(*arguments, **options):
        raise OSError("refused")

    with monkeypatch.context() as patch:
        patch.setattr(FolderRun, method, refuse)
        found = uq.rescore(dir_place.uri, **ASKED)
    assert (len(found.done), len(found.failed)) == ((1, 0) if is_sealed else (0, 1))
    run = dir_place.run()
    assert (run.stored.tags[SCORES_TAG] == scores_digest(run.scored())) == is_sealed
    assert (logged_scores(run.scored()).items() <= run.stored.scalars.items()) == is_sealed
