"""The scores of each class: numbers, intervals, files, pages."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import uq_tracking as uq
from uq_tracking.errors import FileFormatError, SettingsError
from uq_tracking.inference.classes import ClassTable

from .made import samples, softmax

NAMES = ["background", "liver", "spleen", "kidney"]


def patients(n=12, pixels=300, seed=0, spread=0.6):
    """Labels and probabilities of ``n`` patients, whose organs differ in size and difficulty."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, (n, pixels, 4)) + spread * rng.normal(size=(n, 1, 4)) + [1.0, 0.0, 0.0, -0.7]
    p = softmax(z)
    return (p.cumsum(axis=-1) > rng.random((n, pixels, 1))).argmax(axis=-1), p


def report_of(n=12, seed=0, **options):
    labels, p = patients(n, seed=seed)
    return uq.evaluate(labels, probs=p, groups=np.arange(n), classes=NAMES, **options)


def test_it_agrees_with_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    labels, z = samples(3000)
    found = uq.evaluate(labels, probs=z, logits=True).classes
    predicted = z.argmax(axis=1)
    precision, recall, dice, support = metrics.precision_recall_fscore_support(labels, predicted)
    jaccard = metrics.jaccard_score(labels, predicted, average=None)
    wanted = pd.DataFrame(
        {"support": support, "recall": recall, "precision": precision, "iou": jaccard, "dice": dice}
    )
    assert_allclose(found[list(wanted)], wanted, rtol=1e-12)
    assert_allclose(found["observed"], support / 3000)
    assert found.index.tolist() == ["0", "1", "2", "3"]
    assert found.index.name == "class"
    assert not any(name.endswith("_low") for name in found)


def test_weights_repeat_samples_in_every_kind_of_statistics():
    labels, z = samples(400)
    k = np.random.default_rng(0).integers(1, 4, 400)
    wanted = uq.evaluate(np.repeat(labels, k), probs=np.repeat(z, k, axis=0), logits=True).classes
    wanted = wanted.drop(columns="level_p")  # repeated samples are more evidence, weighted ones are not
    for kind in ("exact", "sketch"):
        found = uq.evaluate(labels, probs=z, logits=True, weights=k, statistics=kind).classes
        found = found.drop(columns="level_p")
        assert_allclose(found, wanted, rtol=1e-10, atol=1e-14)
    half = uq.evaluate(labels, probs=z, logits=True, weights=0.5 * k).classes
    assert_allclose(half["support"], 0.5 * wanted["support"], rtol=1e-12)


def test_a_class_that_does_not_occur_has_no_recall():
    p = softmax(np.random.default_rng(0).normal(size=(200, 4)) - [0, 0, 0, 9])
    labels = np.arange(200) % 3
    found = uq.evaluate(labels, probs=p).classes
    assert found.loc["3"].isna()[["recall", "precision", "iou", "dice"]].all()
    assert found.loc["3", "observed"] == 0


def test_the_average_over_classes_is_the_score():
    report = report_of()
    assert_allclose(report.classes["iou"].mean(), report.scores["miou"], rtol=1e-12)
    assert_allclose(report.classes["recall"] @ report.classes["observed"], report.scores["accuracy"])


def test_stated_probabilities_are_means():
    labels, p = patients()
    hidden = np.random.default_rng(0).random(labels.shape) < 0.2
    found = uq.evaluate(labels, probs=p, mask=hidden).classes
    assert_allclose(found["stated"], p[~hidden].mean(axis=0), rtol=1e-12)
    assert_allclose(found["gap"], found["stated"] - found["observed"], rtol=1e-12)


def test_a_stream_and_its_parts_know_what_is_stated(tmp_path):
    labels, p = patients(16)
    whole = uq.evaluate(labels, probs=p, groups=np.arange(16))
    one, other = uq.Accumulator(), uq.Accumulator()
    for at in range(0, 8, 2):
        one.update(labels[at : at + 2], probs=p[at : at + 2], groups=np.arange(at, at + 2))
    other.update(labels[8:], probs=p[8:], groups=np.arange(8, 16))
    one.save(tmp_path / "one.npz")
    found = uq.Accumulator.load(tmp_path / "one.npz").merge(other).compute()
    pd.testing.assert_frame_equal(found.classes, whole.classes, rtol=1e-9)
    for key in ("cwece", "worst_class_gap"):
        assert_allclose(found.scores[key], whole.scores[key], rtol=1e-9)


def test_scores_of_classes_are_means_and_maxima_of_the_table():
    report = report_of()
    assert_allclose(report.scores["cwece"], report.classes["ece"].mean(), rtol=1e-12)
    assert_allclose(report.scores["worst_class_gap"], report.classes["gap"].abs().max(), rtol=1e-12)
    one = uq.evaluate(*patients()[:1], probs=patients()[1], n_bins=7)
    assert one.undefined["cwece"] == "bins of classes are kept for 10, 5 or 2 bins and up to 1024 classes"


def test_a_class_against_the_rest_is_an_event():
    labels, p = patients()
    found = uq.evaluate(labels, probs=p).classes
    for place in range(4):
        event = uq.evaluate((labels == place).astype(int), probs=p[..., place])
        assert_allclose(found["ece"].iloc[place], event.scores["ece"], rtol=1e-9)
        assert_allclose(found["slope"].iloc[place], event.scores["cal_slope"], rtol=0.02)


def too_sure(seed=0, n=12):
    """Predictions whose liver is stated too often, and all others too rarely."""
    labels, p = patients(n, seed=seed)
    return labels, softmax(np.log(p) + np.asarray([0, 0.6, 0, 0]))


def test_the_class_that_is_stated_too_often_comes_first():
    labels, p = too_sure()
    report = uq.evaluate(labels, probs=p, groups=np.arange(12), classes=NAMES)
    text = str(report)
    first = text[text.index("class, worst first") :].splitlines()[2]
    times = report.classes.loc["liver", "stated"] / report.classes.loc["liver", "observed"]
    assert first.startswith("liver")
    assert first.rstrip().endswith(f"{times:.2f} times too high")
    assert report.classes.loc["liver", "gap_low"] > 0
    assert (report.classes["gap_high"].drop("liver") < 0).all()


def test_classes_are_ordered_by_factor_then_by_gap_then_by_iou():
    labels = ("a", "b", "c", "d")
    values = {
        "stated": [0.45, 0.3, 0.02, 0.185],
        "observed": [0.6, 0.2, 0.01, 0.19],
        "iou": [0.9, 0.2, 0.5, 0.7],
    }
    columns = {name: np.asarray(column) for name, column in values.items()}
    columns["gap"] = columns["stated"] - columns["observed"]
    limits = np.asarray([[-0.2, -0.01], [0.05, 0.2], [-0.01, 0.02], [-0.2, 0.1]])
    assert ClassTable(labels, columns, {"gap": limits}).worst_first().tolist() == [1, 0, 2, 3]
    assert ClassTable(labels, columns).worst_first().tolist() == [0, 1, 2, 3]
    del columns["gap"]
    assert ClassTable(labels, columns).worst_first().tolist() == [1, 2, 3, 0]


@pytest.mark.slow
def test_what_is_calibrated_is_not_called_wrong():
    called = 0
    for seed in range(60):
        found = report_of(12, seed=seed).classes
        called += int(((found["gap_low"] > 0) | (found["gap_high"] < 0)).sum())
    assert called / 240 < 0.08


@pytest.mark.slow
def test_a_rescored_run_keeps_stated_probabilities(tmp_path):
    labels, p = too_sure()
    where = f"dir:{tmp_path / 'runs'}"
    uq.log(labels, probs=p, groups=np.arange(12), run=where, predictions=False, figures=False, strict=True)
    (path,) = (tmp_path / "runs").rglob("report.json")
    before = uq.Report.from_json(path).classes
    uq.rescore(where, n_bins=5)
    after = uq.Report.from_json(path)
    assert after.settings["n_bins"] == 5
    pd.testing.assert_frame_equal(after.classes, before)


def test_files_keep_it(tmp_path):
    report = report_of()
    pd.testing.assert_frame_equal(uq.Report.from_json(report.to_json()).classes, report.classes)
    report.to_npz(tmp_path / "report.npz")
    pd.testing.assert_frame_equal(uq.Report.from_npz(tmp_path / "report.npz").classes, report.classes)
    values = report.to_dict()
    values["classes"]["columns"]["iou"].pop()
    with pytest.raises(FileFormatError, match="the columns of the classes differ in length"):
        uq.Report.from_dict(values)


def test_only_classifications_have_it():
    report = uq.evaluate([1.0, 2.0], [1.0, 2.0], [1.0, 1.0])
    with pytest.raises(SettingsError, match="report of a regression holds no scores of classes"):
        report.classes  # noqa: B018
    assert "classes" not in report.to_dict()


class TestIntervals:
    def test_they_hold_the_value_and_lie_within_0_and_1(self):
        found = report_of().classes
        for name in ("recall", "precision", "iou", "dice", "observed", "stated"):
            low, high = found[f"{name}_low"], found[f"{name}_high"]
            assert ((low >= 0) & (low <= found[name]) & (found[name] <= high) & (high <= 1)).all()

    def test_there_are_none_below_eight_groups(self):
        assert "dice_low" not in report_of(7).classes
        assert "dice_low" in report_of(8).classes

    def test_a_class_that_occurs_in_few_groups_has_none(self):
        labels, p = patients()
        labels[:8][labels[:8] == 3] = 0
        found = uq.evaluate(labels, probs=p, groups=np.arange(12)).classes
        assert found["dice_low"].notna().tolist() == [True, True, True, False]

    @pytest.mark.slow
    def test_they_are_those_of_the_whole_report(self):
        report = report_of(30)
        hit = 0
        for place in range(4):
            labels, p = patients(30)
            own = uq.evaluate(
                (labels == place).astype(int),
                probs=softmax(np.log(p)).argmax(-1) == place,
                groups=np.arange(30),
            )
            hit += own.classes.loc["1", "dice_low"] == pytest.approx(report.classes["dice_low"].iloc[place])
        assert hit == 4

    @pytest.mark.slow
    def test_they_cover_the_population(self):
        truth = report_of(3000, seed=99).classes
        inside = []
        for seed in range(60):
            found = report_of(30, seed=seed).classes
            inside.append(
                [
                    (found[f"{name}_low"] <= truth[name]) & (truth[name] <= found[f"{name}_high"])
                    for name in ("recall", "precision", "iou", "dice", "observed")
                ]
            )
        shares = np.mean(inside, axis=(0, 2))
        assert np.all(shares > 0.9), shares
        assert np.mean(shares) < 0.985


@pytest.mark.slow
def test_it_is_printed_with_the_worst_class_first():
    report = report_of()
    worst = [report.class_table.labels[place] for place in report.class_table.worst_first()]
    text = str(report)
    lines = text[text.index("class, worst first") :].splitlines()
    assert [line.split()[0] for line in lines[2:6]] == worst
    assert "limits at 95 %, from the spread of the groups" in text
    html = report._repr_html_()
    assert html.index(worst[0]) < html.index(worst[1]) < html.index(worst[3])


@pytest.mark.slow
def test_of_many_classes_the_worst_are_printed():
    labels, z = samples(4000, 30)
    report = uq.evaluate(labels, probs=z, logits=True)
    assert "the 10 worst of 30 classes; report.classes holds all" in str(report)
    assert len(report.classes) == 30


def test_a_name_may_hold_half_a_character(tmp_path):
    labels, p = patients()
    names = ["\ud800", *NAMES[1:]]
    uq.log(labels, probs=p, classes=names, run=f"dir:{tmp_path}", figures=False, strict=True)
    (file,) = tmp_path.rglob("uq_classes.csv")
    assert "\\ud800" in file.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_run_holds_it_as_a_file_and_a_page_shows_it(tmp_path):
    labels, p = patients()
    where = f"dir:{tmp_path / 'runs'}"
    for method, probs in (("net", p), ("soft", softmax(0.5 * np.log(p)))):
        report = uq.log(
            labels, probs=probs, groups=np.arange(12), classes=NAMES, method=method, split="test", run=where,
            strict=True,
        )  # fmt: skip
    files = sorted((tmp_path / "runs").rglob("uq_test_classes.csv"))
    assert len(files) == 2
    with files[1].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == NAMES
    assert_array_equal([float(row["dice_low"]) for row in rows], report.classes["dice_low"])
    page = tmp_path / "page.html"
    uq.compare(where).to_html(page)
    text = page.read_text(encoding="utf-8")
    section = text[text.index('<section id="classes">') :]
    section = section[section.index('title="soft"') :]
    worst = report.class_table.labels[report.class_table.worst_first()[0]]
    assert section.index(worst) < min(section.index(name) for name in NAMES if name != worst)


def test_a_label_of_the_report_keeps_it():
    report = report_of()
    pd.testing.assert_frame_equal(report.labelled(method="net").classes, report.classes)
