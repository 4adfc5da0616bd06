"""How often intervals hold the truth, and how often floors, verdicts and comparisons are wrong, by simulation.

    python benchmarks/intervals.py [REPEATS] [PART ...]

writes the tables of docs/evidence.md, between its markers: all, or those of the parts named (verdicts, tests,
regression, uneven, weights, floors, classification, series, losses). The truth is the score of two million samples.
Tests, which are quick, are repeated five times as often.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from scipy import special
from scipy.signal import lfilter

import uq_tracking as uq
from uq_tracking.inference.intervals import LeftOut, interval_table
from uq_tracking.inference.limits import Influence, sets_of
from uq_tracking.inference.paired import Paired, diebold_mariano, limits_by_groups
from uq_tracking.inputs.labels import Series
from uq_tracking.metrics.groups import size_freedom
from uq_tracking.metrics.registry import select
from uq_tracking.settings import Settings
from uq_tracking.statistics.classification import CLASSIFICATION
from uq_tracking.statistics.collecting import build_groups
from uq_tracking.statistics.groups import GroupTables
from uq_tracking.statistics.regression import REGRESSION

PAGE = Path(__file__).parents[1] / "docs" / "evidence.md"
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
    weigh: Callable[[np.random.Generator, np.ndarray], np.ndarray] | None = None
    """Weights of samples by their standard deviations."""

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
HEAVY, CLUSTERED = regression(1.0, 0.0, 3.0), regression(1.3, 0.6)
SURE, TOO_SURE = classification(1.0), classification(1.3)
SURE_TOO_SLIGHTLY = classification(1.05)


def exponential(rng: np.random.Generator, std: np.ndarray) -> np.ndarray:
    """Weights that have nothing to do with the standard deviations."""
    return 0.01 + rng.exponential(size=len(std))


def as_variance(rng: np.random.Generator, std: np.ndarray) -> np.ndarray:
    """Weights that grow as the variance."""
    return std**2


def inverse(rng: np.random.Generator, std: np.ndarray) -> np.ndarray:
    """Weights that fall with the standard deviation."""
    return 1 / std


WEIGHTS = {"exponential": exponential, "as the variance": as_variance, "as 1 / std": inverse}
WEIGHTED = [
    Setting(f"{name}, {weights}, {groups} groups", groups, draw, weigh=WEIGHTS[weights])
    for name, draw, weights in (
        ("calibrated", CALIBRATED, "exponential"),
        ("1.3 x", OFF, "exponential"),
        ("1.3 x", OFF, "as the variance"),
    )
    for groups in (12, 30)
]
UNEVEN = [
    Setting("calibrated, 12 unequal", 12, CALIBRATED, unequal=True),
    Setting("1.05 x, 30 unequal", 30, SLIGHTLY_OFF, unequal=True),
    Setting("1.3 x, 30 unequal", 30, OFF, unequal=True),
    *(Setting(f"1.3 x, {g} clustered", g, CLUSTERED) for g in (30, 60)),
    *(Setting(f"t(3) tails, {g} groups", g, HEAVY) for g in (12, 30, 300)),
]
SETTINGS = [
    *(Setting(f"calibrated, {g} groups", g, CALIBRATED) for g in (12, 30, 300)),
    *(Setting(f"1.05 x, {g} groups", g, SLIGHTLY_OFF) for g in (30, 300)),
    *(Setting(f"1.3 x, {g} groups", g, OFF) for g in (12, 30, 300)),
    *(Setting(f"calibrated, {g} groups", g, SURE, task="classification") for g in (12, 30, 300)),
    *(Setting(f"power 1.05, {g} groups", g, SURE_TOO_SLIGHTLY, task="classification") for g in (30, 300)),
    *(Setting(f"power 1.3, {g} groups", g, TOO_SURE, task="classification") for g in (12, 30, 300)),
    Setting("power 1.3, 30 unequal", 30, TOO_SURE, unequal=True, task="classification"),
]


def evaluated(setting: Setting, arrays: Arrays, weights: np.ndarray | None = None) -> uq.Report:
    """The report without groups."""
    shown = [*SHOWN[setting.task]]
    if setting.task == "classification":
        labels, probs = arrays
        return uq.evaluate(labels, probs=probs, metrics=shown)
    return uq.evaluate(*arrays, weights=weights, metrics=shown)


def grouped(arrays: Arrays, label: np.ndarray, weights: np.ndarray | None = None) -> GroupTables | None:
    """The groups' statistics, all that intervals are made of."""
    if len(arrays) == 2:
        return build_groups(CLASSIFICATION, uq.Predictions.from_probs(*arrays, groups=label))
    return build_groups(REGRESSION, uq.Predictions(*arrays, weights=weights, groups=label))


@lru_cache
def truth_of(
    draw: Callable[..., Arrays], task: str, weigh: Callable[..., np.ndarray] | None
) -> dict[str, float]:
    """Scores of two million samples."""
    setting, rng = (
        Setting("", TRUTH_GROUPS, draw, task=task, weigh=weigh),
        np.random.default_rng(TRUTH_GROUPS),
    )
    arrays, _ = setting.sample(rng, TRUTH_GROUPS)
    return dict(evaluated(setting, arrays, weighed(setting, rng, arrays)).scores)


def weighed(setting: Setting, rng: np.random.Generator, arrays: Arrays) -> np.ndarray | None:
    """The weights of the samples."""
    return None if setting.weigh is None else setting.weigh(rng, arrays[2])


@dataclass
class Counted:
    """Of how many sets a score got an interval, and of how many a wrong one."""

    made: int = 0
    wrong: int = 0


def coverage(setting: Setting, repeats: int, seed: int) -> dict[str, Counted]:
    """How many intervals are made, and how many do not hold the truth, by key."""
    rng = np.random.default_rng(seed)
    metrics = [m for m in select(setting.task) if m.key in SHOWN[setting.task]]
    truth = truth_of(setting.draw, setting.task, setting.weigh)
    counted = {key: Counted() for key in SHOWN[setting.task]}
    for _ in range(repeats):
        arrays, label = setting.sample(rng, setting.groups)
        weights = weighed(setting, rng, arrays)
        scores = evaluated(setting, arrays, weights).scores
        tables = grouped(arrays, label, weights)
        for key, (low, high) in interval_table(
            tables, Settings(), metrics, LEVEL, scores=scores
        ).values.items():
            held = low <= truth[key] * (1 + 1e-9) and truth[key] <= high * (1 + 1e-9) + 1e-12
            counted[key].made += 1
            counted[key].wrong += not held
    return counted


def coverage_table(settings: list[Setting], repeats: int) -> Iterable[str]:
    """A Markdown table: a row for each score, a column for each setting; and how many intervals of all are wrong."""
    task = settings[0].task
    found = [coverage(setting, repeats, number) for number, setting in enumerate(settings)]
    yield "| score | " + " | ".join(setting.name for setting in settings) + " |"
    yield "|---|" + "---|" * len(settings)
    for key in SHOWN[task]:
        yield f"| `{key}` | " + " | ".join(cell(counted[key], repeats) for counted in found) + " |"
    wrong = [
        (counted[key].wrong / repeats, f"`{key}`, {setting.name}")
        for counted, setting in zip(found, settings, strict=True)
        for key in SHOWN[task]
    ]
    wrong.sort(reverse=True)
    most = "; ".join(f"{share:.1%} ({where})" for share, where in wrong[:3])
    yield ""
    yield f"{repeats} sets each. Highest shares of wrong intervals, out of all sets (including refusals): {most}."


NO_ERROR = ("calibrated", "consistent with calibrated", "not enough data")
OF_SHAPE = (
    "overconfident in the tails",
    "overconfident, most in the tails",
    "too wide for most, too narrow for a few",
    "overconfident in few samples",
    "miscalibrated in shape",
)


def verdict_table(repeats: int) -> Iterable[str]:
    """A Markdown table of how often each word comes."""
    words = {
        "no miscalibration": NO_ERROR[:2],
        "not enough data": ("not enough data",),
        "overconfident": ("overconfident",),
        "underconfident": ("underconfident",),
        "in the tails or in shape": OF_SHAPE,
        "in places, or biased": ("miscalibrated in places", "biased"),
    }
    yield "| samples | factor | groups | " + " | ".join(words) + " | `p` of AUCE, ENCE (ECE) at most .05 |"
    yield "|---|---|---|" + "---|" * (len(words) + 1)
    cases = [
        (n, factor, None, regression(factor, 0.0))
        for n, factor in ((50, 1.0), (1500, 1.0), (1500, 1.05), (1500, 1.1), (1500, 1.3), (1500, 1 / 1.1))
    ]
    cases += [(1500, "1, t(3) tails", None, regression(1.0, 0.0, 3.0))]
    cases += [
        (50 * groups, factor, groups, regression(factor))
        for groups, factor in ((12, 1.0), (30, 1.0), (300, 1.0), (30, 1.1), (30, 1.3), (300, 1.05))
    ]
    cases += [
        (n, f"classes, power {power:g}", groups, classification(power))
        for power in (1.0, 1.05, 1.3)
        for n, groups in ((1500, None), (1500, 30), (15000, 300))
    ]
    for number, (n, factor, groups, draw) in enumerate(cases):
        rng, small = np.random.default_rng(number), []
        found: Counter[str] = Counter()
        for _ in range(repeats):
            label = np.arange(n) if groups is None else np.repeat(np.arange(groups), n // groups)
            report = judged(draw(rng, label), None if groups is None else label)
            found[report.verdict.calibration] += 1
            small.append([floor.p <= 0.05 for floor in report.noise.values()])
        name = factor if isinstance(factor, str) else f"{factor:.3g}"
        shares = [three(sum(found[one] for one in ones) / repeats) for ones in words.values()]
        p = ", ".join(three(share) for share in np.mean(small, axis=0))
        yield f"| {n} | {name} | {groups or 'none'} | " + " | ".join(shares) + f" | {p} |"


def three(share: float) -> str:
    """A share with three decimals."""
    return f"{share:.3f}".removeprefix("0")


def equal_methods(rng: np.random.Generator, groups: int, unequal: bool) -> tuple[bool, bool]:
    """Whether any of seven equally good methods is called worse than the best, and the second than the first."""
    (errors, _, std), label = Setting("", groups, CALIBRATED, unequal=unequal).sample(rng, groups)
    sizes, place = np.bincount(label), sets_of(groups)
    of_set = partial(np.bincount, place)
    squares = of_set(np.square(sizes.astype(float)))
    without, losses = [], []
    for _ in range(7):  # mean absolute errors, linear in the groups' sums
        size = np.bincount(label, np.abs(errors + 0.5 * std * rng.normal(size=len(errors))))
        losses.append(size.sum() / sizes.sum())
        without.append((size.sum() - of_set(size)) / (sizes.sum() - of_set(sizes)))
    left = LeftOut("", 0, groups, {}, {}, size_freedom(squares))
    best = int(np.argmin(losses))

    def differs(k: int, other: int, level: float) -> bool:
        found: Paired = limits_by_groups(
            losses[k] - losses[other], without[k] - without[other], [left], level
        )
        return not found.low <= 0 <= found.high

    of_pairs = 1 - (1 - LEVEL) / math.comb(7, 2)
    return any(differs(k, best, of_pairs) for k in range(7) if k != best), differs(1, 0, LEVEL)


def useless(rng: np.random.Generator, label: np.ndarray) -> Arrays:
    """Errors that have nothing to do with the stated standard deviations."""
    groups = label.max() + 1
    errors = np.sqrt(0.2) * rng.normal(size=groups)[label] + np.sqrt(0.8) * rng.normal(size=len(label))
    return errors, np.zeros(len(label)), np.exp(0.4 * rng.normal(size=len(label)))


def judged(arrays: Arrays, label: np.ndarray | None) -> uq.Report:
    """A report with its verdict, by groups where there are labels."""
    if len(arrays) == 2:
        labels, probs = arrays
        return uq.evaluate(labels, probs=probs, groups=label, metrics=["ece"])
    return uq.evaluate(*arrays, groups=False if label is None else label, metrics=["ence", "auce"])


def tests_table(repeats: int) -> Iterable[str]:
    """A Markdown table of how often each test rejects what is true."""
    yield "| data | calibration | scale | shape | places | ranking | bias | one of seven methods | one of two |"
    yield "|---|---|---|---|---|---|---|---|---|"
    cases = [(None, False), (8, False), (12, False), (30, False), (300, False), (12, True), (30, True)]
    for number, (groups, unequal) in enumerate(cases):
        rng = np.random.default_rng(1000 + number)
        setting = Setting(
            "", groups or 1500, regression(1.0, 0.0 if groups is None else 0.2), unequal=unequal
        )
        wrong = np.zeros(8)
        for _ in range(repeats):
            arrays, label = setting.sample(rng, setting.groups)
            if groups is None:
                arrays, label = setting.draw(rng, np.arange(1500)), np.arange(1500)
            known = None if groups is None else label
            verdict = judged(arrays, known).verdict
            ranking = judged(useless(rng, label), known).verdict.ranking
            wrong += [
                verdict.calibration not in NO_ERROR,
                not verdict.scale.low <= 1 <= verdict.scale.high,
                verdict.shape_p < 0.01,
                any(pattern.p < 0.02 for pattern in verdict.places.patterns),
                ranking in ("useful", "worse than constant"),
                not verdict.bias.low <= 0 <= verdict.bias.high,
                *((False, False) if groups is None else equal_methods(rng, groups, unequal)),
            ]
        shares = [three(share) for share in wrong / repeats]
        shares[6:] = ["", ""] if groups is None else shares[6:]
        name = "1500 independent samples" if groups is None else f"{groups} groups of 50"
        yield f"| {name}{', unequal' if unequal else ''} | " + " | ".join(shares) + " |"


def floors_table(repeats: int) -> Iterable[str]:
    """A Markdown table of how often floors and verdict reject calibrated forecasts whose samples have weights."""
    keys = ("ence", "uce", "auce", "pit_ks")
    yield "| weights | " + " | ".join(f"`{key}`" for key in keys) + " | scale | bias | calibration |"
    yield "|---|" + "---|" * (len(keys) + 3)
    for name, weigh in WEIGHTS.items():
        rng, wrong = np.random.default_rng(2000), np.zeros(len(keys) + 3)
        for _ in range(repeats):
            std = np.exp(0.5 * rng.normal(size=600))
            arrays = std * rng.normal(size=600), np.zeros(600), std
            report = uq.evaluate(*arrays, weights=weigh(rng, std), groups=False, metrics=list(keys))
            verdict = report.verdict
            wrong += [
                *(key in report.noise and report.noise[key].p <= 0.05 for key in keys),
                not verdict.scale.low <= 1 <= verdict.scale.high,
                not verdict.bias.low <= 0 <= verdict.bias.high,
                verdict.calibration not in NO_ERROR,
            ]
        yield f"| {name} | " + " | ".join(three(share) for share in wrong / repeats) + " |"


SERIES = [(times, phi) for times in (100, 300, 1000, 3000) for phi in (0.0, 0.5, 0.8, 0.9)]


def autoregressive(rng: np.random.Generator, times: int, phi: float) -> np.ndarray:
    """A series of variance 1 whose neighbors are correlated."""
    return lfilter([np.sqrt(1 - phi**2)], [1, -phi], rng.normal(size=times + 200))[200:]


def series_table(repeats: int) -> Iterable[str]:
    """A Markdown table of how often ``order=`` gives no interval, and how often those of three means miss them.

    Refused series count as not missed. Classes are right where the error is above -.5.
    """
    resampled = [partial(resampled_blocks, percentile=percentile) for percentile in (False, True)]
    yield (
        "| times | correlation | no interval | mean | mean square | classes: no interval | accuracy "
        "| block bootstrap, t: mean | mean square | block bootstrap, percentiles: mean | mean square |"
    )
    yield "|---|---|" + "---|" * 9
    for times, phi in SERIES:
        rng, missed = np.random.default_rng(3000), np.zeros(9)
        for _ in range(repeats):
            errors = autoregressive(rng, times, phi)
            right = (errors > -0.5).astype(float)
            means = ((errors, 0.0), (errors**2, 1.0), (right, float(special.ndtr(0.5))))
            left = [outside(left_out_blocks(values, rng), truth) for values, truth in means]
            refused = [too_alike(errors, np.abs(errors)), too_alike(right)]
            missed += [
                refused[0],
                *(not refused[0] and miss for miss in left[:2]),
                refused[1],
                not refused[1] and left[2],
                *(outside(limits(values, rng), truth) for limits in resampled for values, truth in means[:2]),
            ]
        yield f"| {times} | {phi:g} | " + " | ".join(three(share) for share in missed / repeats) + " |"


def too_alike(*losses: np.ndarray) -> bool:
    """Whether a series is one group, as its losses stay alike for longer than a block."""
    times = np.arange(len(losses[0]))
    return len(np.unique(Series(times).labels(times, losses))) == 1


def outside(limits: tuple[float, float], truth: float) -> bool:
    """Whether an interval misses the truth."""
    return not limits[0] <= truth <= limits[1]


def left_out_blocks(values: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """The intervals of ``order=``: the jackknife over blocks."""
    block = Series(np.arange(len(values))).blocks
    size, total = np.bincount(block), np.bincount(block, values)
    left = (total.sum() - total) / (size.sum() - size)
    return Influence.left_out(left, size_freedom(np.square(size))).limits(float(values.mean()), LEVEL)


def resampled_blocks(values: np.ndarray, rng: np.random.Generator, percentile: bool) -> tuple[float, float]:
    """The circular block bootstrap (Politis and Romano 1992) with blocks of the same length."""
    n, blocks = len(values), Series(np.arange(len(values))).blocks.max() + 1
    length = n // blocks
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([values, values[:length]]))])
    of_block = (sums[length : length + n] - sums[:n]) / length
    means = of_block[rng.integers(0, n, (400, blocks))].mean(axis=1)
    if percentile:
        low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(low), float(high)
    half = float(special.stdtrit(blocks - 1, (1 + LEVEL) / 2)) * float(means.std())
    return float(values.mean()) - half, float(values.mean()) + half


def losses_table(repeats: int) -> Iterable[str]:
    """A Markdown table of how often tests at 5 % reject series of losses that are equal on average."""
    ways = ("cosines", "Newey and West")
    yield (
        "| times | correlation | "
        + " | ".join(f"{of}, {way}" for of in ("losses", "squares") for way in ways)
        + " |"
    )
    yield "|---|---|---|---|---|---|"
    for times, phi in SERIES:
        rng, wrong = np.random.default_rng(4000), np.zeros((2, 2))
        for _ in range(repeats):
            series = [autoregressive(rng, times, phi) for _ in range(2)]
            for row, losses in enumerate((series, [np.square(one) for one in series])):
                wrong[row] += [diebold_mariano(*losses).p < 0.05, newey_west(losses[0] - losses[1])]
        yield f"| {times} | {phi:g} | " + " | ".join(three(share) for share in wrong.ravel() / repeats) + " |"


def newey_west(gap: np.ndarray) -> bool:
    """Whether the t test with Bartlett's weights of 1.3 sqrt(n) autocovariances rejects a mean of 0."""
    n, moved = len(gap), gap - gap.mean()
    lags = int(np.ceil(1.3 * np.sqrt(n)))
    spread = moved @ moved + 2 * sum(
        (1 - k / (lags + 1)) * (moved[k:] @ moved[:-k]) for k in range(1, lags + 1)
    )
    return bool(abs(gap.mean()) > special.stdtrit(n - 1, 0.975) * np.sqrt(spread) / n)


def cell(counted: Counted, repeats: int) -> str:
    """The coverage of the intervals that are made, and the share of refusals where there are many."""
    made = counted.made / repeats
    if made < 0.05:
        return "no interval"
    if made < 0.25:
        return f"no interval in {1 - made:.0%}"
    held, refused = 1 - counted.wrong / counted.made, f" ({1 - made:.0%} refused)" if made < 0.98 else ""
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
        "tests": ("tests", partial(tests_table, 5 * repeats)),
        "floors": ("floors of weights", partial(floors_table, 5 * repeats)),
        "series": ("series", partial(series_table, 5 * repeats)),
        "losses": ("losses", partial(losses_table, 5 * repeats)),
        "weights": ("coverage with weights", partial(coverage_table, WEIGHTED, repeats)),
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
