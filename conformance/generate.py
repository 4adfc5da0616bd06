"""Write the golden data sets: arrays, and the value of every reading of every score that is defined for them.

Run ``python conformance/generate.py``. It uses numpy, `conventions` and the transcriptions in ``tests/oracles``, and no
code of ``uq_tracking``, so that both can be held against it. The arrays are drawn with fixed seeds and rounded, so that
their decimal text is exact.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from conventions import ARRAYS, CONVENTIONS, Convention  # noqa: E402
from oracles import regression  # noqa: E402, F401  (enters its scores into LITERAL)
from oracles.classification import LITERAL as LITERAL_CLASSES  # noqa: E402
from oracles.literal import LITERAL, UndefinedScoreError  # noqa: E402

GOLDEN = HERE / "golden"
DIGITS = 6
SAME = 1e-12
Array = Any

OURS: dict[str, dict[str, str | int]] = {
    "ause_rmse": {
        "steps": "removed in steps of 1 % to 99 %",
        "divisor": "RMSE of all samples",
        "area": "trapezoids",
    },
    "ause_mae": {"steps": "removed one by one", "divisor": "MAE of all samples", "area": "mean"},
    "ence": {"bins": 10, "binning": "equal mass by rank, the larger bins first"},
    "uce": {"bins": 10, "binning": "equal mass by rank, the larger bins first"},
    "ace": {"bins": 10, "binning": "equal mass by rank, the larger bins first"},
}
"""What tells our readings that no entry of `CONVENTIONS` equals; each treats ties by their expectation."""

BY_NEWTON = ("cal_slope", "cal_offset")
"""Fits that `conventions` makes; the transcription's bisections would take minutes."""


def softmax(logits: Array) -> Array:
    """Return rows of probabilities rounded so that they add up to 1."""
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs = np.round(odds / odds.sum(axis=1, keepdims=True), DIGITS)
    probs[np.arange(len(probs)), probs.argmax(axis=1)] += 1 - probs.sum(axis=1)
    return np.round(probs, DIGITS)


def expit(x: Array) -> Array:
    """Return probabilities of log odds."""
    return 1 / (1 + np.exp(-x))


def event(
    seed: int, n: int, offset: float = 0.0, slope: float = 1.0, centre: float = 0.0
) -> tuple[Array, ...]:
    """Draw events whose true log odds are ``offset + slope`` times the stated ones."""
    rng = np.random.default_rng(seed)
    x = rng.normal(centre, 1.5, n)
    return (rng.random(n) < expit(offset + slope * x)).astype(int), np.round(expit(x), DIGITS)


def event_on_edges(seed: int, n: int, least: int = 0) -> tuple[Array, ...]:
    """Draw multiples of .05 from ``least / 20`` to ``1 - least / 20``, half of them on edges of ten bins."""
    rng = np.random.default_rng(seed)
    p = rng.integers(least, 21 - least, n) / 20
    return (rng.random(n) < 0.1 + 0.7 * p**2).astype(int), p


def classes(seed: int, n: int, c: int, sharper: float = 1.0) -> tuple[Array, ...]:
    """Draw labels from softmax rows, and state rows whose logits are multiplied."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, c))
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return np.minimum(labels, c - 1), softmax(sharper * logits)


def classes_tied(seed: int, n: int) -> tuple[Array, ...]:
    """Draw rows of twentieths, whose top classes and confidences are often tied, half of them on edges of ten bins."""
    rng = np.random.default_rng(seed)
    rows = np.array(
        [
            [8, 8, 4],
            [9, 9, 2],
            [10, 5, 5],
            [11, 8, 1],
            [4, 12, 4],
            [3, 13, 4],
            [3, 3, 14],
            [15, 3, 2],
            [0, 20, 0],
        ]
    )
    rows = rows / 20
    return rng.integers(0, 3, n), rows[rng.integers(0, len(rows), n)]


def classes_absent(seed: int, n: int) -> tuple[Array, ...]:
    """Draw five classes of which the last neither occurs nor is predicted."""
    labels, probs = classes(seed, n, 4, 1.3)
    return labels, np.hstack([probs, np.zeros((n, 1))])


def normal(
    seed: int, n: int, factor: float = 1.0, shift: float = 0.0, dof: float = math.inf
) -> tuple[Array, ...]:
    """Draw truths around means, with errors ``factor`` times the stated std."""
    rng = np.random.default_rng(seed)
    mu, s = rng.normal(0, 2, n), rng.gamma(3, 0.4, n) + 0.05
    noise = rng.normal(size=n) if math.isinf(dof) else rng.standard_t(dof, n)
    mu, s = np.round(mu, DIGITS), np.round(s, DIGITS)
    return np.round(mu + shift + factor * s * noise, DIGITS), mu, s


def normal_tied(seed: int, n: int) -> tuple[Array, ...]:
    """Draw few distinct stds and errors in steps of a quarter."""
    rng = np.random.default_rng(seed)
    mu, s = rng.integers(0, 8, n) / 4, rng.integers(1, 6, n) / 4
    return mu + np.round(4 * s * rng.normal(size=n)) / 4, mu, s


def constant_std(seed: int, n: int) -> tuple[Array, ...]:
    """Draw errors of one std."""
    y, mu, _ = normal(seed, n)
    return y, mu, np.full(n, 0.75)


def with_weights(arrays: tuple[Array, ...], seed: int) -> tuple[Array, ...]:
    """Add weights, most small and a few large."""
    weights = np.round(np.random.default_rng(seed).exponential(1, len(arrays[0])), 3) + 0.001
    return (*arrays, np.round(weights, 3))


def draws(seed: int, n: int, m: int, factor: float = 1.0) -> tuple[Array, ...]:
    """Draw members and truths from one law, the truth's spread times ``factor``."""
    rng = np.random.default_rng(seed)
    mu, s = rng.normal(0, 2, n), rng.gamma(3, 0.4, n) + 0.05
    members = mu[:, None] + s[:, None] * rng.normal(size=(n, m))
    return np.round(mu + factor * s * rng.normal(size=n), 4), np.round(members, 4)


def quantiles(seed: int, n: int, levels: list[float]) -> tuple[Array, ...]:
    """Draw predicted quantiles of a normal law, too narrow by a fifth."""
    from statistics import NormalDist

    y, mu, s = normal(seed, n)
    at = np.array([NormalDist().inv_cdf(q) for q in levels])
    return y, np.round(mu[:, None] + 0.8 * s[:, None] * at, DIGITS), np.array(levels)


def interval(seed: int, n: int) -> tuple[Array, ...]:
    """Draw 90 % intervals that hold too little."""
    y, mu, s = normal(seed, n)
    return y, np.round(mu - 1.4 * s, DIGITS), np.round(mu + 1.4 * s, DIGITS), 0.9


def interval_touched(seed: int, n: int) -> tuple[Array, ...]:
    """Draw intervals of which every third has the truth exactly at one of its ends."""
    y, mu, s = normal_tied(seed, n)
    low, high = mu - s, mu + s
    y = np.where(np.arange(n) % 3 == 0, low, np.where(np.arange(n) % 3 == 1, high, y))
    return y, low, high, 0.8


SETS: dict[str, tuple[str, str, tuple[Array, ...]]] = {
    "event-ten": (
        "event",
        "ten samples, to be checked by hand",
        (
            np.array([0, 0, 1, 0, 1, 1, 0, 1, 1, 1]),
            np.array([0.05, 0.12, 0.18, 0.31, 0.37, 0.52, 0.66, 0.71, 0.84, 0.97]),
        ),
    ),
    "event-odds": (
        "event",
        "the event is stated too low: its odds are twice the stated ones",
        event(1, 2000, math.log(2)),
    ),
    "event-extreme": ("event", "probabilities too extreme: slope 1 / 1.5", event(2, 1000, slope=1 / 1.5)),
    "event-rare": (
        "event",
        "an event of 1 %, stated three times too often",
        event(3, 2000, -math.log(3), centre=-4.0),
    ),
    "event-edges": (
        "event",
        "probabilities .05, .1 ... .95, half of them on edges of ten bins",
        event_on_edges(4, 400, 1),
    ),
    "event-certain": (
        "event",
        "probabilities 0, .05 ... 1; some certain forecasts are wrong",
        event_on_edges(5, 400),
    ),
    "event-weights": ("weighted event", "weights from .001 to 7", with_weights(event(6, 500, slope=0.7), 6)),
    "classes-3": ("classes", "three classes, calibrated", classes(7, 600, 3)),
    "classes-10": ("classes", "ten classes, logits 1.5 times too large", classes(8, 1000, 10, 1.5)),
    "classes-ties": (
        "classes",
        "rows of twentieths, with ties of classes and of confidences",
        classes_tied(9, 307),
    ),
    "classes-absent": (
        "classes",
        "five classes of which one neither occurs nor is predicted",
        classes_absent(10, 400),
    ),
    "normal-ten": ("normal", "ten samples, to be checked by hand", normal(11, 10)),
    "normal-calibrated": ("normal", "calibrated", normal(12, 1000)),
    "normal-overconfident": ("normal", "errors 1.6 times the stated ones", normal(13, 1000, 1.6)),
    "normal-biased": ("normal", "means too low by .5", normal(14, 503, shift=0.5)),
    "normal-tails": ("normal", "errors of Student's t with 3 degrees of freedom", normal(15, 707, dof=3)),
    "normal-ties": ("normal", "five distinct stds, errors in steps of a quarter", normal_tied(16, 400)),
    "normal-constant-std": ("normal", "one std for all", constant_std(17, 300)),
    "normal-weights": ("weighted normal", "weights from .001 to 6", with_weights(normal(18, 400), 18)),
    "normal-groups": (
        "grouped normal",
        "groups of very different size",
        (
            *normal(19, 400, 1.2),
            np.repeat(np.arange(6), (5, 15, 30, 50, 100, 200)),
        ),
    ),
    "draws-5": ("draws", "five members, spread right", draws(20, 300, 5)),
    "draws-40": ("draws", "forty members, truth spread 1.5 times as wide", draws(21, 200, 40, 1.5)),
    "quantiles-3": ("quantiles", "levels .05, .5, .95", quantiles(22, 400, [0.05, 0.5, 0.95])),
    "quantiles-9": ("quantiles", "levels .1 to .9", quantiles(23, 300, [k / 10 for k in range(1, 10)])),
    "interval-90": ("interval", "intervals that hold less than 90 %", interval(24, 500)),
    "interval-ends": ("interval", "truths exactly at the ends of intervals", interval_touched(25, 90)),
}


def value(compute: Callable[..., float], arrays: tuple[Array, ...]) -> float | None:
    """Return the score to 15 digits, or None where it has no finite value."""
    try:
        with np.errstate(all="ignore"):
            found = float(compute(*arrays))
    except (UndefinedScoreError, ZeroDivisionError, ValueError, IndexError, np.linalg.LinAlgError):
        return None
    return float(f"{found:.15g}") if math.isfinite(found) else None


def ours() -> list[Convention]:
    """Return the readings of uq_tracking, from the transcriptions of its definitions."""
    found = []
    for key, function in LITERAL.items():
        found.append(
            Convention(key, "normal", {}, lambda y, mu, s, f=function: f(y.tolist(), mu.tolist(), s.tolist()))
        )
    for key, score in LITERAL_CLASSES.items():
        if key in BY_NEWTON:
            continue
        found.append(
            Convention(key, "classes", {}, lambda labels, probs, f=score: f(labels.tolist(), probs.tolist()))
        )
        found.append(
            Convention(
                key,
                "event",
                {},
                lambda labels, p, f=score: f(labels.tolist(), np.stack([1 - p, p], axis=1).tolist()),
            )
        )
    return found


def agree(one: dict[str, float | None], other: dict[str, float | None]) -> bool:
    """Return True if two readings have the same values, and are undefined together."""
    return all(
        (a is None) == (b is None) and (a is None or math.isclose(a, b, rel_tol=SAME, abs_tol=SAME))
        for a, b in ((one[name], other[name]) for name in one)
    )


def readings() -> list[dict[str, Any]]:
    """Return each reading's score, kind, facts and values by data set; ours are marked."""
    rows: list[dict[str, Any]] = []
    for each in CONVENTIONS:
        names = [name for name, (kind, _, _) in SETS.items() if kind == each.kind]
        values = {name: value(each.compute, SETS[name][2]) for name in names}
        row = {
            "score": each.score,
            "kind": each.kind,
            "facts": each.facts,
            "text": each.text,
            "values": values,
        }
        rows.append(row | ({"ours": True} if each.score in BY_NEWTON else {}))
    for each in ours():
        names = [name for name, (kind, _, _) in SETS.items() if kind == each.kind]
        values = {name: value(each.compute, SETS[name][2]) for name in names}
        if all(found is None for found in values.values()):
            continue
        same = [row for row in rows if (row["score"], row["kind"]) == (each.score, each.kind)]
        same = [row for row in same if agree(row["values"], values)]
        if same:
            same[0]["ours"] = True
            continue
        facts = OURS.get(each.score, {"of": "as defined in docs/metrics.md"})
        if each.score in OURS:
            facts = facts | {"ties": "ties by their expectation"}
        text = Convention(each.score, each.kind, facts, each.compute).text
        rows.append(
            {
                "score": each.score,
                "kind": each.kind,
                "facts": facts,
                "text": text,
                "ours": True,
                "values": values,
            }
        )
    return rows


def write() -> None:
    """Write one JSON and one CSV file per data set, and the readings of every score."""
    GOLDEN.mkdir(exist_ok=True)
    for old in GOLDEN.iterdir():
        old.unlink()
    for name, (kind, about, arrays) in SETS.items():
        given = dict(zip(ARRAYS[kind], arrays, strict=True))
        content = {
            "kind": kind,
            "about": about,
            "arrays": {k: np.asarray(v).tolist() for k, v in given.items()},
        }
        (GOLDEN / f"{name}.json").write_text(json.dumps(content) + "\n", encoding="utf-8")
        columns: dict[str, Array] = {}
        for key, array in given.items():
            if np.ndim(array) == 2:
                columns |= {f"{key}_{k}": column for k, column in enumerate(array.T)}
            elif np.ndim(array) == 1 and len(array) == len(arrays[0]):
                columns[key] = array
        with (GOLDEN / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    lines = ",\n".join(json.dumps(row) for row in readings())
    (GOLDEN / "readings.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write()
