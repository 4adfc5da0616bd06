"""The forms in which a forecast may come, one file each; a form of a plugin comes by the same hook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from uq_tracking import plugins
from uq_tracking.hookspecs import hookimpl

if TYPE_CHECKING:
    from uq_tracking.inputs.forms.form import Form


@hookimpl
def uq_forms() -> list[type[Form]]:
    """Forms of this package."""
    from uq_tracking.inputs.forms.distribution import Distribution, Mixture
    from uq_tracking.inputs.forms.draws import Draws
    from uq_tracking.inputs.forms.mean_std import Density, MeanStd
    from uq_tracking.inputs.forms.probabilities import Probabilities
    from uq_tracking.inputs.forms.quantiles import Interval, Quantiles

    return [MeanStd, Draws, Mixture, Quantiles, Interval, Distribution, Density, Probabilities]


def form_of(facts: Mapping[str, Any]) -> type[Form]:
    """Return the form that statistics or a report with these facts were made from."""
    known = plugins.forms()
    return known.get(facts.get("distribution") or "mean_std", known["mean_std"])
