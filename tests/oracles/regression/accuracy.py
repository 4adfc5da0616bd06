"""How good the means are, from the definitions."""

from __future__ import annotations

import math
from fractions import Fraction

from ..literal import Floats, UndefinedScoreError, errors, literal, mean


@literal
def mae(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([abs(e) for e in errors(y, mu)])


@literal
def rmse(y: Floats, mu: Floats, s: Floats) -> float:
    return math.sqrt(mean([e * e for e in errors(y, mu)]))


@literal
def trimmed_mae(y: Floats, mu: Floats, s: Floats, alpha: float = 0.95) -> float:
    a = sorted(abs(e) for e in errors(y, mu))
    return mean(a[: math.ceil(Fraction(str(alpha)) * len(a))])


@literal
def medae(y: Floats, mu: Floats, s: Floats) -> float:
    a = sorted(abs(e) for e in errors(y, mu))
    n = len(a)
    return a[n // 2] if n % 2 else (a[n // 2 - 1] + a[n // 2]) / 2.0


@literal
def bias(y: Floats, mu: Floats, s: Floats) -> float:
    return mean([-e for e in errors(y, mu)])


@literal
def r2(y: Floats, mu: Floats, s: Floats) -> float:
    if all(t == y[0] for t in y):
        raise UndefinedScoreError("all targets are equal")
    centre = mean([float(t) for t in y])
    total = math.fsum((float(t) - centre) ** 2 for t in y)
    return 1.0 - math.fsum(e * e for e in errors(y, mu)) / total
