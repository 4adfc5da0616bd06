"""How often the verdict of a regression is wrong about calibrated models, and right about others.

    python benchmarks/verdicts.py [CASE ...] [--sets K]

writes the rows of the tables of docs/evidence.md, between the markers "type one" and "power": all, or those whose
first cell contains one of the words, so that it can run in pieces. All take about ten minutes on one core.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import uq_tracking as uq

PAGE = Path(__file__).parents[1] / "docs" / "evidence.md"
RIGHT = ("calibrated", "consistent with calibrated", "not enough data")
SHARED = 0.2
"""Share of the variance of the errors that the samples of a group have in common."""
SPREAD = 0.6
"""Spread of the log of standard deviations, as where the tests were designed."""

Maker = Callable[[np.random.Generator, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Data:
    """How many samples there are, and how they are passed."""

    name: str
    n: int
    sets: int
    groups: int | None = None
    unequal: bool = False
    weights: str = ""
    how: str = ""
    designed: str = ""
    """Shares in the simulations by which the tests were designed: any word; or scale, and places."""

    def report(self, rng: np.random.Generator, make: Maker) -> uq.Report:
        """Evaluate one set; errors in stds and stds are made from calibrated ones."""
        std, mean = np.exp(SPREAD * rng.normal(size=self.n)), rng.normal(size=self.n)
        z, options = rng.normal(size=self.n), {}
        if self.groups is not None:
            share = rng.exponential(size=self.groups) if self.unequal else np.ones(self.groups)
            label = np.sort(rng.choice(self.groups, self.n, p=share / share.sum()))
            if not self.unequal:
                label = np.arange(self.n) * self.groups // self.n
            z = np.sqrt(SHARED) * rng.normal(size=self.groups)[label] + np.sqrt(1 - SHARED) * z
            options = {"groups": label}
        if self.weights:
            options = {"weights": rng.exponential(size=self.n) if self.weights == "exponential" else std**2}
        error, std = make(rng, z, std, mean)
        if self.how == "stream":
            stream = uq.Accumulator(metrics=["rmse"])
            for part in np.array_split(np.arange(self.n), 10):
                stream.update(mean[part] + error[part], mean[part], std[part])
            return stream.compute()
        how = "sketch" if self.how == "sketch" else "auto"
        return uq.evaluate(mean + error, mean, std, metrics=["rmse"], statistics=how, **options)


CASES = [
    Data("50 samples", 50, 400, designed=".036 and .038"),
    Data("300", 300, 300, designed=".027 and .048"),
    Data("500", 500, 200),
    Data("2000", 2000, 200, designed=".010 and .020"),
    Data("5000", 5000, 100),
    Data("20,000", 20_000, 60, designed=""),
    Data("100,000", 100_000, 20),
    Data("1,000,000", 1_000_000, 4, designed="0 of 2"),
    Data("8 groups of 50", 400, 400, 8, designed="scale .028, places .015"),
    Data("12 groups of 50", 600, 200, 12, designed="scale .052, places .010"),
    Data("30 groups of 50", 1500, 150, 30, designed="scale .030, places .025"),
    Data("300 groups of 50", 15_000, 60, 300, designed="scale .020, places .020"),
    Data("12 unequal groups, 600", 600, 200, 12, unequal=True, designed="scale .007, places .000"),
    Data("30 unequal groups, 1500", 1500, 150, 30, unequal=True, designed="scale .020, places .000"),
    Data("300, exponential weights", 300, 200, weights="exponential", designed=".023"),
    Data("300, weights std^2", 300, 200, weights="variance", designed=".035"),
    Data("2000, a sketch", 2000, 150, how="sketch"),
    Data("2000, a stream of ten batches", 2000, 150, how="stream"),
]


def calibrated(rng: Any, z: Any, std: Any, mean: Any) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the stated size."""
    return std * z, std


def scaled(factor: float) -> Maker:
    """Errors of another size."""

    def make(rng: Any, z: Any, std: Any, mean: Any) -> tuple[np.ndarray, np.ndarray]:
        return factor * std * z, std

    return make


def raised(power: float) -> Maker:
    """Errors that vary by a power of the stated std, and have its size on average."""

    def make(rng: Any, z: Any, std: Any, mean: Any) -> tuple[np.ndarray, np.ndarray]:
        true = std**power
        return true * z, std * np.sqrt(np.mean(np.square(true / std)))

    return make


def shrunk(slope: float) -> Maker:
    """Targets that are a multiple of the prediction, apart from noise."""

    def make(rng: Any, z: Any, std: Any, mean: Any) -> tuple[np.ndarray, np.ndarray]:
        return (slope - 1) * mean + std * z, std

    return make


def sided(bias: float) -> Maker:
    """A bias in stds by the sign of the prediction."""

    def make(rng: Any, z: Any, std: Any, mean: Any) -> tuple[np.ndarray, np.ndarray]:
        return std * (z + bias * np.sign(mean)), std

    return make


def halved(low: float, high: float) -> Maker:
    """Stds that are so many times the right ones, by the sign of the prediction."""

    def make(rng: Any, z: Any, std: Any, mean: Any) -> tuple[np.ndarray, np.ndarray]:
        return std * z, std * np.where(mean < 0, low, high)

    return make


def heavy(rng: Any, z: Any, std: Any, mean: Any) -> tuple[np.ndarray, np.ndarray]:
    """Errors with a t distribution of three degrees of freedom."""
    return std * z / np.sqrt(rng.chisquare(3, len(z))), std


FAULTS: dict[str, tuple[Maker, str]] = {
    "errors 1.1 times the stated size": (scaled(1.1), ""),
    "errors 1.3 times the stated size": (scaled(1.3), ""),
    "t(3) errors of the stated size": (heavy, ""),
    "true std ~ s^.5": (raised(0.5), ".99, 1.0; .94, 1.0"),
    "true std ~ s^.85": (raised(0.85), ".04, .99; .16, .50"),
    "y = 2 mu + e": (shrunk(2), "1.0, 1.0; -, -"),
    "y = 1.1 mu + e": (shrunk(1.1), ".09, .90; -, -"),
    "bias of .4 s by the sign of mu": (sided(0.4), "1.0, 1.0; 1.0, 1.0"),
    "bias of .1 s by the sign of mu": (sided(0.1), ".07, .79; -, -"),
    "std .8x and 1.17x by the sign of mu": (halved(0.8, 1.17), ".64, 1.0; .72, .98"),
    "std .95x and 1.05x by the sign of mu": (halved(0.95, 1.05), ".04, .20; -, -"),
}
POWER_OF = (
    "50 samples",
    "300",
    "2000",
    "5000",
    "100,000",
    "8 groups of 50",
    "12 groups of 50",
    "30 groups of 50",
)
POWER_OF += ("300 groups of 50", "300, exponential weights", "2000, a sketch")
POWER = [next(case for case in CASES if case.name == name) for name in POWER_OF]


def type_one(case: Data, sets: int) -> str:
    """Return a row of how often each statement on calibrated models is false."""
    wrong = np.zeros(5)
    for seed in range(sets):
        verdict = case.report(np.random.default_rng([seed, case.n, case.groups or 0]), calibrated).verdict
        places = () if verdict.places is None else verdict.places.found()
        scale, bias = verdict.scale, verdict.bias
        wrong += [
            verdict.calibration not in RIGHT,
            scale is not None and not scale.low <= 1 <= scale.high,
            verdict.calibration == "miscalibrated in shape",
            bool(places),
            bias is not None and not bias.low <= 0 <= bias.high,
        ]
    shares = " | ".join(three(share) for share in wrong / sets)
    return f"| {case.name} | {sets} | {shares} | {case.designed} |"


def power(fault: str, sets: int | None) -> str:
    """Return a row of how often an error is found."""
    make, designed = FAULTS[fault]
    shares = []
    for case in POWER:
        count = sets or (80 if case.n < 1500 else 40 if case.n < 10_000 else 10)
        found = 0
        for seed in range(count):
            verdict = case.report(np.random.default_rng([seed, case.n, 1]), make).verdict
            found += verdict.calibration not in RIGHT
        shares.append(f"{found / count:.2f}".removeprefix("0"))
    return f"| {fault} | {' | '.join(shares)} | {designed} |"


def three(share: float) -> str:
    """A share with three decimals."""
    return f"{share:.3f}".removeprefix("0")


def write(name: str, head: str, rows: Iterable[str]) -> None:
    """Replace rows of a table between its markers by those with the same first cell, or add them."""
    for row in rows:
        text = PAGE.read_text(encoding="utf-8")
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        old = text.split(start)[1].split(end)[0].splitlines()[2:]
        known = {line.split(" | ")[0]: line for line in old}
        known[row.split(" | ")[0]] = row
        lines = [head, re.sub(r"[^|]+", "---", head), *known.values()]
        PAGE.write_text(
            text.split(start)[0] + start + "\n".join(lines) + "\n" + end + text.split(end)[1],
            encoding="utf-8",
        )


def main() -> None:
    """Simulate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="first cells of rows, or parts of them; by default all")
    parser.add_argument("--sets", type=int, help="number of sets of each row")
    given = parser.parse_args()

    def wanted(name: str) -> bool:
        return not given.words or any(word in name for word in given.words)

    head = "| data | sets | any word | scale | shape | places | bias | any word, as designed |"
    cases = (case for case in CASES if wanted(case.name))
    write("type one", head, (type_one(case, given.sets or case.sets) for case in cases))
    head = f"| what is wrong | {' | '.join(case.name for case in POWER)} | designed: n 300, 2000; 12, 30 groups |"
    write("power", head, (power(fault, given.sets) for fault in FAULTS if wanted(fault)))


if __name__ == "__main__":
    main()
