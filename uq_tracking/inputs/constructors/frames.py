"""Predictions from the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from numbers import Real
from typing import TYPE_CHECKING, Any

from uq_tracking.checks import value_text
from uq_tracking.errors import InputTypeError, SettingsError, closest
from uq_tracking.inputs.constructors.base import Options
from uq_tracking.inputs.constructors.distributions import FromDistributions
from uq_tracking.inputs.constructors.draws import FromDraws
from uq_tracking.inputs.constructors.ensembles import FromEnsembles
from uq_tracking.inputs.constructors.quantiles import FromQuantiles
from uq_tracking.inputs.constructors.variances import FromVariances
from uq_tracking.inputs.constructors.vectors import FromCovariances

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

COLUMN_OPTIONS = ("mask", "weights", "groups", "by")
"""Options that may also name a column."""

MOST_LISTED = 40


class FromFrames(FromVariances, FromCovariances, FromDraws, FromEnsembles, FromQuantiles, FromDistributions):
    """The constructor of `Predictions` from tables, which calls the others."""

    @classmethod
    def from_frame(
        cls,
        table: Any,
        y_true: str,
        y_pred: str | None = None,
        y_std: str | float | None = None,
        *,
        quantiles: Mapping[float, str] | None = None,
        interval: tuple[str, str, float] | None = None,
        samples: str | Sequence[str] | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Columns of a table by name: pandas, polars, a dict of arrays, or anything similar.

        State the uncertainty exactly once, by ``y_std``, ``quantiles``, ``interval`` or ``samples``.

        Parameters
        ----------
        table
            Any object with ``columns`` (or ``column_names``, or a mapping's keys) and ``table[name]``.
        y_true : str
            Column of the truth.
        y_pred : str, optional
            Column of the point prediction; required with ``y_std``.
        y_std : str or float, optional
            Column of the standard deviation, or one number for all samples.
        quantiles : dict of float to str, optional
            Columns of quantiles by their levels, as for `from_quantiles`.
        interval : (str, str, float), optional
            Columns of the lower and upper ends, and the probability between them, as for `from_interval`.
        samples : str or sequence of str, optional
            Columns of draws, or a pattern such as ``"draw_*"``, as for `from_samples`.
        **options
            As for `Predictions`; ``mask``, ``weights``, ``groups`` and ``by`` may also name columns.

        Raises
        ------
        SettingsError
            The table has no such column, or the uncertainty is not stated exactly once.
        InputTypeError
            It is not a table.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> table = {"y": [1.0, 2.0], "low": [0.0, 0.5], "high": [3.0, 2.5]}
        >>> Predictions.from_frame(table, "y", interval=("low", "high", 0.9)).mean
        array([1.5, 1.5])
        """
        own: Any = dict(options)
        names, build = column_names(table), _stated(y_std, quantiles, interval, samples)
        for option in COLUMN_OPTIONS:
            if isinstance(own.get(option), str):
                own[option] = _column(table, names, own[option], option)
        truth = _column(table, names, y_true, "y_true")
        point = None if y_pred is None else _column(table, names, y_pred, "y_pred")
        if build == "quantiles" and quantiles:
            columns = [
                _column(table, names, name, f"quantiles[{level}]") for level, name in quantiles.items()
            ]
            return cls.from_quantiles(truth, columns, list(quantiles), point, axis=0, **own)
        if build == "interval" and interval:
            low, high = (_column(table, names, name, "interval") for name in interval[:2])
            return cls.from_interval(truth, low, high, interval[2], point, **own)
        if build == "samples":
            draws = [_column(table, names, name, "samples") for name in _several(samples, names)]
            return cls.from_samples(truth, draws, axis=0, **own)
        if point is None:
            raise SettingsError("y_std needs a point prediction; name its column with y_pred=")
        plain: Any = cls
        std = y_std if isinstance(y_std, Real) else _column(table, names, y_std, "y_std")
        made: Self = plain(truth, point, std, **own)
        return made


def column_names(table: Any) -> list[Any]:
    """Names of the columns of any table; InputTypeError if it is not a table.

    Examples
    --------
    >>> column_names({"y": [1.0], "mu": [2.0]})
    ['y', 'mu']
    """
    if isinstance(table, Mapping):
        return list(table)
    for attribute in ("column_names", "columns"):
        names = getattr(table, attribute, None)
        if names is not None and hasattr(table, "__getitem__"):
            return list(names)
    raise InputTypeError(
        f"column names were given, but a {type(table).__name__} has no columns; pass a table first (a DataFrame or a "
        "dict of arrays), or pass arrays of quantiles, interval ends or draws to Predictions.from_quantiles, "
        "from_interval or from_samples"
    )


def _column(table: Any, names: Sequence[Any], name: Any, role: str) -> Any:
    try:
        known = name in names
    except (TypeError, ValueError):  # an array instead of a name
        known = False
    if known:
        return table[name]
    if not isinstance(name, str):
        raise SettingsError(f"{role} is a {type(name).__name__}; with a table, pass the name of a column")
    listed = ", ".join(map(str, names[:MOST_LISTED])) + (" ..." if len(names) > MOST_LISTED else "")
    raise SettingsError(f"the table has no column {name!r} for {role}{closest(name, names)}; it has {listed}")


def _several(samples: Any, names: Sequence[Any]) -> list[Any]:
    if not isinstance(samples, str):
        if not isinstance(samples, Iterable):
            raise SettingsError(
                f"samples is {value_text(samples)}; pass the columns of the draws, or a pattern"
            )
        return list(samples)
    found = [name for name in names if fnmatchcase(str(name), samples)]
    if not found:
        raise SettingsError(
            f"no column of the table matches {samples!r} for samples{closest(samples, names)}"
        )
    return found


def _stated(y_std: Any, quantiles: Any, interval: Any, samples: Any) -> str:
    """The one way in which the uncertainty is stated."""
    given = {"y_std": y_std, "quantiles": quantiles, "interval": interval, "samples": samples}
    found = [name for name, value in given.items() if value is not None]
    if len(found) != 1:
        raise SettingsError(
            f"the uncertainty is stated by {' and '.join(found) or 'no column'}; state it once: y_std=, "
            "quantiles={0.1: 'q10', ...}, interval=('low', 'high', 0.9) or samples="
        )
    if quantiles is not None and not isinstance(quantiles, Mapping):
        raise SettingsError(f"quantiles={quantiles!r}; pass columns by level: {{0.1: 'q10', 0.9: 'q90'}}")
    if interval is not None and not (isinstance(interval, tuple | list) and len(interval) == 3):
        raise SettingsError(
            f"interval is {value_text(interval)}; pass two columns and a level: ('low', 'high', 0.9)"
        )
    return found[0]
