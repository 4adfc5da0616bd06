from types import SimpleNamespace

import pytest
from rich.console import Console

from uq_tracking.demo.table import FORMATS, comparison_table, ranking


def report(**scores):
    return SimpleNamespace(scores=scores, settings={"unit": "m"})


def printed(reports):
    console = Console(width=80)
    with console.capture() as capture:
        console.print(comparison_table(reports))
    return capture.get()


def scores(n_merci, ause_rmse, spearman, crps, nll, coverage_95, rmse):
    return report(**{key: value for key, value in locals().items() if key in FORMATS})


@pytest.fixture
def reports():
    return {
        "poor": scores(1.5, 0.6, -0.1, 18.71, 43.4123, 0.6, 29.36),
        "good": scores(0.8391, 0.31, 0.4, 12.04, 4.392, 0.97, 23.4),
        "middle": scores(0.9, 0.4, 0.2, 14.0, 5.0, 0.9, 24.0),
    }


def row(text, name):
    (line,) = (line for line in text.splitlines() if line.startswith(f"{name} "))
    return line.split()[1:]


def test_methods_stand_between_their_bounds_best_first(reports):
    text = printed(reports)
    names = ["oracle", "good", "middle", "constant", "poor"]
    places = [text.index(f"\n{name} ") for name in names]
    assert places == sorted(places)


def test_best_and_worst_are_marked_in_the_direction_of_each_score(reports):
    text = printed(reports)
    assert row(text, "good") == ["0.839*", "0.310*", "0.400*", "12.0*", "4.39*", "0.970*", "23.4*"]
    assert row(text, "poor") == ["1.500!", "0.600!", "-0.100!", "18.7!", "43.4!", "0.600!", "29.4!"]
    assert row(text, "middle") == ["0.900", "0.400", "0.200", "14.0", "5.00", "0.900", "24.0"]


def test_bounds_are_never_marked_and_leave_open_what_they_do_not_decide(reports):
    text = printed(reports)
    assert row(text, "oracle") == ["0.000", "0.000", "1.000", "-", "-", "-", "-"]
    assert row(text, "constant") == ["1.000", "-", "-", "-", "-", "-", "-"]


def test_fits_into_eighty_columns_with_the_longest_names(reports):
    text = printed({"gaussian-process": reports["good"], "multi-networks": reports["poor"]})
    assert "…" not in text
    assert "gaussian-process" in text


def test_undefined_scores_are_left_open_and_rank_last(reports):
    reports["unranked"] = report(rmse=25.0)
    assert ranking({name: item.scores for name, item in reports.items()})[-1] == "unranked"
    assert row(printed(reports), "unranked") == ["-", "-", "-", "-", "-", "-", "25.0"]


def test_equal_scores_are_not_marked(reports):
    text = printed({"one": reports["good"], "two": reports["good"]})
    assert "*" not in text.replace("* best", "")
    assert "!" not in text.replace("! worst", "")


def test_units_and_directions_stand_in_the_heading(reports):
    heading = printed(reports).partition("\u2500")[0]
    for word in ("n_merci", "nats", " m", "lower", "higher", "0.95"):
        assert word in heading
