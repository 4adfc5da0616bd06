"""Predictions from distribution objects, and from densities and PIT values of any distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.errors import InvalidValueError
from uq_tracking.inputs.constructors.base import Makes, Options, assembled, wants_quantiles
from uq_tracking.inputs.convert import read_floats
from uq_tracking.inputs.forms.scored import Scored
from uq_tracking.inputs.validation import Wording, check_shapes

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_LAW = Wording(
    mean="the distribution's mean or F(y)",
    std="the distribution's std",
    non_finite_cure="its parameters must be finite; if it has no variance, pass an object with quantiles",
)
_DENSITY = Wording(mean="y_pred or pit", std="y_std", non_finite_cure="pit must be between 0 and 1")


class FromDistributions(Makes):
    """The constructors of `Predictions` from distributions and densities."""

    @classmethod
    def from_distribution(
        cls,
        y_true: Any,
        dist: Any,
        *,
        quantile_scores: bool | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """A distribution object from scipy.stats, torch, NGBoost, GPyTorch, TensorFlow Probability or similar.

        Any object with a distribution function and a log density, with one distribution per sample. ``crps`` uses a
        closed form if one is known (normal, Laplace, logistic, uniform, Student t, gamma, exponential, lognormal,
        mixtures of normals; sums for discrete distributions), else quadrature to 1e-6. If the variance does not
        exist, location and scale are the median and the interquartile range, and anything that needs a variance is
        undefined.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        dist
            Distribution whose parameters have the shape of ``y_true`` or broadcast to it.
        quantile_scores : bool, optional
            Whether to compute the quantiles for ``pinball``, ``interval_score`` and ``interval_width_95``, if the
            object provides them; by default for up to 5000 samples.
        **options
            As for `Predictions`.

        Raises
        ------
        InputTypeError
            The object has no distribution function or density.
        ShapeError
            Its parameters have another shape.
        """
        from uq_tracking.inputs.forms.distribution import score_distribution

        truth = read_floats(y_true, "y_true")
        check_shapes((truth.name, truth.values.shape))
        scored = score_distribution(
            truth.values, dist, quantiles=wants_quantiles(truth.values.size, quantile_scores)
        )
        return cls._new(assembled((truth,), scored, _LAW, np.dtype(np.float64), options))

    @classmethod
    def from_density(
        cls,
        y_true: Any,
        *,
        pit: Any,
        y_pred: Any,
        y_std: Any,
        log_density: Any = None,
        crps: Any = None,
        **options: Unpack[Options],
    ) -> Self:
        """Any distribution at all, by its values at each sample; for example an energy-based model on a grid.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        pit : array, shape (...), or a pair of arrays
            Distribution function at the truth, ``F(y)``; for a distribution with atoms, ``F`` just below and at the
            truth.
        y_pred, y_std : arrays, shape (...)
            Mean and standard deviation.
        log_density : array, shape (...), optional
            Natural logarithm of the density at the truth; without it ``nll`` is undefined.
        crps : array, shape (...), optional
            The CRPS of each sample; without it ``crps`` is undefined.
        **options
            As for `Predictions`.

        Raises
        ------
        InvalidValueError
            ``pit`` is not between 0 and 1, or decreases within a pair.
        """
        low, high = pit if isinstance(pit, tuple | list) and len(pit) == 2 else (pit, pit)
        given = {"y_true": y_true, "y_pred": y_pred, "y_std": y_std, "pit": low, "upper pit": high}
        given |= {} if log_density is None else {"log_density": log_density}
        given |= {} if crps is None else {"crps": crps}
        sources = {name: read_floats(value, name) for name, value in given.items()}
        check_shapes(*((source.name, source.values.shape) for source in sources.values()))
        values = {name: source.values for name, source in sources.items()}
        outside = (values["pit"] < 0) | (values["upper pit"] > 1) | (values["upper pit"] < values["pit"])
        if np.any(outside & np.isfinite(values["y_true"])):
            raise InvalidValueError(
                f"pit has {int(np.count_nonzero(outside))} values outside [0, 1], or decreasing pairs; pass F(y)"
            )
        columns = {
            "mean": values["y_pred"],
            "std": values["y_std"],
            "pit_low": values["pit"].astype(np.float64),
            "pit_high": values["upper pit"].astype(np.float64),
        }
        if log_density is not None:
            columns["nll"] = -values["log_density"].astype(np.float64)
        if crps is not None:
            columns["crps"] = values["crps"].astype(np.float64)
        dtype = np.result_type(values["y_pred"], values["y_std"])
        scored = Scored("density", columns)
        return cls._new(assembled(list(sources.values()), scored, _DENSITY, dtype, options))
