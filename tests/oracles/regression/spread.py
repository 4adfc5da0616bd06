"""How large and varied the uncertainties are, from the definitions."""

from __future__ import annotations

import math

from ..literal import Floats, UndefinedScoreError, divided, literal, mean


@literal
def cv(y: Floats, mu: Floats, s: Floats) -> float:
    if len(s) < 2:
        raise UndefinedScoreError("one standard deviation has no spread")
    if all(d == s[0] for d in s):
        return divided(0.0, float(s[0]), "the mean standard deviation")
    centre = mean([float(d) for d in s])
    spread = math.sqrt(math.fsum((float(d) - centre) ** 2 for d in s) / (len(s) - 1))
    return divided(spread, centre, "the mean standard deviation")


@literal
def sharpness(y: Floats, mu: Floats, s: Floats) -> float:
    return math.sqrt(mean([float(d) ** 2 for d in s]))


@literal
def mean_std(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([float(d) for d in s])
