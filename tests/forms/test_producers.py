"""Every line of docs/distributions.md, executed with the library it is for."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import uq_tracking as uq

PAGE = Path(uq.__file__).parents[1] / "docs" / "distributions.md"


def lines():
    """Library and code, from the table of the page."""
    rows = re.findall(r"^\| ([^|]+) \| `([^`]+)` \| [^|]+ \| [^|]+ \|$", PAGE.read_text(), re.MULTILINE)
    return dict(rows)


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
        def log(predictions, *rest, step=None, **options):
            found["report"] = uq.evaluate(predictions, *rest, **options)

        @staticmethod
        def evaluate(*arrays):
            found["report"] = uq.evaluate(*arrays)
            return found["report"]

    exec(lines()[library], {"uq": Scored, "np": np, "y": Y, "X": X_TEST, **names})
    return found["report"]


@pytest.mark.slow
def test_scikit_learn_quantile_models():
    from sklearn.ensemble import GradientBoostingRegressor

    models = {
        p: GradientBoostingRegressor(loss="quantile", alpha=p, n_estimators=30).fit(X, TRAIN)
        for p in (0.05, 0.5, 0.95)
    }
    report = run("scikit-learn or LightGBM, one model per quantile", models=models)
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
        report = run("scikit-learn or LightGBM, one model per quantile", models=models)
    assert report.settings["distribution"] == "quantiles"
    assert "n_crossed" in report.counts


def test_quantile_forest():
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(n_estimators=50, min_samples_leaf=10, random_state=0).fit(X, TRAIN)
    report = run("quantile-forest", model=model)
    assert report.settings["levels"] == [0.05, 0.25, 0.5, 0.75, 0.95]
    assert 0.75 < report.scores["coverage_90"] <= 1


@pytest.mark.slow
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
    draws = rng.normal(size=(25, len(Y)))
    assert run("sbi, normalizing flows, diffusion: draws", draws=draws).settings["distribution"] == "draws"
    vectors = {"y": Y.reshape(-1, 4), "draws": draws.reshape(25, -1, 4)}
    assert "energy_score" in run("several outputs or lead times drawn together", **vectors).scores


def test_intervals_columns_and_densities():
    low, high, y_pred = np.full(len(Y), -1.5), np.full(len(Y), 1.5), np.zeros(len(Y))
    report = run("conformal prediction, any", low=low, high=high, y_pred=y_pred)
    assert report.settings["distribution"] == "interval"
    assert report.scores["interval_coverage"] == pytest.approx(np.mean(np.abs(Y) <= 1.5))
    frame = pd.DataFrame({"y": Y, "q10": low, "median": y_pred, "q90": high})
    columns = run("columns of any table", df=frame)
    assert columns.settings["levels"] == [0.1, 0.5, 0.9]
    pit, log = stats.norm.cdf(Y), stats.norm.logpdf(Y)
    report = run("energy-based or grid models", pit=pit, log_density=log, mean=y_pred, std=y_pred + 1)
    assert report.scores["nll"] == pytest.approx(-log.mean())


TABLE = np.sort(np.random.default_rng(3).normal(size=(len(Y), 3)), axis=1)
NETWORK = np.stack([TABLE[:, 1], np.ones(len(Y))], axis=1)
CHAINS = np.random.default_rng(4).normal(size=(4, 25, len(Y)))
MARGINALS = stats.norm(TABLE[:, 1], np.ones(len(Y)))


def predicts(values):
    return SimpleNamespace(predict=lambda X: values)


def frame(**columns):
    return pd.DataFrame({"y": Y, **columns})


MADE = {
    "XGBoost `reg:quantileerror`, CatBoost `MultiQuantile`": ({"model": predicts(TABLE)}, "pinball"),
    "CatBoost `RMSEWithUncertainty`": ({"model": predicts(NETWORK)}, "nll"),
    "GPyTorch": ({"model": lambda X: X, "likelihood": lambda f: MARGINALS}, "nll"),
    "GPyTorch, as one vector": (
        {"posterior": SimpleNamespace(mean=TABLE[:, 1], covariance_matrix=np.eye(len(Y)))},
        "joint_nll",
    ),
    "BoTorch": (
        {
            "model": SimpleNamespace(
                posterior=lambda X, observation_noise: SimpleNamespace(distribution=MARGINALS)
            )
        },
        "nll",
    ),
    "laplace-torch, `f_mu, f_var = la(X)`": (
        {"f_mu": NETWORK[:, :1], "f_var": NETWORK[:, 1:, None], "la": SimpleNamespace(sigma_noise=0.3)},
        "nll",
    ),
    "NumPyro, `Predictive`": ({"predictive": lambda key, X: {"obs": TABLE.T}, "key": None}, "crps"),
    "ArviZ, PyMC (chains and draws)": (
        {"idata": SimpleNamespace(posterior_predictive={"y": SimpleNamespace(values=CHAINS)})},
        "crps",
    ),
    "MAPIE, `y_pred, intervals = model.predict_interval(X)`": (
        {"intervals": TABLE[:, [0, 2], None], "levels": [0.8], "y_pred": TABLE[:, 1]},
        "interval_coverage",
    ),
    "Darts": (
        {
            "series": SimpleNamespace(values=lambda: Y[:, None]),
            "forecast": SimpleNamespace(all_values=lambda: TABLE[:, None]),
        },
        "crps",
    ),
    "GluonTS, by lead time": (
        {
            "y": Y.reshape(-1, 4),
            "forecasts": [SimpleNamespace(samples=part) for part in TABLE.reshape(-1, 3, 4)],
        },
        "crps",
    ),
    "StatsForecast": (
        {
            "df": frame(
                **{"AutoARIMA": TABLE[:, 1], "AutoARIMA-lo-90": TABLE[:, 0], "AutoARIMA-hi-90": TABLE[:, 2]}
            )
        },
        "interval_coverage",
    ),
    "NeuralForecast": (
        {
            "df": frame(
                **{"NHITS-lo-90": TABLE[:, 0], "NHITS-median": TABLE[:, 1], "NHITS-hi-90": TABLE[:, 2]}
            )
        },
        "wis",
    ),
}
"""What libraries that the tests do not install give, in their shapes, and a score that tells the form."""


@pytest.mark.parametrize("library", MADE)
def test_lines_of_libraries_that_are_not_installed(library):
    names, score = MADE[library]
    assert score in run(library, **names).scores


def test_every_line_of_the_page_is_executed():
    called = re.findall(r'run\(\s*"([^"]+)"', Path(__file__).read_text())
    assert set(lines()) == {*called, *MADE}
    assert len(lines()) == PAGE.read_text().count("| `uq.log(")
