import pickle

import numpy as np
import pytest

import uq_tracking as uq
from tests.scenarios.test_scenarios import SCENARIOS
from uq_tracking.errors import (
    EmptyInputError,
    FileFormatError,
    IncompatibleStatisticsError,
    InvalidValueError,
    SettingsError,
)

from .made import pixels, same, samples, softmax


def counted(labels, probs, batch, **options):
    acc = uq.Accumulator(**options)
    for start in range(0, len(labels), batch):
        acc.update(labels[start : start + batch], probs=probs[start : start + batch])
    return acc


@pytest.mark.parametrize("method", ["sketch", "exact"])
def test_batches_score_as_the_whole(method):
    labels, z = samples(3000)
    whole = uq.evaluate(labels, probs=softmax(z), statistics=method)
    for batch in (3000, 700, 1):
        labels_, probs = (labels, softmax(z)) if batch > 1 else (labels[:200], softmax(z[:200]))
        report = counted(labels_, probs, batch, statistics=method).compute()
        expected = whole if batch > 1 else uq.evaluate(labels_, probs=probs, statistics=method)
        same(expected, report)
        assert report.counts == expected.counts
        assert report.settings == expected.settings
        assert report.provenance["statistics"] == method


def test_the_options_reach_every_batch():
    labels, probs = pixels()
    members = np.log(np.stack([probs, probs**2]))
    labels[:, 0] = 9
    options = {"logits": True, "class_axis": 2, "members_axis": 0, "ignore_label": 9, "n_bins": 7}
    scores = np.moveaxis(members, -1, 2)
    whole = uq.evaluate(labels, probs=scores, **options, statistics="exact")
    acc = uq.Accumulator(**options, statistics="exact")
    for case in range(3):
        acc.update(labels[case : case + 1], probs=scores[:, case : case + 1])
    same(whole, acc.compute())
    assert acc.compute().counts == whole.counts
    assert acc.n == whole.counts["n"]


def test_counting_goes_on_after_a_report_and_after_a_file(tmp_path):
    labels, z = samples(1000)
    probs = softmax(z)
    for method in ("sketch", "exact"):
        acc = counted(labels[:600], probs[:600], 200, statistics=method)
        acc.compute()
        acc.save(tmp_path / "acc.npz")
        other = uq.Accumulator.load(tmp_path / "acc.npz")
        third = pickle.loads(pickle.dumps(acc))
        for one in (acc, other, third):
            one.update(labels[600:], probs=probs[600:])
        same(acc.compute(), other.compute())
        same(acc.compute(), third.compute())
        assert acc.compute().provenance["digest"] == other.compute().provenance["digest"]


def test_merging_is_counting_both_in_any_order():
    labels, z = samples(1000)
    probs = softmax(z)
    for method in ("sketch", "exact"):
        whole = counted(labels, probs, 500, statistics=method).compute()
        one, two = (
            counted(labels[part], probs[part], 100, statistics=method)
            for part in (slice(0, 300), slice(300, None))
        )
        empty = uq.Accumulator(statistics=method)
        same(whole, empty.merge(two).merge(one).compute())
        assert empty.compute().provenance["digest"] == whole.provenance["digest"]
        assert two.n == 700


def test_the_digest_knows_labels_and_probabilities_apart_but_not_their_type():
    labels, z = samples(100)
    probs = softmax(z).astype(np.float32)

    def digest(labels, probs):
        return counted(labels, probs, 30).compute().provenance["digest"]

    assert digest(labels, probs) == digest(labels[::-1], probs[::-1].astype(np.float64))
    assert digest(labels, probs) != digest((labels + 1) % 4, probs)
    assert digest(labels, probs) != digest(labels, probs[:, ::-1])
    assert digest(labels, probs) != digest(labels, np.roll(probs, 1, axis=0))


def test_a_batch_without_labels_is_counted_as_left_out():
    acc = uq.Accumulator(ignore_label=9)
    acc.update([9, 9, 9], probs=[[0.5, 0.5]] * 3)
    with pytest.raises(EmptyInputError, match="no samples were counted"):
        acc.compute()
    acc.update([0], probs=[[0.5, 0.5]])
    assert acc.compute().counts == {"n": 1, "n_ignored": 3, "n_masked": 0, "n_invalid": 0}


def test_a_bad_batch_is_not_counted():
    acc = counted(*(lambda labels, z: (labels, softmax(z)))(*samples(100)), 50)
    before = acc.compute()
    with pytest.raises(InvalidValueError, match="do not sum to 1"):
        acc.update([0, 1], probs=[[0.25] * 4, [0.5] * 4])
    with pytest.raises(IncompatibleStatisticsError, match=r"differs \(4 before, 2 in this batch\)"):
        acc.update([0, 1], probs=[[0.5, 0.5]] * 2)
    assert acc.compute() == before


def test_wrong_settings_and_files(tmp_path):
    with pytest.raises(SettingsError, match="choose 'sketch' or 'exact'"):
        uq.Accumulator(statistics="auto")
    with pytest.raises(SettingsError, match="choose 'raise' or 'drop'"):
        uq.Accumulator(on_invalid="skip")
    with pytest.raises(IncompatibleStatisticsError, match="n_bins differs"):
        uq.Accumulator(n_bins=5).merge(uq.Accumulator())
    np.savez(tmp_path / "acc.npz", labels=[0, 1])
    with pytest.raises(FileFormatError, match=r"not written by Accumulator\.save"):
        uq.Accumulator.load(tmp_path / "acc.npz")


def test_a_stream_names_the_few_wrong_groups_as_evaluate_does():
    (labels,), options = SCENARIOS["event_of_one_inverted_patient"].make(np.random.default_rng(0))
    names = np.asarray([f"p{37 * code % 40}" for code in options["groups"]])  # in another order than sorted
    whole = uq.evaluate(labels, probs=options["probs"], groups=names)
    stream = uq.Accumulator()
    for part in np.array_split(np.arange(len(labels)), 7):
        stream.update(labels[part], probs=options["probs"][part], groups=names[part])
    assert "in group 'p19' (2.5 % of the samples)" in whole.verdict.text
    assert stream.compute().verdict.text == whole.verdict.text
