"""Seven ways to predict with uncertainty: the six compared in MeRCI (2018), and a Gaussian process."""

from __future__ import annotations

from collections.abc import Sequence

from uq_tracking.demo.methods.base import FAST, Advance, Effort, Estimate, MethodFunction
from uq_tracking.demo.methods.ensembles import bagging, mc_dropout, multi_epochs, multi_inits, multi_networks
from uq_tracking.demo.methods.gaussian_process import gaussian_process
from uq_tracking.demo.methods.learned_error import learned_error
from uq_tracking.demo.terrain import Terrain
from uq_tracking.errors import SettingsError

METHODS: dict[str, MethodFunction] = {
    "multi-inits": multi_inits,
    "bagging": bagging,
    "mc-dropout": mc_dropout,
    "multi-epochs": multi_epochs,
    "multi-networks": multi_networks,
    "learned-error": learned_error,
    "gaussian-process": gaussian_process,
}
"""The methods by name, in the order of MeRCI (2018), table 2."""


def predict(
    name: str,
    terrain: Terrain,
    *,
    effort: Effort | None = None,
    seed: int = 0,
    advance: Advance | None = None,
) -> Estimate:
    """Predict every cell of a terrain with the named method.

    Parameters
    ----------
    name : str
        One of `METHODS`.
    terrain : Terrain
        What was measured.
    effort : Effort, optional
        How much to compute; the default suits the whole terrain.
    seed : int
        The same seed gives the same numbers.
    advance : callable, optional
        Called with the share of the work done.

    Raises
    ------
    SettingsError
        No method has this name.
    """
    from threadpoolctl import threadpool_limits

    method = choose([name])[name]
    advance = advance or (lambda share: None)
    with threadpool_limits(1):  # the arrays are small, so more threads cost more than they gain
        estimate = method(terrain, effort or Effort(), seed, advance)
    advance(1.0)
    return estimate


def choose(names: Sequence[str] | None) -> dict[str, MethodFunction]:
    """Return the named methods, or all for None; SettingsError for an unknown name."""
    unknown = [name for name in names or () if name not in METHODS]
    if unknown:
        raise SettingsError(f"no method is called {', '.join(unknown)}; choose from {', '.join(METHODS)}")
    return {name: function for name, function in METHODS.items() if names is None or name in names}


__all__ = ["FAST", "METHODS", "Advance", "Effort", "Estimate", "MethodFunction", "choose", "predict"]
