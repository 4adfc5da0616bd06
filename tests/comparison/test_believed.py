"""What a comparison must not say: differences that samples, seeds or folds only seem to show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

import uq_tracking as uq
from uq_tracking.inference.doctor import Suspicion


def panel(rng, of_dates=0.5, classes=False):
    """Forty stations of sixty dates, one after the other, whose dates share errors; of one method."""
    truth = rng.normal(0, 3, (40, 60))
    seen = truth + 0.8 * rng.normal(size=60) + 0.6 * rng.normal(size=(40, 60))
    if classes:
        odds = truth + 2 * rng.normal(size=60)
        labels = rng.uniform(size=odds.shape) < 1 / (1 + np.exp(-odds))
        return labels.ravel().astype(int), lambda: {
            "probs": 1 / (1 + np.exp(-(truth + of_dates * rng.normal(size=60)).ravel()))
        }
    return seen.ravel(), lambda: {"y_pred": (truth + of_dates * rng.normal(size=60)).ravel()}


def copies(rng):
    """Two hundred rows, each five times."""
    truth, place = rng.normal(0, 3, 200), rng.permutation(np.tile(np.arange(200), 5))
    seen = truth + rng.normal(size=200)
    return seen[place], lambda: {"y_pred": (truth + 0.5 * rng.normal(size=200))[place]}


def leads(rng):
    """A hundred forecasts whose errors grow alike over 24 leads, lead by lead."""
    from scipy.signal import lfilter

    truth = rng.normal(0, 3, (24, 100))

    def error():
        return lfilter([np.sqrt(0.19)], [1, -0.9], rng.normal(size=(64, 100)), axis=0)[40:]

    seen = truth + error()
    return seen.ravel(), lambda: {"y_pred": (truth + 0.6 * error()).ravel()}


def flips(rng):
    """A hundred and fifty images, and seven turned copies of each."""
    truth = rng.normal(0, 3, 150)
    seen = np.tile(truth + rng.normal(size=150), 8)
    return seen, lambda: {
        "y_pred": (truth + 0.6 * rng.normal(size=150) + 0.15 * rng.normal(size=(8, 150))).ravel()
    }


def evaluated(truth, given, scores=("crps", "nll")):
    if "y_pred" in given:
        given = {"y_std": np.ones(len(truth)), **given}
    return uq.evaluate(truth, **given, metrics=["brier", "nll"] if "probs" in given else list(scores))


def compared(of, sets, seed=0):
    """First sentences on two equal methods, and all that is said of the last set."""
    rng, first = np.random.default_rng(seed), []
    for _ in range(sets):
        truth, method = of(rng)
        found = uq.compare({name: evaluated(truth, method()) for name in "AB"}, maps=False)
        first.append(found.answer[0])
    return first, " ".join(found.answer)


@pytest.mark.parametrize("of", [panel, copies, leads, flips, lambda rng: panel(rng, 1.5, classes=True)])
def test_samples_alike_far_apart_make_no_difference(of):
    first, said = compared(of, 5)
    assert all("cannot be told apart" in sentence for sentence in first)
    assert "pass groups=, the name of what they share" in said


@pytest.mark.parametrize("seed", [3, 12, 14])
def test_a_break_is_no_copy_and_may_decide(seed):
    """Two like methods, one of which fails on the last rows."""
    rng = np.random.default_rng(seed)
    truth, std, shared = 3 * rng.normal(size=1000), rng.gamma(4, 0.25, 1000), rng.normal(size=1000)
    one = truth + std * (shared + 0.3 * rng.normal(size=1000))
    other = truth + std * rng.normal(size=1000) * 1.04
    other[-50:] += 6
    found = uq.compare(
        {
            name: evaluated(truth, {"y_pred": mean, "y_std": 1.04 * std})
            for name, mean in (("A", one), ("B", other))
        }
    )
    assert found.answer[0].startswith(
        "A and B cannot be told apart by crps, but if rows are independent, A is"
    )
    assert "mostly between 94 % and 100 % of them" in found.answer[0]
    assert "far apart" not in " ".join(found.answer)


@pytest.mark.parametrize("change", [lambda y: 1000 * y, lambda y: np.round(y, 4)])
def test_the_same_rows_in_another_unit_are_no_harder_test_set(change):
    truth, mean = np.random.default_rng(0).normal(size=(2, 300))
    made = {"A": evaluated(truth, {"y_pred": mean}), "B": evaluated(change(truth), {"y_pred": change(mean)})}
    first, *_ = uq.compare(made, maps=False).answer
    assert first == (
        "Targets or weights differ: use the same for all methods, in one unit, rounding and class order."
    )


def test_a_large_difference_of_a_panel_is_found_and_its_worth_is_stored():
    rng = np.random.default_rng(1)
    truth, _ = panel(rng)
    reports = {
        name: evaluated(truth, {"y_pred": truth + np.tile(scale * rng.normal(size=60), 40)})
        for name, scale in (("A", 0.5), ("B", 2.5))
    }
    assert reports["B"].verdict.distant == 60
    found = uq.compare(reports, maps=False)
    assert found.answer[0].startswith("A is better than B")
    stored = {name: uq.Report.from_json(report.to_json()) for name, report in reports.items()}
    assert uq.compare(stored, maps=False).answer == found.answer
    dates = np.tile(np.arange(60), 40)
    options = {"y_std": np.ones(2400), "metrics": ["crps"], "groups": dates}
    grouped = {
        name: uq.evaluate(truth, y_pred=truth + np.tile(scale * rng.normal(size=60), 40), **options)
        for name, scale in (("A", 0.5), ("B", 2.5))
    }
    assert uq.compare(grouped, maps=False).answer[0].startswith("A is better than B")


def test_groups_across_which_rows_are_alike_tell_nothing():
    truth, method = panel(np.random.default_rng(0))
    groups = np.repeat(np.arange(40), 60)
    made = {name: uq.evaluate(truth, **method(), y_std=np.ones(2400), groups=groups) for name in "AB"}
    crossed = (Suspicion("crossed groups", "Rows at equal places are alike.", "Pass groups=date."),)
    judged = replace(made["A"]._judged, verdict=replace(made["A"].verdict, suspicions=crossed))
    found = uq.compare({**made, "A": replace(made["A"], judgement=judged)}, baseline="A", maps=False)
    assert {each.verdict for each in found.differences} == {"unknown"}
    assert found.answer[0].startswith(
        "No differences: groups, or rows far apart, are alike, as on the same date; pass groups="
    )


def test_a_method_that_is_worse_by_another_proper_score_is_said_to_be():
    rng = np.random.default_rng(0)
    truth, noise = rng.normal(size=(2, 5000))
    narrow = uq.evaluate(truth, truth + noise, np.full(5000, 1 / 3))
    wide = uq.evaluate(truth, truth + 1.25 * rng.normal(size=5000), np.full(5000, 1.25))
    assert "more than chance, but worse by nll" in uq.compare({"A": narrow, "B": wide}).answer[0]
    good = uq.evaluate(truth, truth + noise, np.ones(5000))
    assert uq.compare({"A": good, "B": wide}).answer[0].endswith("more than chance.")


def test_classes_are_compared_by_brier_score_also_where_a_log_score_is_infinite():
    rng = np.random.default_rng(0)
    stated = rng.uniform(0.02, 0.98, 2000)
    labels = (rng.uniform(size=2000) < stated).astype(int)
    sure = np.where(np.arange(2000) < 2, 1.0 - labels, stated)
    made = {"A": uq.evaluate(labels, probs=sure), "B": uq.evaluate(labels, probs=0.5 * stated + 0.25)}
    first, second, *_ = uq.compare(made).answer
    assert first.startswith("A is better than B by")
    assert first.endswith("more than chance, but worse by nll.")
    assert " brier (" in first
    assert second == "No finite nll of A: 0.001 of the true classes have probability 0."


def seeds(rng, truth, mean, runs, between=0.4):
    """Reports of runs whose predictions are off by as much as chance has it."""
    means = (mean + between * rng.normal() + 0.2 * rng.normal(size=len(truth)) for _ in range(runs))
    return [evaluated(truth, {"y_pred": each}) for each in means]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2, 1), (2, 2), (3, 1)])
def test_few_seeds_that_differ_tell_little(sizes):
    rng, better = np.random.default_rng(2), 0
    for _ in range(100):
        mean, noise = rng.normal(size=(2, 400))
        truth = mean + noise
        made = {name: seeds(rng, truth, mean, runs) for name, runs in zip("AB", sizes, strict=True)}
        said = uq.compare(made, maps=False).answer
        better += "is better" in said[0]
        assert "is better" in said[0] or said[1].endswith("3 of each show more.")
    assert better <= 11


def folds(rng, size, splits):
    """Equal methods on random splits of the same 300 rows."""
    mean = rng.normal(0, 3, 300)
    truth, made = mean + rng.normal(size=300), {}
    rows = [rng.permutation(300)[:size] for _ in range(splits)]
    for name in "AB":
        own = mean + 0.5 * rng.normal(size=300)
        made[name] = [evaluated(truth[at], {"y_pred": own[at]}) for at in rows]
    return made


@pytest.mark.parametrize(("size", "splits"), [(60, 20), (225, 6)])
def test_test_sets_that_overlap_are_not_taken_for_different_ones(size, splits):
    found = uq.compare(folds(np.random.default_rng(3), size, splits), baseline="A", maps=False)
    assert found.difference("B", "crps").verdict == "unknown"
    assert found.answer[0].startswith("No differences: equal targets or losses show")


def classified(rng, rows, fitted=False):
    """Reports of two equal classifiers on some of the same 200 rows, fitted anew for each set or not."""
    odds = 1.5 * rng.normal(size=200)
    labels = (rng.uniform(size=200) < special.expit(odds)).astype(int)
    made = {}
    for name in "AB":
        own = odds + 0.6 * rng.normal(size=200)
        each = (own + 0.3 * rng.normal(size=200) * fitted for _ in rows)
        made[name] = [
            evaluated(labels[at], {"probs": special.expit(z[at])}) for at, z in zip(rows, each, strict=True)
        ]
    return made


@pytest.mark.parametrize("draw", ["halves", "three", "with replacement", "windows"])
def test_test_sets_of_classes_that_overlap_are_seen_by_their_losses(draw):
    rng = np.random.default_rng(1)
    rows = {
        "halves": [rng.permutation(200)[:100] for _ in range(10)],
        "three": [rng.permutation(200)[:40] for _ in range(3)],
        "with replacement": [rng.integers(0, 200, 200) for _ in range(10)],
        "windows": [np.arange(start, start + 60) for start in range(0, 140, 10)],
    }
    found = uq.compare(classified(rng, rows[draw]), maps=False)
    assert found.answer[0].startswith("No differences: equal targets or losses show")


@pytest.mark.parametrize("stored", [False, True])
def test_stratified_folds_of_a_balanced_event_are_paired(stored, store):
    """Five folds of 50 rows of either class, in any order."""
    rng = np.random.default_rng(0)
    labels = np.stack([rng.permutation(np.repeat([0, 1], 50)) for _ in range(5)])
    odds = 3 * labels - 1.5 + 2 * rng.normal(size=(5, 100))
    made = {}
    for name, noise in (("A", 0.5), ("B", 1.3)):
        probs = special.expit(0.75 * odds + noise * rng.normal(size=(5, 100)))
        made[name] = [uq.evaluate(labels[fold], probs=probs[fold]) for fold in range(5)]
    for name in made if stored else ():
        for report in made[name]:
            uq.log(report, run=f"dir:{store.path}", method=name, figures=False)
    found = uq.compare(f"dir:{store.path}" if stored else made, baseline="A", maps=False)
    assert found.difference("B", "brier").how == "paired folds"
    assert found.answer[0].startswith("A is better than B by")
    assert "No paired" not in " ".join(found.answer)


def test_overlap_that_may_not_be_seen_is_named():
    """Thirty pairs of equal methods on five folds each: few are told apart, and none refused."""
    rng, better = np.random.default_rng(0), 0
    for _ in range(15):
        folds = np.array_split(rng.permutation(200), 5)
        counts = rng.poisson(2, 200).astype(float)
        of_counts = {
            name: [evaluated(counts[at], {"y_pred": mean[at]}) for at in folds]
            for name, mean in zip("AB", 2 + rng.normal(size=(2, 200)), strict=True)
        }
        for made in (classified(rng, folds, fitted=True), of_counts):
            first, *others = uq.compare(made, maps=False).answer
            assert not first.startswith("No differences")
            if "better" in first:
                better += 1
                assert others[0].startswith("This holds if no row is in several test sets")
    assert 0 < better <= 4


def test_reports_of_several_outputs_name_the_cure():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(30, 2))
    reports = uq.evaluate(truth, truth + 0.1, np.ones((30, 2)), outputs=["x", "y"])
    with pytest.raises(uq.errors.InputTypeError, match=r"'A' names reports of x, y; .* reports\['x'\]"):
        uq.compare({"A": reports, "B": reports})


def intervals(levels=(0.9, 0.9), **options):
    """Conformal intervals with the same middles, one method's all of one width, each method at its own level."""
    rng = np.random.default_rng(0)
    mean, spread = rng.normal(size=500), rng.gamma(2, 0.5, 500)
    truth = mean + spread * rng.normal(size=500)
    return {
        name: uq.Predictions.from_interval(truth, mean - half, mean + half, level, mean, **options)
        for name, half, level in zip("AB", (np.full(500, 2.0), 1.645 * spread), levels, strict=True)
    }


@pytest.mark.parametrize("options", [{}, {"groups": np.arange(500) // 20}])
def test_intervals_of_one_level_are_compared_by_their_score(store, options):
    made = intervals(**options)
    for name, forecast in made.items():
        uq.log(forecast, run=f"dir:{store.path}", method=name, figures=False)
    found = uq.compare({name: uq.evaluate(forecast) for name, forecast in made.items()})
    assert found.answer[0].startswith("B is better than A by")
    assert " winkler_score (" in found.answer[0]
    assert uq.compare(f"dir:{store.path}").answer == found.answer


def test_methods_that_another_score_tells_apart_are_not_said_to_be_alike():
    """Stds 2.2 times too small against less accurate predictions: equal CRPS, but not equal log scores."""
    rng = np.random.default_rng([0, 5])
    mean, spread = rng.normal(size=500), rng.gamma(4, 0.25, 500)
    truth = mean + spread * rng.normal(size=500)
    narrow = uq.evaluate(truth, mean, 0.45 * spread)
    wide = uq.evaluate(truth, mean + 0.35 * spread * rng.normal(size=500), 1.3 * spread)
    found = uq.compare({"narrow": narrow, "wide": wide}).answer[0]
    assert found.startswith("wide and narrow cannot be told apart by crps, but wide is better than narrow by")
    assert found.endswith(", more than chance.")


def test_a_comparison_of_predictions_alone_says_that_it_is_none_of_uncertainties():
    rng = np.random.default_rng(0)
    truth, mean = rng.normal(size=(2, 400))
    levels = np.asarray([0.05, 0.25, 0.5, 0.75, 0.95])
    quantiles = mean[:, None] + 0.3 * special.ndtri(levels)
    made = {
        "A": uq.evaluate(truth, mean, np.ones(400)),
        "B": uq.evaluate(uq.Predictions.from_quantiles(truth, quantiles, levels)),
    }
    first, _, second, *_ = uq.compare(made).answer
    assert first == "A and B are equal by rmse."
    assert second.startswith("Only predictions are compared, not uncertainties, whose forms or levels differ")
    of_levels = {name: uq.evaluate(forecast) for name, forecast in intervals(levels=(0.9, 0.8)).items()}
    assert second in uq.compare(of_levels).answer
    assert second not in uq.compare(made, metrics=["rmse"]).answer


def isotonic(fresh):
    """An event's true probabilities, and these recalibrated on the same or on other samples."""
    rng = np.random.default_rng(6)
    odds = 1.5 * rng.normal(size=(2, 1000))
    labels = (rng.uniform(size=(2, 1000)) < special.expit(odds)).astype(int)
    place = int(fresh)
    fitted = uq.recalibrate(uq.Predictions.from_probs(labels[place], special.expit(odds[place])), "isotonic")
    probs = {"raw": special.expit(odds[0]), "iso": fitted.apply(odds[0], logits=True)}
    return {name: uq.evaluate(labels[0], probs=each) for name, each in probs.items()}


def stds(fresh):
    """True stds, and these recalibrated on the same or on other samples."""
    rng = np.random.default_rng(7)
    mean, spread = rng.normal(size=(2, 300)), rng.gamma(4, 0.25, (2, 300))
    truth = mean + spread * rng.normal(size=(2, 300))
    place = int(fresh)
    fitted = uq.recalibrate((truth[place], mean[place], spread[place]), "std_isotonic")
    own = {"raw": spread[0], "iso": fitted.apply(mean[0], spread[0])[1]}
    return {name: uq.evaluate(truth[0], mean[0], each) for name, each in own.items()}


@pytest.mark.parametrize("make", [isotonic, stds])
def test_what_was_fitted_to_the_samples_is_not_said_to_be_better(make, store):
    made = make(fresh=False)
    for name, report in made.items():
        uq.log(report, run=f"dir:{store.path}", method=name, figures=False)
    found = uq.compare(made).answer
    assert found[0].startswith("iso scores better than raw on the samples it was fitted to, by")
    assert found[1].startswith("The fit of iso is exact, as after a recalibration on these samples")
    assert "than chance" not in " ".join(found)
    assert uq.compare(f"dir:{store.path}").answer == found
    assert "exact" not in " ".join(uq.compare(make(fresh=True)).answer)


def test_the_cause_named_is_the_cause():
    """What cannot be paired for its order, groups or weights, or since nothing else was scored."""
    rng = np.random.default_rng(0)
    truth, error = rng.normal(size=(2, 400))
    a, turned = uq.evaluate(truth, truth + error, np.ones(400)), slice(None, None, -1)
    b = {
        "another order": uq.evaluate(truth[turned], (truth + 2 * error)[turned], np.ones(400)),
        "without": uq.evaluate(truth, truth + 2 * error, np.ones(400), groups=np.arange(400) // 20),
        "weights": uq.evaluate(truth, truth + 2 * error, np.ones(400), weights=rng.uniform(1, 9, 400)),
        "with; skipped B: it scores classification": uq.evaluate(
            (truth > 0).astype(int), probs=special.expit(truth)
        ),
    }
    for cause, report in b.items():
        said = " ".join(uq.compare({"A": a, "B": report}, maps=False).answer)
        assert cause in said
        assert "not means of losses" not in said
    assert said.startswith("Nothing to compare A")


def test_what_few_stds_do_to_the_log_score_is_said():
    """Equal methods; some stds of one are 0, so that it has no log score, or nearly 0, so that these decide it."""
    rng = np.random.default_rng(0)
    mean, spread = 3 * rng.normal(size=1000), rng.gamma(4, 0.25, 1000)
    truth, stds = mean + spread * rng.normal(size=1000), np.hypot(spread, 0.5)
    for small, said in (
        (0.0, "No finite nll of B: 3 samples have a standard"),
        (1e-6, "see the verdict of B."),
    ):
        made = {}
        for name, first in (("A", stds[:3]), ("B", small)):
            own = mean + 0.5 * rng.normal(size=1000)
            made[name] = uq.evaluate(truth, own, np.concatenate([np.broadcast_to(first, 3), stds[3:]]))
        assert said in " ".join(uq.compare(made, maps=False).answer)
        assert small or said in uq.compare(made, metrics=["nll"], maps=False).answer[0]


def sorted_pairs(rng, kind):
    """Independent rows, sorted by a target that one method shrinks, or whose last tenth it does not predict."""
    mean, std = 3 * rng.normal(size=1000), rng.gamma(4, 0.25, 1000)
    truth = mean + std * rng.normal(size=1000)
    at = np.argsort(truth) if kind == "sorted" else np.arange(1000)
    other = 0.75 * mean if kind == "sorted" else np.where(at < 900, mean, 0)
    return {
        name: evaluated(truth[at], {"y_pred": p[at], "y_std": std[at]})
        for name, p in (("A", mean), ("B", other))
    }


@pytest.mark.parametrize(("kind", "where"), [("sorted", "in the first "), ("dead", "between 90 % and ")])
def test_a_difference_that_changes_along_the_rows_is_said_to(kind, where):
    for seed in range(3):
        first, *_ = uq.compare(sorted_pairs(np.random.default_rng(seed), kind), maps=False).answer
        assert first.startswith(
            "A and B cannot be told apart by crps, but if rows are independent, A is better than"
        )
        assert f"mostly {where}" in first
        assert first.endswith("of them: then shuffle them alike for all methods, else pass groups=.")


def test_many_names_are_cut():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=500)
    made = {f"m{k}": evaluated(truth, {"y_pred": truth + rng.normal(size=500)}) for k in range(9)}
    first, *_ = uq.compare(made, maps=False).answer
    assert " and 6 more cannot be told apart by crps" in first


def test_the_dependence_within_vectors_is_said_to_be_left_out():
    rng = np.random.default_rng(0)
    cov = 0.8 * np.ones((3, 3)) + 0.2 * np.eye(3)
    mean = rng.normal(size=(100, 3))
    truth = mean + rng.multivariate_normal(np.zeros(3), cov, 100)
    numbers = np.repeat(np.arange(100), 3).reshape(100, 3)
    made = {
        name: uq.evaluate(
            uq.Predictions.from_covariance(truth, mean, np.broadcast_to(each, (100, 3, 3)), groups=numbers)
        )
        for name, each in (("full", cov), ("none", np.eye(3)))
    }
    assert (
        uq.compare(made, maps=False)
        .answer[1]
        .startswith("Dependence within vectors is not compared: pass groups=")
    )
    first, *rest = uq.compare(made, metrics=["variogram_score"], maps=False).answer
    assert first.startswith("full is better than none by")
    assert not rest
