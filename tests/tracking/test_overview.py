"""What a page of many runs shows first, made of names."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.testing import sample_predictions
from uq_tracking.tracking.content import logged_scores
from uq_tracking.tracking.overview import dataset, description, hint, overview, scored_as

RNG = np.random.default_rng(3)
S = RNG.uniform(0.5, 1.5, 400)
Y = 2 * S * RNG.normal(size=400)
REPORT = uq.evaluate(Y, 0 * Y, S, unit="m")


def names_of(report, split=None):
    middle = f"{split}/" if split else ""
    return {*logged_scores(report, split, "all"), *(f"uq_curve/{middle}{name}" for name in report.curves)}


def cards_of(found):
    return [card for cards in found.sections.values() for card in cards]


class TestOverview:
    def test_every_headline_score_has_a_bar_and_all_else_is_hidden(self):
        found = overview({*names_of(REPORT), "loss", "val/uq"})
        bars = [card.names[0] for card in cards_of(found) if card.kind == "bar"]
        assert bars == [name for name in logged_scores(REPORT) if name in bars]
        assert set(bars) == logged_scores(REPORT).keys()
        shown = {name for card in cards_of(found) for name in card.names}
        assert shown | set(found.hidden) == names_of(REPORT)
        assert not shown & set(found.hidden)
        assert {card.names[0] for card in cards_of(found) if card.kind == "line"} == {
            f"uq_curve/{name}" for name in ("calibration", "reliability", "sparsification_error_rmse")
        }

    def test_a_table_has_room_for_one_score_of_a_kind_and_the_verdict(self):
        found = overview(names_of(REPORT, "test"))
        assert found.columns == ("uq/test/nll", "uq/test/coverage_95", "uq/test/ause_rmse")
        assert found.tags == ("uq.method", "uq.verdict.test")
        assert found.best == ("uq/test/nll", True)

    def test_each_split_has_a_section_the_test_split_first(self):
        found = overview({*names_of(REPORT, "a val"), *names_of(REPORT, "test"), *CASES})
        assert list(found.sections) == ["test", "a val", "Maps"]
        assert found.folded == ("a val",)
        first = [card.names[0] for card in found.sections["test"]]
        assert first[:4] == ["uq/test/rmse", "uq/test/nll", "uq/test/coverage_95", "uq/test/ause_rmse"]
        assert {name.split("/")[1] for name in first} == {"test"}
        assert [card.title for card in found.sections["a val"]] == [
            card.title for card in found.sections["test"]
        ]
        assert found.columns == ("uq/test/nll", "uq/test/coverage_95", "uq/test/ause_rmse")
        assert found.tags == ("uq.method", "uq.verdict.test")
        both = overview({*names_of(REPORT), *names_of(REPORT, "val")})
        assert list(both.sections) == ["without a split", "val"]

    def test_titles_begin_with_the_score_and_are_short(self):
        found = overview({*names_of(REPORT), *names_of(REPORT, "test")})
        titles = {card.names[0]: card.title for card in cards_of(found) if card.kind != "scatter"}
        assert titles["uq/rmse"] == "rmse \N{DOWNWARDS ARROW}"
        assert titles["uq/test/calibration_error"] == "calibration_error \N{DOWNWARDS ARROW}"

    def test_classifications_have_one_too(self):
        report = uq.evaluate([0, 1, 1, 0] * 20, probs=np.tile([0.2, 0.9, 0.4, 0.3], 20))
        names = {*logged_scores(report), "uq_curve/sparsification_brier"}
        found = overview(names)
        assert {name for card in cards_of(found) for name in card.names} == names
        assert found.best == ("uq/nll", True)

    def test_curves_of_other_settings_and_maps_have_charts(self):
        found = overview(["uq/ence", *RELIABILITY, *CASES])
        lines = {card.names for card in cards_of(found) if card.kind == "line"}
        assert lines == {
            ("uq_curve/reliability", "uq_curve/reliability-2"),
            ("uq_curve/reliability.bins20",),
        }
        assert [card.names[0] for card in found.sections["Maps"]] == CASES[:6]

    def test_there_may_be_nothing(self):
        assert overview(["loss"]).sections == {}
        assert overview(["loss"]).best is None


RELIABILITY = [f"uq_curve/reliability{which}" for which in ("", "-2", ".bins20")]
CASES = [f"uq_map/{number}" for number in range(8)]


class TestDescription:
    def test_the_headline_and_the_verdict_come_first_and_the_table_has_floors(self):
        found = description(REPORT, "test")
        numbers, _, verdict = found.lead.partition(". ")
        assert verdict.startswith("Overconfident: stated standard deviations are ")
        names = [part.split()[0] for part in numbers.removeprefix("**test:** ").split(", ")]
        assert names == ["rmse", "nll", "coverage\\_95", "ause\\_rmse"]
        rows = [line for line in found.body.splitlines() if line.startswith("| ")]
        assert [row.split(" | ")[0] for row in rows[2:]][:2] == ["| rmse", "| nll"]
        assert len(rows) == 2 + len(logged_scores(REPORT))
        assert next(row for row in rows if row.startswith("| ence")).count("p \\< 0.001") == 1
        assert "uq_test_reliability" in (found.figures or {})
        assert "uq_test_where" not in (found.figures or {})  # several panels: wider than MLflow's column

    def test_the_same_truth_has_the_same_digest_whatever_its_order_or_predictions(self):
        order = RNG.permutation(Y.size)
        other = uq.evaluate(Y[order].astype(np.float32), 0 * Y + 1, S)
        assert dataset(other, "a").digest == dataset(REPORT, "b").digest
        assert dataset(uq.evaluate(Y + 1, Y, S)).digest != dataset(REPORT).digest
        assert dataset(REPORT).n == 400


class TestHint:
    @pytest.mark.parametrize(("asked", "is_written"), [("1", True), ("0", False), (None, False)])
    def test_it_is_written_where_somebody_reads(self, asked, is_written, monkeypatch, capsys):
        monkeypatch.delenv("UQ_TRACKING_HINT", raising=False)
        if asked:
            monkeypatch.setenv("UQ_TRACKING_HINT", asked)
        monkeypatch.delitem(__import__("sys").modules, "ipykernel", raising=False)
        hint(REPORT, [None, "http://here"])
        text = capsys.readouterr().err
        assert text == (f"uq_tracking: {REPORT.verdict.short}; look: http://here\n" if is_written else "")
        assert REPORT.verdict.short.startswith(f"{REPORT.verdict.scale.value:.2f}x overconfident")

    def test_there_may_be_no_page(self, monkeypatch, capsys, in_folder):
        monkeypatch.setenv("UQ_TRACKING_HINT", "1")
        uq.log(sample_predictions(), figures=False, maps=False)
        assert capsys.readouterr().err == ""


class TestSettings:
    """How a report was scored."""

    @pytest.mark.slow
    def test_groups_and_recalibrations(self):
        groups = np.repeat(np.arange(20), 20)
        report = uq.evaluate(
            Y, 0 * Y, S, alpha=0.9, n_bins=5, family="student_t", dof=4, groups=groups, calibration=True
        )
        words = "alpha 0.9, 5 bins, student_t with 4 degrees of freedom, 20 groups, "
        assert scored_as(report) == words + "before and after std_scaling (of half)"

    def test_other_forms_and_classes(self):
        draws = uq.Predictions.from_samples(Y, S * RNG.normal(size=(9, 400)))
        assert scored_as(uq.evaluate(draws)).startswith("alpha 0.95, 10 bins, ")
        classes = uq.evaluate([0, 1, 1, 0] * 20, probs=np.tile([0.2, 0.9, 0.4, 0.3], 20))
        assert scored_as(classes) == "10 bins, no groups, no recalibration"
        floor = uq.evaluate(Y, 0 * Y, S, std_floor=0.6)
        assert "std at least 0.6" in scored_as(floor)
