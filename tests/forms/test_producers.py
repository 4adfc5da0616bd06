"""Every line of docs/distributions.md, executed with the library it is for."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import uq_tracking as uq

PAGE = Path(uq.__file__).parents[1] / "docs" / "distributions.md"


def lines():
    """Library, code and what is scored, from the table of the page."""
    rows = re.findall(r"^\| ([^|]+) \| `([^`]+)` \| ([^|]+) \|", PAGE.read_text(), re.MULTILINE)
    return {library.strip(): code for library, code, _ in rows}


def data(seed=0, n=400):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 2))
    y = np.sin(2 * x[:, 0]) + (0.2 + 0.3 * np.abs(x[:, 1])) * rng.normal(size=n)
    return x, y


X, TRAIN = data()
X_TEST, Y = data(1)


def run(library, **names):
    """The report of a line of the page, in which ``uq.log`` scores without a tracker."""
    found = {}

    class Scored:
        Predictions = uq.Predictions

        @staticmethod
        def log(predictions, *rest, **options):
            found["report"] = uq.evaluate(predictions, *rest, **options)

    exec(lines()[library], {"uq": Scored, "np": np, "y": Y, "X": X_TEST, **names})
    return found["report"]


def test_scikit_learn_quantile_models():
    from sklearn.ensemble import GradientBoostingRegressor

    models = {
        p: GradientBoostingRegressor(loss="quantile", alpha=p, n_estimators=30).fit(X, TRAIN)
        for p in (0.05, 0.5, 0.95)
    }
    report = run("scikit-learn, one model per quantile", models=models)
    assert report.settings["distribution"] == "quantiles"
    assert report.settings["levels"] == [0.05, 0.5, 0.95]
    assert 0.7 < report.scores["coverage_90"] <= 1
    assert report.scores["wis"] > 0


def test_scikit_learn_gaussian_process():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    model = GaussianProcessRegressor(RBF() + WhiteKernel(), random_state=0).fit(X[:150], TRAIN[:150])
    report = run("scikit-learn, GaussianProcessRegressor", model=model)
    assert "distribution" not in report.settings
    assert "nll" in report.scores


def test_lightgbm():
    import lightgbm

    models = {
        p: lightgbm.LGBMRegressor(
            objective="quantile", alpha=p, n_estimators=30, verbose=-1, num_threads=1
        ).fit(X, TRAIN)
        for p in (0.1, 0.5, 0.9)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM names columns that scikit-learn then misses
        report = run("LightGBM, XGBoost, CatBoost (quantile objective)", models=models)
    assert report.settings["distribution"] == "quantiles"
    assert "n_crossed" in report.counts


def test_quantile_forest():
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(n_estimators=50, min_samples_leaf=10, random_state=0).fit(X, TRAIN)
    report = run("quantile-forest", model=model)
    assert report.settings["levels"] == [0.05, 0.25, 0.5, 0.75, 0.95]
    assert 0.75 < report.scores["coverage_90"] <= 1


def test_ngboost():
    from ngboost import NGBRegressor

    model = NGBRegressor(n_estimators=60, verbose=False, random_state=0).fit(X, TRAIN)
    report = run("NGBoost", model=model)
    assert report.settings["distribution"] == "distribution"
    spread = model.pred_dist(X_TEST)
    plain = uq.evaluate(Y, spread.loc, spread.scale)
    for key in ("nll", "crps", "coverage_90"):
        assert report.scores[key] == pytest.approx(plain.scores[key], rel=1e-9)


def test_torch_distributions():
    import torch

    mean, std = torch.zeros(len(Y)), torch.full((len(Y),), 1.0)
    mixture = torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(torch.ones(len(Y), 2)),
        torch.distributions.Normal(torch.stack([mean - 0.5, mean + 0.5], -1), torch.stack([std, std], -1)),
    )
    assert run("torch.distributions, mixtures too", dist=mixture).settings["distribution"] == "mixture"
    normal = run("torch.distributions, mixtures too", dist=torch.distributions.Normal(mean, std))
    assert normal.scores["nll"] == pytest.approx(uq.evaluate(Y, 0 * Y, 0 * Y + 1).scores["nll"], rel=1e-6)


def test_scipy():
    from scipy import stats

    report = run("scipy.stats, frozen", dist=stats.t(4, 0, np.ones(len(Y))))
    assert {"nll", "crps", "coverage_90", "pinball"} <= report.scores.keys()


def test_monte_carlo_dropout():
    import torch

    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(32, 1)
    )
    x = torch.tensor(X_TEST, dtype=torch.float32)
    report = run("Monte-Carlo dropout, passes of one network", network=network, x=x, torch=torch)
    assert "distribution" not in report.settings
    assert "nll" in report.scores


def test_ensembles_and_draws():
    rng = np.random.default_rng(0)
    means = 0.1 * rng.normal(size=(5, len(Y)))
    stds = np.full((5, len(Y)), 0.8)
    assert "nll" in run("deep ensemble, moments", means=means, stds=stds).scores
    assert (
        run("deep ensemble, as the mixture it is", means=means, stds=stds).settings["distribution"]
        == "mixture"
    )
    draws = rng.normal(size=(4, 25, len(Y)))
    report = run("ArviZ, NumPyro, PyMC (chains and draws)", draws=draws)
    assert report.settings["distribution"] == "draws"
    assert report.statistics.moments["size"].low == 100
    assert run("sbi, normalising flows, diffusion: draws", draws=draws[0]).settings["distribution"] == "draws"


def test_intervals_columns_and_densities():
    import pandas as pd
    from scipy import stats

    low, high, y_pred = np.full(len(Y), -1.5), np.full(len(Y), 1.5), np.zeros(len(Y))
    report = run("MAPIE, conformal prediction", low=low, high=high, y_pred=y_pred)
    assert report.settings["distribution"] == "interval"
    assert report.scores["interval_coverage"] == pytest.approx(np.mean(np.abs(Y) <= 1.5))
    frame = pd.DataFrame({"y": Y, "q10": low, "median": y_pred, "q90": high})
    columns = run("Darts, GluonTS, StatsForecast: columns of a table", df=frame)
    assert columns.settings["levels"] == [0.1, 0.5, 0.9]
    pit, log = stats.norm.cdf(Y), stats.norm.logpdf(Y)
    report = run("energy-based or grid models", pit=pit, log_density=log, mean=y_pred, std=y_pred + 1)
    assert report.scores["nll"] == pytest.approx(-log.mean())


def test_every_line_of_the_page_is_executed():
    called = re.findall(r'run\(\s*"([^"]+)"', Path(__file__).read_text())
    assert set(lines()) == set(called)
