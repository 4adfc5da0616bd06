"""The verb: where it logs, what it logs, and what happens when something fails."""

from __future__ import annotations

import json
import logging
import shutil
import warnings

import numpy as np
import pytest

import uq_tracking as uq
from tests.tracking.helpers import FolderTracker, plugin
from uq_tracking.drawings import FigureSpec
from uq_tracking.errors import (
    BackendError,
    InputError,
    SettingsError,
    ShapeError,
    TrackingWarning,
    UnknownBackendError,
)
from uq_tracking.runs import RescoreOptions
from uq_tracking.testing import sample_predictions
from uq_tracking.tracking.content import logged_scores
from uq_tracking.tracking.folder import FolderStore
from uq_tracking.tracking.spool import entries, read_entry

TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]
QUICK = {"figures": False, "maps": False}


def only_run(folder):
    runs = list(FolderStore(folder).runs())
    assert len(runs) == 1
    return runs[0]


class TestWhere:
    def test_without_a_tracker_it_is_a_folder_and_a_line_says_where(self, in_folder, caplog):
        uq.log(TRUTH, MEAN, STD, method="mc dropout", **QUICK)
        stored = only_run(in_folder / "uq_runs")
        assert stored.name == "mc dropout"
        lines = [record for record in caplog.records if record.name == "uq_tracking"]
        assert [record.levelno for record in lines] == [logging.WARNING]
        assert stored.run_id in lines[0].getMessage()

    def test_splits_and_epochs_of_a_process_share_the_folder(self, in_folder, caplog):
        for step in range(3):
            uq.log(TRUTH, MEAN, STD, method="a", split="val", step=step)
        for split in ("val", "test"):
            uq.log(TRUTH, MEAN, STD, method="a", split=split, **QUICK)
        stored = only_run(in_folder / "uq_runs")
        assert {"uq/val/nll", "uq/test/nll"} <= set(stored.scalars)
        assert len(caplog.records) == 1

    def test_a_second_report_of_a_split_replaces_nothing(self, in_folder):
        for truth in (TRUTH, [2.0, 3.0, 4.0, 5.0], TRUTH):
            uq.log(truth, MEAN, STD, method="p 0.1", **QUICK)
        uq.log(TRUTH, MEAN, STD, method="p 0.1", step=3)
        uq.log(TRUTH, MEAN, STD, method="p", **QUICK)
        runs = list(FolderStore(in_folder / "uq_runs").runs())
        assert [run.name for run in runs] == ["p 0.1", "p 0.1", "p 0.1", "p"]
        assert runs[0].scalars["uq/rmse"] != runs[1].scalars["uq/rmse"]

    def test_every_active_run_gets_it(self, in_folder, trackers):
        report = uq.log(TRUTH, MEAN, STD, **QUICK)
        for tracker in trackers.values():
            stored = only_run(tracker.active.path.parent)
            assert stored.scalars["uq/nll"] == report.scores["nll"]
        assert not (in_folder / "uq_runs").exists()

    @pytest.mark.parametrize("to", ["two", ["two"]])
    def test_to_names_the_trackers(self, in_folder, trackers, to):
        uq.log(TRUTH, MEAN, STD, to=to, **QUICK)
        assert only_run(trackers["one"].active.path.parent).scalars == {}
        assert only_run(trackers["two"].active.path.parent).scalars

    @pytest.mark.parametrize(("to", "told"), [("idle", "to=idle"), (["idle", "wandb"], "to=idle/wandb")])
    def test_trackers_without_a_run_are_named(self, in_folder, trackers, caplog, to, told):
        with plugin("test-idle", uq_backends=[FolderTracker("idle")]):
            uq.log(TRUTH, MEAN, STD, to=to, **QUICK)
        assert caplog.messages[0].startswith(f"{told} does not have an active run: logging to dir:")

    def test_an_explicit_run_goes_before_the_active_ones(self, in_folder, trackers, tmp_path):
        run = FolderStore(tmp_path / "mine").create("mine")
        uq.log(TRUTH, MEAN, STD, run=run, **QUICK)
        assert only_run(tmp_path / "mine").scalars
        assert only_run(trackers["one"].active.path.parent).scalars == {}

    def test_several_runs_can_be_given(self, in_folder, tmp_path):
        runs = [FolderStore(tmp_path / name).create(name) for name in ("a", "b")]
        uq.log(TRUTH, MEAN, STD, run=runs, **QUICK)
        assert only_run(tmp_path / "a").scalars == only_run(tmp_path / "b").scalars != {}

    def test_an_address_of_a_store_makes_a_run_with_name_and_tags(self, in_folder, tmp_path):
        uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}/new", method="bagging", tags={"seed": 3}, **QUICK)
        stored = only_run(tmp_path / "new")
        assert (stored.name, stored.tags["uq.method"], stored.tags["seed"]) == ("bagging", "bagging", "3")

    @pytest.mark.parametrize("kind", ["uri", "path"])
    def test_an_address_of_a_run_adds_to_it(self, in_folder, tmp_path, kind):
        run = FolderStore(tmp_path / "mine").create("mine")
        uq.log(TRUTH, MEAN, STD, run=run.uri if kind == "uri" else run.path, **QUICK)
        assert only_run(tmp_path / "mine").scalars

    def test_a_second_method_in_a_run_is_warned_of(self, in_folder, tmp_path, recwarn):
        run = FolderStore(tmp_path / "mine").create("mine")
        for method, split in (("a", None), ("a", "val"), (None, None)):
            uq.log(TRUTH, MEAN, STD, run=run.uri, method=method, split=split, **QUICK)
        for method in ("a", "b"):
            uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}/own", method=method, **QUICK)
        assert not recwarn.list
        for former, method, split in (("a", "b", None), ("b", "c", "val")):
            said = f"was logged as method '{former}', which '{method}' replaces; start a run for each method"
            with pytest.warns(TrackingWarning, match=said):
                uq.log(TRUTH, MEAN, STD, run=run.uri, method=method, split=split, **QUICK)

    def test_to_dir_is_asked_for_and_needs_no_notice(self, in_folder, trackers, caplog):
        uq.log(TRUTH, MEAN, STD, to="dir", **QUICK)
        assert only_run(in_folder / "uq_runs").scalars
        assert caplog.records == []


HEADLINE = (
    "rmse",
    "nll",
    "crps",
    "coverage_95",
    "calibration_error",
    "ence",
    "z_std",
    "ause_rmse",
    "n_merci",
)
FEW = [key for key in HEADLINE if key != "ence"]  # which a handful of samples leaves undefined


class TestScores:
    """Which scores a tracker shows, and where."""

    def test_all_of_them_stand_in_sections_by_what_they_judge(self, in_folder, tmp_path):
        report = uq.log(TRUTH, MEAN, STD, scores="all", split="test", run=f"dir:{tmp_path}/r", **QUICK)
        stored = only_run(tmp_path / "r").scalars
        assert len(stored) == len(report.scores)
        sections = {name.split("/")[0] for name in stored}
        assert sections == {"uq", "uq_accuracy", "uq_scoring", "uq_calibration", "uq_ranking", "uq_spread"}
        assert {name for name in stored if name.startswith("uq/")} == {f"uq/test/{key}" for key in FEW}
        assert stored["uq_ranking/test/spearman"] == report.scores["spearman"]

    @pytest.mark.parametrize("how", ["arrays", "report", "accumulator"])
    def test_what_is_asked_for_by_name_is_shown(self, how, in_folder, tmp_path):
        metrics = ["pit_ks", "crps"]
        given = {"arrays": (TRUTH, MEAN, STD), "report": (uq.evaluate(TRUTH, MEAN, STD, metrics=metrics),)}
        counted = uq.Accumulator(metrics=metrics)
        counted.update(TRUTH, MEAN, STD)
        options = {"metrics": metrics} if how == "arrays" else {}
        uq.log(*given.get(how, (counted,)), run=f"dir:{tmp_path}/r", figures=False, maps="auto", **options)
        assert set(only_run(tmp_path / "r").scalars) == {"uq_calibration/pit_ks", "uq/crps"}

    def test_after_a_recalibration_there_are_the_same(self, in_folder, tmp_path):
        uq.log(TRUTH, MEAN, STD, calibration=True, run=f"dir:{tmp_path}/r", **QUICK)
        names = only_run(tmp_path / "r").scalars
        after = {name.split("/")[1] for name in names if name.startswith("uq_recalibrated/")}
        assert after == set(FEW)

    def test_a_rescoring_shows_no_fewer_than_the_run_did(self, in_folder, tmp_path):
        uq.log(TRUTH, MEAN, STD, metrics=["crps", "merci"], run=f"dir:{tmp_path}/r", **QUICK)
        uq.rescore(f"dir:{tmp_path}/r", alpha=0.8)
        names = {"uq_ranking/merci", *(f"uq/{key}" for key in FEW)}
        run = only_run(tmp_path / "r")
        assert set(run.scalars) == names
        assert run.scalars["uq_ranking/merci"] == uq.evaluate(TRUTH, MEAN, STD, alpha=0.8).scores["merci"]
        uq.rescore(f"dir:{tmp_path}/r", alpha=0.8, metrics="pit_ks")
        assert set(only_run(tmp_path / "r").scalars) == names | {"uq_calibration/pit_ks"}
        uq.rescore(f"dir:{tmp_path}/r", alpha=0.8, options=RescoreOptions(scores="all"))
        assert len(only_run(tmp_path / "r").scalars) > 40
        uq.rescore(f"dir:{tmp_path}/r", alpha=0.7)
        run = only_run(tmp_path / "r")
        assert run.scalars["uq_calibration/auce"] == uq.evaluate(TRUTH, MEAN, STD).scores["auce"]

    def test_another_choice_is_refused(self, in_folder):
        with pytest.raises(SettingsError, match="scores is 'al'; choose 'headline' or 'all'"):
            uq.log(TRUTH, MEAN, STD, scores="al")


class TestWhat:
    def test_the_names_are_the_documented_ones(self, in_folder, tmp_path):
        report = uq.log(sample_predictions(), run=f"dir:{tmp_path}/r", method="m")
        stored = only_run(tmp_path / "r")
        files = set(FolderStore(tmp_path / "r").files(stored.run_id))
        assert stored.scalars == {f"uq/{key}": report.scores[key] for key in HEADLINE}
        assert {f"uq_curve/{name}.csv" for name in report.curves} <= files
        assert {"uq/report.json", "uq/statistics.npz", "uq/predictions.npz"} <= files
        assert {"uq_reliability.png", "uq_calibration.png", "uq_sparsification.png"} <= files
        assert {"uq_map_0.png", "uq_map_1.png"} <= files
        assert len(stored.tags.pop("uq.scores")) == 16
        assert len(stored.tags.pop("uq.origin")) == 12
        assert stored.tags.pop("uq.verdict") == report.verdict.short
        assert stored.tags.pop("uq.settings") == "alpha 0.95, 10 bins, gaussian, no groups, no recalibration"
        assert stored.tags == {"uq.method": "m", "uq.schema": "1", "uq.version": uq.__version__}

    def test_a_split_stands_in_every_name(self, in_folder, tmp_path):
        uq.log(sample_predictions(), run=f"dir:{tmp_path}/r", split="test", maps=[1])
        stored = only_run(tmp_path / "r")
        files = FolderStore(tmp_path / "r").files(stored.run_id)
        assert all(name.startswith("uq/test/") for name in stored.scalars)
        assert all(
            name.startswith(("uq/test/", "uq_curve/test/", "uq_test_", "uq_map_test_1")) for name in files
        )

    def test_a_step_holds_scores_only(self, in_folder, tmp_path):
        run = FolderStore(tmp_path / "r").create("r")
        uq.log(sample_predictions(), run=run, step=np.int64(4))
        assert only_run(tmp_path / "r").scalars
        assert FolderStore(tmp_path / "r").files(run.path.name) == []
        lines = [json.loads(line) for line in (run.path / "log.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines if line["kind"] == "scalars"] == [4]

    @pytest.mark.slow
    def test_the_same_again_changes_nothing(self, in_folder, tmp_path):
        run = FolderStore(tmp_path / "r").create("r")
        snapshots = []
        for _ in range(2):
            uq.log(sample_predictions(), run=run, method="m")
            paths = sorted(path for path in run.path.rglob("*") if path.is_file())
            snapshots.append({path: path.read_bytes() for path in paths})
        assert snapshots[0] == snapshots[1]

    def test_recalibration_is_logged(self, in_folder, tmp_path):
        uq.log(sample_predictions(), run=f"dir:{tmp_path}/r", calibration=sample_predictions(seed=1), **QUICK)
        stored = only_run(tmp_path / "r")
        assert {"uq_recalibration/std_scale", "uq_recalibrated/nll"} <= set(stored.scalars)
        assert "uq/recalibration.json" in FolderStore(tmp_path / "r").files(stored.run_id)

    def test_figures_maps_and_predictions_can_be_left_out(self, in_folder, tmp_path):
        uq.log(sample_predictions(), run=f"dir:{tmp_path}/r", predictions=False, **QUICK)
        files = FolderStore(tmp_path / "r").files(only_run(tmp_path / "r").run_id)
        assert [name for name in files if name.endswith(".png") or "predictions" in name] == []

    def test_large_predictions_are_left_out_with_a_word(self, in_folder, tmp_path, monkeypatch, caplog):
        monkeypatch.setattr("uq_tracking.tracking.content.PREDICTIONS_LIMIT", 10)
        for number, keep in enumerate(["auto", True]):
            uq.log(sample_predictions(), run=f"dir:{tmp_path}/{number}", predictions=keep, **QUICK)
        stored = [
            "uq/predictions.npz" in FolderStore(tmp_path / name).files(only_run(tmp_path / name).run_id)
            for name in ("0", "1")
        ]
        assert stored == [False, True]
        (line,) = [record.message for record in caplog.records if "not stored" in record.message]
        assert "rescore cannot apply std_floor=" in line
        assert "predictions=True stores them" in line

    def test_options_reach_the_predictions_and_the_scores(self, in_folder, tmp_path):
        mask = [True, False, False, False]
        report = uq.log(TRUTH, MEAN, STD, mask=mask, alpha=0.5, unit="m", run=f"dir:{tmp_path}/r", **QUICK)
        assert report == uq.evaluate(TRUTH, MEAN, STD, mask=mask, alpha=0.5, unit="m")
        assert (report.counts["n_masked"], report.settings["alpha"], report.settings["unit"]) == (1, 0.5, "m")

    def test_a_report_is_logged_as_it_is(self, in_folder, tmp_path):
        report = uq.evaluate(TRUTH, MEAN, STD)
        assert uq.log(report, run=f"dir:{tmp_path}/r", figures=False) is report
        stored = only_run(tmp_path / "r")
        assert stored.scalars == logged_scores(report)

    def test_statistics_can_be_a_sketch(self, in_folder, tmp_path):
        report = uq.log(TRUTH, MEAN, STD, statistics="sketch", run=f"dir:{tmp_path}/r", **QUICK)
        assert report.provenance["statistics"] == "sketch"


def test_a_method_that_is_no_plain_text_is_shown_as_one(in_folder, tmp_path):
    uq.log(TRUTH, MEAN, STD, method="a\x1b[31m\ud800", tags={"n": "\ud800"}, run=f"dir:{tmp_path}/r", **QUICK)
    assert only_run(tmp_path / "r").tags["uq.method"] == "a\\x1b[31m\\ud800"


class TestWrongArguments:
    """They raise, and before any tracker is asked."""

    @pytest.mark.parametrize(
        ("arguments", "options", "error", "match"),
        [
            (([1.0, 2.0], [1.0], [1.0, 1.0]), {}, ShapeError, "y_pred"),
            (([1.0], [np.nan], [1.0]), {}, InputError, "y_pred"),
            ((TRUTH, MEAN, STD), {"split": "a/b"}, SettingsError, "split is 'a/b'"),
            ((TRUTH, MEAN, STD), {"step": 1.5}, SettingsError, "step is 1.5"),
            ((TRUTH, MEAN, STD), {"step": True}, SettingsError, "step is True"),
            ((TRUTH, MEAN, STD), {"step": 2**63}, SettingsError, "trackers store steps in 64 bits"),
            ((TRUTH, MEAN, STD), {"strict": "no"}, SettingsError, "strict is 'no'"),
            ((uq.evaluate(TRUTH, MEAN, STD),), {"predictions": True}, SettingsError, "a Report holds none"),
            ((TRUTH, MEAN, STD), {"split": 5}, SettingsError, "split is 5"),
            ((TRUTH, MEAN, STD), {"method": 5}, SettingsError, "method is 5"),
            ((TRUTH, MEAN, STD), {"method": "x" * 5000}, SettingsError, "method has 5000 characters"),
            ((TRUTH, MEAN, STD), {"tags": 5}, SettingsError, "tags is a int"),
            ((TRUTH, MEAN, STD), {"figures": "no"}, SettingsError, "figures is 'no'"),
            ((TRUTH, MEAN, STD), {"predictions": "no"}, SettingsError, "predictions is 'no'"),
            ((TRUTH, MEAN, STD), {"deadline": -1}, SettingsError, "deadline is -1"),
            ((TRUTH, MEAN, STD), {"alhpa": 0.9}, SettingsError, "did you mean alpha"),
            ((TRUTH, MEAN, STD), {"maps": 3}, SettingsError, "height, width"),
            ((TRUTH, MEAN, STD), {"run": "nonsense"}, SettingsError, "run='nonsense' is not a run of"),
            ((TRUTH, MEAN, STD), {"run": object()}, SettingsError, "object object at"),
            ((TRUTH, MEAN, STD), {"run": "nowhere:x"}, UnknownBackendError, "'nowhere'.*dir"),
            ((TRUTH, MEAN, STD), {"to": "nowhere"}, UnknownBackendError, "'nowhere'"),
            ((sample_predictions(), MEAN), {}, SettingsError, "which already holds the input"),
            ((sample_predictions(),), {"maps": [2]}, SettingsError, "case 2.*0 to 1"),
            ((sample_predictions(),), {"images": np.zeros((3, 4, 4))}, ShapeError, "3 images for 2 cases"),
            ((uq.evaluate(TRUTH, MEAN, STD),), {"alpha": 0.5}, SettingsError, "already scored; pass alpha"),
            ((uq.evaluate(TRUTH, MEAN, STD),), {"maps": 2}, SettingsError, "a Report holds none"),
        ],
    )
    def test_wrong_arguments_raise(self, in_folder, trackers, arguments, options, error, match):
        with pytest.raises(error, match=match):
            uq.log(*arguments, **options)
        assert only_run(trackers["one"].active.path.parent).tags == {}
        assert not (in_folder / "uq_runs").exists()


class TestFailures:
    def test_one_failing_tracker_does_not_stop_the_other(self, in_folder, trackers):
        shutil.rmtree(trackers["one"].active.path)
        with pytest.warns(TrackingWarning, match=r"one \(dir:.*\) did not take the scores and .*RunNotFound"):
            report = uq.log(TRUTH, MEAN, STD, method="m", **QUICK)
        assert only_run(trackers["two"].active.path.parent).scalars["uq/nll"] == report.scores["nll"]
        (path,) = entries(in_folder / "uq_runs")
        assert read_entry(path).origin.uri == trackers["one"].active.uri

    def test_the_warning_stands_at_the_callers_line(self, in_folder, trackers):
        shutil.rmtree(trackers["one"].active.path)
        with pytest.warns(TrackingWarning) as caught:
            uq.log(TRUTH, MEAN, STD, **QUICK)
        assert caught[0].filename == __file__

    def test_strict_raises_after_the_others_got_it(self, in_folder, trackers):
        shutil.rmtree(trackers["one"].active.path)
        with pytest.raises(BackendError, match="did not take"):
            uq.log(TRUTH, MEAN, STD, strict=True, **QUICK)
        assert only_run(trackers["two"].active.path.parent).scalars

    def test_with_warnings_as_errors_everything_was_tried_before(self, in_folder, trackers):
        shutil.rmtree(trackers["one"].active.path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(TrackingWarning):
                uq.log(TRUTH, MEAN, STD, **QUICK)
        assert only_run(trackers["two"].active.path.parent).scalars
        assert len(list(entries(in_folder / "uq_runs"))) == 1

    def test_a_tracker_that_cannot_tell_its_run_is_named(self, in_folder):
        broken = FolderTracker("broken", error=RuntimeError("no idea"))
        with (
            plugin("test-broken", uq_backends=[broken]),
            pytest.warns(TrackingWarning, match="broken: cannot determine the active run: no idea"),
        ):
            uq.log(TRUTH, MEAN, STD, **QUICK)
        assert only_run(in_folder / "uq_runs").scalars

    @pytest.mark.slow
    @pytest.mark.pictures
    def test_a_figure_that_cannot_be_drawn_is_named_and_the_rest_is_logged(self, in_folder, tmp_path):
        def draw(report):
            raise ZeroDivisionError("no ink")

        with (
            plugin("test-figures", uq_figures=[FigureSpec("sketchy", draw)]),
            pytest.warns(
                TrackingWarning, match=r"uq_sketchy\.png could not be made: ZeroDivisionError: no ink"
            ),
        ):
            uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}/r")
        files = FolderStore(tmp_path / "r").files(only_run(tmp_path / "r").run_id)
        assert {"uq_calibration.png", "uq/report.json"} <= set(files)

    def test_a_failing_copy_is_told_too(self, in_folder, trackers, monkeypatch):
        shutil.rmtree(trackers["one"].active.path)
        for place in ("uq_runs", "state", "temporary"):
            (in_folder / place).write_text("in the way")
        monkeypatch.setenv("XDG_STATE_HOME", str(in_folder / "state"))
        monkeypatch.setattr("tempfile.tempdir", str(in_folder / "temporary"))
        with pytest.warns(TrackingWarning, match="No copy could be kept either"):
            uq.log(TRUTH, MEAN, STD, **QUICK)

    def test_credentials_are_hidden(self, in_folder, trackers, monkeypatch):
        def fail(*args, **options):
            raise OSError("https://me:secret@host/?token=abc is down")

        monkeypatch.setattr(trackers["one"].active, "log_scalars", fail)
        with pytest.warns(TrackingWarning, match=r"https://\*\*\*@host/\?token=\*\*\* is down"):
            uq.log(TRUTH, MEAN, STD, **QUICK)
