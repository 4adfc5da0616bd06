"""Predictions of vectors by a mean and a covariance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.checks import check_flag
from uq_tracking.errors import ShapeError
from uq_tracking.inputs.assemble import assemble
from uq_tracking.inputs.constructors.base import Makes, Options, read_equal, with_vectors
from uq_tracking.inputs.convert import read_floats
from uq_tracking.inputs.validation import Wording

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_VARIANCES = Wording(
    std="the root of the diagonal of cov",
    non_finite_cure="every variance on the diagonal must be finite and non-negative",
)


class FromCovariances(Makes):
    """The constructor of `Predictions` from multivariate normal distributions."""

    @classmethod
    def from_covariance(
        cls, y_true: Any, y_pred: Any, cov: Any, *, joint: bool = True, **options: Unpack[Options]
    ) -> Self:
        """Vectors, each predicted by a multivariate normal distribution, such as those of a Gaussian process.

        Components are scored by their mean and variance, as individual samples. Whole vectors, without missing or
        masked components, give ``energy_score``, ``variogram_score`` and ``joint_nll``; ``joint_ks`` and
        ``joint_coverage_90`` check whether their Mahalanobis distances follow chi-square.

        Parameters
        ----------
        y_true, y_pred : arrays, shape (..., D)
            Truth and mean of vectors with D components.
        cov : array, shape (..., D, D) or (D, D)
            Covariance of each vector, or one for all.
        joint : bool
            Whether to score whole vectors, which requires the eigenvalues of each covariance.
        **options
            As for `Predictions`; ``mask``, ``groups`` and ``by`` in the shape of ``y_true``.

        Raises
        ------
        ShapeError
            Shapes do not fit.
        InvalidValueError
            A covariance is not symmetric or not positive definite.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> data = Predictions.from_covariance([[0.0, 1.0]], [[0.0, 0.0]], [[4.0, 1.0], [1.0, 9.0]])
        >>> data.std
        array([[2., 3.]])
        """
        check_flag("joint", joint)
        truth, mean = read_equal(y_true=y_true, y_pred=y_pred)
        given, shape = read_floats(cov, "cov").values, truth.values.shape
        if not shape or given.shape not in ((*shape, shape[-1]), (shape[-1], shape[-1])):
            wanted = (*shape, *shape[-1:])
            raise ShapeError(
                f"cov has shape {given.shape}; pass {wanted}, or one {wanted[-2:]} for all vectors"
            )
        every = np.broadcast_to(given, (*shape, shape[-1]))
        variance = np.einsum("...ii->...i", every).astype(np.float64)
        with np.errstate(invalid="ignore"):
            std = np.sqrt(variance).astype(np.result_type(mean.values, given))
        values = assemble((truth, mean), mean.values, std, _VARIANCES, **options)
        if joint:
            from uq_tracking.inputs.forms.joint import gaussian_vectors

            size = shape[-1]
            values = with_vectors(
                values, gaussian_vectors, (truth.values, mean.values, every), 6 * size * size
            )
        return cls._new(values)
