"""What `uq.rescore` asks, keeps, changes and leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import uq_tracking as uq
from tests.runs.places import QUIET, arrays, predictions
from uq_tracking.errors import (
    RunNotFoundError,
    SettingsError,
    TrackingWarning,
    UnknownMetricError,
    UQTrackingError,
)
from uq_tracking.runs import RescoreOptions
from uq_tracking.tracking.names import RESCORED_TAG


@pytest.fixture
def place(dir_place):
    return dir_place


def statuses(summary):
    return [outcome.status for outcome in summary.outcomes]


class TestWhatIsDone:
    def test_settings_that_are_not_given_stay_those_of_the_run(self, place):
        place.log(predictions(), alpha=0.9, family="laplace", unit="m")
        uq.rescore(place.uri, n_bins=5)
        settings = place.run().report().settings
        assert settings == {
            "alpha": 0.9, "n_bins": 5, "family": "laplace", "dof": 5.0, "unit": "m", "std_floor": None,
        }  # fmt: skip

    @pytest.mark.slow
    def test_a_run_that_was_rescored_as_asked_is_skipped_until_it_is_logged_again(self, place):
        place.log(predictions())
        uri = place.run().stored.uri
        assert statuses(uq.rescore(uri, alpha=0.9)) == ["done"]
        assert statuses(uq.rescore(uri, alpha=0.9)) == ["skipped"]
        assert statuses(uq.rescore(uri, alpha=0.8)) == ["done"]
        assert statuses(uq.rescore(uri, alpha=0.8, options=RescoreOptions(force=True))) == ["done"]
        uq.log(predictions(), run=uri, **QUIET)
        assert statuses(uq.rescore(uri, alpha=0.8)) == ["done"]
        assert place.run().report().settings["alpha"] == 0.8

    @pytest.mark.slow
    def test_splits_are_rescored_apart(self, place):
        place.log(predictions(), split="val")
        uri = place.run().stored.uri
        uq.log(predictions(seed=1), run=uri, split="test", **QUIET)
        before = place.run("val").report()
        assert statuses(uq.rescore(place.uri, split="test", alpha=0.9)) == ["done"]
        assert place.run("test").report().settings["alpha"] == 0.9
        assert place.run("val").report() == before
        assert f"{RESCORED_TAG}.test" in place.run().stored.tags
        (outcome,) = uq.rescore(place.uri).skipped
        assert "choose one with split=: test, val" in outcome.reason

    @pytest.mark.slow
    def test_the_trackers_own_filter_selects(self, place):
        for method in ("a", "b"):
            place.log(predictions(), method=method)
        assert [item.name for item in uq.rescore(place.uri, where="uq.method=b").done] == ["b"]

    def test_a_dry_run_writes_nothing(self, place, tmp_path):
        place.log(predictions())
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        summary = uq.rescore(place.uri, alpha=0.9, dry_run=True)
        assert statuses(summary) == ["done"]
        assert "1 would be done" in str(summary)
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before

    @pytest.mark.slow
    def test_several_workers_do_the_same(self, place):
        reports = [place.log(predictions(seed=seed), method=f"m{seed}") for seed in range(6)]
        told = []
        summary = uq.rescore(
            place.uri,
            alpha=0.9,
            progress=lambda outcome, total: told.append(total),
            options=RescoreOptions(workers=3, figures=True),
        )
        assert statuses(summary) == ["done"] * 6
        assert told == [6] * 6
        for run, report in zip(place.runs(), reports, strict=True):
            assert run.report().scores["rmse"] == report.scores["rmse"]
            assert "uq_calibration.png" in run.files

    def test_a_metric_is_added(self, place):
        place.log(predictions(), metrics=["rmse", "nll"])
        uq.rescore(place.uri, metrics="crps")
        report = place.run().report()
        assert report.scores == pytest.approx(uq.evaluate(predictions()).scores, rel=1e-12)

    def test_statistics_that_are_damaged_are_replaced_by_predictions(self, place):
        logged = place.log(predictions())
        path = place.run().stored.uri.removeprefix("dir:") + "/uq/statistics.npz"
        with open(path, "r+b") as file:
            file.truncate(100)
        (outcome,) = uq.rescore(place.uri).done
        assert outcome.source == "predictions"
        assert place.run().report().scores == logged.scores

    @pytest.mark.slow
    def test_a_std_floor_is_applied_and_can_be_taken_back(self, place):
        data = predictions()
        place.log(data)
        for floor in (0.5, 0.2, None):
            (outcome,) = uq.rescore(place.uri, std_floor=floor or 0.0).done
            assert outcome.source == "predictions"
            report = place.run().scored()
            assert report.scores == uq.evaluate(predictions(std_floor=floor)).scores
            assert report.settings["std_floor"] == report.statistics.facts["std_floor"] == floor

    def test_a_floor_below_that_of_the_stored_predictions_is_refused(self, place):
        place.log(predictions(std_floor=0.5))
        before = place.run().report()
        (outcome,) = uq.rescore(place.uri, std_floor=0.1).failed
        assert "raised to 0.5 before it was stored" in outcome.reason
        assert place.run().report() == before


class TestWhatIsWritten:
    def test_curves_of_another_definition_have_a_name_of_their_own(self, place):
        place.log(predictions())
        uq.rescore(place.uri, n_bins=20, family="student_t", dof=4)
        curves = {name for name in place.run().files if name.startswith("uq_curve/")}
        assert {"uq_curve/reliability.csv", "uq_curve/reliability.bins20.csv"} <= curves
        assert {"uq_curve/calibration.csv", "uq_curve/calibration.student_t4.csv"} <= curves
        assert "uq_curve/n_merci_by_alpha.student_t4.csv" not in curves

    def test_only_stored_figures_whose_numbers_changed_are_drawn_again(self, place, tmp_path):
        place.log(predictions(), figures=True)
        folder = tmp_path / "runs" / place.run().stored.run_id
        stamps = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.png")}
        (folder / "uq_sparsification.png").unlink()
        uq.rescore(place.uri, n_bins=20)
        drawn = {path.name for path in folder.glob("*.png") if path.stat().st_mtime_ns != stamps[path.name]}
        assert drawn == {"uq_reliability.png"}
        assert not (folder / "uq_sparsification.png").exists()
        uq.rescore(place.uri, n_bins=20, options=RescoreOptions(figures=True))
        assert (folder / "uq_sparsification.png").exists()

    def test_alpha_alone_draws_and_repeats_nothing(self, place, tmp_path):
        place.log(predictions(), figures=True)
        folder = tmp_path / "runs" / place.run().stored.run_id
        stamps = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
        uq.rescore(place.uri, alpha=0.9)
        changed = {path.name for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp}
        assert changed == {"report.json", "log.jsonl"}

    def test_the_report_says_what_it_was_made_from(self, place):
        logged = place.log(predictions())
        uq.rescore(place.uri)
        provenance = place.run().report().provenance
        assert provenance == {**logged.provenance, "rescored": {"from": "exact statistics"}}


class TestRecalibration:
    @pytest.mark.slow
    def test_is_fitted_on_another_split_of_the_run(self, place):
        place.log(predictions(), split="val")
        uri = place.run().stored.uri
        uq.log(predictions(seed=1), run=uri, split="test", **QUIET)
        uq.rescore(place.uri, split="test", calibration_split="val", recalibration=["std_scaling"])
        wanted = uq.evaluate(predictions(seed=1), calibration=predictions(), recalibration="std_scaling")
        (entry,) = place.run("test").report().recalibration["methods"].values()
        after = wanted.recalibration["methods"]["std_scaling"]["scores"]
        assert entry["scores"] == pytest.approx(after, rel=1e-12)
        assert place.run().stored.scalars["uq_recalibrated/test/nll"] == entry["scores"]["nll"]

    @pytest.mark.slow
    def test_the_scored_split_itself_is_told(self, dir_place):
        dir_place.log(predictions(), split="test")
        with pytest.warns(TrackingWarning, match="std_scaling was fitted on the samples it is scored on"):
            uq.rescore(dir_place.uri, split="test", calibration_split="test")
        for alpha in (0.8, 0.9):
            with pytest.warns(TrackingWarning, match="was fitted on the samples"):
                assert uq.rescore(dir_place.uri, split="test", alpha=alpha).done
            (entry,) = dir_place.run("test").report().recalibration["methods"].values()
            assert entry["how"] == "fitted on the samples it is scored on"
            assert "split" not in entry

    def test_a_run_without_that_split_fails_and_keeps_what_it_has(self, place):
        place.log(predictions())
        (outcome,) = uq.rescore(place.uri, calibration_split="val").failed
        assert "nothing was logged under the split 'val'" in outcome.reason

    @pytest.mark.slow
    @pytest.mark.parametrize("calibration", [True, "fitted"])
    def test_what_the_run_was_recalibrated_by_is_scored_under_the_new_settings(self, place, calibration):
        fitted = uq.recalibrate(predictions(seed=7), "std_scaling") if calibration == "fitted" else True
        place.log(predictions(), calibration=fitted)
        uq.rescore(place.uri, alpha=0.8)
        wanted = uq.evaluate(predictions(), alpha=0.8, calibration=fitted).recalibration["methods"]
        found = place.run().report().recalibration["methods"]
        assert found["std_scaling"]["how"] == wanted["std_scaling"]["how"]
        assert found["std_scaling"]["scores"] == pytest.approx(wanted["std_scaling"]["scores"], rel=1e-12)

    def test_a_file_that_is_not_there_is_named(self, dir_place):
        with pytest.raises(SettingsError, match=r"calibration='nope\.json': there is no such file"):
            uq.rescore(dir_place.uri, calibration="nope.json")

    def test_false_is_refused_because_a_run_keeps_its_recalibrations(self, dir_place):
        with pytest.raises(SettingsError, match="a run keeps its recalibrations; to add one, pass True"):
            uq.rescore(dir_place.uri, calibration=False)

    def test_a_file_of_parameters_is_applied(self, place, tmp_path):
        fitted = uq.recalibrate(predictions(seed=7), "std_scaling")
        (tmp_path / "scale.json").write_text(fitted.to_json())
        place.log(predictions())
        uq.rescore(place.uri, calibration=str(tmp_path / "scale.json"))
        assert "uq/recalibration.json" in place.run().files
        wanted = uq.evaluate(predictions(), calibration=fitted)
        found = place.run().report()
        scores = found.recalibration["methods"]["std_scaling"]["scores"]
        assert scores == pytest.approx(wanted.recalibration["methods"]["std_scaling"]["scores"], rel=1e-12)
        assert {"calibration_recalibrated", "reliability_recalibrated"} <= found.curves.keys()


class TestWrongArguments:
    @pytest.mark.parametrize(
        ("options", "error", "match"),
        [
            ({"metrics": "nonsense"}, UnknownMetricError, "nonsense"),
            ({"alpha": 2.0}, SettingsError, "alpha is 2"),
            ({"std_floor": -1.0}, SettingsError, "std_floor is -1"),
            ({"recalibration": "std_scaling"}, SettingsError, "not what to fit them to"),
            ({"calibration": True, "calibration_split": "val"}, SettingsError, "pass only one"),
            ({"calibration": arrays()}, SettingsError, "calibration is a"),
            ({"calibration": True, "recalibration": "nope"}, SettingsError, "method is called 'nope'"),
            ({"calibration": ["std_scalin"]}, SettingsError, "did you mean 'std_scaling'"),
            ({"split": "a/b"}, SettingsError, "split is 'a/b'"),
            ({"alphas": 0.9}, SettingsError, r"rescore has no option alphas; did you mean alpha\?"),
        ],
    )
    def test_are_refused_before_any_run_is_touched(self, place, options, error, match):
        place.log(predictions())
        before = place.run().stored
        with pytest.raises(error, match=match):
            uq.rescore(place.uri, **options)
        assert place.run().stored == before


def test_options_are_checked():
    with pytest.raises(SettingsError, match="workers is 0; pass at least 1"):
        RescoreOptions(workers=0)
    with pytest.raises(SettingsError, match="scores is 'some'"):
        RescoreOptions(scores="some")


def test_failures_can_be_raised(dir_place):
    dir_place.log(predictions(std_floor=0.5))
    summary = uq.rescore(dir_place.uri, std_floor=0.1)
    with pytest.raises(UQTrackingError, match="1 of 1 runs failed"):
        summary.raise_failures()
    uq.rescore(dir_place.uri).raise_failures()


def test_an_address_without_runs_is_an_error_and_a_filter_without_matches_is_not(dir_place, tmp_path):
    with pytest.raises(RunNotFoundError, match="there is no run to rescore; check the address"):
        uq.rescore(f"dir:{tmp_path}/none")
    dir_place.log(predictions())
    assert uq.rescore(dir_place.uri, where="uq.method=other").outcomes == []


def test_the_only_split_of_a_run_is_taken(dir_place):
    dir_place.log(predictions(), split="test")
    assert statuses(uq.rescore(dir_place.uri, alpha=0.9)) == ["done"]
    assert dir_place.run("test").report().settings["alpha"] == 0.9
    assert statuses(uq.rescore(dir_place.uri, alpha=0.9)) == ["skipped"]
    assert uq.pool(dir_place.uri).counts["n"] == 300


@pytest.mark.parametrize("kept", [True, False])
def test_a_family_is_refused_for_distributions_of_another_form(dir_place, kept):
    quantiles = uq.Predictions.from_quantiles([0.0, 1.0], [[-1.0, 0.0, 1.0]] * 2, [0.1, 0.5, 0.9])
    dir_place.log(quantiles, predictions=kept)
    before = dir_place.run().report()
    (outcome,) = uq.rescore(dir_place.uri, family="laplace").failed
    assert "omit family" in outcome.reason
    assert dir_place.run().report() == before


@pytest.mark.slow
def test_two_rescorings_at_once_add_up(dir_place):
    for seed in range(4):
        dir_place.log(predictions(seed=seed), method=f"m{seed}")
    code = "import sys, json, uq_tracking as uq; uq.rescore(sys.argv[1], **json.loads(sys.argv[2])).raise_failures()"
    jobs = [
        subprocess.Popen([sys.executable, "-c", code, dir_place.uri, json.dumps(change)])
        for change in ({"alpha": 0.8}, {"n_bins": 20})
    ]
    assert [job.wait(timeout=120) for job in jobs] == [0, 0]
    settings = [run.report().settings for run in dir_place.runs()]
    assert {(each["alpha"], each["n_bins"]) for each in settings} == {(0.8, 20)}
