"""The verdict: how often it is wrong, how often it sees what is there, and what it must not depend on."""

import html
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import ndimage, special, stats

import uq_tracking as uq
from tests.inference.made import classes, forecasts, report
from uq_tracking.inference import words
from uq_tracking.inference.classification import right_by_chance
from uq_tracking.inference.limits import Influence, share_limits
from uq_tracking.inference.regression import inside_widest, mean_square_scores
from uq_tracking.inference.verdict import Ranked
from uq_tracking.statistics.collecting import build_groups
from uq_tracking.statistics.regression import REGRESSION

FEW = ["rmse"]


def verdicts(seed, repeats, *arguments, **options):
    rng = np.random.default_rng(seed)
    return [report(rng, *arguments, metrics=FEW, **options).verdict for _ in range(repeats)]


def share(verdicts, word):
    return np.mean([verdict.calibration == word for verdict in verdicts])


MAKES = {
    "60 samples": lambda rng, factor: of_regression(rng, 60, factor),
    "1500 samples": lambda rng, factor: of_regression(rng, 1500, factor),
    "30 groups of 50": lambda rng, factor: of_regression(rng, 1500, factor, 30),
    "1500 classified": lambda rng, factor: uq.evaluate(
        uq.Predictions.from_probs(*classes(rng, 1500, factor)), metrics=["brier"]
    ),
}


FINE = ("consistent with calibrated", "calibrated", "not enough data")


def of_regression(rng, n, factor, groups=None):
    """A report whose groups are known to its verdict alone, which intervals and bands would take long to make."""
    truth, mean, std, label = forecasts(rng, n, factor, groups)
    made = uq.evaluate(truth, mean, std, metrics=FEW)
    if groups is None:
        return made
    tables = build_groups(REGRESSION, uq.Predictions(truth, mean, std, groups=label))
    return replace(made, statistics=replace(made.statistics, groups=tables))


def called_anything_else(make, repeats):
    """How many calibrated models are not called so."""
    rng = np.random.default_rng(0)
    found = [MAKES[make](rng, 1.0).verdict for _ in range(repeats)]
    assert all(
        verdict.scale.low <= 1 <= verdict.scale.high for verdict in found if "consistent" in verdict.text
    )
    return sum(verdict.calibration not in FINE for verdict in found)


@pytest.mark.simulation
@pytest.mark.parametrize("make", MAKES)
def test_calibrated_models_are_called_so_in_95_percent(make):
    wrong = called_anything_else(make, 400)
    # were 5 % of them called anything else, there would be as many as these once in a thousand times, or more often
    assert stats.binom.sf(wrong - 1, 400, 0.05) > 1e-3


@pytest.mark.slow
def test_of_40_calibrated_models_as_many_are_called_anything_else():
    found = {make: called_anything_else(make, 40) for make in MAKES}
    assert found == {**dict.fromkeys(MAKES, 2), "1500 samples": 0, "1500 classified": 3}


def missed(make, repeats):
    """How many models whose errors are 1.3 times the stated size are not called overconfident."""
    rng = np.random.default_rng(1)
    return sum(MAKES[make](rng, 1.3).verdict.calibration != "overconfident" for _ in range(repeats))


@pytest.mark.simulation
@pytest.mark.parametrize("make", [make for make in MAKES if make != "60 samples"])
def test_errors_1_3_times_as_large_are_found_in_more_than_95_percent(make):
    # were 5 % of them missed, there would be as few as these once in a thousand times, or less often
    assert stats.binom.cdf(missed(make, 200), 200, 0.05) < 1e-3


@pytest.mark.slow
def test_of_20_models_with_errors_1_3_times_as_large_as_many_are_missed():
    assert {make: missed(make, 20) for make in MAKES} == {**dict.fromkeys(MAKES, 0), "60 samples": 4}


@pytest.mark.simulation
@pytest.mark.parametrize(("factor", "least"), [(1.05, 0.4), (1.1, 0.95), (1.3, 0.99)])
def test_scale_errors_are_found(factor, least):
    found = verdicts(1, 100, 1500, factor)
    assert share(found, "overconfident") >= least
    assert share(verdicts(2, 50, 1500, 1 / factor), "underconfident") >= least
    assert np.median([verdict.scale.value for verdict in found]) == pytest.approx(factor, rel=0.02)


@pytest.mark.slow
def test_of_ten_models_each_as_many_scale_errors_are_found():
    found = {factor: verdicts(1, 10, 1500, factor) for factor in (1.05, 1.1, 1.3)}
    assert [share(made, "overconfident") for made in found.values()] == [0.7, 1, 1]
    assert [share(verdicts(2, 10, 1500, 1 / factor), "underconfident") for factor in found] == [0.5, 1, 1]


def test_words_appear_only_with_their_verdict():
    rng = np.random.default_rng(3)
    for factor in (0.8, 0.97, 1.0, 1.03, 1.3):
        verdict = report(rng, 1500, factor, metrics=FEW).verdict
        for word in ("overconfident", "underconfident"):
            assert (word in verdict.text.lower()) == (verdict.calibration == word)


@pytest.mark.slow
def test_heavy_tails_are_no_underconfidence():
    rng = np.random.default_rng(4)
    found = verdicts(5, 80, 1500, draw=lambda n: rng.standard_t(3, n) / np.sqrt(3))
    assert share(found, "underconfident") < 0.2
    assert share(found, "miscalibrated in shape") > 0.75
    assert any("heavy tails" in " ".join(verdict.caveats) for verdict in found)


@pytest.mark.slow
def test_ranking_of_an_order_without_meaning():
    rng = np.random.default_rng(6)
    found = []
    for _ in range(200):
        std = np.exp(0.5 * rng.normal(size=400))
        found.append(uq.evaluate(rng.normal(size=400), np.zeros(400), std, metrics=FEW).verdict.ranking)
    assert found.count("no better than constant") >= 180


def test_ranking_useful_constant_and_worse():
    rng = np.random.default_rng(7)
    truth, mean, std, _ = forecasts(rng, 1000)
    useful = uq.evaluate(truth, mean, std).verdict
    assert useful.ranking == "useful"
    assert 0.4 < useful.recovered < 0.8
    assert "The uncertainty ranks errors" in useful.text
    assert uq.evaluate(truth, mean, np.ones(1000)).verdict.ranking == "no better than constant"
    assert uq.evaluate(truth, mean, 1 / std).verdict.ranking == "worse than constant"


def test_the_ranking_of_few_samples_is_not_tested():
    rng = np.random.default_rng(18)
    for n, ranking in ((99, "not enough data"), (100, "useful")):
        verdict = report(rng, n, metrics=FEW).verdict
        assert verdict.ranking == ranking
        assert ("uncertainty ranks errors:" in verdict.text) == (ranking == "useful")
        assert ("The ranking is not tested" in " ".join(verdict.caveats)) == (n == 99)


def test_recovered_share_is_that_of_the_areas():
    one = report(np.random.default_rng(8), 800)
    gain, lost = one.scores["aurg_rmse"], one.scores["ause_rmse"]
    assert one.verdict.recovered == pytest.approx(gain / (gain + lost), rel=1e-9)


def test_bias_is_named_with_its_unit():
    truth, mean, std, _ = forecasts(np.random.default_rng(9), 1000)
    verdict = uq.evaluate(truth, mean + 0.3, std, unit="m").verdict
    assert verdict.bias.low < 0.3 < verdict.bias.high
    assert " m too high on average" in verdict.text
    assert "on average" not in uq.evaluate(truth, mean, std).verdict.text


def test_weights_that_grow_with_the_errors_make_the_bias_less_known():
    truth, mean, std, _ = forecasts(np.random.default_rng(19), 2000)
    weights = std**2
    bias = uq.evaluate(truth, mean, std, weights=weights, metrics=FEW).verdict.bias
    own = weights * (mean - truth - np.average(mean - truth, weights=weights)) / weights.sum()
    expected = Influence.of(own).limits(bias.value, 0.95, cautious=True)
    assert (bias.low, bias.high) == pytest.approx(expected, rel=1e-9)
    classes_, probs = classes(np.random.default_rng(20), 2000)
    doubt = 1 - probs.max(axis=1)
    gap = uq.evaluate(classes_, probs=probs, weights=doubt, metrics=["ece"]).verdict.bias
    over = probs.max(axis=1) - (probs.argmax(axis=1) == classes_)
    assert gap.value == pytest.approx(np.average(over, weights=doubt), rel=1e-9)
    own = doubt * (over - gap.value) / doubt.sum()
    assert (gap.high - gap.low) / 2 == pytest.approx(1.96 * np.sqrt(np.square(own).sum()), rel=0.02)


def test_unit_and_order_change_nothing():
    rng = np.random.default_rng(10)
    truth, mean, std, _ = forecasts(rng, 700, 1.2)
    order = rng.permutation(700)
    one = uq.evaluate(truth, mean, std).verdict
    moved = uq.evaluate(truth[order], mean[order], std[order]).verdict
    scaled = uq.evaluate(1e3 * truth, 1e3 * mean, 1e3 * std).verdict
    again = uq.evaluate(truth, mean, std).verdict
    assert again == one
    for other in (moved, scaled):
        assert (other.calibration, other.ranking) == (one.calibration, one.ranking)
        assert other.scale.high == pytest.approx(one.scale.high, rel=1e-9)
        assert other.shape_p == pytest.approx(one.shape_p, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e60, 1e-60])
def test_units_far_from_one_change_neither_verdict_nor_intervals(factor):
    truth, mean, std, label = forecasts(np.random.default_rng(21), 3000, 1.3, groups=60)
    one = uq.evaluate(truth, mean, std, groups=label)
    other = uq.evaluate(factor * truth, factor * mean, factor * std, groups=label)
    assert {"uce", "ence"} < other.intervals.keys() == one.intervals.keys()
    assert np.asarray(other.intervals["uce"]) / factor**2 == pytest.approx(one.intervals["uce"], rel=0.05)
    assert (other.verdict.calibration, other.verdict.ranking) == ("overconfident", "useful")
    assert other.verdict.scale.high == pytest.approx(one.verdict.scale.high, rel=1e-9)


def test_names_of_groups_change_nothing():
    truth, mean, std, label = forecasts(np.random.default_rng(22), 600, groups=12)
    one = uq.evaluate(truth, mean, std, groups=label, metrics=["auce"])
    names = np.random.default_rng(23).permutation(12)[label]
    other = uq.evaluate(truth, mean, std, groups=names, metrics=["auce"])
    assert other.verdict.shape_p == one.verdict.shape_p
    assert other.noise["auce"].p == one.noise["auce"].p
    assert other.verdict.text == one.verdict.text


@pytest.mark.slow
@pytest.mark.parametrize("wild", [1, 2])
def test_the_ranking_is_not_tested_where_few_groups_hold_the_errors(wild):
    """Within these groups the order of errors is chance, of which leaving out groups knows nothing."""
    rng, label = np.random.default_rng(24), np.repeat(np.arange(20), 50)
    found = []
    for _ in range(10):
        truth = np.where(label < wild, 100.0, 1.0) * rng.normal(size=1000)
        std = np.exp(0.4 * rng.normal(size=1000))
        found.append(uq.evaluate(truth, np.zeros(1000), std, groups=label, metrics=FEW).verdict)
    assert {verdict.ranking for verdict in found} == {"not enough data"}
    assert all("few groups hold most of the errors" in " ".join(verdict.caveats) for verdict in found)


@pytest.mark.parametrize("method", ["exact", "sketch"])
def test_streams_and_files_have_the_same_verdict(method, tmp_path):
    truth, mean, std, _ = forecasts(np.random.default_rng(11), 3000, 1.4)
    one = uq.evaluate(truth, mean, std, statistics=method)
    stream = uq.Accumulator()
    for part in range(3):
        chosen = slice(1000 * part, 1000 * (part + 1))
        stream.update(truth[chosen], mean[chosen], std[chosen])
    assert stream.compute().verdict.scale.value == pytest.approx(one.verdict.scale.value, rel=1e-6)
    one.to_npz(tmp_path / "report.npz")
    assert uq.Report.from_npz(tmp_path / "report.npz").verdict == one.verdict


def test_reports_of_before_get_a_verdict_from_their_statistics(tmp_path):
    one = report(np.random.default_rng(12), 500, 1.5)
    values = one.to_dict()
    del values["noise"], values["verdict"]
    again = uq.Report.from_dict(values, one.statistics).verdict
    assert (again.calibration, again.scale, again.ranking) == (
        one.verdict.calibration,
        one.verdict.scale,
        "useful",
    )
    assert any("these statistics do not keep samples in their order" in caveat for caveat in again.caveats)
    without = uq.Report.from_dict(values).verdict
    assert not without.enough_data
    assert "without their statistics" in without.text


@pytest.mark.parametrize(
    ("n", "groups", "words"), [(2, None, "2 samples"), (60, 1, "1 group is"), (60, 5, "5 groups")]
)
def test_too_little_is_said_to_be_too_little(n, groups, words):
    verdict = report(np.random.default_rng(13), n, groups=groups, metrics=FEW).verdict
    assert verdict.calibration == "not enough data"
    assert not verdict.enough_data
    assert words in verdict.text


def test_standard_deviations_of_zero_have_no_scale():
    truth, mean, std, _ = forecasts(np.random.default_rng(14), 200)
    std[3] = 0
    verdict = uq.evaluate(truth, mean, std).verdict
    assert verdict.scale is None
    assert verdict.calibration == "not enough data"
    assert str(verdict).startswith(
        "Calibration is not judged: 1 standard deviation is 0, so errors have no scale;"
    )


@pytest.mark.parametrize(("spread", "told"), [(0.5, False), (0.005, True)])
def test_uncertainties_that_sort_errors_and_hardly_differ_are_told(spread, told):
    rng = np.random.default_rng(15)
    errors = rng.normal(size=500)
    std = 1 + spread * np.abs(errors)
    verdict = uq.evaluate(errors, np.zeros(500), std).verdict
    assert verdict.ranking == "useful"
    assert verdict.sorts_only is told
    assert ("but they vary by only" in verdict.text) is told


@pytest.mark.slow
def test_the_verdict_comes_first_in_print():
    one = report(np.random.default_rng(15), 1500, 1.5)
    assert " ".join(str(one).split()).startswith(one.verdict.text)
    assert one.verdict.text.startswith("Overconfident: stated standard deviations are 1.5")
    assert one.verdict.text in html.unescape(one._repr_html_()).replace(
        "</b>", ""
    )  # only its first sentence is bold


@pytest.mark.parametrize(("power", "word"), [(1.5, "overconfident"), (0.7, "underconfident")])
@pytest.mark.slow
def test_miscalibrated_classifiers_are_found(power, word):
    rng = np.random.default_rng(17)
    found = [
        uq.evaluate(uq.Predictions.from_probs(*classes(rng, 1500, power)), metrics=["brier"]).verdict
        for _ in range(25)
    ]
    assert share(found, word) == 1
    assert all(verdict.ranking == "useful" for verdict in found)
    labels, probs = classes(rng, 1500, power)
    one = uq.evaluate(labels, probs=probs).verdict
    top = probs.max(axis=1)
    wrong = probs.argmax(axis=1) != labels
    assert one.scale.value == pytest.approx(wrong.sum() / (1 - top).sum(), rel=1e-9)
    assert one.bias.value == pytest.approx(top.mean() - (1 - wrong.mean()), rel=1e-6)


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (("overconfident", 5.02, "no better than constant", None), "5.0x overconfident, no ranking"),
        (("overconfident", 1.06, "useful", 0.624), "1.06x overconfident, ranking 62 %"),
        (("underconfident", 0.25, "worse than constant", -0.1), "4.0x underconfident, ranking backwards"),
        (("miscalibrated in shape", 1.1, "useful", 0.5), "wrong shape, ranking 50 %"),
        (("consistent with calibrated", 1.0, "useful", None), "looks calibrated, ranking useful"),
        (("not enough data", None, "useful", 0.3), "not judged, ranking 30 %"),
        (("not enough data", None, "not enough data", None), "not enough data"),
        (("overconfident", 12345.0, "not enough data", None), "12,345x overconfident"),
    ],
)
def test_a_column_of_a_table_begins_with_what_matters(of, text):
    assert words.short(*of) == text


def test_a_classifier_without_errors():
    probs = np.tile([0.99, 0.01], (50, 1))
    verdict = uq.evaluate(np.zeros(50, dtype=int), probs=probs).verdict
    assert verdict.calibration == "not enough data"  # the event may be half as frequent again, or more
    assert verdict.event.low == 0


@pytest.mark.parametrize("groups", [None, 40])
@pytest.mark.parametrize("statistics", ["exact", "sketch"])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_a_single_wrong_sample_is_named_and_the_others_judged_without_it(groups, statistics, factor):
    rng = np.random.default_rng(3)
    truth, mean, std, _ = forecasts(rng, 3000, factor)
    truth[7] += 1e6
    label = None if groups is None else np.arange(3000) % groups
    verdict = uq.evaluate(truth, mean, std, groups=label, statistics=statistics, metrics=FEW).verdict
    others = np.delete((truth - mean) / std, 7)
    assert verdict.calibration == "overconfident in few samples"
    said = verdict.text[verdict.text.index("Overconfident in few") :]
    assert said.startswith(
        "Overconfident in few samples: 1 of 3,000 carries 99.9 % of the squared standardized errors; "
        f"all other errors are {np.sqrt(np.mean(others**2)):.2f} times the stated size. Look at that one before "
        "changing any standard deviation."
    )
    assert verdict.short.startswith("overconfident in few samples")


def test_heavy_tails_alone_are_no_few_samples():
    rng = np.random.default_rng(4)
    std = rng.gamma(4, 0.25, 3000)
    verdict = uq.evaluate(std * 2 * rng.standard_t(4, 3000), np.zeros(3000), std, metrics=FEW).verdict
    assert verdict.calibration == "overconfident"


def test_errors_that_are_all_zero_are_not_judged():
    verdict = uq.evaluate(np.zeros(100), np.zeros(100), np.ones(100), metrics=FEW).verdict
    assert verdict.text == "Not enough data to tell: every error is 0."


def test_stds_that_sort_errors_but_have_the_wrong_sizes_are_told():
    rng = np.random.default_rng(5)
    true = np.exp(0.3 * rng.normal(size=3000))
    errors = true * rng.normal(size=3000)
    fine, exaggerated = (uq.evaluate(errors, np.zeros(3000), std) for std in (true, true**6))
    assert fine.scores["n_merci"] < 1 < exaggerated.scores["n_merci"]
    assert [report.verdict.ranking for report in (fine, exaggerated)] == ["useful", "useful"]
    told = ["of one width with the same coverage" in report.verdict.text for report in (fine, exaggerated)]
    assert told == [False, True]


def test_what_a_ranking_gains_is_what_the_sparsification_curve_shows():
    rng = np.random.default_rng(17)
    probs = rng.dirichlet(np.ones(3), 2000)
    labels = (rng.random((2000, 1)) > probs.cumsum(axis=1)).sum(axis=1)
    for found, name, score in (
        (uq.evaluate(*forecasts(rng, 1500, 1.0)[:3]), "sparsification_rmse", "RMSE"),
        (uq.evaluate(labels, probs=probs), "sparsification_brier", "the Brier score"),
    ):
        columns = found.curves[name].columns
        left = [
            100 * (1 - np.interp(0.2, columns["fraction"], columns[each])) for each in ("model", "oracle")
        ]
        gain = f"without the most uncertain 20 %, {score} is {left[0]:.0f} % lower"
        assert f"{gain} ({left[1]:.0f} % with a perfect ranking)." in found.verdict.text


@pytest.mark.parametrize(("share", "word"), [(0.19, ", but weakly"), (0.21, "")])
def test_sentence_and_figures_call_the_same_ranking_little(share, word):
    rng = np.random.default_rng(6)
    found = replace(uq.evaluate(*forecasts(rng, 1500, 1.0)[:3]).verdict, recovered=share)
    text = words.of_ranking(Ranked(found.ranking, share, "RMSE", (0.75, 0.5)))
    assert f"The uncertainty ranks errors{word}:" in text
    assert found.knows_little == bool(word)


@pytest.mark.parametrize("groups", [None, 40])
@pytest.mark.parametrize(
    ("factor", "word"), [(0.9, "Overconfident"), (1.0, "Consistent"), (1.1, "Underconfident")]
)
def test_intervals_are_judged_by_what_they_contain(factor, word, groups):
    truth, half = np.random.default_rng(7).normal(size=4000), np.full(4000, 1.645 * factor)
    codes = None if groups is None else np.arange(4000) % groups
    report = uq.evaluate(uq.Predictions.from_interval(truth, -half, half, level=0.9, groups=codes))
    inside = f"the 90 % intervals contain {100 * report.scores['interval_coverage']:.3g} % of the true values"
    assert report.verdict.text.startswith(word)
    assert inside in report.verdict.text
    assert not any("scale" in caveat for caveat in report.verdict.caveats)


def test_quantiles_that_contain_enough_but_lie_to_one_side_have_the_wrong_shape():
    truth = np.random.default_rng(7).normal(size=2000)
    quantiles = np.tile([-1.645, 0.5, 1.645], (2000, 1))
    report = uq.evaluate(uq.Predictions.from_quantiles(truth, quantiles, [0.05, 0.5, 0.95]))
    assert report.verdict.text.startswith(
        "Predictions are too high: 71.4 % of the true values (69.3 % to 73.3 %) lie below"
    )
    assert "Miscalibrated in shape: the 90 % intervals contain" in report.verdict.text
    assert "but the median is wrong." in report.verdict.text


@pytest.mark.parametrize(
    ("share", "n", "grade"), [(0.9, 40, "unclear"), (0.895, 400_000, "fine"), (0.89, 40_000, "slight")]
)
def test_intervals_are_graded_by_the_width_that_would_be_right(share, n, grade):
    rank = np.arange(n) / n
    truth = 1.0 + (rank > (1 + share) / 2) - (rank < (1 - share) / 2)
    ends = np.full(n, 0.5), np.full(n, 1.5)
    report = uq.evaluate(uq.Predictions.from_interval(truth, *ends, level=0.9, groups=False))
    assert report.verdict.grade == grade
    assert report.verdict.text.startswith(
        "Slightly overconfident: " if grade == "slight" else "Consistent with"
    )


@pytest.mark.parametrize(("family", "dof"), [("laplace", {}), ("student_t", {"dof": 5.0})])
def test_the_factor_of_a_family_is_one_on_its_standard_deviations(family, dof):
    rng = np.random.default_rng(5)
    z = rng.laplace(size=20_000) / np.sqrt(2) if not dof else rng.standard_t(5, 20_000) / np.sqrt(5 / 3)
    options = {"family": family, **dof, "metrics": FEW}
    right = uq.evaluate(z, 0 * z, np.ones(len(z)), **options).verdict.scale
    found = uq.evaluate(2 * z, 0 * z, np.ones(len(z)), **options).verdict.scale
    assert right.low < 1 < right.high
    assert_allclose(
        [found.value, found.low, found.high], 2 * np.asarray([right.value, right.low, right.high]), rtol=1e-3
    )


@pytest.mark.parametrize("groups", [None, 40])
def test_quantiles_of_counts_contain_more_with_their_ends_and_are_not_underconfident(groups):
    rng, levels = np.random.default_rng(9), [0.05, 0.5, 0.95]
    rate = 2 * np.exp(0.3 * rng.normal(size=2000))
    codes = None if groups is None else np.arange(2000) % groups
    quantiles = stats.poisson.ppf(levels, rate[:, None])
    report = uq.evaluate(uq.Predictions.from_quantiles(rng.poisson(rate), quantiles, levels, groups=codes))
    assert report.scores["interval_coverage"] > 0.95
    assert inside_widest(report.statistics, 0.975).misses is None


@pytest.mark.parametrize("kind", ["exact", "sketch"])
@pytest.mark.parametrize("groups", [None, 40])
def test_shares_with_and_without_the_ends_are_those_counted(groups, kind):
    rng = np.random.default_rng(8)
    truth, weights = rng.integers(-4, 5, (40, 20)), 0.37 * rng.integers(1, 4, (40, 20))
    codes = None if groups is None else np.arange(groups)
    data = uq.Predictions.from_interval(
        truth, np.full((40, 20), -2), np.full((40, 20), 2), level=0.5, groups=codes, weights=weights
    )
    found = inside_widest(uq.evaluate(data, statistics=kind).statistics, 0.975)
    within, between = (np.average(np.abs(truth) <= most, weights=weights) for most in (2, 1))
    assert_allclose(found.value, within, rtol=1e-12)
    assert found.least < between < found.low < within < found.high
    if groups is None:
        count = weights.sum() ** 2 / np.square(weights).sum()
        assert_allclose([found.low, found.high], share_limits(within * count, count, 0.975), rtol=1e-9)
        assert_allclose(found.least, share_limits(between * count, count, 0.975)[0], rtol=1e-9)


@pytest.mark.parametrize("groups", [None, 50])
def test_a_classifier_that_is_certain_and_wrong_is_overconfident(groups):
    report = sure(200, groups, doubt=0.0)
    assert report.verdict.calibration == "overconfident"
    assert report.verdict.text.startswith(
        "Overconfident: the model states certainty for every sample, but misclassifies 20 %"
    )
    assert report.verdict.short.startswith("overconfident")
    assert sure(0, groups, doubt=0.0).verdict.calibration != "overconfident"


def sure(errors, groups=None, doubt=0.001, n=1000):
    """The report of a classifier that states one probability of error for all of n samples."""
    labels = np.zeros(n, dtype=int)
    labels[np.random.default_rng(errors).permutation(n)[:errors]] = 1
    codes = None if groups is None else np.repeat(np.arange(groups), n // groups)
    probs = np.tile([1 - doubt, doubt], (n, 1))
    return uq.evaluate(labels, probs=probs, groups=codes)


@pytest.mark.parametrize("errors", [0, 3, 19])
def test_too_few_errors_are_no_verdict_on_shape_and_ranking(errors):
    made = sure(errors, groups=20, doubt=max(errors, 1) / 1000)
    assert made.verdict.calibration == "not enough data"  # a rate half as high again is not excluded
    assert made.verdict.shape_p is None
    assert not made.noise
    assert made.verdict.bias.low <= 0 <= made.verdict.bias.high
    assert f"too few errors ({errors} samples are misclassified" in " ".join(made.verdict.caveats)
    reliability = made.curves["reliability"]
    assert "chance_low" not in reliability.columns
    for key in ("nll", "brier", "ece", "ace", "aurc"):
        assert key not in made.intervals
        assert "too few errors" in made.provenance["intervals"]["undefined"][key]
    assert "accuracy" in made.intervals


def test_twenty_errors_are_enough_unless_few_groups_hold_them():
    enough = sure(20, groups=20, doubt=0.02)
    assert {"nll", "brier", "ece"} <= set(enough.intervals)
    assert enough.verdict.shape_p is None  # the probability is the same everywhere
    labels, codes = np.zeros(1000, dtype=int), np.repeat(np.arange(20), 50)
    labels[:40] = 1
    together = uq.evaluate(labels, probs=np.tile([0.96, 0.04], (1000, 1)), groups=codes)
    assert "worth 1.0 equal ones" in together.provenance["intervals"]["undefined"]["nll"]


def test_groups_with_few_errors_still_show_what_is_blatant():
    assert sure(5, groups=20, doubt=0.3).verdict.calibration == "too high"
    assert sure(100, groups=20, doubt=0.0001).verdict.calibration == "overconfident"


def test_a_model_that_is_never_right_and_says_so_is_not_called_wrong():
    probs = np.full((100, 100), 0.99 / 99)
    probs[:, 0] = 0.01 + 1e-6
    verdict = uq.evaluate(
        1 + np.arange(100) % 99, probs=probs / probs.sum(axis=1)[:, None], class_axis=-1
    ).verdict
    assert verdict.calibration in FINE
    assert verdict.scale.low < 1 < verdict.scale.high


@pytest.mark.slow
def test_the_bias_of_hardly_any_errors_is_tested_exactly():
    rng, rejected = np.random.default_rng(20), 0
    for _ in range(200):
        confidence = rng.uniform(0.98, 1, 100)
        labels = (rng.random(100) > confidence).astype(int)
        probs = np.stack([confidence, 1 - confidence], 1)
        bias = uq.evaluate(labels, probs=probs, metrics=["brier"]).verdict.bias
        rejected += not bias.low <= 0 <= bias.high
    # were 5 % of them rejected, there would be as many as these once in a thousand times, or more often
    assert stats.binom.sf(rejected - 1, 200, 0.05) > 1e-3


def test_the_order_of_hardly_any_errors_is_not_tested():
    rng = np.random.default_rng(21)
    confidence = rng.uniform(0.99, 1, 1000)
    for errors, ranking in ((1, "not enough data"), (19, "not enough data"), (20, "no better than constant")):
        labels = np.zeros(1000, dtype=int)
        labels[rng.choice(1000, errors, replace=False)] = 1
        made = uq.evaluate(labels, probs=np.stack([confidence, 1 - confidence], 1)).verdict
        assert made.ranking == ranking
        assert ("The ranking is not tested: too few errors" in " ".join(made.caveats)) == (errors < 20)


def called_miscalibrated(draws, groups, repeats):
    """How many of so many calibrated forecasts of 24 skewed targets are not called so."""
    rng, n, wrong = np.random.default_rng(22), 24, 0
    codes = None if groups is None else np.repeat(np.arange(groups), n // groups)
    for _ in range(repeats):
        law = stats.lognorm(1, scale=np.exp(0.5 * rng.normal(size=n)))
        truth = law.rvs(random_state=rng)
        made = (
            uq.Predictions.from_samples(truth, law.rvs((draws, n), random_state=rng), groups=codes)
            if draws
            else uq.Predictions.from_distribution(truth, law, quantile_scores=False, groups=codes)
        )
        wrong += uq.evaluate(made, metrics=FEW).verdict.calibration not in FINE
    return wrong


SKEWED = [(None, None), (50, None), (None, 12), (50, 12)]


@pytest.mark.simulation
@pytest.mark.parametrize(("draws", "groups"), SKEWED)
def test_few_samples_of_skewed_distributions_are_not_called_miscalibrated(draws, groups):
    # were 5 % of them called anything else, there would be as many as these once in a thousand times, or more often
    assert stats.binom.sf(called_miscalibrated(draws, groups, 50) - 1, 50, 0.05) > 1e-3


@pytest.mark.slow
def test_of_five_forecasts_of_skewed_targets_each_as_many_are_called_miscalibrated():
    assert [called_miscalibrated(*case, 5) for case in SKEWED] == [0, 0, 0, 0]


def test_scale_errors_of_other_distributions_are_found():
    rng = np.random.default_rng(23)
    for factor, word in ((2.0, "overconfident"), (0.5, "underconfident")):
        scale = np.exp(0.5 * rng.normal(size=300))
        made = uq.Predictions.from_distribution(
            factor * scale * rng.normal(size=300), stats.norm(scale=scale), quantile_scores=False
        )
        assert uq.evaluate(made, metrics=FEW).verdict.calibration == word


def test_the_mean_square_of_scores_over_an_interval():
    low, high = np.asarray([0.0, 0.2, 0.5, 0.0]), np.asarray([1.0, 0.2, 0.6, 0.1])
    expected = [
        1.0,
        stats.norm.ppf(0.2) ** 2,
        np.mean(stats.norm.ppf(0.5 + 0.1 * (np.arange(100000) + 0.5) / 100000) ** 2),
        np.mean(stats.norm.ppf(0.1 * (np.arange(100000) + 0.5) / 100000) ** 2),
    ]
    assert_allclose(mean_square_scores(low, high), expected, rtol=1e-4)


MISSING = "12 % of the true values are exactly {}, with errors"


@pytest.mark.slow
@pytest.mark.parametrize("value", [0, -1, -9999])
@pytest.mark.parametrize("n", [1000, 60_000])
def test_values_that_may_stand_for_missing_ones_are_told(value, n):
    rng = np.random.default_rng(0)
    truth, std = rng.uniform(1, 10, n), rng.uniform(0.2, 1, n)
    mean, hole = truth + std * rng.normal(size=n), np.arange(n) % 25 < 3
    filled = np.where(hole, value, truth)
    for weights in (None, np.ones(n) + hole):
        verdict = uq.evaluate(filled, mean, std, weights=weights).verdict
        assert MISSING.format(value) in verdict.text
        masked = uq.evaluate(filled, mean, std, weights=weights, mask=hole)
        assert masked.suspicions == ()


@pytest.mark.parametrize("step", [1.0, 0.25])
def test_counts_and_rounded_values_are_not_taken_for_missing_ones(step):
    rng = np.random.default_rng(1)
    for truth in (step * rng.poisson(2, 2000), np.round(rng.uniform(1, 10, 2000) / step) * step):
        found = uq.evaluate(truth, np.full(2000, truth.mean()), np.full(2000, truth.std()))
        assert not any("exactly" in caveat for caveat in found.verdict.caveats)


@pytest.mark.slow
def test_labels_drawn_from_the_outcome_are_no_places():
    rng = np.random.default_rng(0)

    def smooth(width, *classes):
        noise = rng.normal(size=(20, 32, 32, *classes))
        made = ndimage.gaussian_filter(noise, (0, width, width, *(0 for _ in classes)))
        return made / made.std()

    probs = special.softmax(2.5 * smooth(5, 4), axis=-1)
    labels = (probs.cumsum(axis=-1) > 0.999999 * special.ndtr(smooth(1.5))[..., None]).argmax(axis=-1)
    kinds = {
        "boundary": "boundary",
        "set": {"at": "boundary"},
        "class": labels,
        "right": probs.argmax(axis=-1) == labels,
    }
    for kind, by in kinds.items():
        report = uq.evaluate(labels, probs=probs, by=by)
        assert len(report.strata) == (4 if kind == "class" else 2)
        assert report.verdict.calibration in FINE, kind
    probs, labels = probs[..., 1], (labels == 1).astype(int)
    for by in ("boundary", labels):
        assert uq.evaluate(labels, probs=probs, by=by).verdict.calibration in FINE


def test_a_common_factor_on_weights_does_not_move_what_chance_makes_right():
    rng = np.random.default_rng(0)
    labels, probs = rng.integers(0, 3, 500), rng.dirichlet(np.ones(3), 500)
    weights = rng.uniform(1, 5, 500)
    light, heavy = (
        uq.evaluate(labels, probs=probs, weights=each).statistics for each in (weights, 7 * weights)
    )
    assert right_by_chance(light) < 0.5
    assert_allclose(right_by_chance(heavy), right_by_chance(light))
