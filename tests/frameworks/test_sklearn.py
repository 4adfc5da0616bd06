from __future__ import annotations

import json
import pickle
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
)
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold, cross_val_score, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import uq_tracking as uq
from uq_tracking.errors import (
    InvalidValueError,
    SettingsError,
    ShapeError,
    TrackingWarning,
    UnknownMetricError,
)
from uq_tracking.frameworks.sklearn import (
    cross_predictions,
    evaluate_estimator,
    log_estimator,
    predict,
    scorer,
)
from uq_tracking.tracking.resolve import open_store

RNG = np.random.default_rng(5)
X = RNG.uniform(-2, 2, (200, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=200)
Y2 = np.stack([Y, 100 * Y + 20], axis=1)
NEW = RNG.uniform(-2, 2, (50, 3))
TRUTH = NEW @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=50)
GP = GaussianProcessRegressor(RBF(2.0) + WhiteKernel(0.1), optimizer=None)


class Told(BaseEstimator):
    """Predicts given numbers as a quantile."""

    def __init__(self, quantile, values):
        self.quantile, self.values = quantile, values

    def predict(self, X):
        return np.array(self.values)


@pytest.mark.parametrize("estimator", [GP, BayesianRidge(), ARDRegression()], ids=lambda e: type(e).__name__)
def test_an_estimator_that_returns_its_std_is_taken_at_its_word(estimator):
    estimator.fit(X, Y)
    assert_allclose(predict(estimator, NEW), estimator.predict(NEW, return_std=True), rtol=0)


@pytest.mark.parametrize("features", [np.asarray, csr_matrix, pd.DataFrame], ids=["array", "sparse", "frame"])
@pytest.mark.parametrize(
    "ensemble",
    [
        RandomForestRegressor(8, random_state=0),
        ExtraTreesRegressor(8, random_state=0),
        BaggingRegressor(DecisionTreeRegressor(), 8, max_features=2, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_the_std_of_an_ensemble_is_the_spread_of_its_members(ensemble, features):
    ensemble.fit(features(X).rename(columns=str) if features is pd.DataFrame else features(X), Y)
    new = features(NEW).rename(columns=str) if features is pd.DataFrame else features(NEW)
    mean, std = predict(ensemble, new)
    seen = getattr(ensemble, "estimators_features_", [slice(None)] * 8)
    members = [m.predict(NEW[:, f]) for m, f in zip(ensemble.estimators_, seen, strict=True)]
    assert_allclose(mean, ensemble.predict(new), rtol=1e-12)
    assert_allclose(std, np.std(members, axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "ensemble",
    [
        RandomForestRegressor(2),
        ExtraTreesRegressor(2),
        BaggingRegressor(n_estimators=2),
        BaggingRegressor(n_estimators=2, max_features=1),
        VotingRegressor([("a", BayesianRidge()), ("b", RandomForestRegressor(2))]),
    ],
    ids=["forest", "extra trees", "bagging", "bagging of columns", "voting"],
)
def test_an_ensemble_takes_only_the_columns_of_its_fit(ensemble):
    ensemble.fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    new = pd.DataFrame(NEW, columns=["a", "b", "c"])
    for wrong in (new[["b", "a", "c"]], new.rename(columns={"a": "d"}), new.assign(d=1.0)):
        with pytest.raises(ValueError, match="feature names should match"):
            evaluate_estimator(ensemble, wrong, TRUTH)
    with (
        pytest.warns(UserWarning, match="does not have valid feature names"),
        pytest.raises(ValueError, match="X has 6 features"),
    ):
        predict(ensemble, np.hstack([NEW, NEW]))


def test_members_that_know_their_own_std_add_it():
    voting = VotingRegressor(
        [("a", BayesianRidge()), ("b", BayesianRidge(tol=1e-1)), ("c", GP)], weights=[2, 0, 1]
    )
    mean, std = predict(voting.fit(X, Y), NEW)
    (m1, s1), (m2, s2) = (voting.estimators_[k].predict(NEW, return_std=True) for k in (0, 2))
    assert_allclose(mean, voting.predict(NEW), rtol=1e-12)
    assert_allclose(
        std**2, (2 * s1**2 + s2**2) / 3 + (2 * (m1 - mean) ** 2 + (m2 - mean) ** 2) / 3, rtol=1e-9
    )


def test_an_ensemble_is_the_mixture_that_predictions_from_samples_are():
    bagging = BaggingRegressor(BayesianRidge(), 6, random_state=0).fit(X, Y)
    means, stds = zip(*(member.predict(NEW, return_std=True) for member in bagging.estimators_), strict=True)
    mixture = uq.Predictions.from_ensemble(TRUTH, means, stds)
    assert_allclose(predict(bagging, NEW), [mixture.mean, mixture.std], rtol=1e-9)


def test_a_dropped_voter_has_no_weight():
    voting = VotingRegressor(
        [("a", LinearRegression()), ("b", "drop"), ("c", Ridge(50.0))], weights=[1, 9, 3]
    )
    mean, std = predict(voting.fit(X, Y), NEW)
    members = np.array([member.predict(NEW) for member in voting.estimators_])
    assert_allclose(mean, voting.predict(NEW), rtol=1e-12)
    assert_allclose(std**2, np.average((members - mean) ** 2, axis=0, weights=[1, 3]), rtol=1e-9)


def test_pipelines_and_searches_are_seen_through():
    pipeline = make_pipeline(StandardScaler(), RandomForestRegressor(5, random_state=0)).fit(X, Y)
    expected = predict(pipeline[-1], pipeline[0].transform(NEW))
    assert_allclose(predict(pipeline, NEW), expected, rtol=0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), BayesianRidge()), {"bayesianridge__tol": [1e-3]}, cv=2
    )
    search.fit(X, Y)
    assert_allclose(predict(search, NEW)[1], search.best_estimator_.predict(NEW, return_std=True)[1], rtol=0)


def test_outputs_become_columns():
    both = predict(MultiOutputRegressor(BayesianRidge()).fit(X, Y2), NEW)
    one = predict(BayesianRidge().fit(X, Y), NEW)
    assert both.mean.shape == both.std.shape == (50, 2)
    assert_allclose(both.mean[:, 0], one.mean, rtol=0)
    assert_allclose(both.std[:, 0], one.std, rtol=0)
    forest = RandomForestRegressor(5, random_state=0).fit(X, Y2)
    assert predict(forest, NEW).std.shape == (50, 2)


def test_outputs_are_scored_and_logged_one_by_one(tmp_path):
    forest = RandomForestRegressor(5, random_state=0).fit(X, Y2)
    truth = np.stack([TRUTH, 100 * TRUTH + 20], axis=1)
    reports = evaluate_estimator(forest, NEW, truth, outputs=["x", "y"])
    assert_allclose(reports["y"].scores["rmse"], 100 * reports["x"].scores["rmse"], rtol=1e-9)
    logged = log_estimator(forest, NEW, truth, outputs=["x", "y"], run=tmp_path / "run", figures=False)
    assert logged["y"].scores == reports["y"].scores
    assert logged["y"].provenance["digest"] == reports["y"].provenance["digest"]
    (stored,) = open_store(f"dir:{tmp_path}")[0].runs()
    assert stored.scalars["uq/y/rmse"] == reports["y"].scores["rmse"]


def test_an_affine_transformation_of_the_target_is_undone():
    plain = BayesianRidge().fit(X, (Y - Y.mean()) / Y.std()).predict(NEW, return_std=True)
    scaled = TransformedTargetRegressor(BayesianRidge(), transformer=StandardScaler()).fit(X, Y)
    mean, std = predict(scaled, NEW)
    assert_allclose(mean, plain[0] * Y.std() + Y.mean(), rtol=1e-9)
    assert_allclose(std, plain[1] * Y.std(), rtol=1e-9)


def test_a_decreasing_transformation_leaves_the_std_positive():
    mirrored = TransformedTargetRegressor(
        BayesianRidge(), transformer=FunctionTransformer(np.negative, np.negative)
    )
    assert_allclose(predict(mirrored.fit(X, Y), NEW), predict(BayesianRidge().fit(X, Y), NEW), rtol=1e-6)


def test_another_transformation_of_the_target_is_refused():
    logs = TransformedTargetRegressor(BayesianRidge(), func=np.log, inverse_func=np.exp).fit(X, np.exp(Y))
    with pytest.raises(SettingsError, match=r"not affine.*untransformed target"):
        predict(logs, NEW)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (
            GradientBoostingRegressor(loss="quantile", alpha=0.1, n_estimators=10),
            GradientBoostingRegressor(loss="quantile", alpha=0.9, n_estimators=10),
        ),
        (
            HistGradientBoostingRegressor(loss="quantile", quantile=0.1, max_iter=10),
            HistGradientBoostingRegressor(loss="quantile", quantile=0.9, max_iter=10),
        ),
        (
            make_pipeline(StandardScaler(), QuantileRegressor(quantile=0.1, alpha=0)),
            make_pipeline(StandardScaler(), QuantileRegressor(quantile=0.9, alpha=0)),
        ),
    ],
    ids=["boosting", "histogram boosting", "linear"],
)
def test_a_pair_of_quantiles_is_the_interval_of_a_gaussian(low, high):
    low.fit(X, Y), high.fit(X, Y)
    expected = uq.Predictions.from_interval(TRUTH, low.predict(NEW), high.predict(NEW), 0.8)
    assert_allclose(predict((low, high), NEW), [expected.mean, expected.std], rtol=1e-9)


def test_a_pair_need_not_be_central():
    low, high = (QuantileRegressor(quantile=q, alpha=0).fit(X, Y) for q in (0.5, 0.9))
    mean, std = predict((low, high), NEW)
    assert_allclose(mean, low.predict(NEW), rtol=1e-12)
    assert_allclose(std, (high.predict(NEW) - mean) / NormalDist().inv_cdf(0.9), rtol=1e-9)


def test_quantiles_that_cross_here_and_there_are_put_in_order():
    low = Told(0.1, [0.0, 2.0, 0.0])
    high = Told(0.9, [1.0, 1.0, 1.0])
    mean, std = predict((low, high), NEW[:3])
    assert_allclose(mean, [0.5, 1.5, 0.5], rtol=1e-12)
    assert_allclose(std, 0.5 / NormalDist().inv_cdf(0.9), rtol=1e-12)


def test_bad_pairs_are_refused():
    low, high = (QuantileRegressor(quantile=q, alpha=0).fit(X, Y) for q in (0.1, 0.9))
    with pytest.raises(SettingsError, match=r"quantiles 0.9 and 0.1; pass \(low, high\)"):
        predict((high, low), NEW)
    for none in ((), low.__class__, 3):
        with pytest.raises(SettingsError, match=r"pass a (fitted estimator, or a )?pair"):
            log_estimator(none, NEW, TRUTH)
    with pytest.raises(SettingsError, match="3 estimators; pass a pair"):
        predict((low, low, high), NEW)
    with pytest.raises(SettingsError, match="Ridge does not predict a quantile"):
        predict((low, Ridge().fit(X, Y)), NEW)
    with pytest.raises(SettingsError, match="GradientBoostingRegressor does not predict a quantile"):
        predict((low, GradientBoostingRegressor(n_estimators=2).fit(X, Y)), NEW)
    crossed = QuantileRegressor(quantile=0.9, alpha=0).fit(X, Y - 20)
    with pytest.raises(InvalidValueError, match="cross at 50 of 50 places"):
        predict((low, crossed), NEW)


@pytest.mark.parametrize(
    "estimator",
    [LinearRegression(), AdaBoostRegressor(n_estimators=2), GradientBoostingRegressor(n_estimators=2)],
)
def test_an_estimator_without_uncertainty_is_refused(estimator):
    name = type(estimator).__name__
    with pytest.raises(
        SettingsError, match=f"{name} predicts no uncertainty; use an estimator whose predict"
    ):
        predict(make_pipeline(StandardScaler(), estimator).fit(X, Y), NEW)


def test_an_estimator_that_keeps_its_std_to_itself_is_refused():
    class Silent(BaseEstimator):
        def predict(self, X, return_std=False):
            return np.zeros(len(X))

    with pytest.raises(SettingsError, match=r"Silent.predict takes return_std=True but returned ndarray"):
        predict(Silent(), NEW)


def test_outputs_without_uncertainty_are_refused():
    with pytest.raises(SettingsError, match="Ridge predicts no uncertainty"):
        predict(MultiOutputRegressor(Ridge()).fit(X, Y2), NEW)


def test_an_ensemble_or_a_search_has_to_be_fitted():
    search = GridSearchCV(BayesianRidge(), {"alpha_1": [1e-6, 1e-5]}, cv=2, refit=False)
    for estimator in (RandomForestRegressor(), search):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            log_estimator(estimator, NEW, TRUTH)
    with pytest.raises(SettingsError, match="GridSearchCV was made with refit=False"):
        log_estimator(search.fit(X, Y), NEW, TRUTH)


def test_evaluating_is_evaluating_what_is_predicted():
    model = BayesianRidge().fit(X, Y)
    report = evaluate_estimator(model, NEW, TRUTH, unit="m", n_bins=5)
    assert report == uq.evaluate(TRUTH, *model.predict(NEW, return_std=True), unit="m", n_bins=5)
    assert report.scores["nll"] < 0.5  # about .5 ln(2 pi e .09) = .21 for the true model
    with pytest.raises(ShapeError, match=r"\(50, 2\)"):
        evaluate_estimator(model, NEW, np.stack([TRUTH, TRUTH], axis=1))


@pytest.mark.parametrize(("given", "expected"), [(None, "BayesianRidge"), ("bayes", "bayes")])
def test_logging_names_the_method_after_the_estimator(tmp_path, given, expected):
    model = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, Y)
    options = {} if given is None else {"method": given}
    report = log_estimator(model, NEW, TRUTH, run=tmp_path / "run", split="test", figures=False, **options)
    (stored,) = open_store(f"dir:{tmp_path}")[0].runs()
    assert stored.tags["uq.method"] == expected
    assert stored.scalars["uq/test/nll"] == report.scores["nll"]
    assert json.loads((tmp_path / "run/uq/test/report.json").read_text())["counts"]["n"] == 50


def test_what_is_not_taken_is_told_at_the_users_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = BayesianRidge().fit(X, Y)
    with pytest.warns(TrackingWarning, match="did not take the scores and") as told:
        log_estimator(model, NEW, TRUTH, run="dir:/dev/null/runs", figures=False)
    assert told[0].filename == __file__


def test_a_scorer_ranks_models_by_a_score():
    folds = KFold(4)
    found = cross_validate(BayesianRidge(), X, Y, cv=folds, scoring=scorer(["crps", "coverage_95", "r2"]))
    for place, (train, test) in enumerate(folds.split(X)):
        report = evaluate_estimator(BayesianRidge().fit(X[train], Y[train]), X[test], Y[test])
        coverage = -abs(report.scores["coverage_95"] - 0.95)
        wanted = [-report.scores["crps"], coverage, report.scores["r2"]]
        got = [found[f"test_{key}"][place] for key in ("crps", "coverage_95", "r2")]
        assert_allclose(got, wanted, rtol=1e-12, atol=1e-15)
    single = cross_val_score(BayesianRidge(), X, Y, cv=folds, scoring=scorer("crps"))
    assert_allclose(single, found["test_crps"], rtol=1e-15)
    kernels = [RBF(2.0) + WhiteKernel(noise) for noise in (100, 0.1)]
    search = GridSearchCV(GP, {"kernel": kernels}, cv=folds, scoring=scorer("nll")).fit(X, Y)
    assert search.best_index_ == 1
    labels = (Y > 0).astype(int)
    brier = cross_val_score(LogisticRegression(), X, labels, cv=folds, scoring=scorer("brier"))
    assert np.all((brier > -0.3) & (brier < 0))
    assert pickle.loads(pickle.dumps(scorer("crps", unit="m"))).options == {"unit": "m"}
    assert repr(scorer("crps")) == "scorer('crps')"


def test_a_scorer_takes_weights():
    model, weights = BayesianRidge().fit(X, Y), np.arange(50) % 2
    found = scorer("crps")(model, NEW, TRUTH, sample_weight=weights)
    assert found == -evaluate_estimator(model, NEW, TRUTH, weights=weights).scores["crps"]


def test_what_cannot_rank_models_is_no_scorer():
    model = BayesianRidge().fit(X, Y)
    with pytest.raises(UnknownMetricError, match=r"no metric is called crsp \(did you mean 'crps'\?\)"):
        scorer("crsp")
    with pytest.raises(SettingsError, match="mean_std is neither good nor bad"):
        scorer("mean_std")(model, NEW, TRUTH)
    with pytest.raises(InvalidValueError, match="r2 is undefined: "):
        scorer("r2")(model, NEW, np.ones(50))


def test_folds_are_the_groups_of_one_report(tmp_path):
    data = cross_predictions(BayesianRidge(), X, Y, cv=5)
    mean, std, fold = np.empty(200), np.empty(200), np.empty(200, int)
    for place, (train, test) in enumerate(KFold(5).split(X)):
        mean[test], std[test] = predict(BayesianRidge().fit(X[train], Y[train]), X[test])
        fold[test] = place
    report = uq.log(data, run=tmp_path / "run", method="ridge", figures=False)
    wanted = uq.evaluate(Y, mean, std, groups=fold)
    assert report.scores == wanted.scores
    assert report.provenance["intervals"] == wanted.provenance["intervals"]
    assert report.provenance["intervals"]["groups"] == 5
    shuffled = cross_predictions(
        BayesianRidge(), pd.DataFrame(X), Y, cv=KFold(5, shuffle=True, random_state=0), n_jobs=1
    )
    np.testing.assert_array_equal(shuffled.truth, Y)
    repeated = cross_predictions(
        BayesianRidge(), X, Y, cv=RepeatedKFold(n_splits=5, n_repeats=2, random_state=0)
    )
    np.testing.assert_array_equal(repeated.truth, np.repeat(Y, 2))
    assert len(np.unique(repeated.groups)) == 10
    low, high = (
        GradientBoostingRegressor(loss="quantile", alpha=alpha, n_estimators=5) for alpha in (0.1, 0.9)
    )
    assert cross_predictions((low, high), X, Y, cv=3).n == 200


def test_folds_of_a_classifier_are_stratified_and_share_their_classes():
    labels = np.array(["a", "b", "c"])[np.digitize(Y, [-0.5, 0.5])]
    data = cross_predictions(LogisticRegression(), X, labels, cv=3)
    assert data.form.classes == ("a", "b", "c")
    assert uq.evaluate(data).scores["accuracy"] > 0.8
    with pytest.raises(InvalidValueError, match="do not have the same classes; pass cv=StratifiedKFold"):
        cross_predictions(
            LogisticRegression(), X[:9], list("aabbccabd"), cv=[([0, 2, 8], [1]), ([0, 2], [3])]
        )
