"""Whose uncertainty can be trusted?
=================================

Five scikit-learn estimators on one noisy function.

A Gaussian process and Bayesian splines model the noise. The spread of a forest only shows how much its trees
disagree, which leaves out the noise: its 95 % intervals contain about 65 % of the targets. All five have nearly the
same errors::

    python examples/gallery/sklearn_gp.py [--to mlflow:estimators]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.ensemble import BaggingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from uq_tracking.frameworks.sklearn import evaluate_estimator, log_estimator

KEYS = ("rmse", "nll", "crps", "ence", "coverage_95", "ause_rmse")
NOISE = 0.2


def draw(n: int, rng: np.random.Generator, *, even: bool) -> tuple[np.ndarray, np.ndarray]:
    """Points y = sin(2 x) + noise, x in [0, 4]; large x are rare unless ``even``."""
    x = 4 * rng.uniform(size=n) ** (1.0 if even else 2.5)
    return x[:, None], np.sin(2 * x) + NOISE * rng.normal(size=n)


def estimators() -> dict:
    """Estimators by name; a pair of quantile regressors counts as one."""
    splines = make_pipeline(SplineTransformer(n_knots=9), BayesianRidge())
    return {
        "gaussian process": GaussianProcessRegressor(1.0 * RBF(1.0) + WhiteKernel(0.1)),
        "bayesian splines": splines,
        "bagged splines": BaggingRegressor(splines, 10, random_state=0),
        "random forest": RandomForestRegressor(50, min_samples_leaf=5, random_state=0),
        "quantile boosting": tuple(
            HistGradientBoostingRegressor(loss="quantile", quantile=q, max_iter=30) for q in (0.16, 0.84)
        ),
    }


def fit(estimator, x: np.ndarray, y: np.ndarray):
    if isinstance(estimator, tuple):
        return tuple(part.fit(x, y) for part in estimator)
    return estimator.fit(x, y)


def main() -> None:
    parser = argparse.ArgumentParser(description="Five scikit-learn estimators on one noisy function.")
    parser.add_argument("--to", help="where to log, such as mlflow:estimators or dir:runs")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    train, test = draw(200, rng, even=False), draw(2000, rng, even=True)
    print(f"{'':18}" + "".join(f"{key:>13}" for key in KEYS))
    for name, estimator in estimators().items():
        fitted = fit(estimator, *train)
        if options.to is None:
            report = evaluate_estimator(fitted, *test, std_floor=1e-3)
        else:
            report = log_estimator(fitted, *test, method=name, std_floor=1e-3, run=options.to)
        print(f"{name:18}" + "".join(f"{report.scores[key]:13.4f}" for key in KEYS))


if __name__ == "__main__":
    main()
