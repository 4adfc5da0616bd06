"""The golden data sets: written again they are the same, our scores agree with them, and functions are told apart."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import uq_tracking as uq
from uq_tracking import Predictions
from uq_tracking.cli import app
from uq_tracking.errors import SettingsError
from uq_tracking.testing.conformance import arrays, audit, readings

CONFORMANCE = Path(__file__).parents[2] / "conformance"
GOLDEN = CONFORMANCE / "golden"
OURS = [reading for reading in readings() if reading.ours]
SETS = [path.stem for path in sorted(GOLDEN.glob("*.csv"))]


@pytest.fixture
def beside(monkeypatch):
    """Make modules of `conformance` importable by name."""
    monkeypatch.syspath_prepend(str(CONFORMANCE))
    yield
    for name in ("conventions", "generate", "peers"):
        sys.modules.pop(name, None)


def scores(name: str) -> dict[str, float]:
    """Return our scores of a golden data set."""
    given = list(arrays(name).values())
    kind = name.partition("-")[0]
    if kind in ("event", "classes"):
        labels, probs, *weights = given
        return dict(uq.evaluate(labels, probs=probs, weights=weights[0] if weights else None).scores)
    y, mean, std = given[:3]
    return dict(uq.evaluate(y, mean, std, weights=given[3] if name == "normal-weights" else None).scores)


@pytest.mark.slow
def test_the_files_are_what_the_script_writes(beside, monkeypatch, tmp_path):
    import generate

    monkeypatch.setattr(generate, "GOLDEN", tmp_path)
    generate.write()
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in GOLDEN.iterdir()}
    for path in GOLDEN.iterdir():
        if path.name != "readings.json":
            assert path.read_text() == (tmp_path / path.name).read_text(), path.name
    old, new = (json.loads((folder / "readings.json").read_text()) for folder in (GOLDEN, tmp_path))
    assert [row | {"values": None} for row in old] == [row | {"values": None} for row in new]
    for one, other in zip(old, new, strict=True):
        assert one["values"].keys() == other["values"].keys()
        for name, value in one["values"].items():
            assert other["values"][name] == (
                None if value is None else pytest.approx(value, rel=1e-11, abs=1e-13)
            )


@pytest.mark.parametrize("name", [name for name in SETS if name.startswith(("event", "classes", "normal"))])
def test_our_scores_have_the_golden_values(name):
    found = scores(name)
    compared = 0
    for reading in OURS:
        expected = reading.values.get(name)
        if expected is not None and reading.score in found:
            compared += 1
            # slopes and offsets are fitted to buckets of equal probability, to rounding
            tolerance = 1e-8 if reading.score.startswith("cal_") else 1e-10
            assert found[reading.score] == pytest.approx(expected, rel=tolerance, abs=1e-12), reading.score
    assert compared >= (10 if "weights" not in name and "groups" not in name else 0)


@pytest.mark.parametrize("name", ["event-weights", "normal-weights"])
def test_weighted_scores_have_the_golden_values(name):
    found = scores(name)
    times = {"brier": 2.0}  # ours is the sum over both classes
    for reading in readings():
        if reading.facts.get("divisor") == "sum of the weights":
            expected = reading.values.get(name)
            if expected is not None:
                assert found[reading.score] == pytest.approx(
                    times.get(reading.score, 1) * expected, rel=1e-12
                )


@pytest.mark.parametrize("name", ["draws-5", "draws-40"])
def test_scores_of_draws_are_known_readings(name):
    y, draws = arrays(name).values()
    found = uq.evaluate(Predictions.from_samples(y, draws)).scores
    known = {
        reading.text: reading.values[name]
        for reading in readings()
        if reading.score == "crps" and name in reading.values
    }
    assert any(found["crps"] == pytest.approx(value, rel=1e-10) for value in known.values())


def test_tables_and_arrays_hold_the_same_numbers():
    for name in SETS:
        header, *rows = (GOLDEN / f"{name}.csv").read_text().splitlines()
        table = np.array([row.split(",") for row in rows], dtype=float)
        columns = dict(zip(header.split(","), table.T, strict=True))
        for key, array in arrays(name).items():
            if np.ndim(array) == 1 and key in columns:
                np.testing.assert_array_equal(columns[key], array)
            elif np.ndim(array) == 2:
                inner = [columns[f"{key}_{k}"] for k in range(array.shape[1])]
                np.testing.assert_array_equal(np.stack(inner, axis=1), array)


@pytest.mark.slow
def test_libraries_follow_the_readings_that_the_registry_holds(beside):
    import peers

    registry = json.loads((CONFORMANCE / "registry.json").read_text())
    peers.CELLS.clear()
    for name in ("scikit-learn", "torchmetrics", "scoringrules", "uncertainty-toolbox"):
        peers.LIBRARIES[name]()
    known = {(row["library"], row["function"], row["score"], row["kind"]): row["follows"] for row in registry}
    for each in peers.CELLS:
        found = audit(each.call, each.score, kind=each.kind)[0]
        assert [reading.text for reading in found.follows] == known[
            each.library, each.function, each.score, each.kind
        ], (each.library, each.function)
    assert len(peers.CELLS) > 50


def test_the_registry_holds_ten_libraries_and_forty_scores():
    registry = json.loads((CONFORMANCE / "registry.json").read_text())
    assert len({row["library"] for row in registry}) >= 10
    assert len({row["score"] for row in registry}) >= 40
    assert all(row["version"] for row in registry)


def half_open(labels, p, edge):
    """An ECE of ten bins whose edges belong to the bin above ("right") or below ("left")."""
    place = np.searchsorted(np.arange(1, 10) / 10, p, side=edge)
    return sum(abs((labels - p)[place == b].sum()) for b in range(10)) / len(p)


@pytest.mark.parametrize(
    ("edge", "text"), [("right", "equal width [low, high)"), ("left", "equal width (low, high]")]
)
def test_an_audit_tells_on_which_side_of_an_edge_a_value_falls(edge, text):
    (found,) = audit(lambda labels, p: half_open(labels, p, edge), "ece", kind="event")
    assert found.follows[0].facts["binning"] == text
    assert {reading.facts["binning"].partition(",")[0] for reading in found.follows} == {
        text.partition(",")[0]
    }
    assert f"10 bins; {text}" in str(found)


def test_an_audit_finds_factors_and_names_departures():
    (negative,) = audit(lambda y, mean, std: -np.abs(y - mean).mean(), "mae", kind="normal")
    assert negative.factor == -1
    assert "times -1" in str(negative)

    def wrong_with_ties(y, mean, std):
        return np.abs(y - mean).mean() + (len(set(std)) < 10)

    (found,) = audit(wrong_with_ties, "mae", kind="normal")
    assert not found.follows
    assert found.departures.keys() == {"normal-ties", "normal-constant-std"}
    assert "follows no known reading; nearest is" in str(found)


def test_mistakes_of_an_audit_are_named():
    with pytest.raises(SettingsError, match=r"no score is called ecee \(did you mean 'ece'"):
        audit(half_open, "ecee")
    with pytest.raises(SettingsError, match="mae has no golden values for 'event'; choose from normal"):
        audit(half_open, "mae", kind="event")
    with pytest.raises(SettingsError, match="takes none of the forecasts normal: TypeError"):
        audit(lambda: 0.0, "mae")
    with pytest.raises(SettingsError, match=r"tolerance is 0\.1"):
        audit(half_open, "ece", tolerance=0.1)


def test_the_command_line_audits_a_function_by_name(tmp_path, monkeypatch):
    (tmp_path / "my_scores.py").write_text("def off(y, mean, std):\n    return 1.0\n")
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["audit", "sklearn.metrics:brier_score_loss", "--score", "brier"])
    assert found.exit_code == 0, found.output
    assert 'brier of event: follows "the event alone" in 6 data sets' in found.output
    found = CliRunner().invoke(app, ["audit", "my_scores:off", "--score", "mae"])
    assert found.exit_code == 1
    assert "agrees with no known reading" in found.output
    found = CliRunner().invoke(app, ["audit", "nowhere:f", "--score", "mae"])
    assert found.exit_code == 1
    assert "cannot find nowhere:f" in found.output
