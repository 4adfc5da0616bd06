"""How often intervals hold the truth, and how often floors, verdicts and comparisons are wrong, by simulation.

    python benchmarks/intervals.py [REPEATS] [PART ...]

writes the tables of docs/intervals.md, between its markers: all, or those of the parts named (verdicts, tests,
regression, uneven, classification). The truth is the score of two million samples.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

import uq_tracking as uq
from uq_tracking.inference.best import tied_with_best
from uq_tracking.inference.intervals import interval_table
from uq_tracking.inference.leave_out import leave_out
from uq_tracking.metrics.registry import select
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import build_groups
from uq_tracking.statistics.regression import REGRESSION

PAGE = Path(__file__).parents[1] / "docs" / "intervals.md"
TRUTH_GROUPS = 40_000
LEVEL = 0.95
SHOWN = {
    "regression": (
        "rmse", "mae", "bias", "nll", "crps", "coverage_95", "z_std", "ence", "uce", "auce", "calibration_error",
        "rmsce", "pit_ks", "ause_rmse", "n_merci", "spearman",
    ),
    "classification": ("accuracy", "nll", "brier", "ece", "ace", "mce", "ause_brier", "aurc"),
}  # fmt: skip
Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Setting:
    """How forecasts and truth are drawn."""

    name: str
    groups: int
    draw: Callable[[np.random.Generator, np.ndarray], Arrays]
    """``draw(rng, group of each sample)`` gives the arguments of evaluate."""
    size: int = 50
    unequal: bool = False
    task: str = "regression"

    def sample(self, rng: np.random.Generator, groups: int) -> tuple[Arrays, np.ndarray]:
        """Arguments of evaluate and the group of each sample."""
        sizes = np.full(groups, self.size)
        if self.unequal:
            sizes = np.maximum(5, (self.size * rng.exponential(size=groups)).astype(int))
        label = np.repeat(np.arange(groups), sizes)
        return self.draw(rng, label), label


def regression(factor: float, shared: float = 0.2, tails: float | None = None) -> Callable[..., Arrays]:
    """Errors ``factor`` times the stated ones, a share of whose variance a group has in common."""

    def draw(rng: np.random.Generator, label: np.ndarray) -> Arrays:
        n, groups = len(label), label.max() + 1
        std = np.exp(0.4 * rng.normal(size=groups))[label] * np.exp(0.3 * rng.normal(size=n))
        own = rng.normal(size=n) if tails is None else rng.standard_t(tails, n) / np.sqrt(tails / (tails - 2))
        z = np.sqrt(shared) * rng.normal(size=groups)[label] + np.sqrt(1 - shared) * own
        return factor * std * z, np.zeros(n), std

    return draw


def classification(power: float) -> Callable[..., Arrays]:
    """Probabilities to a power, of groups that differ in how hard they are."""

    def draw(rng: np.random.Generator, label: np.ndarray) -> Arrays:
        hard = np.exp(0.3 * rng.normal(size=label.max() + 1))[label]
        logits = 1.5 * rng.normal(size=(len(label), 4)) / hard[:, None]
        probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        truth = (rng.random(len(label))[:, None] > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
        sharp = probs**power
        return truth, sharp / sharp.sum(axis=1, keepdims=True)

    return draw


CALIBRATED, SLIGHTLY_OFF, OFF = regression(1.0), regression(1.05), regression(1.3)
HEAVY = regression(1.0, 0.0, 3.0)
SURE, TOO_SURE = classification(1.0), classification(1.3)
UNEVEN = [
    Setting("calibrated, 12 unequal", 12, CALIBRATED, unequal=True),
    Setting("1.05 x, 30 unequal", 30, SLIGHTLY_OFF, unequal=True),
    Setting("1.3 x, 30 unequal", 30, OFF, unequal=True),
    Setting("1.3 x, 30 clustered", 30, regression(1.3, 0.6)),
    *(Setting(f"t(3) tails, {g} groups", g, HEAVY) for g in (12, 30, 300)),
]
SETTINGS = [
    *(Setting(f"calibrated, {g} groups", g, CALIBRATED) for g in (12, 30, 300)),
    *(Setting(f"1.05 x, {g} groups", g, SLIGHTLY_OFF) for g in (30, 300)),
    *(Setting(f"1.3 x, {g} groups", g, OFF) for g in (12, 30, 300)),
    *(Setting(f"calibrated, {g} groups", g, SURE, task="classification") for g in (12, 30, 300)),
    *(Setting(f"power 1.3, {g} groups", g, TOO_SURE, task="classification") for g in (12, 30, 300)),
    Setting("power 1.3, 30 unequal", 30, TOO_SURE, unequal=True, task="classification"),
]


def evaluated(setting: Setting, arrays: Arrays, label: np.ndarray | None = None) -> uq.Report:
    """The report, with the groups' statistics where there are labels."""
    if setting.task == "classification":
        return uq.evaluate_classification(*arrays, groups=label, metrics=[*SHOWN["classification"]])
    return uq.evaluate(*arrays, metrics=[*SHOWN["regression"]])


@lru_cache
def truth_of(draw: Callable[..., Arrays], task: str) -> dict[str, float]:
    """Scores of two million samples."""
    setting = Setting("", TRUTH_GROUPS, draw, task=task)
    arrays, _ = setting.sample(np.random.default_rng(TRUTH_GROUPS), TRUTH_GROUPS)
    return dict(evaluated(setting, arrays).scores)


def coverage(setting: Setting, repeats: int, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """Share of the intervals that hold the truth, and of the samples that have one, by key."""
    rng = np.random.default_rng(seed)
    metrics = [m for m in select(setting.task) if m.key in SHOWN[setting.task]]  # type: ignore[arg-type]
    truth = truth_of(setting.draw, setting.task)
    held: dict[str, list[bool]] = defaultdict(list)
    for _ in range(repeats):
        arrays, label = setting.sample(rng, setting.groups)
        if setting.task == "classification":
            report = evaluated(setting, arrays, label)
            tables = report.statistics.groups
        else:
            report = evaluated(setting, arrays)
            tables = build_groups(REGRESSION, uq.Predictions(*arrays, groups=label))
        found = interval_table(tables, Settings(), metrics, LEVEL, scores=report.scores)
        for key, (low, high) in found.values.items():
            held[key].append(low <= truth[key] * (1 + 1e-9) and truth[key] <= high * (1 + 1e-9) + 1e-12)
    return (
        {key: float(np.mean(inside)) for key, inside in held.items()},
        {key: len(inside) / repeats for key, inside in held.items()},
    )


def coverage_table(settings: list[Setting], repeats: int) -> Iterable[str]:
    """A Markdown table: a row for each score, a column for each setting."""
    task = settings[0].task
    found = [coverage(setting, repeats, number) for number, setting in enumerate(settings)]
    yield "| score | " + " | ".join(setting.name for setting in settings) + " |"
    yield "|---|" + "---|" * len(settings)
    for key in SHOWN[task]:
        cells = [cell(held.get(key), made.get(key, 0.0)) for held, made in found]
        yield f"| `{key}` | " + " | ".join(cells) + " |"


def verdict_table(repeats: int) -> Iterable[str]:
    """A Markdown table of how often each word comes."""
    words = ("consistent with calibrated", "overconfident", "underconfident", "miscalibrated in shape")
    yield "| samples | factor | groups | " + " | ".join(words) + " | `p` of ENCE, AUCE at most .05 |"
    yield "|---|---|---|" + "---|" * (len(words) + 1)
    cases = [(n, f, None, None) for n, f in ((50, 1.0), (1500, 1.0), (1500, 1.05), (1500, 1.1), (1500, 1.3))]
    cases += [(1500, 1 / 1.1, None, None), (1500, 1.0, None, 3.0)]
    cases += [
        (50 * g, f, g, None) for g, f in ((12, 1.0), (30, 1.0), (300, 1.0), (30, 1.1), (30, 1.3), (300, 1.05))
    ]
    for number, (n, factor, groups, tails) in enumerate(cases):
        rng, small = np.random.default_rng(number), []
        found: Counter[str] = Counter()
        draw = regression(factor, 0.0 if groups is None else 0.2, tails)
        for _ in range(repeats):
            label = np.arange(n) if groups is None else np.repeat(np.arange(groups), n // groups)
            arrays = draw(rng, label)
            report = judged(arrays, None if groups is None else label)
            found[report.verdict.calibration] += 1
            small.append([report.noise[key].p <= 0.05 for key in ("ence", "auce")])
        shares = [f"{found[word] / repeats:.3f}".lstrip("0") for word in words]
        name = f"{factor:.3g}" + ("" if tails is None else f", t({tails:g}) tails")
        p = ", ".join(f"{share:.3f}".lstrip("0") for share in np.mean(small, axis=0))
        yield f"| {n} | {name} | {groups or 'none'} | " + " | ".join(shares) + f" | {p} |"


def equal_methods(rng: np.random.Generator, groups: int | None, unequal: bool) -> bool:
    """Whether any of seven methods that are equally good is called worse than the best."""
    setting = Setting("", groups or 200, CALIBRATED, unequal=unequal)
    (errors, mean, std), label = setting.sample(rng, setting.groups)
    left = []
    for _ in range(7):
        other = errors + 0.5 * std * rng.normal(size=len(errors))
        tables = build_groups(REGRESSION, uq.Predictions(other, mean, std, groups=label))
        left.append(leave_out(tables, Settings(), select("regression", ["crps"])))
    losses = np.asarray([one.whole["crps"] for one in left])
    return not tied_with_best(losses, np.stack([one.without["crps"] for one in left], axis=1)).all()


def useless(rng: np.random.Generator, label: np.ndarray) -> Arrays:
    """Errors that have nothing to do with the stated standard deviations."""
    groups = label.max() + 1
    errors = np.sqrt(0.2) * rng.normal(size=groups)[label] + np.sqrt(0.8) * rng.normal(size=len(label))
    return errors, np.zeros(len(label)), np.exp(0.4 * rng.normal(size=len(label)))


def judged(arrays: Arrays, label: np.ndarray | None) -> uq.Report:
    """A report with its verdict, by groups where there are labels."""
    report = uq.evaluate(*arrays, metrics=["ence", "auce"])
    if label is None:
        return report
    tables = build_groups(REGRESSION, uq.Predictions(*arrays, groups=label))
    return replace(report, statistics=replace(report.statistics, groups=tables))


def tests_table(repeats: int) -> Iterable[str]:
    """A Markdown table of how often each test rejects what is true."""
    yield "| data | calibration | scale | shape | ranking | bias | seven equal methods |"
    yield "|---|---|---|---|---|---|---|"
    cases = [(None, False), (8, False), (12, False), (30, False), (300, False), (12, True), (30, True)]
    for number, (groups, unequal) in enumerate(cases):
        rng = np.random.default_rng(1000 + number)
        setting = Setting(
            "", groups or 1500, regression(1.0, 0.0 if groups is None else 0.2), unequal=unequal
        )
        wrong = np.zeros(6)
        for _ in range(repeats):
            arrays, label = setting.sample(rng, setting.groups)
            if groups is None:
                arrays, label = setting.draw(rng, np.arange(1500)), np.arange(1500)
            known = None if groups is None else label
            verdict = judged(arrays, known).verdict
            ranking = judged(useless(rng, label), known).verdict.ranking
            wrong += [
                verdict.calibration != "consistent with calibrated",
                not verdict.scale.low <= 1 <= verdict.scale.high,
                verdict.shape_p < 0.025,
                ranking != "no better than constant",
                not verdict.bias.low <= 0 <= verdict.bias.high,
                groups is not None and equal_methods(rng, groups, unequal),
            ]
        shares = [f"{share:.3f}".lstrip("0") for share in wrong / repeats]
        shares[-1] = "" if groups is None else shares[-1]
        name = "1500 independent samples" if groups is None else f"{groups} groups of 50"
        yield f"| {name}{', unequal' if unequal else ''} | " + " | ".join(shares) + " |"


def cell(held: float | None, made: float) -> str:
    """The coverage of the intervals that are made, and the share of refusals where there are many."""
    if held is None or made < 0.05:
        return "no interval"
    if made < 0.25:
        return f"no interval in {1 - made:.0%}"
    refused = f" ({1 - made:.0%} refused)" if made < 0.98 else ""
    return (f"{held:.2f}".lstrip("0") if held < 0.995 else "1.0") + refused


def write(name: str, lines: Iterable[str]) -> None:
    """Replace what stands between the markers of a name."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    body = "\n".join(lines)
    PAGE.write_text(
        re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{body}\n{end}", text, flags=re.DOTALL),
        encoding="utf-8",
    )


def main() -> None:
    """Run what is asked for and write the page."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    of = {task: [setting for setting in SETTINGS if setting.task == task] for task in SHOWN}
    parts: dict[str, tuple[str, Callable[[], Iterable[str]]]] = {
        "verdicts": ("verdicts", partial(verdict_table, repeats)),
        "tests": ("tests", partial(tests_table, repeats)),
        "regression": ("coverage of regression", partial(coverage_table, of["regression"], repeats)),
        "uneven": ("coverage of uneven groups", partial(coverage_table, UNEVEN, repeats)),
        "classification": (
            "coverage of classification",
            partial(coverage_table, of["classification"], repeats),
        ),
    }
    for name in sys.argv[2:] or parts:
        title, make = parts[name]
        lines = list(make())
        print("\n".join(lines), flush=True)
        write(title, lines)


if __name__ == "__main__":
    main()
