"""Recalibration: parameters fitted on one set of predictions and applied to another.

>>> import numpy as np
>>> from uq_tracking.recalibration import recalibrate
>>> rng = np.random.default_rng(0)
>>> mean, std = rng.normal(size=1000), np.full(1000, 0.5)
>>> truth = mean + rng.normal(size=1000)  # twice the error that std claims
>>> scale = recalibrate((truth, mean, std), "std_scaling")
>>> new_mean, new_std = scale.apply(mean, std)
>>> round(float(new_std[0]), 1)
1.0
"""

from uq_tracking.recalibration.base import FittedOn, Recalibration, RegressionRecalibration, recalibrator
from uq_tracking.recalibration.classification import BiasTemperature, Isotonic, Logistic, Temperature
from uq_tracking.recalibration.files import read_recalibrations, recalibrate_file
from uq_tracking.recalibration.fitting import recalibrate
from uq_tracking.recalibration.quantiles import CdfIsotonic, Conformal, ConformalBy
from uq_tracking.recalibration.std import StdBinning, StdIsotonic, StdScaling

__all__ = [
    "BiasTemperature",
    "CdfIsotonic",
    "Conformal",
    "ConformalBy",
    "FittedOn",
    "Isotonic",
    "Logistic",
    "Recalibration",
    "RegressionRecalibration",
    "StdBinning",
    "StdIsotonic",
    "StdScaling",
    "Temperature",
    "read_recalibrations",
    "recalibrate",
    "recalibrate_file",
    "recalibrator",
]
