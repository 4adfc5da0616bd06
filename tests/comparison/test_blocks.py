"""The default comparison: sums of losses over consecutive samples, against a literal reference and by simulation."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats

import uq_tracking as uq
from tests.streams.made import counted, predictions
from uq_tracking.comparison.differences import ELSEWHERE, Pairs, paired_by
from uq_tracking.comparison.runs import ScoredRun, by_method, data_of
from uq_tracking.inference.paired import block_moves, limits_by_blocks
from uq_tracking.metrics.registry import Undefined, every_metric, find

# ---------------------------------------- the reference


def crps_normal(e, s):
    z = e / s
    return s * (
        z * (2 * special.ndtr(z) - 1) + 2 * np.exp(-z * z / 2) / np.sqrt(2 * np.pi) - 1 / np.sqrt(np.pi)
    )


class Reference:
    """Sums of losses over 64 to 127 runs of consecutive samples of equal, dyadic length; fed in order."""

    def __init__(self, losses):
        self.length, self.n, self.rows = 1, 0, np.zeros((0, losses + 1))

    def update(self, losses):
        x = np.column_stack([losses, np.ones(len(losses))])
        place = (self.n + np.arange(len(x))) // self.length
        self.n += len(x)
        size = place[-1] + 1
        rows = np.zeros((size, x.shape[1]))
        rows[: len(self.rows)] = self.rows
        for j in range(x.shape[1]):
            rows[:, j] += np.bincount(place, x[:, j], minlength=size)
        while len(rows) >= 128:
            rows = np.add.reduceat(rows, np.arange(0, len(rows), 2), axis=0)
            self.length *= 2
        self.rows = rows


def cosines(u, nu):
    blocks = len(u)
    j = np.arange(1, nu + 1)[:, None]
    w = np.sqrt(2 / blocks) * np.cos(np.pi * j * (np.arange(blocks) + 0.5) / blocks)
    return w @ u * np.sqrt(blocks)


def freedom(u):
    """As many cosines, but the first, as are not larger than the next ones, of 12, 6 and 3."""
    nu = int(min(12, max(4, len(u) // 4)))
    while nu > 3:
        c = np.square(cosines(u, min(3 * nu, len(u) - 1)))
        if stats.f.sf(c[1:nu].mean() / c[nu:].mean(), nu - 1, len(c) - nu) >= 0.01:
            break
        nu = max(nu // 2, 3)
    return nu


def contributions(sums, count, of=None):
    mean = sums.sum(0) / count.sum()
    u = (sums - np.multiply.outer(count, mean)) / count.sum()
    if of is None:
        return mean, u
    step = 1e-6 * np.maximum(np.abs(mean), 1e-12)
    return of(mean), u * (of(mean + step) - of(mean - step)) / (2 * step)


def paired(one, other, level=0.95, pairs=1, over=()):
    """``over`` are variances of means over runs, with their degrees of freedom."""
    (a, ua), (b, ub) = one, other
    nu, p = freedom(ua - ub), 1 - (1 - level) / 2 / pairs
    square = stats.t.ppf(p, nu) ** 2 * np.mean(np.square(cosines(ua - ub, nu)))
    if over:  # the squares of what each reaches add
        runs = sum(s for s, _ in over)
        square += stats.t.ppf(p, runs**2 / sum(s**2 / f for s, f in over)) ** 2 * runs
    return a - b - np.sqrt(square), a - b + np.sqrt(square)


# ---------------------------------------- sums in blocks


def losses_of(truth, mean, std):
    e = truth - mean
    z = e / std
    return {
        "crps": crps_normal(e, std),
        "nll": 0.5 * z * z + np.log(std) + 0.5 * np.log(2 * np.pi),
        "sq_error": e * e,
        "abs_error": np.abs(e),
        "error": e,
        "z2": z * z,
        "inside_50": np.abs(z) <= stats.norm.ppf(0.75),
        "inside_90": np.abs(z) <= stats.norm.ppf(0.95),
        "inside_95": np.abs(z) <= stats.norm.ppf(0.975),
    }


def rows_of(blocks, names):
    return np.column_stack([*(blocks.loss(name) for name in names), blocks.sums[-1]])


@pytest.mark.parametrize("n", [1, 20, 63, 64, 127, 128, 129, 1000, 70_000])
def test_blocks_are_those_of_the_reference(n):
    data = predictions(n=n)
    losses = losses_of(*data)
    expected = Reference(len(losses))
    for start in range(0, n, 777):
        expected.update(np.column_stack(list(losses.values()))[start : start + 777])
    blocks = uq.evaluate(*data).blocks
    assert blocks.length == expected.length
    assert_allclose(rows_of(blocks, losses), expected.rows, rtol=1e-9, atol=1e-9)


def same(one, other):
    assert one.length == other.length
    assert one.names == other.names
    assert one.has_targets_of(other)
    assert_array_equal(one.lowest, other.lowest)
    assert_allclose(one.sums, other.sums, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"statistics": "exact"}])
def test_a_stream_has_the_blocks_of_the_batch(options):
    data = predictions(n=5000)
    whole = uq.evaluate(*data).blocks
    for size in (1, 333, 5000):
        stream = counted(tuple(part[:1234] for part in data), size, **options)
        for start in range(1234, 5000, 700):
            stream.update(*(part[start : start + 700] for part in data))
        same(stream.compute().blocks, whole)


def test_a_stream_goes_on_after_it_was_stored(tmp_path):
    data = predictions(n=3000)
    half = counted(tuple(part[:1700] for part in data))
    half.save(tmp_path / "half.npz")
    again = uq.Accumulator.load(tmp_path / "half.npz")
    again.update(*(part[1700:] for part in data))
    same(again.compute().blocks, uq.evaluate(*data).blocks)


@pytest.mark.parametrize("chunks", [1000, 1111, (37, 4963)])
def test_chunks_are_put_where_they_belong(chunks):
    da = pytest.importorskip("dask.array")
    data = predictions(n=5000)
    chunks = chunks if isinstance(chunks, int) else (chunks,)
    lazy = uq.evaluate(*(da.from_array(part, chunks=chunks) for part in data))
    same(lazy.blocks, uq.evaluate(*data).blocks)


def test_processes_follow_each_other():
    """Blocks of the longest process are kept as long as there are not too many; no sample is lost."""
    data, ranks = predictions(n=5000), []
    for start, end in ((0, 4000), (4000, 4100), (4100, 5000)):
        ranks.append(counted(tuple(part[start:end] for part in data), 250))
    union = uq.Accumulator()
    for rank in ranks:
        union.merge(rank)
    blocks, whole = union.compute().blocks, uq.evaluate(*data).blocks
    assert blocks.length == 64
    assert 64 <= len(blocks.targets) <= 127
    assert blocks.sums[-1].max() <= 64
    assert_allclose(blocks.sums.sum(axis=1), whole.sums.sum(axis=1), rtol=1e-10)
    assert not blocks.has_targets_of(whole)
    assert_array_equal(blocks.lowest, whole.lowest)
    again = uq.Accumulator()
    for rank in ranks:
        again.merge(rank)
    assert blocks.has_targets_of(again.compute().blocks)


def test_only_samples_that_count_and_their_weights():
    data, keep = predictions(n=900), np.arange(900) % 3 > 0
    part = uq.evaluate(*(each[keep] for each in data)).blocks
    same(uq.evaluate(*data, mask=~keep).blocks, part)
    weights = np.random.default_rng(0).uniform(0.5, 2, 900)
    blocks = uq.evaluate(*data, weights=weights).blocks
    starts = np.arange(0, 900, 8)
    assert_allclose(blocks.sums[-1], np.add.reduceat(weights, starts))
    assert_allclose(blocks.loss("crps"), np.add.reduceat(weights * losses_of(*data)["crps"], starts))


def test_a_copy_in_single_precision_has_the_same_targets():
    data = predictions(n=500)
    single = tuple(part.astype(np.float32) for part in data)
    assert uq.evaluate(*data).blocks.has_targets_of(uq.evaluate(*single).blocks)


def test_what_is_not_finite_is_left_out():
    truth, mean, std = predictions(n=300)
    std[7] = 0
    blocks = uq.evaluate(truth, mean, std).blocks
    assert blocks.loss("nll") is None
    expected = np.where(std > 0, crps_normal(truth - mean, np.where(std > 0, std, 1)), np.abs(truth - mean))
    assert_allclose(blocks.loss("crps").sum(), expected.sum())


@pytest.mark.parametrize("family", [{}, {"family": "laplace"}, {"family": "student_t", "dof": 5}])
def test_means_of_blocks_are_the_scores(family):
    report = uq.evaluate(*predictions(n=2000), **family)
    declared = [metric for metric in every_metric() if metric.task == "regression" and metric.means]
    known = [metric for metric in declared if metric.key in report.scores and "pinball" not in metric.means]
    assert len(known) >= 12
    for metric in known:
        count = report.blocks.sums[-1].sum()
        means = [report.blocks.loss(name).sum() / count for name in metric.means]
        assert_allclose(metric.of_means(*means), report.scores[metric.key], rtol=1e-9, err_msg=metric.key)


def test_forms_bring_their_own_losses():
    truth, mean, std = predictions(n=400)
    draws = mean + std * np.random.default_rng(1).normal(size=(50, 400))
    report = uq.evaluate(uq.Predictions.from_samples(truth, draws))
    for key in ("crps", "rmse", "z_std"):
        (metric,) = find([key])
        block_moves(metric, report.blocks, report.scores[key])  # it would refuse other values
    labels = np.random.default_rng(2).integers(0, 3, 400)
    probs = np.random.default_rng(3).dirichlet(np.ones(3), 400)
    classes = uq.evaluate(labels, probs=probs)
    for key in ("nll", "brier", "accuracy"):
        (metric,) = find([key], "classification")
        assert_allclose(classes.blocks.loss(metric.means[0]).sum() / 400, classes.scores[key])


def test_reports_keep_their_blocks(tmp_path):
    report = uq.evaluate(*predictions(n=900))
    same(uq.Report.from_json(report.to_json()).blocks, report.blocks)
    same(pickle.loads(pickle.dumps(report)).blocks, report.blocks)
    assert len(json.dumps(report.blocks.to_dict())) < 40_000
    report.to_npz(tmp_path / "report.npz")
    same(uq.Report.from_npz(tmp_path / "report.npz").blocks, report.blocks)
    after = uq.evaluate(*predictions(n=900), calibration=predictions(n=900, seed=1)).after()
    assert after.blocks is None


# ---------------------------------------- the test


def several(n=1000, methods=4, seed=0, worse=0.0):
    """Reports of methods on the same targets, some of the errors common to all."""
    rng = np.random.default_rng(seed)
    truth, shared, made = rng.normal(size=n), rng.normal(size=n), {}
    for k in range(methods):
        error = (1 + worse * k) * (0.8 * shared + 0.6 * rng.normal(size=n))
        made[f"m{k}"] = uq.evaluate(truth, truth + error, np.ones(n))
    return made


@pytest.mark.parametrize("key", ["crps", "rmse", "nll", "coverage_90", "mae", "bias"])
@pytest.mark.parametrize("n", [30, 1000])
def test_limits_are_those_of_the_reference(key, n):
    made, (metric,) = several(n, 3, worse=0.2), find([key])
    of = {"rmse": np.sqrt, "coverage_90": lambda mean: np.abs(mean - 0.9), "bias": np.abs}.get(key)
    known = []
    for report in made.values():
        values, u = contributions(report.blocks.loss(metric.means[0])[:, None], report.blocks.sums[-1], of)
        known.append((values[0], u[:, 0]))
        moves = block_moves(metric, report.blocks, report.scores[key])
        assert_allclose(moves, u[:, 0], rtol=1e-5, atol=1e-9)
    found = uq.compare(made, baseline="m0", metrics=[key], level=0.9)
    for k in (1, 2):
        difference = found.difference(f"m{k}", key)
        assert difference.how == "paired blocks"
        assert_allclose(difference.interval, paired(known[k], known[0], 0.9), rtol=1e-5, atol=1e-9)
    ties = {tie.method: tie for tie in found.ties}
    best = min(range(3), key=lambda k: known[k][0])
    tied = {f"m{best}"}
    for name, tie in ties.items():
        joint = paired(known[int(name[1])], known[best], 0.9, pairs=3)
        assert_allclose(tie.interval, joint, rtol=1e-5, atol=1e-9)
        tied |= {name} if joint[0] <= 0 <= joint[1] else set()
    assert set(found.tied_with_best[key]) == tied


def test_slower_differences_have_fewer_cosines():
    rng, seen = np.random.default_rng(0), set()
    for images in (2, 3, 5, 8, 16, 100):
        for size in (100, 22, 64):
            u = np.repeat(rng.normal(size=images), -(-size // images))[:size] + 0.1 * rng.normal(size=size)
            u -= u.mean()
            found = limits_by_blocks(0.1, u, 0.95, 100, None)
            assert_allclose((found.low, found.high), paired((0.1, u), (0.0, 0 * u)), rtol=1e-9)
            seen.add(freedom(u))
    assert seen >= {3, 6, 12}
    low, high = limits_by_blocks(0.0, np.zeros(64), 0.95, 100, None)[1:3]
    assert (low, high) == (0.0, 0.0)


def test_a_coverage_that_meets_its_level_varies_all_the_same():
    truth = np.concatenate([np.zeros(19), [9.0]])
    met = uq.evaluate(truth, np.zeros(20), np.ones(20))
    all_inside = uq.evaluate(truth, truth, np.ones(20))
    found = uq.compare({"met": met, "all": all_inside}, baseline="met").difference("all", "coverage_95")
    assert_allclose(found.value, 0.05)
    assert found.verdict == "indistinguishable"


def test_equal_losses_tie():
    report = several(methods=1)["m0"]
    again = replace(report, provenance={**report.provenance, "digest": "another"})
    found = uq.compare({"a": report, "b": again}, baseline="a").difference("b", "crps")
    assert (found.value, found.interval, found.verdict) == (0.0, (0.0, 0.0), "indistinguishable")
    assert uq.compare({"a": report, "b": again}).answer[0] == "a and b are equal by crps."


# ---------------------------------------- when, and what is said


@pytest.mark.slow
def test_it_says_which_is_better_and_by_how_much():
    made = several(4000, 4, seed=3)
    names = ("gaussian-process", "learned-error", "bagging", "multi-inits")
    rng = np.random.default_rng(5)
    truth = rng.normal(size=4000)
    made = {
        name: uq.evaluate(truth, truth + scale * rng.normal(size=4000), np.full(4000, scale), unit="m")
        for name, scale in zip(names, (1.0, 1.3, 1.6, 1.6), strict=True)
    }
    found = uq.compare(made)
    first, order = found.answer
    assert first.startswith("gaussian-process is better than learned-error by 0.1")
    assert " m crps (" in first
    assert first.endswith("; bagging and multi-inits cannot be told apart.") or first.endswith(
        "; multi-inits and bagging cannot be told apart."
    )
    assert order == (
        "Samples are taken in the order they were logged; if they were shuffled, only groups= shows how they depend."
    )
    text = " ".join(str(found).split())
    assert text.index(first) < text.index("gaussian-process:")
    page = found.to_html()
    assert page.index(first) < page.index('id="verdicts"')
    assert uq.Comparison.from_json(found.to_json()) == found
    assert "no intervals of calibration_error, ence" in text


def test_few_samples_are_too_few_to_allow_for_dependence():
    answer = uq.compare(several(100, 2)).answer
    assert answer[0] in ("m0 and m1 cannot be told apart by crps.", "m1 and m0 cannot be told apart by crps.")
    assert answer[1].endswith("100 samples are too few to allow for dependence.")


def refused(made):
    found = uq.compare(made, baseline=next(iter(made)))
    assert {difference.how for difference in found.differences} == {"none"}
    return " ".join(found.answer)


def test_reasons_of_refusal():
    truth, mean, std = predictions(n=500)
    report = uq.evaluate(truth, mean, std)
    turned = uq.evaluate(truth[::-1], mean[::-1] + 0.1, std[::-1])
    assert "for b: the targets of a in another order; log all in the same order, or with groups=" in refused(
        {"a": report, "b": turned}
    )
    other = uq.evaluate(*predictions(n=500, seed=1))
    assert "for b: other targets than a" in refused({"a": report, "b": other})
    few = [uq.evaluate(truth[:19], mean[:19] + k, std[:19]) for k in range(2)]
    assert "for a and b: 19 samples are fewer than 20" in refused({"a": few[0], "b": few[1]})
    old = json.loads(uq.evaluate(truth, mean + 0.1, std).to_json())
    del old["blocks"]
    old = uq.Report.from_json(json.dumps(old))
    assert "for b: no sums of consecutive samples are stored; rescore where predictions are" in refused(
        {"a": report, "b": old}
    )


def test_scores_that_are_no_means_or_of_other_settings_are_refused():
    made = several(500, 2)
    found = uq.compare(made, baseline="m0")
    for key in ("ence", "spearman", "ause_rmse", "pit_ks"):
        assert found.difference("m1", key) is None or found.difference("m1", key).how == "none"
    report = made["m0"]
    (crps,) = find(["crps"])
    with pytest.raises(Undefined, match="other settings"):
        block_moves(crps, report.blocks, 1.1 * report.scores["crps"])


@pytest.mark.slow
def test_groups_keep_their_own_way():
    truth, mean, std = predictions(n=600)
    groups = np.repeat(np.arange(30), 20)
    made = {
        name: uq.evaluate(truth, mean + shift, std, groups=groups) for name, shift in (("a", 0), ("b", 0.3))
    }
    assert uq.compare(made, baseline="a").difference("b", "crps").how == "paired groups"
    mixed = uq.compare({**made, "c": uq.evaluate(truth, mean + 0.6, std)}, baseline="a")
    assert mixed.difference("c", "crps").how == "none"
    reason = "No paired differences between a and b, scored with groups=, and c, scored without: log them all"
    assert any(sentence.startswith(reason) for sentence in mixed.answer)
    few = {name: uq.evaluate(truth, mean + k, std, groups=groups // 6) for k, name in enumerate("ab")}
    reason = "No paired differences for a and b: 5 groups are too few for an interval, which needs 8."
    assert reason in refused(few)
    time = np.arange(len(truth))
    same = {name: uq.evaluate(truth, truth + np.cumsum(truth), std, order=time) for name in "ab"}
    assert "independent samples is too few for an interval; pass a longer one." in refused(same)
    lost = uq.compare({**made, "a": replace(made["a"], left_out=None)}).answer
    assert "No paired differences for a: no scores without each group are stored; rescore." in lost


def test_seeds_are_averaged_and_their_spread_counts():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=800)

    def seeds(scale, runs):
        return [uq.evaluate(truth, truth + scale * rng.normal(size=800), np.ones(800)) for _ in range(runs)]

    for sizes in ((1, 2), (2, 2), (4, 2), (3, 5)):
        made = {"a": seeds(1, sizes[0]), "b": seeds(1.3, sizes[1])}
        found = uq.compare(made, baseline="a").difference("b", "crps")
        assert found.how == "paired blocks"
        moves, scores = {}, [[report.scores["crps"] for report in reports] for reports in made.values()]
        for name, reports in made.items():
            parts = [
                contributions(report.blocks.loss("crps")[:, None], report.blocks.sums[-1])
                for report in reports
            ]
            moves[name] = (np.mean([v[0] for v, _ in parts]), np.mean([u[:, 0] for _, u in parts], axis=0))
        over = [(np.var(each, ddof=1) / len(each), len(each) - 1) for each in scores if len(each) > 1]
        if min(sizes) < 3:  # taken to vary alike
            squares, freedom = sum(np.var(each) * len(each) for each in scores), sum(sizes) - 2
            lone = 4 if min(sizes) == 1 else 1  # it may be the bad run
            over = [(lone * squares / freedom * sum(1 / size for size in sizes), freedom)]
        assert_allclose(found.interval, paired(moves["b"], moves["a"], over=over), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(3, 3), (2, 2), (1, 5)])
@pytest.mark.parametrize("between", [0.02, 1.0])
def test_equal_methods_are_alike_whether_seeds_or_samples_vary(sizes, between):
    """Where seeds hardly differ, samples decide; where they differ much, seeds do; 5 % of sets, of 120 at most 13."""
    rng, apart = np.random.default_rng(5), 0
    for _ in range(120):
        truth, made = rng.normal(size=100), {}
        for name, runs in zip("ab", sizes, strict=True):
            error = rng.normal(size=100)
            made[name] = [
                uq.evaluate(truth, truth + error + between * rng.normal(), np.ones(100), metrics=["crps"])
                for _ in range(runs)
            ]
        apart += (
            uq.compare(made, baseline="a", maps=False).difference("b", "crps").verdict != "indistinguishable"
        )
    assert apart <= 13


@pytest.mark.parametrize("n", [60, 15])
def test_folds_are_paired(n):
    rng = np.random.default_rng(0)
    hard, made = np.array([1, 1.2, 1.5, 2, 2.5]), {"a": [], "b": []}
    folds = [(rng.normal(size=n + k), rng.normal(size=n + k)) for k in range(len(hard))]
    for (truth, error), scale in zip(folds, hard, strict=True):
        for name, factor in (("a", 1.0), ("b", 1.2)):
            made[name].append(uq.evaluate(truth, truth + factor * scale * error, np.full(len(truth), scale)))
    compared = uq.compare({**made, "b": made["b"][::-1]}, baseline="a")
    assert compared.warnings == ()
    assert "No paired differences" not in " ".join(compared.answer)
    found = compared.difference("b", "crps")
    gap = [b.scores["crps"] - a.scores["crps"] for a, b in zip(made["a"], made["b"], strict=True)]
    assert (found.how, found.verdict) == ("paired folds", "worse")
    assert_allclose(found.interval, stats.ttest_1samp(gap, 0).confidence_interval())
    fewer = uq.compare({**made, "b": made["b"][:4]}, baseline="a")
    assert fewer.difference("b", "crps").how == "over runs"
    assert fewer.warnings[0].startswith("Scored on different data")
    twice = uq.compare({**made, "b": [*made["b"], uq.evaluate(folds[0][0], folds[0][1], np.ones(n))]})
    assert twice.warnings[0].startswith("Scored on different data")


def test_a_fold_that_one_method_lacks_is_named_alone():
    rng, made = np.random.default_rng(0), {"a": [], "b": []}
    for fold in rng.normal(size=(5, 200)):
        made["a"].append(uq.evaluate(fold, fold + rng.normal(size=200), np.ones(200)))
        made["b"].append(uq.evaluate(fold, fold + 1.5 * rng.normal(size=200), np.ones(200)))
    del made["b"][2]
    found = uq.compare(made, maps=False)
    (warning,) = found.warnings
    assert warning.startswith("Not all methods were scored on the targets of a (3) (")
    assert found.answer[0].startswith("a is better than b by")
    assert "No paired" not in " ".join(found.answer)


def test_each_of_two_test_sets_is_judged_and_a_stale_run_is_named_once():
    rng, made = np.random.default_rng(0), {}
    for names in ("ab", "cd"):
        truth = rng.normal(size=400)
        for name, scale in zip(names, (1.0, 1.5), strict=True):
            made[name] = uq.evaluate(truth, truth + scale * rng.normal(size=400), np.ones(400))
    found = uq.compare(made, maps=False)
    assert [sentence[:20] for sentence in found.answer[:2]] == [
        "a is better than b b",
        "c is better than d b",
    ]
    assert found.ranks["crps"] == {"a": 1, "b": 2, "c": 1, "d": 2}
    assert found.warnings[0].startswith("Scored on different targets (ranked apart). mean")
    stale = replace(made["d"], scores={key: value / 3 for key, value in made["d"].scores.items()})
    del made["c"]
    said = uq.compare({**made, "b": several(400, 2)["m1"], "d": stale}, maps=False).answer
    assert sum("cannot be told apart" in sentence or "is better" in sentence for sentence in said) <= 1


def test_splits_and_folds_are_paired_by_themselves():
    rng = np.random.default_rng(3)
    val, test = rng.normal(size=(2, 300))
    error = rng.normal(size=300)

    def runs(scale, *truths):
        return [uq.evaluate(truth, truth + scale * error, np.ones(300)) for truth in truths]

    logged = [
        ScoredRun(f"{name} [{split}]", f"{name} [{split}]", None, runs(scale, truth)[0], split)
        for name, scale in (("a", 1.0), ("b", 1.3))
        for split, truth in (("val", val), ("test", test))
    ]
    left, blocks, refused = paired_by(logged, data_of(logged))
    assert (left, sorted(blocks), refused) == ({}, sorted(run.label for run in logged), [])
    folds = rng.normal(size=(3, 300))
    made = {"a": runs(1.0, *folds), "b": runs(1.3, *folds)}
    found = uq.compare(made, baseline="a", metrics=["crps"])
    assert found.difference("b", "crps").how == "paired folds"
    assert not any("No paired" in sentence for sentence in found.answer)
    few = {
        "few": uq.evaluate(val[:10], val[:10], np.ones(10)),
        "a": runs(1.0, val)[0],
        "b": runs(1.3, val)[0],
    }
    found = uq.compare(few, baseline="a", metrics=["crps"])
    assert found.difference("b", "crps").how == "paired blocks"
    assert "No paired differences for few: 10 samples are fewer than 20." in found.answer


def test_a_best_method_that_cannot_be_paired_does_not_hide_the_others():
    rng = np.random.default_rng(2)
    truth, error = rng.normal(size=(2, 400))
    made = {"a": (1, 400), "b": (1.3, 400), "c": (0.5, 390)}
    made = {
        name: uq.evaluate(truth[:n], (truth + k * error)[:n], np.ones(n)) for name, (k, n) in made.items()
    }
    first, *rest = uq.compare(made, metrics=["crps"]).answer
    assert first.startswith("a is better than b by 0.")
    assert "No paired differences for c: other targets than a." in rest


def test_infinite_scores_and_other_weights_are_named():
    rng = np.random.default_rng(2)
    truth, error = rng.normal(size=(2, 400))
    sure = np.where(np.arange(400)[:, None] == 7, [0.0, 1.0], [0.6, 0.4])
    made = {
        name: uq.evaluate(np.zeros(400, dtype=int), probs=probs, metrics=["nll"])
        for name, probs in (("a", np.full((400, 2), 0.5)), ("b", sure))
    }
    assert uq.compare(made).answer == ("No finite nll of b: 0.0025 of the true classes have probability 0.",)
    weights = rng.uniform(1, 2, 400)
    a, b, c = (
        uq.evaluate(truth, truth + k * error, np.ones(400), weights=each)
        for k, each in ((1.0, None), (1.1, np.full(400, 2.0)), (1.2, weights))
    )
    found = uq.compare({"a": a, "b": b, "c": c}, baseline="a")
    assert found.difference("b", "crps").how == "paired blocks"
    assert "No paired differences for c: other weights than a." in found.answer


@pytest.mark.slow
def test_logged_runs_and_old_ones_that_are_rescored(tmp_path):
    place = f"dir:{tmp_path / 'runs'}"
    truth, mean, std = predictions(n=700)
    for name, shift in (("a", 0.0), ("b", 0.5)):
        uq.log(truth, mean + shift, std, run=place, method=name)
    found = uq.compare(place, baseline="a")
    assert found.difference("b", "crps").how == "paired blocks"
    for path in (tmp_path / "runs").rglob("report.json"):
        values = json.loads(path.read_text())
        del values["blocks"]
        path.write_text(json.dumps(values))
    assert uq.compare(place, baseline="a").difference("b", "crps").how == "none"
    summary = uq.rescore(place)
    assert {outcome.source for outcome in summary.outcomes} == {"predictions"}
    again = uq.compare(place, baseline="a").difference("b", "crps")
    assert_allclose(again.interval, found.difference("b", "crps").interval, rtol=1e-9)
    uq.rescore(place, alpha=0.8)  # from statistics, which know no order
    assert uq.compare(place, baseline="a").difference("b", "crps").interval == again.interval


def seeds_of(truth, scale, rng, runs=3):
    return [
        uq.evaluate(truth, truth + scale * rng.normal(size=len(truth)), np.ones(len(truth)))
        for _ in range(runs)
    ]


def test_the_spread_of_seeds_says_nothing_of_methods_on_other_targets():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 300))
    found = uq.compare(
        {"a": seeds_of(one, 1, rng), "b": seeds_of(other, 2, rng), "c": seeds_of(one, 2, rng)}, baseline="a"
    )
    assert found.difference("b", "crps").verdict == "unknown"
    assert found.difference("c", "crps").verdict == "worse"
    assert ELSEWHERE in found.answer
    folds = [seeds_of(part, 1, rng, 1)[0] for part in rng.normal(size=(6, 300))]
    apart = uq.compare({"a": folds[:3], "b": folds[3:]}, baseline="a")  # their spread is that of samples too
    assert apart.difference("b", "crps").how == "over runs"


@pytest.mark.slow
def test_skill_is_the_share_of_the_baselines_loss_with_an_interval():
    made = several(2000, 3, seed=1, worse=0.2)
    found = uq.compare(made, baseline="m1")
    one, other = (
        contributions(made[name].blocks.loss("crps"), made[name].blocks.sums[-1]) for name in ("m0", "m1")
    )
    ratio = one[0] / other[0]
    low, high = paired((ratio, one[1] / other[0]), (0.0, ratio * other[1] / other[0]), pairs=2)
    skill = found.difference("m0", "crps_skill")
    assert_allclose(skill.value, 1 - ratio, rtol=1e-9)
    assert_allclose(skill.interval, (1 - high, 1 - low), rtol=1e-6)
    assert (skill.how, skill.verdict) == ("paired blocks", "better")
    assert found.difference("m2", "crps_skill").verdict == "worse"
    ends = " to ".join(f"{100 * end:.2g}" for end in skill.interval)
    said = f"crps skill against m1: m0 +{100 * skill.value:.2g} % ({ends} %), m2 -"
    assert any(sentence.startswith(said) for sentence in found.answer)
    cell = found.difference_table["m0"]["crps_skill"]
    assert_allclose((cell.value, *cell.interval), [100 * part for part in (skill.value, *skill.interval)])
    assert uq.Comparison.from_json(found.to_json()) == found
    assert uq.compare(made, baseline="m1", metrics=["rmse"]).difference("m0", "crps_skill") is None


def test_skill_over_runs_is_that_of_the_mean_loss():
    rng = np.random.default_rng(3)
    truth = rng.normal(size=500)
    made = {"a": seeds_of(truth, 1, rng, 4), "b": seeds_of(truth, 1.5, rng, 5)}
    mine, theirs = (np.array([report.scores["crps"] for report in made[name]]) for name in "ab")
    made = {
        name: [replace(report, counted_blocks=None, samples=None) for report in made[name]] for name in made
    }
    skill = uq.compare(made, baseline="b").difference("a", "crps_skill")
    ratio = mine.mean() / theirs.mean()
    low, high = stats.ttest_ind(mine, ratio * theirs, equal_var=False).confidence_interval()
    assert_allclose(skill.value, 1 - ratio)
    assert_allclose(skill.interval, (1 - ratio - high / theirs.mean(), 1 - ratio - low / theirs.mean()))


# ---------------------------------------- simulation


def independent(rng, n):
    return rng.normal(size=n)


def autoregressive(rng, n, phi=0.9):
    from scipy.signal import lfilter

    start = rng.normal()
    noise = np.sqrt(1 - phi**2) * rng.normal(size=n)
    return lfilter([1.0], [1.0, -phi], noise, zi=[phi * start])[0]


def images(rng, n, common=0.05):
    """Twenty images, whose samples have 5 % of their variance in common."""
    return np.sqrt(common) * np.repeat(rng.normal(size=20), n // 20) + np.sqrt(1 - common) * rng.normal(
        size=n
    )


def runs_of(rng, draw, n, methods, scale=1.0):
    """Equal methods, or the second worse: errors of one law, independent between methods."""
    truth, made = rng.normal(size=n), []
    for k in range(methods):
        error = draw(rng, n) * (scale if k == 1 else 1.0)
        report = uq.evaluate(truth, truth + error, np.ones(n), metrics=["crps"])
        made.append(ScoredRun(f"m{k}", f"m{k}", None, report))
    return made


def classes_of(rng, draw, n, methods, scale=1.0):
    """Equal classifiers, or the second worse: the true log odds with errors of one law, the same for all classes."""
    logits, made = rng.normal(size=(n, 3)), []
    odds = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (rng.uniform(size=(n, 1)) > odds.cumsum(axis=1)).sum(axis=1).clip(max=2)
    for k in range(methods):
        error = np.stack([draw(rng, n) for _ in range(3)], axis=1) * (scale if k == 1 else 1.0)
        weights = np.exp(logits + 0.7 * error)
        report = uq.evaluate(labels, probs=weights / weights.sum(axis=1, keepdims=True), metrics=["brier"])
        made.append(ScoredRun(f"m{k}", f"m{k}", None, report))
    return made


def judged(made):
    """Differences of all methods to the best, as `compare` finds them."""
    _, blocks, problems = paired_by(made, {})
    assert not problems
    (metric,) = find(list(made[0].report.scores), made[0].report.task)
    return Pairs(by_method(made), {}, blocks, 0.95).ties(metric)


def share(draw, n, methods, repeats, seed, scale=1.0, of=runs_of):
    """Share of the sets in which not all methods are tied."""
    rng = np.random.default_rng(seed)
    found = [judged(of(rng, draw, n, methods, scale)) for _ in range(repeats)]
    assert all(tie.how == "paired blocks" for ties in found for tie in ties)
    return np.mean([any(tie.verdict == "worse" for tie in ties) for ties in found])


def few_images(rng, n):
    """Five images, whose samples have a third of their variance in common."""
    return np.sqrt(1 / 3) * np.repeat(rng.normal(size=5), n // 5) + np.sqrt(2 / 3) * rng.normal(size=n)


LAWS = {"independent": independent, "autoregressive": autoregressive, "images": images}
"""Rejections of equal methods at 5 % with 1000 and 10,000 samples: .05 to .07 in each; 20 equal ones tied in 93 %."""


IS_SHORT = bool(os.environ.get("SHORT"))
SIZES = [1000] if IS_SHORT else [1000, 10_000]
"""Samples of a set in `make simulate SHORT=1`, and in `make simulate`."""
OF_TWENTY = ["autoregressive"] if IS_SHORT else list(LAWS)
"""Laws under which twenty methods are simulated."""


@pytest.mark.parametrize(("law", "pinned"), [("independent", 3), ("autoregressive", 1), ("images", 2)])
def test_equal_methods_are_rarely_told_apart(law, pinned):
    assert round(40 * share(LAWS[law], 1000, 2, 40, 1)) == pinned


@pytest.mark.parametrize("law", LAWS)
def test_differences_of_equal_methods_are_not_said_to_change_along_the_rows(law):
    rng = np.random.default_rng(3)
    for _ in range(10):
        made = {run.label: run.report for run in runs_of(rng, LAWS[law], 1000, 2)}
        assert "if rows are independent" not in " ".join(uq.compare(made, maps=False).answer)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "pinned"), [("independent", 2), ("autoregressive", 1), ("images", 1)])
def test_equal_classifiers_are_rarely_told_apart(law, pinned):
    assert round(40 * share(LAWS[law], 1000, 2, 40, 1, of=classes_of)) == pinned


@pytest.mark.simulation
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("law", LAWS)
def test_two_equal_classifiers_are_told_apart_in_five_percent(law, n):
    assert share(LAWS[law], n, 2, 1000, 2, of=classes_of) <= 0.085


@pytest.mark.simulation
@pytest.mark.parametrize("law", OF_TWENTY)
def test_twenty_equal_classifiers_are_tied_in_93_percent(law):
    assert share(LAWS[law], 1000, 20, 300, 3, of=classes_of) <= 0.07 + 0.03


@pytest.mark.simulation
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("law", LAWS)
def test_two_equal_methods_are_told_apart_in_five_percent(law, n):
    assert share(LAWS[law], n, 2, 1000, 2) <= 0.085


@pytest.mark.simulation
@pytest.mark.parametrize("n", SIZES)
def test_equal_methods_on_five_images_are_told_apart_in_few_sets(n):
    assert share(few_images, n, 2, 1000, 2) <= {1000: 0.16, 10_000: 0.085}[n]


@pytest.mark.simulation
@pytest.mark.parametrize("law", OF_TWENTY)
def test_twenty_equal_methods_are_tied_in_93_percent(law):
    assert share(LAWS[law], 1000, 20, 300, 3) <= 0.07 + 0.03


@pytest.mark.simulation
def test_power():
    """A difference that a t test on samples finds in 80 % of sets is found in 72 %, by the reference."""
    n, scale = 1000, 1.1
    rng, found, by_t = np.random.default_rng(4), [], []
    for _ in range(1000):
        made = runs_of(rng, independent, n, 2, scale)
        (tie,) = judged(made)
        found.append(tie.verdict == "worse" and tie.reference == "m0")
        gap = [made[k].report for k in (0, 1)]
        errors = [report.samples.rows["mean"] - report.samples.rows["target"] for report in gap]
        losses = [crps_normal(error, np.ones(n)) for error in errors]
        by_t.append(stats.ttest_rel(losses[1], losses[0]).pvalue < 0.05)
    assert np.mean(found) >= 0.9 * np.mean(by_t) - 0.03, (np.mean(found), np.mean(by_t))
    assert 0.6 < np.mean(by_t) < 0.95


def test_answer_speaks_of_the_first_score_that_has_one_and_keeps_names_on_a_line():
    rng = np.random.default_rng(0)
    truth, error = rng.normal(size=(2, 500))
    long = "ensemble of networks " * 9
    reports = {
        f"{long}one\nline": uq.evaluate(truth, truth + error, np.ones(500)),
        f"{long}two": uq.evaluate(truth, truth + 2 * error, np.ones(500)),
    }
    sentence, _ = uq.compare(reports, metrics=["medae", "mae"]).answer
    assert sentence.startswith("ensemble of networks ensembl")
    assert "one line is better than ensemble of networks" in sentence
    assert " mae (" in sentence
    assert len(sentence) < 250
    known = uq.compare(reports, metrics=["r2", "medae"]).answer
    assert known == ("No differences by r2 and medae: not means of losses, so they need groups=.",)
