"""What MLflow's pages show of a run and of an experiment: description, data set, and the view behind the link."""

from __future__ import annotations

import base64
import json
import re
import zlib

import mlflow
import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import TrackerUnreachableError, TrackingWarning
from uq_tracking.formatting import COLORS
from uq_tracking.tracking.overview import Description
from uq_tracking.tracking.resolve import open_store
from uq_tracking_mlflow import view
from uq_tracking_mlflow.run import MLflowRun

TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]
QUICK = {"figures": False, "maps": False, "strict": True}


@pytest.fixture
def client(in_experiment):
    return mlflow.MlflowClient()


def state_of(value):
    return json.loads(zlib.decompress(base64.b64decode(value.removeprefix("deflate;"))))


def charts(value):
    return [card for card in state_of(value)["compareRunCharts"] if not card.get("isGenerated")]


class TestRun:
    @pytest.mark.slow
    def test_it_says_the_verdict_and_a_users_own_text_stays(self, client):
        with mlflow.start_run(description="My own words.") as run:
            report = uq.log(TRUTH, MEAN, STD, **QUICK)
            uq.log(TRUTH, MEAN, [0.2] * 4, split="val", **QUICK)
            uq.log(TRUTH, MEAN, [0.3] * 4, split="val", **QUICK)
        text = client.get_run(run.info.run_id).data.tags["mlflow.note.content"]
        assert text.startswith("My own words.\n\n[//]: # (uq_tracking)\n\n")
        assert text.count("Not enough data to tell") == 2
        assert text.count("| rmse |") == 2
        assert f"{report.scores['rmse']:.4g}" in text
        assert text.count("**val:**") == 1

    @pytest.mark.slow
    def test_the_data_are_named_once_and_never_over_a_users_own(self, client):
        with mlflow.start_run() as run:
            uq.log(TRUTH, MEAN, STD, **QUICK)
            uq.log(TRUTH, MEAN, [0.5] * 4, **QUICK)
        (found,) = client.get_run(run.info.run_id).inputs.dataset_inputs
        assert (found.dataset.name, json.loads(found.dataset.profile)) == ("truth", {"num_rows": 4})
        with mlflow.start_run() as run:
            mlflow.log_input(mlflow.data.from_numpy(np.asarray(TRUTH), name="mine"))
            uq.log(TRUTH, MEAN, STD, **QUICK)
        (found,) = client.get_run(run.info.run_id).inputs.dataset_inputs
        assert found.dataset.name == "mine"

    @pytest.mark.slow
    def test_the_figures_that_it_holds_are_shown(self, client):
        with mlflow.start_run() as run:
            uq.log(TRUTH, MEAN, STD, maps=False, strict=True, deadline=120)
        text = client.get_run(run.info.run_id).data.tags["mlflow.note.content"]
        assert f"(get-artifact?path=uq_calibration.png&run_uuid={run.info.run_id})" in text

    @pytest.mark.slow
    def test_a_call_that_ended_before_its_charts_were_named_names_them_when_it_is_sent(
        self, client, in_experiment, monkeypatch
    ):
        def refused(*_):
            raise TrackerUnreachableError("the storage refuses")

        def shown(run):
            return client.get_experiment(run.info.experiment_id).tags.get(view.TAG)

        monkeypatch.setattr("uq_tracking.tracking.health.Health._start", lambda self: None)
        with mlflow.start_run() as run, monkeypatch.context() as patch:
            patch.setattr(MLflowRun, "log_file", refused)
            with pytest.warns(TrackingWarning, match="the storage refuses"):
                uq.log(TRUTH, MEAN, STD, figures=False, maps=False)
        assert "uq/rmse" in client.get_run(run.info.run_id).data.metrics
        assert shown(run) is None
        assert not uq.sync().failed
        assert "uq/rmse" in json.dumps(state_of(shown(run)))

    @pytest.mark.slow
    def test_methods_are_told_apart_by_color_and_a_users_own_stays(self, client, in_experiment):
        def colors():
            found = client.search_runs([in_experiment], order_by=["attributes.start_time ASC"])
            return [run.data.tags.get("mlflow.runColor") for run in found]

        def log(method, **options):
            with mlflow.start_run():
                uq.log(TRUTH, MEAN, STD, method=method, **options, **QUICK)

        log("mc-dropout", step=1)
        assert colors() == [None]
        for method in ("mc-dropout", "ensemble", "evidential", "ensemble", None):
            log(method)
        known = colors()[1:]
        assert known[1] == known[3]
        assert len(set(known)) == 4
        assert set(known) <= set(COLORS)
        found = uq.compare(f"mlflow:{in_experiment}")
        assert {run.method: COLORS[found.looks[run.method]] for run in found.runs if run.logged.method} == {
            "mc-dropout": known[0],
            "ensemble": known[1],
            "evidential": known[2],
        }
        with mlflow.start_run(tags={"mlflow.runColor": "#123456"}):
            uq.log(TRUTH, MEAN, STD, method="ensemble", **QUICK)
        assert colors()[6] == "#123456"
        open_store(f"mlflow:{in_experiment}")[0].show()
        log("evidential")
        assert colors()[7] == known[2]

    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["ensemble", "it's"])
    def test_a_run_that_is_sent_again_is_no_second_one_of_its_method(self, client, in_experiment, method):
        def group():
            return state_of(client.get_experiment(run.info.experiment_id).tags[view.TAG])["groupBy"]

        with mlflow.start_run() as run:
            uq.log(TRUTH, MEAN, STD, method=method, **QUICK)
        id_ = run.info.run_id
        client.delete_tag(id_, "mlflow.runColor")  # what a call leaves that ended after the view was written
        open_store(f"mlflow:{in_experiment}")[0].reopen(id_).show()
        assert "mlflow.runColor" in client.get_run(id_).data.tags
        assert group() is None
        with mlflow.start_run() as run:
            uq.log(TRUTH, MEAN, STD, method=method, **QUICK)
        assert group() is not None

    def test_a_failing_view_disturbs_nothing(self, client, monkeypatch, recwarn):
        def broken(*_args, **_options):
            raise RuntimeError("another format")

        monkeypatch.setattr(view, "updated", broken)
        monkeypatch.setattr(view, "with_part", broken)
        with mlflow.start_run() as run:
            uq.log(TRUTH, MEAN, STD, **QUICK)
        assert "uq/rmse" in client.get_run(run.info.run_id).data.metrics
        assert not recwarn.list


class TestView:
    @pytest.mark.slow
    def test_the_link_opens_the_headline_of_all_runs(
        self, client, in_experiment, tracking_uri, monkeypatch, capsys
    ):
        monkeypatch.setenv("UQ_TRACKING_HINT", "1")
        with mlflow.start_run() as run:
            uq.log(TRUTH, MEAN, STD, **QUICK)
        link = capsys.readouterr().err.split("; look")[1]
        asked = (
            f"/#/experiments/{in_experiment}/runs?workflowType=machine_learning&viewStateShareKey=uq-overview"
        )
        command = f"URI={tracking_uri} uq-tracking view mlflow:{in_experiment}"
        assert (asked if tracking_uri.startswith("http") else command) in link
        value = client.get_experiment(in_experiment).tags[view.TAG]
        bars = [card["dataAccessKey"] for card in charts(value) if card["type"] == "BAR"]
        assert {"uq/rmse", "uq/crps", "uq/coverage_95"} <= set(bars)
        uq.log(TRUTH, MEAN, STD, run=run.info.run_id, **QUICK)
        assert client.get_experiment(in_experiment).tags[view.TAG] == value
        with mlflow.start_run():
            uq.log(TRUTH, MEAN, STD, split="val", **QUICK)
        names = {
            name
            for card in charts(client.get_experiment(in_experiment).tags[view.TAG])
            for name in keys(card)
        }
        assert {"uq/rmse", "uq/val/rmse"} <= names
        (store, _) = open_store(f"mlflow:{in_experiment}")
        assert "viewStateShareKey=uq-overview" in str(store.show())

    @pytest.mark.slow
    def test_rescoring_reads_it_once_for_all_runs(self, client, in_experiment, experiment_name, monkeypatch):
        for _ in range(3):
            with mlflow.start_run():
                uq.log(TRUTH, MEAN, STD, **QUICK)
        client.set_experiment_tag(in_experiment, view.TAG, "lost")
        read, plain = [], mlflow.MlflowClient.get_experiment

        def counted(self, number):
            read.append(number)
            return plain(self, number)

        monkeypatch.setattr(mlflow.MlflowClient, "get_experiment", counted)
        assert len(uq.rescore(f"mlflow:{experiment_name}", alpha=0.9).done) == 3
        assert read == [in_experiment]
        value = plain(client, in_experiment).tags[view.TAG]
        assert "uq/rmse" in json.dumps(state_of(value))

    def test_a_chart_without_a_place_is_kept_out(self):
        value = view.updated(None, ["uq/crps", "uq_spread/cv", "loss"], "3.17.2")
        dead = {card["metricKey"] for card in state_of(value)["compareRunCharts"] if card.get("deleted")}
        assert dead == {"uq/crps", "uq_spread/cv"}

    def test_methods_without_a_place_have_a_color_still(self):
        value = None
        for number in range(40):
            value = view.updated(value, ["uq/crps"], "2.22.2", method=f"method {number}") or value
        assert len(value) <= 5000
        assert {view.color(value, f"method {number}") for number in range(8)} == set(COLORS)
        assert view.color(value, "method 39") == view.color(None, "method 39") in COLORS

    @pytest.mark.slow
    def test_several_runs_of_a_method_are_a_group_and_parents_are_hidden(self, client, in_experiment):
        def state():
            return state_of(client.get_experiment(in_experiment).tags[view.TAG])

        def log(method, **options):
            with mlflow.start_run(nested=True):
                uq.log(TRUTH, MEAN, STD, method=method, **options, **QUICK)

        with mlflow.start_run():
            log("ensemble", split="val")
            log("dropout", split="val")
            assert state()["groupBy"] is None
            log("ensemble", split="test")
            grouped = state()
            log("evidential")
        assert grouped["groupBy"]["groupByKeys"] == [{"mode": "tag", "groupByData": "uq.method"}]
        assert not grouped["useGroupedValuesInCharts"]
        assert [(part["name"], part["display"]) for part in grouped["compareRunSections"]] == [
            ("test", True),
            ("val", False),
        ]
        assert state()["groupBy"] == grouped["groupBy"]
        found = client.search_runs([in_experiment], filter_string=grouped["searchFilter"])
        assert len(found) == 4
        open_store(f"mlflow:{in_experiment}")[0].show()
        assert state()["groupBy"] == grouped["groupBy"]

    def test_there_is_room_for_titles(self):
        sections = state_of(view.updated(None, ["uq/crps", "uq/ence"], "3.17.2"))["compareRunSections"]
        assert {section["columns"] for section in sections} == {2}

    def test_one_that_is_too_long_for_an_old_server_does_without(self):
        names = ["uq/crps", *(f"uq_spread/split {number}/cv {hash(number * 7919)}" for number in range(600))]
        assert len(view.updated(None, names, "2.22.2")) <= 5000 < len(view.updated(None, names, "3.17.2"))

    @pytest.mark.parametrize(
        "value", ["deflate;xx", "{}", "deflate;" + base64.b64encode(zlib.compress(b"[]")).decode()]
    )
    def test_what_others_wrote_is_replaced(self, value):
        assert charts(view.updated(value, ["uq/crps"], "3.17.2"))


def keys(card):
    return [card.get("dataAccessKey"), card.get("metricKey")]


def test_the_test_split_comes_first_in_a_description():
    text = "Mine."
    for split in ("val", "train", "test"):
        text = str(view.with_part(text, Description(f"Of {split}.", "", "", split), "id", set()))
    assert re.findall(r"Mine|Of \w+", text) == ["Mine", "Of test", "Of train", "Of val"]
    again = str(view.with_part(text, Description("New val.", "", "", "val"), "id", set()))
    assert re.findall(r"Mine|Of \w+|New", again) == ["Mine", "Of test", "Of train", "New"]


def test_what_does_not_fit_is_shortened_to_the_verdict():
    one = Description("Lead.", "B" * 6000, "Lead.", None, {"uq_a": "a"})
    assert "B" in view.with_part("", one, "id", {"uq_a.png"})
    short = view.with_part("x" * 4000, one, "id", set())
    assert "Lead." in short
    assert "B" not in short
    assert view.with_part("x" * 8000, one, "id", set()) is None
