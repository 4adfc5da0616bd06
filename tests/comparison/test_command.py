"""``uq-tracking compare``."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import uq_tracking as uq
from uq_tracking.cli import app
from uq_tracking.tracking.folder import FolderStore


def run(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("text", "2 methods, 3 runs"),
        ("markdown", "| method |"),
        ("csv", "method,metric,value"),
        ("latex", "% needs"),
        ("json", "{"),
    ],
)
def test_every_format_reaches_the_terminal_and_a_file(folder, tmp_path, form, begins):
    shown = run(f"dir:{folder}", "--format", form, "--no-maps")
    assert shown.exit_code == 0
    assert shown.stdout.startswith(begins)
    kept = run(f"dir:{folder}", "--format", form, "--no-maps", "--output", tmp_path / "out")
    assert kept.stdout == f"written to {tmp_path / 'out'}\n"
    assert (tmp_path / "out").read_text().startswith(begins)


@pytest.mark.slow
def test_csv_and_json_can_be_piped(folder):
    rows = list(csv.DictReader(io.StringIO(run(f"dir:{folder}", "--format", "csv").stdout)))
    assert {row["method"] for row in rows} == {"small", "large"}
    values = json.loads(run(f"dir:{folder}", "--format", "json", "--no-maps").stdout)
    assert values["task"] == "regression"
    assert values["maps"] == []


def test_the_page_goes_to_a_file(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(f"dir:{folder}", "--format", "html").stdout == "written to uq_comparison.html\n"
    assert "data:image/png" in (tmp_path / "uq_comparison.html").read_text()


@pytest.mark.parametrize(
    ("name", "begins"),
    [("x.html", "<!doctype html>"), ("new/x.CSV", "method,metric,value"), ("x.txt", "2 methods")],
)
def test_a_file_has_the_format_that_its_name_ends_in(folder, tmp_path, name, begins):
    assert run(f"dir:{folder}", "--no-maps", "-o", tmp_path / name).exit_code == 0
    assert (tmp_path / name).read_text().startswith(begins)
    run(f"dir:{folder}", "--no-maps", "-o", tmp_path / name, "--format", "json")
    assert (tmp_path / name).read_text().startswith("{")


def test_metrics_and_baseline(folder):
    text = run(f"dir:{folder}", "--metrics", "nll, crps", "--baseline", "large").stdout
    assert "difference to large" in text
    assert "nll" in text
    assert "auce" not in text
    assert "miscalibration_area" in run(f"dir:{folder}", "--metrics", "all").stdout


def test_where(folder):
    assert run(f"dir:{folder}", "--where", "uq.method=small").stdout.startswith("1 method, 1 run,")


def test_the_page_is_logged(folder, tmp_path):
    done = run(f"dir:{folder}", "--log", f"dir:{tmp_path}", "--metrics", "nll")
    assert done.stdout.endswith(f"page logged to dir:{tmp_path}\n")
    (stored,) = FolderStore(tmp_path).runs()
    assert (tmp_path / stored.run_id / "uq_comparison.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--format", "pdf"), "--format is 'pdf'; choose text, markdown"),
        (("--baseline", "x"), "baseline 'x' is not a method here"),
        (("--metrics", "x"), "no run has a metric called x"),
        (("--where", "x"), "cannot read the filter 'x'"),
        (("-o", "x.docx"), "--output x.docx has no known suffix; end it in one of .txt, .md, .csv"),
    ],
)
def test_mistakes_are_one_line_and_exit_with_1(folder, arguments, words):
    failed = run(f"dir:{folder}", *arguments)
    assert failed.exit_code == 1
    assert words in failed.output
    assert "Traceback" not in failed.output


@pytest.mark.parametrize(
    ("condition", "code", "named"),
    [
        ("coverage_95 < .01", 0, ()),
        ("coverage_95 <= 1", 3, ("small", "large")),
        ("crps > baseline + 1e9", 0, ()),
        ("crps > baseline - 1e9", 3, ("small",)),
        ("crps>=baseline", None, ()),
    ],
)
def test_a_pipeline_fails_if_a_condition_holds(folder, condition, code, named):
    done = run(f"dir:{folder}", "--baseline", "large", "--fail-if", condition)
    assert done.exit_code == code if code is not None else done.exit_code in (0, 3)
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == sorted(
        named, key=done.stderr.index
    )
    assert "difference to large" in done.stdout


@pytest.mark.slow
def test_a_pipeline_sees_the_code_of_the_process(folder):
    program = [sys.executable, "-c", "from uq_tracking.cli import app; app()"]
    command = [*program, "compare", f"dir:{folder}", "--fail-if", "coverage_95 <= 1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert sorted(line.partition(":")[0] for line in done.stderr.splitlines()) == ["large", "small"]


def test_several_conditions_and_those_that_cannot_be_read(folder):
    assert run(f"dir:{folder}", "--metrics", "crps", "--fail-if", "nll < -1e9").exit_code == 0
    both = run(f"dir:{folder}", "--fail-if", "nll < -1e9", "--fail-if", "crps > 0")
    assert both.exit_code == 3
    for condition, words in (
        ("crps > baseline", "needs --baseline"),
        ("crps = 1", "cannot read --fail-if 'crps = 1'; pass, for example, 'coverage_95 < .93'"),
        ("coverage_95 < 93", "--fail-if 'coverage_95 < 93': coverage_95 lies between 0 and 1"),
        ("nothing > 1", "no run has a metric called nothing"),
    ):
        failed = run(f"dir:{folder}", "--fail-if", condition)
        assert failed.exit_code == 1
        assert words in " ".join(failed.output.split())


def test_intervals_that_quantiles_give_are_shown_and_guard_a_pipeline(tmp_path):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=400)
    quantiles = mean[:, None] + np.asarray([-1.2816, 0, 1.2816])
    data = uq.Predictions.from_quantiles(mean + rng.normal(size=400), quantiles, [0.1, 0.5, 0.9])
    report = uq.log(data, run=f"dir:{tmp_path}", method="boosting")
    (stored,) = FolderStore(tmp_path).runs()
    assert stored.scalars["uq_calibration/coverage_80"] == report.scores["coverage_80"]
    gate = run(f"dir:{tmp_path}", "--fail-if", "coverage_80 < .7")
    assert gate.exit_code == 0
    assert "coverage_80" in gate.output
    assert "coverage_95" not in gate.output
    unknown = run(f"dir:{tmp_path}", "--fail-if", "coverage_95 < .9")
    assert unknown.exit_code == 3
    assert "it needs quantiles at 0.025 and 0.975" in " ".join(unknown.output.split())
    assert "it has coverage_80" in " ".join(unknown.output.split())
