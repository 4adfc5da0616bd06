"""A call for a few metrics sorts only what they need; the rest comes from columns that the report owns."""

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.statistics.statistics import Statistics

N = 3000


def arrays(dtype=np.float64, n=N):
    rng = np.random.default_rng(7)
    std = rng.gamma(4, 0.5, n).astype(dtype)
    mean = rng.normal(10, 3, n).astype(dtype)
    return [(mean + 1.3 * std * rng.standard_t(6, n)).astype(dtype), mean, std]


def everything(report):
    return {**report.to_dict(), "scores": None, "undefined": None}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("metrics", [["rmse"], ["crps", "ence"], None])
def test_what_is_asked_later_does_not_see_what_became_of_the_arrays(metrics, weighted, masked, dtype):
    options = {}
    if masked:
        options["mask"] = np.arange(N) % 7 == 0
    if weighted:
        options["weights"] = np.random.default_rng(1).gamma(2, 1, N)
    expected = uq.evaluate(
        *arrays(dtype), metrics=metrics, **{name: array.copy() for name, array in options.items()}
    )
    given = arrays(dtype)
    report = uq.evaluate(*given, metrics=metrics, **options)
    for array in (*given, *options.values()):
        array[:] = 1
    assert everything(report) == everything(expected)


@pytest.mark.parametrize("form", ["draws", "quantiles", "covariance"])
def test_the_same_for_other_forms(form):
    y, mean, std = arrays(n=300)
    make, given = {
        "draws": (
            uq.Predictions.from_samples,
            [y, mean + std * np.random.default_rng(3).normal(size=(20, 300))],
        ),
        "quantiles": (
            uq.Predictions.from_quantiles,
            [y, np.stack([mean - std, mean, mean + std], -1), np.asarray([0.1, 0.5, 0.9])],
        ),
        "covariance": (
            uq.Predictions.from_covariance,
            [y.reshape(-1, 3), mean.reshape(-1, 3), np.tile(np.eye(3), (100, 1, 1))],
        ),
    }[form]
    expected = uq.evaluate(make(*(array.copy() for array in given)), metrics=["mae"])
    report = uq.evaluate(make(*given), metrics=["mae"])
    for array in given:
        array[:] = 0.5
    assert everything(report) == everything(expected)


@pytest.mark.parametrize(
    "key", ["rmse", "mae", "bias", "r2", "nll", "crps", "quadratic_score", "mean_std", "z_std"]
)
def test_sums_over_samples_sort_nothing(key):
    data = arrays(n=40_000)
    report = uq.evaluate(*data, metrics=[key])
    assert not any(order.is_sorted for order in report.statistics.orders.values())
    assert report.scores[key] == pytest.approx(uq.evaluate(*data).scores[key], rel=1e-12)


def test_a_single_order_is_sorted_for_a_metric_that_needs_no_other():
    orders = uq.evaluate(*arrays(), metrics=["medae"]).statistics.orders
    assert {name for name, order in orders.items() if order.is_sorted} == {"abs_error"}


@pytest.mark.parametrize("large", [1000, 10**6])
def test_few_metrics_and_all_agree_in_float32(large, monkeypatch):
    monkeypatch.setattr("uq_tracking.statistics.exact.LARGE", large)
    data = arrays(np.float32, 20_000)
    whole = uq.evaluate(*data).scores
    for key in ("rmse", "crps", "nll", "ause_rmse", "spearman", "interval_score"):
        assert uq.evaluate(*data, metrics=[key]).scores[key] == pytest.approx(
            whole[key], rel=1e-7 if large < N else 1e-12
        )


def test_the_digest_is_that_of_the_predictions():
    data = uq.Predictions(*arrays(np.float32), mask=np.arange(N) % 5 == 0)
    assert uq.evaluate(data, metrics=["rmse"]).provenance["digest"] == data.digest()
    assert uq.evaluate(data).provenance["digest"] == data.digest()


def test_lazy_statistics_are_stored_and_pickled_like_others(tmp_path):
    import pickle

    lazy, whole = (uq.evaluate(*arrays(), metrics=metrics) for metrics in (["rmse"], None))
    copied = pickle.loads(pickle.dumps(lazy))
    for statistics in (lazy.statistics, copied.statistics):
        stored, expected = statistics.to_arrays(), whole.statistics.to_arrays()
        assert stored.keys() == expected.keys()
        for name, values in expected.items():
            if values.dtype.kind == "f":
                np.testing.assert_allclose(stored[name], values, rtol=1e-12)
            else:
                np.testing.assert_array_equal(stored[name], values)
    assert isinstance(copied.statistics, Statistics)


def test_classes_too():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 2000)
    labels = rng.integers(0, 4, 2000)
    options = {"metrics": ["accuracy"]}
    expected = uq.evaluate(labels.copy(), probs=probs.copy(), **options)
    report = uq.evaluate(labels, probs=probs, **options)
    labels[:], probs[:] = 0, 0.25
    assert everything(report) == everything(expected)


def classes(n=3000):
    probs = np.random.default_rng(0).dirichlet(np.ones(5), n)
    return np.random.default_rng(1).integers(0, 5, n), probs


OF_TOP = [
    "accuracy",
    "nll",
    "ece",
    "mce",
    "ace",
    "miou",
    "mdice",
    "aurc",
    "failure_auroc",
    "augrc",
    "risk_at_80",
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_metrics_of_the_top_label_read_nothing_else(dtype, monkeypatch):
    labels, probs = classes()
    probs = probs.astype(dtype)
    whole = uq.evaluate(labels, probs=probs).scores
    monkeypatch.setattr("uq_tracking.inputs.forms.probabilities.whole_columns", None)
    monkeypatch.setattr("uq_tracking.statistics.classification.ClassSums.add", None)
    report = uq.evaluate(labels, probs=probs, metrics=OF_TOP)
    assert report.scores == {key: whole[key] for key in OF_TOP}
    stream = uq.Accumulator(metrics=OF_TOP)
    for part in np.split(np.arange(len(labels)), 3):
        stream.update(labels[part], probs=probs[part])
    assert stream.compute().scores == pytest.approx(report.scores, abs=2e-3)
    assert stream.compute().scores["ece"] == pytest.approx(whole["ece"], abs=2e-3)


def test_what_was_not_read_is_undefined_with_the_reason():
    labels, probs = classes(300_000)
    report = uq.evaluate(labels, probs=probs, metrics=["ece"])
    assert "metrics= asked for no more than the top label" in " ".join(report.verdict.caveats)
    assert "sparsification_brier" not in report.curves
    again = uq.evaluation.scoring.score(report.statistics)
    assert again.scores["ece"] == report.scores["ece"]
    for key in ("brier", "entropy_mean", "ause_brier"):
        assert "only the top label" in again.undefined[key]
    assert "metrics of the top label alone" in again.undefined["cwece"]


@pytest.mark.parametrize("groups", [None, np.repeat([f"site {k}" for k in range(30)], 100)])
def test_a_verdict_is_the_same_whatever_is_scored(groups):
    labels, probs = classes()
    asked = (uq.evaluate(labels, probs=probs, metrics=metrics, groups=groups) for metrics in (["ece"], None))
    assert len({str(report.verdict) for report in asked}) == 1


@pytest.mark.parametrize(
    "more", [{"metrics": ["ece", "brier"]}, {"metrics": ["ece"], "by": np.arange(3000) % 2}, {}]
)
def test_all_probabilities_are_read_where_something_needs_them(more):
    labels, probs = classes()
    assert "brier" in uq.evaluate(labels, probs=probs, **more).statistics.orders


def test_a_call_that_logs_reads_all_that_its_verdict_needs(tmp_path):
    labels, probs = classes()
    report = uq.log(labels, probs=probs, metrics=["ece"], run=f"dir:{tmp_path}")
    assert report.statistics.classes is not None
