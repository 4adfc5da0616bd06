"""The commands rescore, pool and sync."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tests.runs.places import Place, predictions
from uq_tracking.cli import app


@pytest.fixture
def call():
    def run(*arguments):
        return CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(
            app, [str(item) for item in arguments]
        )

    return run


@pytest.mark.slow
def test_rescore_shows_each_run_and_counts(dir_place, call):
    for method in ("a", "[b]"):
        dir_place.log(predictions(), method=method)
    shown = call(
        "rescore", dir_place.uri, "--alpha", 0.9, "--n-bins", 5, "--family", "laplace", "--no-figures"
    )
    assert shown.exit_code == 0, shown.output
    assert "2 done, 0 skipped, 0 failed" in shown.output
    assert "[b]" in shown.output
    assert "exact statistics" in shown.output
    settings = dir_place.runs()[0].report().settings
    assert (settings["alpha"], settings["n_bins"], settings["family"]) == (0.9, 5, "laplace")
    again = call(
        "rescore", dir_place.uri, "--alpha", 0.9, "--n-bins", 5, "--family", "laplace", "--no-figures"
    )
    assert "0 done, 2 skipped, 0 failed" in again.output


def test_rescore_exits_with_1_when_a_run_fails(dir_place, call):
    dir_place.log(predictions(), predictions=False)
    shown = call("rescore", dir_place.uri, "--std-floor", 0.5)
    assert shown.exit_code == 1
    assert "a std floor can only be applied to predictions" in shown.output
    assert "0 done, 0 skipped, 1 failed" in shown.output


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("--family", "cauchy"), "error: --family is 'cauchy'"),
        (("--metrics", "nonsense"), "nonsense"),
        (("--std-floor", "-1"), "error: --std-floor is -1.0"),
        (
            ("--recalibration", "std_scaling"),
            "what to fit them to; pass --calibration-split or --calibration halves",
        ),
    ],
)
def test_rescore_says_what_is_wrong_in_one_line(dir_place, call, arguments, match):
    dir_place.log(predictions())
    shown = call("rescore", dir_place.uri, *arguments)
    assert shown.exit_code == 1
    assert match in shown.output
    assert "Traceback" not in shown.output


def test_rescore_takes_options_of_experts(dir_place, call):
    dir_place.log(predictions())
    shown = call("rescore", dir_place.uri, "--where", "uq.method=m", "--workers", 2, "--force", "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "1 would be done" in shown.output


@pytest.mark.slow
def test_pool_shows_and_logs_the_whole(dir_place, call, tmp_path):
    for seed, unit in enumerate(("m", "km")):
        dir_place.log(predictions(seed=seed), unit=unit)
    assert "different unit; pass --unit to pool them" in call("pool", dir_place.uri).output
    assert "error: --level is 2.0" in call("pool", dir_place.uri, "--level", 2).output
    settings = ("--unit", "m", "--alpha", 0.9)
    shown = call("pool", dir_place.uri, *settings, "--log", f"dir:{tmp_path}/pooled", "--method", "both")
    assert shown.exit_code == 0, shown.output
    assert "600 samples" in shown.output
    pooled = Place(f"dir:{tmp_path}/pooled").run().report()
    assert (pooled.counts["n"], pooled.settings["unit"], pooled.settings["alpha"]) == (600, "m", 0.9)


def test_pool_warns_in_one_line_each_and_names_its_options(dir_place, call):
    for seed, method in enumerate("ab"):
        dir_place.log(predictions(seed=seed), method=method)
    warned = "warning: runs of several methods are pooled: 'a', 'b'; choose one with --where\n"
    assert call("pool", dir_place.uri).stderr == warned
    shown = call("pool", "dir:smile:smile:")
    assert (shown.exit_code, shown.output) == (1, "error: there are no runs to pool\n")


def test_a_split_that_a_run_lacks_is_answered_with_those_it_has(dir_place, call):
    dir_place.log(predictions(), split="test")
    told = "has no report of split 'val'; choose one with --split: test"
    assert f"it {told}" in call("rescore", dir_place.uri, "--split", "val").output
    assert f"{told}; or exclude it with --where" in call("pool", dir_place.uri, "--split", "val").output
    dir_place.log(predictions(), method="whole")
    assert "omit --split for the one it has" in call("rescore", dir_place.uri, "--split", "val").output


def test_sync_copies_and_counts(dir_place, call, tmp_path):
    dir_place.log(predictions())
    shown = call("sync", dir_place.uri, f"dir:{tmp_path}/copy")
    assert (shown.exit_code, "1 done, 0 skipped, 0 failed" in shown.output) == (0, True), shown.output
    assert "0 done, 1 skipped" in call("sync", dir_place.uri, f"dir:{tmp_path}/copy").output
    for missing in (["dir:none"], ["none"], ["dir:none", "dir:copy"]):
        shown = call("sync", *missing)
        assert shown.exit_code == 1, missing
        assert f"error: {missing[0]}: there is no folder" in shown.output
        assert "check the address (without one, sync sends every kept call)" in shown.output
