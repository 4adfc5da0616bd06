"""Which runs are seeds of one method, and what methods are called."""

from __future__ import annotations

import re
import shutil
from importlib.resources import files

import numpy as np
import pytest

import uq_tracking as uq
from tests.comparison.conftest import samples
from uq_tracking.comparison.runs import ScoredRun, by_method, looks_of
from uq_tracking.errors import SettingsError
from uq_tracking.formatting import COLORS

QUICK = {"figures": False, "maps": False}


def logged(store, name, seed=0, **options):
    uq.log(*samples(seed, 60), run=store.create(name), **QUICK, **options)


def sizes(store, **options):
    found = uq.compare(f"dir:{store.path}", **options)
    return {name: len(runs) for name, runs in found.groups.items()}


class TestRepeats:
    """The same predictions are no second seed, however they were scored."""

    def test_a_copy_that_was_rescored_replaces_its_original(self, store, tmp_path):
        for seed, method in enumerate("ab"):
            logged(store, method, seed, method=method)
        shutil.copytree(store.path, tmp_path / "copy")
        uq.rescore(f"dir:{tmp_path}/copy", n_bins=20)
        found = uq.compare(f"dir:{store.path}", f"dir:{tmp_path}/copy", baseline="a")
        assert {name: len(runs) for name, runs in found.groups.items()} == {"a": 1, "b": 1}
        assert {run.report.settings["n_bins"] for run in found.runs} == {20}
        assert [run.label for run in found.runs] == ["a", "b"]
        assert found.difference("b", "crps").interval is None
        original, copy = found.skipped[0], found.runs[0]
        assert original.reason == f"it holds the same predictions as a ({copy.uri}), which counts"

    def test_of_two_logs_the_newer_counts(self, store):
        for alpha in (0.9, 0.8):
            logged(store, "a", method="a", alpha=alpha)
        (run,) = uq.compare(f"dir:{store.path}").runs
        assert run.report.settings["alpha"] == 0.8

    def test_a_stream_too(self, store):
        for n_bins in (10, 20):
            stream = uq.Accumulator(n_bins=n_bins)
            stream.update(*samples(0, 60))
            uq.log(stream, run=store.create("a"), method="a", figures=False)
        assert sizes(store) == {"a": 1}

    def test_another_method_may_predict_the_same(self, store):
        for method in "ab":
            logged(store, method, method=method)
        assert sizes(store) == {"a": 1, "b": 1}


class TestSplits:
    """Scores of different data are never averaged."""

    @pytest.mark.slow
    def test_a_run_that_lacks_a_split_counts_in_the_others(self, store):
        for seed, splits in enumerate((("val", "test"), ("val", "test"), ("val",))):
            run = store.create(f"mcd-{seed}")
            for split in splits:
                uq.log(*samples(seed, 60), run=run, split=split, method="mcd", **QUICK)
        assert sizes(store) == {"mcd [val]": 3, "mcd [test]": 2}
        labels = {run.label for run in uq.compare(f"dir:{store.path}").runs}
        assert {"mcd-0 [val]", "mcd-0 [test]", "mcd-2 [val]"} <= labels

    @pytest.mark.slow
    def test_each_is_judged_by_itself_the_test_split_first(self, store):
        for method, scale in (("good", 1.0), ("bad", 2.0)):
            for seed in range(3):
                run = store.create(f"{method}-{seed}")
                for split in ("a val", "test"):
                    truth, mean, std = samples(len(split), 200)
                    noise = np.random.default_rng([seed, len(method)]).normal(size=200)
                    uq.log(
                        truth,
                        mean + 0.1 * scale * noise,
                        std * scale,
                        run=run,
                        split=split,
                        method=method,
                        **QUICK,
                    )
        found = uq.compare(f"dir:{store.path}", baseline="bad [test]")
        assert found.methods == ("good [test]", "bad [test]", "good [a val]", "bad [a val]")
        assert set(found.ranks["crps"].values()) == {1, 2}
        assert {tie.method.partition(" ")[2] + tie.reference.partition(" ")[2] for tie in found.ties} == {
            "[test][test]",
            "[a val][a val]",
        }
        assert found.answer[0].startswith("good [test] is better than bad [test] by ")
        assert found.answer[1].startswith("good [a val] is better than bad [a val] by ")
        assert found.difference_table.names() == ("good [test]",)
        assert found.agreement.keys == ()

    def test_runs_with_and_without_a_split_stay_apart(self, store):
        for seed in range(2):
            logged(store, f"fold{seed}", seed, method="m", split="test")
        logged(store, "parent", 9, method="m")
        assert sizes(store) == {"m [test]": 2, "m": 1}

    def test_one_split_of_all_runs_needs_no_name(self, store):
        for seed in range(2):
            logged(store, f"fold{seed}", seed, method="m", split="test")
        assert sizes(store) == {"m": 2}


class TestRunsWithoutMethod:
    """A name is no method: each run is one of its own."""

    def test_runs_that_were_named_for_the_user(self, store, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        for seed in range(3):
            uq.log(*samples(seed, 60), run=f"dir:{store.path}", **QUICK)
        assert sizes(store) == {"uq": 1, "uq (2)": 1, "uq (3)": 1}

    def test_a_name_that_is_another_runs_method(self, store):
        for seed, options in enumerate(({}, {"method": "m"}, {"method": "m"})):
            logged(store, "m", seed, **options)
        assert sizes(store) == {"m": 2, "m (2)": 1}

    def test_the_splits_of_a_run_keep_its_name(self, store):
        for seed in range(2):
            run = store.create("uq")
            for split in ("val", "test"):
                uq.log(*samples(seed, 60), run=run, split=split, **QUICK)
        assert set(sizes(store)) == {
            f"{name} [{split}]" for name in ("uq", "uq (2)") for split in ("val", "test")
        }

    def test_they_are_called_alike_in_warnings(self, store):
        for seed, n_bins in enumerate((10, 20)):
            logged(store, "uq", seed, n_bins=n_bins)
        assert any("20: uq (2)" in text for text in uq.compare(f"dir:{store.path}").warnings)

    def test_a_baseline_that_is_not_there_names_them(self, store):
        for seed in range(2):
            logged(store, "uq", seed)
        with pytest.raises(SettingsError, match=r"'x' is not a method here; choose from uq, uq \(2\)"):
            uq.compare(f"dir:{store.path}", baseline="x")


class TestColors:
    """A method has the same color everywhere, whatever the order."""

    def test_of_the_same_methods_in_another_order(self, reports):
        found = uq.compare(reports)
        turned = uq.compare(dict(reversed(reports.items())), metrics=["ause_rmse"])
        assert found.looks == turned.looks
        assert len(set(found.looks.values())) == len(reports)

    @pytest.mark.slow
    def test_of_the_splits_of_a_method_with_other_dashes(self, store):
        for method in ("a", "b"):
            run = store.create(method)
            for split in ("val", "test"):
                uq.log(*samples(len(method + split), 60), run=run, split=split, method=method, **QUICK)
        looks = uq.compare(f"dir:{store.path}").looks
        assert looks["a [val]"] == looks["a [test]"] + 8
        whole = uq.compare(f"dir:{store.path}", split="test").looks
        assert {name.partition(" ")[0]: look for name, look in looks.items() if "test" in name} == whole

    def test_that_a_tracker_shows_are_taken_over(self):
        report = uq.evaluate(*samples(0, 60))
        runs = [ScoredRun(name, name, None, report, color=color) for name, color in TRACKED.items()]
        found = looks_of(by_method(runs))
        assert found["orange"] == 1
        assert found["also orange"] not in (1, 3)
        assert found["custom"] not in (1, 3)
        assert found["pink"] == 3
        assert len(set(found.values())) == 4


TRACKED = {"orange": COLORS[1].upper(), "also orange": COLORS[1], "custom": "#123456", "pink": COLORS[3]}


def seen(color, kind):
    """CIE Lab of a color as people with a color vision deficiency see it (Machado, Oliveira and Fernandes 2009)."""
    rgb = np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(DEFICIENCIES[kind] @ linear, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


@pytest.mark.parametrize("kind", DEFICIENCIES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_eight_colors_are_told_apart_with_a_color_vision_deficiency(theme, kind):
    style = files("uq_tracking.comparison").joinpath("templates", "page.css").read_text(encoding="utf-8")
    shown = re.findall(r"--c\d: (#\w{6});", style)
    colors = shown[:8] if theme == "light" else shown[8:16]
    assert (tuple(colors) == COLORS) is (theme == "light")
    labs = [seen(color, kind) for color in colors]
    gaps = {(i, j): float(np.linalg.norm(labs[i] - labs[j])) for i in range(8) for j in range(i)}
    assert min(gaps.values()) > 18, min(gaps.items(), key=lambda item: item[1])
