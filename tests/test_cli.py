"""The command line, as a user types it."""

from __future__ import annotations

import types

import numpy as np
import pytest
import typer
import zarr
from typer.testing import CliRunner

import uq_tracking as uq
from uq_tracking import __version__, plugins
from uq_tracking.cli import app
from uq_tracking.errors import SettingsError
from uq_tracking.formatting import format_score
from uq_tracking.hookspecs import hookimpl
from uq_tracking.metrics.registry import every_metric
from uq_tracking.runs.read import logged_run, logged_runs

WIDE = {"COLUMNS": "400", "NO_COLOR": "1", "TERM": "dumb"}


def run(*words, code=0):
    done = CliRunner().invoke(app, list(words), env=WIDE)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.output


@pytest.fixture
def csv(tmp_path):
    rng = np.random.default_rng(0)
    s = rng.gamma(3, 0.5, 50)
    mu = rng.normal(size=50)
    path = tmp_path / "predictions.csv"
    np.savetxt(
        path, np.c_[mu + s * rng.normal(size=50), mu, s], delimiter=",", header="y,mu,sigma", comments=""
    )
    return path


def test_version():
    assert run("--version").strip() == __version__


def test_metrics_lists_every_metric():
    printed = run("metrics")
    assert {line.split("│")[0].strip() for line in printed.splitlines()} >= {m.key for m in every_metric()}


def test_metrics_explains_one_in_full():
    printed = run("metrics", "ence")
    for part in ("Levi 2019 eq. 6-8", "|RMV - RMSE| / RMV", "lower"):
        assert part in printed


def test_a_key_of_two_tasks_is_explained_for_both():
    assert run("metrics", "nll").count("task") == 2


def test_an_unknown_metric_is_named():
    assert "no metric is called foo" in run("metrics", "foo", code=1)


def test_backends_shows_each_with_its_addresses():
    printed = run("backends")
    for backend in plugins.backends().values():
        assert f"{backend.name}:" in printed
    assert "wandb-offline:" in printed


def test_log_scores_a_file_into_a_run(csv, tmp_path):
    where = f"dir:{tmp_path / 'runs'}"
    printed = run(
        "log",
        str(csv),
        "--to",
        where,
        "--columns",
        "target=y,mean=mu,std=sigma",
        "--method",
        "gp",
        "--unit",
        "m",
    )
    assert "crps" in printed
    (logged,) = logged_runs(where)
    assert f"logged to {logged.stored.uri}\n" in printed
    assert "crps" in run("report", logged.stored.uri)
    assert logged.method == "gp"
    assert logged.report().settings["unit"] == "m"


@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_log_streams_what_is_larger_than_memory(kind, tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    s = rng.gamma(3, 0.5, (90, 40))
    mu = rng.normal(size=(90, 40))
    y = mu + s * rng.normal(size=(90, 40))
    y[0] = np.nan
    if kind == "npy":
        path = tmp_path / "big.npy"
        np.save(path, np.c_[y.ravel(), mu.ravel(), s.ravel()])
    else:
        path = tmp_path / "big.zarr"
        group = zarr.open_group(str(path), mode="w")
        for name, array in (("y_true", y), ("y_pred", mu), ("y_std", s)):
            group.create_array(name, data=array, chunks=(10, 40))
    monkeypatch.setattr("uq_tracking.files.reading.BLOCK_SAMPLES", 400)
    where = f"dir:{tmp_path / 'runs'}"
    run("log", str(path), "--to", where, "--stream", "--n-bins", "5")
    (logged,) = logged_runs(where)
    report = logged.report()
    whole = uq.evaluate(y, mu, s, statistics="sketch", n_bins=5)
    assert report.counts == whole.counts
    for key in ("crps", "ence", "ause_rmse"):
        assert report.scores[key] == pytest.approx(whole.scores[key], rel=1e-9)


def test_log_names_the_columns_it_could_have(csv, tmp_path):
    printed = run("log", str(csv), "--to", f"dir:{tmp_path / 'runs'}", "--columns", "target=truth", code=1)
    assert "y, mu, sigma" in printed
    assert not (tmp_path / "runs").exists()


def test_columns_that_make_no_pairs_are_refused(csv):
    assert "write role=name pairs" in run("log", str(csv), "--columns", "y mu sigma", code=1)


def test_a_missing_file_is_one_line(tmp_path):
    printed = run("log", str(tmp_path / "nothing.csv"), code=1)
    assert "nothing.csv" in printed
    assert "Traceback" not in printed


def test_an_unknown_tracker_is_one_line(csv):
    printed = run("log", str(csv), "--to", "nowhere:x", code=1)
    assert "nowhere" in printed


def test_compare_and_rescore_read_what_log_wrote(csv, tmp_path):
    where = f"dir:{tmp_path / 'runs'}"
    for method in ("a", "b"):
        run("log", str(csv), "--to", where, "--method", method, "--no-figures")
    assert "n_merci" in run("compare", where)
    assert "2" in run("rescore", where, "--alpha", "0.9")
    assert {logged.report().settings["alpha"] for logged in logged_runs(where)} == {0.9}


VERBS = (
    "demo",
    "log",
    "report",
    "plot",
    "rescore",
    "recalibrate",
    "compare",
    "pool",
    "sync",
    "metrics",
    "backends",
)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_verb_explains_itself(verb, option):
    printed = run(verb, option)
    assert "Usage:" in printed
    assert "-h" in printed


def test_the_program_names_its_verbs_and_exit_codes():
    printed = run("-h")
    assert all(verb in printed for verb in VERBS)
    assert "Exit codes: 0 success; 1 invalid input or failed runs; 2" in printed


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("cmpare", "dir:x"), "compare"),
        (("compare", "dir:x", "--basline", "y"), "--baseline"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_closest(words, meant):
    printed = run(*words, code=2)
    assert meant in printed


def test_a_mistyped_metric_is_answered_with_the_closest(csv, tmp_path):
    assert "did you mean 'spearman'?" in run("metrics", "spaerman", code=1)
    where = f"dir:{tmp_path / 'runs'}"
    run("log", str(csv), "--to", where, "--no-figures")
    assert "did you mean 'ence'?" in run("compare", where, "--metrics", "ecne", code=1)
    assert "did you mean 'latex'?" in run("compare", where, "--format", "latx", code=1)


@pytest.fixture
def logged_csv(csv, tmp_path):
    """The address of a folder with one run."""
    where = f"dir:{tmp_path / 'runs'}"
    run("log", str(csv), "--to", where, "--no-figures", "--split", "test")
    return where


class TestReport:
    def test_the_verdict_comes_first_and_then_the_headline(self, logged_csv):
        printed = run("report", logged_csv)
        report = logged_run(logged_csv, split="test").report()
        assert " ".join(printed.split()).startswith(report.verdict.text)
        assert format_score(report.scores["crps"]) in printed
        assert "auce_over" not in printed
        assert "auce_over" in run("report", logged_csv, "--metrics", "all")

    def test_named_scores_alone(self, logged_csv):
        printed = run("report", logged_csv, "--metrics", "mae,ence")
        assert "Mean absolute error" in printed
        assert "crps" not in printed
        failed = run("report", logged_csv, "--metrics", "ecne", code=1)
        assert "no score called ecne (did you mean 'ence'?)" in failed

    def test_other_formats(self, logged_csv):
        assert uq.Report.from_json(run("report", logged_csv, "--format", "json")).task == "regression"
        assert run("report", logged_csv, "--format", "markdown").startswith("| score |")
        assert "choose text, markdown, json" in run("report", logged_csv, "--format", "html", code=1)

    def test_a_run_of_several_splits_asks_for_one(self, csv, tmp_path):
        data = np.genfromtxt(csv, delimiter=",", skip_header=1)
        where = f"dir:{tmp_path / 'runs'}"
        uq.log(*(np.stack([c, c], 1) for c in data.T), outputs=["tx", "ty"], run=where, figures=False)
        assert "choose one with --split: tx, ty" in run("report", where, code=1)
        assert "rmse" in run("report", where, "--split", "ty")

    def test_an_address_of_several_runs_names_some(self, csv, tmp_path):
        where = f"dir:{tmp_path / 'runs'}"
        for method in ("a", "b"):
            run("log", str(csv), "--to", where, "--method", method, "--no-figures")
        printed = run("report", where, code=1)
        assert "names 2 runs; add the id of one; the newest are dir:" in printed
        assert "there is no such run; the newest are dir:" in run("report", f"{where}/nope", code=1)

    def test_a_split_that_the_run_lacks_is_answered_with_those_it_has(self, logged_csv, csv, tmp_path):
        printed = run("report", logged_csv, "--split", "val", code=1)
        assert "has no report of split 'val'; choose one with --split: test" in printed
        where = f"dir:{tmp_path / 'whole'}"
        run("log", str(csv), "--to", where, "--no-figures")
        assert "omit --split for the one it has" in run("report", where, "--split", "val", code=1)

    def test_text_between_colons_is_no_picture(self, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        assert run("compare", "dir:smile", code=1) == "error: dir:smile: there are no runs to compare\n"


class TestPlot:
    @pytest.mark.slow
    @pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
    def test_a_figure_is_written_in_the_kind_of_the_name(self, logged_csv, tmp_path, suffix, begins):
        path = tmp_path / "new" / f"x.{suffix}"
        assert run("plot", logged_csv, "--figure", "calibration", "-o", str(path)) == f"written to {path}\n"
        assert path.read_bytes().startswith(begins)

    def test_the_name_of_the_figure_is_that_of_the_file(self, logged_csv, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert run("plot", logged_csv) == "written to uq_reliability.png\n"

    def test_mistakes_are_named(self, logged_csv, tmp_path):
        assert "did you mean 'reliability'?" in run("plot", logged_csv, "--figure", "reliabilty", code=1)
        assert "has no known suffix; end it in" in run(
            "plot", logged_csv, "-o", str(tmp_path / "x.doc"), code=1
        )


def test_a_date_is_not_proposed_as_the_std(tmp_path):
    path = tmp_path / "dated.csv"
    path.write_text("date,y_true,y_pred,width\n2024-01-01,1,1.1,0.2\n2024-01-02,2,1.9,0.3\n")
    assert "--columns std=width " in run("log", str(path), code=1)
    path.write_text("date,y_true,y_pred\n2024-01-01,1,1.1\n2024-01-02,2,1.9\n")
    assert "--columns std=... " in run("log", str(path), code=1)


@pytest.fixture
def bring():
    """Register a plugin that brings commands, for the length of a test."""
    plugins.reload()

    def add(name, *commands):
        module = types.ModuleType(name)
        module.uq_commands = hookimpl(lambda: list(commands))
        plugins.manager().register(module, name)
        plugins.forget()

    yield add
    plugins.reload()


def count_runs(where: str, twice: bool = False) -> None:
    """Count runs."""
    if where == "nowhere":
        raise SettingsError("where is 'nowhere'; pass a place")
    typer.echo(f"{where}, {'twice' if twice else 'once'}")


def test_a_plugin_brings_a_command_with_help_options_and_errors_like_any_other(bring):
    bring("counter", count_runs)
    assert "Count runs." in run("-h")
    assert "--twice" in run("count-runs", "-h")
    assert run("count-runs", "here", "--twice") == "here, twice\n"
    assert "error: where is 'nowhere'; pass a place" in run("count-runs", "nowhere", code=1)


def unmakeable(values: NoSuchType) -> None:  # noqa: F821
    """Take what typer cannot read."""


def test_commands_that_cannot_be_made_are_reported_by_name_and_skipped(bring):
    def report() -> None:
        """Claim the name of a command of the package."""

    bring("broken", unmakeable, report, count_runs)
    done = CliRunner().invoke(app, ["-h"], env=WIDE)
    assert done.exit_code == 0
    assert f"command 'unmakeable' of {__name__} was skipped: name 'NoSuchType' is not defined" in done.stderr
    assert (
        f"command 'report' of {__name__} was skipped: a command of uq-tracking has that name" in done.stderr
    )
    assert done.stderr.count("was skipped") == 2
    assert "count-runs" in done.stdout
    assert "Claim the name" not in done.stdout


def test_a_plugin_whose_hook_brings_no_functions_is_reported_by_name_and_skipped(bring):
    bring("garbage", 3)
    bring("counter", count_runs)
    done = CliRunner().invoke(app, ["-h"], env=WIDE)
    assert "plugin 'garbage' was skipped: AttributeError" in done.stderr
    assert "count-runs" in done.stdout


def test_a_command_of_a_distribution_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setenv(plugins.PIN_VARIABLE, "")
    plugins.reload()
    try:
        printed = run("reproduce", "levi", code=2)
    finally:
        monkeypatch.undo()
        plugins.reload()
    assert "reproduce comes with another distribution: pip install uq-tracking-papers" in printed
