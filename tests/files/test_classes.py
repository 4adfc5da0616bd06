"""Classes in tables: labels, and a column of probabilities for each class."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import uq_tracking as uq
from uq_tracking.cli import app
from uq_tracking.errors import FileFormatError, SettingsError
from uq_tracking.files import read_predictions
from uq_tracking.runs.read import logged_runs

RNG = np.random.default_rng(0)
LABELS, PROBS = RNG.integers(0, 12, 60), RNG.dirichlet(np.ones(12), 60)


def table(path, stem, label="label", classes=range(12), values=PROBS, **others):
    columns = {label: LABELS, **{f"{stem}{number}": values[:, number] for number in classes}, **others}
    rows = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows)]) + "\n")
    return path


@pytest.mark.parametrize(
    ("label", "stem", "columns"),
    [
        ("labels", "probs_", None),
        ("y_true", "prob_", None),
        ("target", "Probability-", None),
        ("species", "share_", {"labels": "species", "probs": "share_*"}),
    ],
)
def test_each_class_has_a_column(tmp_path, label, stem, columns):
    path = table(tmp_path / "t.csv", stem, label, others=np.zeros(60))
    found = uq.evaluate(read_predictions(path, columns))
    assert found == uq.evaluate(LABELS, probs=PROBS)


def test_logits_of_each_class(tmp_path):
    data = read_predictions(table(tmp_path / "t.csv", "logit_", values=2 * PROBS))
    assert uq.evaluate(data) == uq.evaluate(LABELS, probs=2 * PROBS, logits=True)


@pytest.mark.parametrize("others", [{"y_std": LABELS}, {"classes": (0, 2, 3)}, {"label": "y_pred"}])
def test_a_table_of_other_things_holds_no_classes(tmp_path, others):
    with pytest.raises(SettingsError, match=r"no column looks like (target|mean)"):
        read_predictions(table(tmp_path / "t.csv", "prob_", **others))


def test_the_command_line_recognizes_classes(tmp_path):
    path = table(tmp_path / "t.csv", "probs_", "labels")
    done = CliRunner().invoke(app, ["log", str(path), "--to", f"dir:{tmp_path}/runs", "--no-figures"])
    assert done.exit_code == 0, done.output
    assert "accuracy" in done.output


def test_columns_of_unknown_names_are_told_how_to_be_classes(tmp_path):
    with pytest.raises(SettingsError, match=r"of classes, --columns 'labels=NAME,probs=p\[0-9\]\*'$"):
        read_predictions(table(tmp_path / "t.csv", "p"))
    found = read_predictions(tmp_path / "t.csv", {"labels": "label", "probs": "p[0-9]*"})
    assert uq.evaluate(found) == uq.evaluate(LABELS, probs=PROBS)


def test_classes_of_many_files_are_joined(tmp_path):
    for number, part in enumerate((slice(0, 20), slice(20, 60))):
        np.savez(tmp_path / f"{number}.npz", labels=LABELS[part], probs=PROBS[part], mask=LABELS[part] == 0)
        np.savez(tmp_path / f"event{number}.npz", labels=(LABELS[part] > 5) * 1, probs=PROBS[part][:, 0])
    found = uq.evaluate(read_predictions(tmp_path / "?.npz", {"mask": "mask"}))
    assert found == uq.evaluate(LABELS, probs=PROBS, mask=LABELS == 0)
    events = uq.evaluate(read_predictions(tmp_path / "event*.npz"))
    assert events == uq.evaluate(LABELS > 5, probs=PROBS[:, 0])


def test_the_command_line_streams_classes(tmp_path):
    path = table(tmp_path / "t.csv", "probs_", "labels")
    where = f"dir:{tmp_path}/runs"
    done = CliRunner().invoke(app, ["log", str(path), "--to", where, "--no-figures", "--stream"])
    assert done.exit_code == 0, done.output
    (run,) = logged_runs(where)
    assert run.report().counts["n"] == 60
    assert run.report().scores["accuracy"] == uq.evaluate(LABELS, probs=PROBS).scores["accuracy"]


def test_labels_that_are_text_are_looked_up_in_the_names_of_the_columns(tmp_path):
    names = np.asarray([f"c{number:02d}" for number in range(12)])
    rows = [",".join(["species", *(f"share_{name}" for name in names[::-1])])]
    rows += [
        ",".join([names[k], *map(repr, row[::-1].tolist())]) for k, row in zip(LABELS, PROBS, strict=True)
    ]
    for name, part in (("a.csv", rows[:31]), ("b.csv", [rows[0], *rows[31:]]), ("whole.csv", rows)):
        (tmp_path / name).write_text("\n".join(part) + "\n")
    wanted = uq.evaluate(LABELS, probs=PROBS, classes=names)
    columns = {"labels": "species", "probs": "share_*"}
    for found in ("whole.csv", "[ab].csv"):
        assert uq.evaluate(read_predictions(tmp_path / found, columns)).scores == wanted.scores
    (tmp_path / "b.csv").write_text("\n".join([rows[0].replace("c00", "d00"), *rows[31:]]) + "\n")
    with pytest.raises(FileFormatError, match=r"b\.csv has other quantiles or classes than .*a\.csv"):
        read_predictions(tmp_path / "[ab].csv", columns)
    with pytest.raises(
        SettingsError, match=r"--columns target=\.\.\.,mean=\.\.\.,.*'labels=NAME,probs=share_\*'$"
    ):
        read_predictions(tmp_path / "whole.csv")
