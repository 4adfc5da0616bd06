"""Sets of data whose truth is known, and what a verdict must say of them: the contract of the sentence.

Whoever changes a word of the verdict changes it here. Each statement is judged on its own; where the truth cannot be
known from such data, not telling counts as right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import ndimage, stats

import uq_tracking as uq

FINE = ("calibrated", "consistent with calibrated")
UNKNOWN = ("not enough data",)
OVER = ("overconfident",)
TAILS = ("overconfident in the tails", "overconfident in few samples")
MOST = ("overconfident, most in the tails",)
UNDER = ("underconfident",)
PLACES = ("miscalibrated in places",)
SHAPE = ("miscalibrated in shape",)
ANY = (*FINE, *UNKNOWN, *OVER, *UNDER, *TAILS, *MOST, *PLACES, *SHAPE)
ANY += ("biased", "too wide for most, too narrow for a few")
USEFUL, FLAT, WORSE = ("useful",), ("no better than constant", "not enough data"), ("worse than constant",)
ANY_RANKING = (*USEFUL, *FLAT, *WORSE)


@dataclass(frozen=True)
class Scenario:
    """Data and the words that are right for them.

    Attributes
    ----------
    make : function of a random generator
        Returns what `uq.evaluate` takes, or what the option ``evaluate`` takes in its place.
    truth : str
        What is known of the data, in a few words.
    calibration, ranking : tuple of str
        Words that are right.
    bias : bool or None
        Whether predictions are too high or too low on average; None where either may be said.
    says, never : tuple of str
        Texts that the sentence, or its suspicions, must and must not contain.
    slow : bool
        Whether it is too slow for every run of the tests.
    metrics : tuple of str
        What is scored beside: little, since the verdict is the same.
    """

    name: str
    make: Callable[[np.random.Generator], tuple[tuple[Any, ...], dict[str, Any]]]
    truth: str
    calibration: tuple[str, ...]
    ranking: tuple[str, ...] = ANY_RANKING
    bias: bool | None = False
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    slow: bool = False
    metrics: tuple[str, ...] = ("rmse",)

    def verdict(self, seed: int) -> Any:
        """Judge one set."""
        arguments, options = self.make(np.random.default_rng([seed, len(self.name)]))
        evaluate = options.pop("evaluate", partial(uq.evaluate, metrics=self.metrics))
        return evaluate(*arguments, **options).verdict


SCENARIOS: dict[str, Scenario] = {}


def into(known: dict[str, Scenario], metrics: tuple[str, ...] = ("rmse",)) -> Callable[..., Any]:
    """Return the decorator that adds scenarios to these."""

    def scenario(
        truth: str,
        calibration: tuple[str, ...],
        ranking: tuple[str, ...] = ANY_RANKING,
        *,
        bias: bool | None = False,
        says: tuple[str, ...] = (),
        never: tuple[str, ...] = (),
        slow: bool = False,
    ) -> Callable[[Callable[[np.random.Generator], Any]], Callable[[np.random.Generator], Any]]:
        """Add a scenario, named after the function that makes its data; that returns arguments, or also options."""

        def add(make: Callable[[np.random.Generator], Any]) -> Callable[[np.random.Generator], Any]:
            def complete(rng: np.random.Generator) -> tuple[tuple[Any, ...], dict[str, Any]]:
                made = make(rng)
                return made if isinstance(made[-1], dict) else (made, {})

            name = make.__name__
            judged = (truth, calibration, ranking, bias, says, never, slow, metrics)
            known[name] = Scenario(name, complete, *judged)
            return make

        return add

    return scenario


scenario = into(SCENARIOS)


def spread_stds(rng: np.random.Generator, n: Any, spread: float = 0.6) -> np.ndarray:
    """Standard deviations that vary as those of real models do."""
    return np.exp(spread * rng.normal(size=n))


def series(rng: np.random.Generator, n: int, correlation: float) -> np.ndarray:
    """A first-order autoregressive series of variance 1."""
    noise = rng.normal(size=n) * np.sqrt(1 - correlation**2)
    noise[0] = rng.normal()
    for place in range(1, n):
        noise[place] += correlation * noise[place - 1]
    return noise


def field(rng: np.random.Generator, cases: int, side: int, blur: float) -> np.ndarray:
    """Maps of noise of variance 1 whose neighbors are alike, shape (cases, side, side)."""
    white = rng.normal(size=(cases, side, side))
    maps = ndimage.gaussian_filter(white, (0, blur, blur), mode="wrap")
    unit = ndimage.gaussian_filter(np.eye(1, side * side).reshape(side, side), blur, mode="wrap")
    return maps / np.sqrt(np.square(unit).sum())


# ---- the size of the standard deviations ----


def calibrated(rng: np.random.Generator, n: int, noise: Any = None) -> tuple[np.ndarray, ...]:
    s, mu = spread_stds(rng, n), 2 * rng.normal(size=n)
    return mu + s * (rng.normal(size=n) if noise is None else noise(n)), mu, s


@scenario("calibrated; 20 samples cannot show it", (*FINE, *UNKNOWN), (*FLAT, *USEFUL))
def calibrated_20(rng):
    return calibrated(rng, 20)


@scenario("calibrated", (*FINE, *UNKNOWN), (*FLAT, *USEFUL))
def calibrated_100(rng):
    return calibrated(rng, 100)


@scenario("calibrated", FINE, USEFUL)
def calibrated_500(rng):
    return calibrated(rng, 500)


@scenario("calibrated", FINE, USEFUL)
def calibrated_5000(rng):
    return calibrated(rng, 5000)


@scenario("calibrated, enough data to prove it", ("calibrated",), USEFUL, slow=True)
def calibrated_300_000(rng):
    return calibrated(rng, 300_000)


@scenario("calibrated, the same std for all", FINE, FLAT)
def calibrated_constant(rng):
    mu = rng.normal(size=1000)
    return mu + 0.7 * rng.normal(size=1000), mu, np.full(1000, 0.7)


@scenario(
    "1.5 times too small", OVER, USEFUL, says=("Recalibrate with std_scaling", "no miscalibration is found")
)
def too_small(rng):
    y, mu, s = calibrated(rng, 1000)
    return y, mu, s / 1.5


@scenario("1.5 times too small, 50 samples", (*OVER, *UNKNOWN), (*FLAT, *USEFUL))
def too_small_50(rng):
    y, mu, s = calibrated(rng, 50)
    return y, mu, s / 1.5


@scenario(
    "2 times too large", UNDER, USEFUL, says=("Recalibrate with std_scaling", "no miscalibration is found")
)
def too_large(rng):
    y, mu, s = calibrated(rng, 1000)
    return y, mu, 2 * s


@scenario("3 % too small: too little to matter much", OVER, USEFUL, says=("Slightly",), slow=True)
def slightly_too_small(rng):
    y, mu, s = calibrated(rng, 50_000)
    return y, mu, s / 1.035


@scenario("half a percent too small: too little to matter", FINE, USEFUL, slow=True)
def negligibly_too_small(rng):
    y, mu, s = calibrated(rng, 300_000)
    return y, mu, s / 1.005


# ---- tails and outliers ----


@scenario("heavy tails, right size", (*SHAPE, *TAILS, "too wide for most, too narrow for a few"), USEFUL)
def heavy_tails(rng):
    return calibrated(rng, 2000, lambda n: rng.standard_t(3, n) / np.sqrt(3))


@scenario(
    "errors of a skewed law, right size",
    SHAPE,
    USEFUL,
    says=("Recalibrate with cdf_isotonic", "no miscalibration is found"),
)
def skewed_errors(rng):
    return calibrated(rng, 1000, lambda n: rng.exponential(size=n) - 1)


@scenario(
    "errors of a skewed law, twice too large for their stds", OVER, USEFUL,
    says=("Recalibrate with cdf_isotonic", "no miscalibration is found"), never=("std_scaling",),
)  # fmt: skip
def skewed_errors_too_large(rng):
    y, mu, s = calibrated(rng, 2000, lambda n: rng.exponential(size=n) - 1)
    return y, mu, s / 2


@scenario("300 errors of a law so skewed that most samples lack its tail", (*SHAPE, *TAILS, *UNDER), USEFUL)
def log_normal_errors(rng):
    spread = np.sqrt((np.e - 1) * np.e)
    return calibrated(rng, 300, lambda n: (np.exp(rng.normal(size=n)) - np.exp(0.5)) / spread)


@scenario("heavy tails, 4 times too large", UNDER, USEFUL, slow=True)
def heavy_tails_too_large(rng):
    y, mu, s = calibrated(rng, 2000, lambda n: rng.standard_t(3, n) / np.sqrt(3))
    return y, mu, 4 * s


@scenario(
    "one error in fifty is ten times the stated size",
    TAILS,
    USEFUL,
    says=("Do not widen",),
    never=("Recalibrate",),
)
def outliers(rng):
    return calibrated(rng, 5000, lambda n: rng.normal(size=n) * np.where(rng.random(n) < 0.02, 10, 1))


@scenario("one corrupt target", (*FINE, *TAILS), ANY_RANKING, bias=None, says=("corrupt",))
def corrupt_target(rng):
    y, mu, s = calibrated(rng, 1000)
    y[rng.integers(1000)] = 1e6
    return y, mu, s


@scenario(
    "useful stds, one outlier where the std is smallest",
    (*TAILS, *FINE),
    USEFUL,
    bias=None,
    never=("Recalibrate",),
)
def outlier_at_the_smallest(rng):
    y, mu, s = calibrated(rng, 5000)
    place = np.argmin(s)
    y[place] = mu[place] + 300 * s[place]
    return y, mu, s


@scenario("errors follow a Student t, and so it is declared", FINE, USEFUL)
def declared_tails(rng):
    y, mu, s = calibrated(rng, 2000, lambda n: rng.standard_t(5, n) / np.sqrt(5 / 3))
    return (y, mu, s), {"family": "student_t", "dof": 5.0}


# ---- where it is wrong ----


@scenario(
    "std too small where small, too large where large", PLACES, USEFUL,
    says=("vary too much",), never=("Recalibrate with std_scaling",),
)  # fmt: skip
def varies_too_much(rng):
    s, mu = spread_stds(rng, 2000), rng.normal(size=2000)
    return mu + np.sqrt(s) * rng.normal(size=2000) * 1.05, mu, s


@scenario("the same of 450 samples", (*PLACES, *OVER), USEFUL, bias=None, says=("vary too much",))
def varies_too_much_in_few(rng):
    s, mu = spread_stds(rng, 450), rng.normal(size=450)
    return mu + np.sqrt(s) * rng.normal(size=450) * 1.05, mu, s


@scenario("std too large where small, too small where large", PLACES, USEFUL, says=("vary too little",))
def varies_too_little(rng):
    s, mu = spread_stds(rng, 2000, 0.4), rng.normal(size=2000)
    error = s**2 * rng.normal(size=2000)
    return mu + error, mu, s * np.sqrt(np.mean(s**2))


@scenario(
    "the truth is twice the prediction", ("biased", *OVER, *PLACES), says=("vary too little",),
    never=("Recalibrate",),
)  # fmt: skip
def shrunk(rng):
    s, mu = spread_stds(rng, 2000, 0.3), rng.normal(size=2000)
    return 2 * mu + s * rng.normal(size=2000), mu, s


@scenario(
    "bias of 0.4 std by the sign of the prediction", PLACES, USEFUL, says=("too low",),
    never=("Recalibrate", "no curve"),
)  # fmt: skip
def biased_by_prediction(rng):
    y, mu, s = calibrated(rng, 2000)
    return y + 0.4 * s * np.sign(mu), mu, s


@scenario("std 0.8 and 1.17 times the right one, by the sign of the prediction", PLACES, USEFUL)
def scale_by_prediction(rng):
    s, mu = spread_stds(rng, 4000), rng.normal(size=4000)
    return mu + s * np.where(mu > 0, 1.25, 0.85) * rng.normal(size=4000) / 1.07, mu, s


@scenario("constant std, errors grow with the prediction", PLACES, FLAT)
def constant_for_growing_errors(rng):
    mu = rng.gamma(4, 1, 2000)
    size = 0.3 * mu
    return mu + size * rng.normal(size=2000), mu, np.full(2000, np.sqrt(np.mean(size**2)))


def growing_noise(rng, n, bias=0.0):
    x = rng.uniform(0, 1, n)
    return 2 * x + bias + (0.3 + 1.7 * x) * rng.normal(size=n), 2 * x, np.full(n, 1.23)


@scenario(
    "the same std for all of 150 samples, noise that grows with predictions",
    (*PLACES, *OVER, *UNDER),
    bias=None,
)
def growing_noise_of_few(rng):
    return growing_noise(rng, 150)


@scenario(
    "the same of 1500 samples, and predictions .04 std too low", (*PLACES, *OVER, *UNDER), bias=None,
    says=("std_scaling to each fifth of the predictions",),
)  # fmt: skip
def growing_noise_and_slight_bias(rng):
    return growing_noise(rng, 1500, 0.05)


@scenario(
    "3 times too small, and predictions .1 of the true std too low", OVER, bias=None,
    says=("ecalibrate with std_",),
)  # fmt: skip
def too_small_and_low(rng):
    mu = 4 * rng.normal(size=1000)
    return mu + 0.12 + rng.normal(size=1000), mu, 0.33 * spread_stds(rng, 1000, 0.3)


@scenario(
    "2 times too small, predictions slightly too far out", OVER, bias=None, says=("ecalibrate with std_",)
)
def too_small_and_shrunk(rng):
    mu = 4 * rng.normal(size=500)
    return mu + 2 * rng.normal(size=500), 0.88 * mu, np.ones(500)


@scenario(
    "Poisson distributions of counts that vary more", (*OVER, *PLACES, *TAILS), bias=None,
    never=("multiply the spread about the mean",),
)  # fmt: skip
def overdispersed_counts(rng):
    mean = rng.gamma(2, 3, 600) + 0.3
    counts = rng.negative_binomial(3, 3 / (3 + mean)).astype(float)
    return (uq.Predictions.from_distribution(counts, stats.poisson(mean)),)


@scenario(
    "stds rise with predictions, too small where small, too large where large", PLACES, USEFUL,
    says=("vary too much", "Recalibrate with std_isotonic"), never=("where predictions are",),
)  # fmt: skip
def rising_together(rng):
    mu = np.exp(0.7 * rng.normal(size=4000))
    return mu + 0.3 * np.sqrt(mu) * rng.normal(size=4000), mu, 0.3 * mu


@scenario(
    "every prediction the same, calibrated", FINE, USEFUL, never=("predictions are small", "and of the")
)
def constant_prediction(rng):
    s = spread_stds(rng, 800)
    return s * rng.normal(size=800), np.zeros(800), s


@scenario(
    "constant std, 1.3 to 6 times too small, more where predictions are high", OVER, FLAT,
    says=("Overconfident: stated", "where predictions are"), never=("Recalibrate",),
)  # fmt: skip
def too_small_everywhere(rng):
    mu = rng.gamma(4, 1, 2000)
    return mu + (0.8 + 0.6 * mu) * rng.normal(size=2000), mu, np.full(2000, 0.9)


def sites(rng: np.random.Generator, n: int = 6000) -> tuple[np.ndarray, ...]:
    """Errors in stds, stds, predictions, and the site of each sample, one of twelve."""
    return rng.normal(size=n), spread_stds(rng, n), 2 * rng.normal(size=n), rng.integers(0, 12, n)


@scenario(
    "calibrated at each of twelve sites", FINE, USEFUL, says=("in any of 12 strata",),
    never=("stratum", "trata differ"),
)  # fmt: skip
def calibrated_sites(rng):
    z, s, mu, site = sites(rng)
    return (mu + s * z, mu, s), {"by": site}


@scenario(
    "one site of twelve 1.8 times too small", PLACES, USEFUL,
    says=("stratum '3' standard", "times too small", "no error found in the other 11"),
)  # fmt: skip
def one_site_too_small(rng):
    z, s, mu, site = sites(rng)
    return (mu + np.where(site == 3, 1.8, 1) * s * z, mu, s), {"by": site}


@scenario(
    "predictions 0.4 std too low at one site of twelve", PLACES, USEFUL, bias=None,
    says=("stratum '3' predictions are", "too low"),
)  # fmt: skip
def one_site_biased(rng):
    z, s, mu, site = sites(rng)
    return (mu + s * (z + 0.4 * (site == 3)), mu, s), {"by": site}


@scenario(
    "1.5 times too small everywhere but at one site", OVER, USEFUL,
    says=("Stratum '3' is the exception",), never=("Stratum '3' is 1",),
)  # fmt: skip
def one_site_calibrated(rng):
    z, s, mu, site = sites(rng)
    return (mu + np.where(site == 3, 1, 1.5) * s * z, mu, s), {"by": site}


@scenario(
    "two sets of labels: one organ of four 1.6 times too small, at all of six sites", PLACES, USEFUL,
    says=("stratum 'organ: 2' standard", "times too small", "no error found in the other 3"),
    never=("'site",),
)  # fmt: skip
def one_organ_too_small(rng):
    z, s, mu, site = sites(rng, 4000)
    organ = rng.integers(0, 4, 4000)
    return (mu + np.where(organ == 2, 1.6, 1) * s * z, mu, s), {"by": {"organ": organ, "site": site // 2}}


@scenario(
    "calibrated by two sets of labels",
    FINE,
    USEFUL,
    says=("in any of 10 strata",),
    never=("Stratum",),
    slow=True,
)
def calibrated_organs(rng):
    z, s, mu, site = sites(rng, 4000)
    return (mu + s * z, mu, s), {"by": {"organ": rng.integers(0, 4, 4000), "site": site // 2}}


@scenario("calibrated; all but one label have too few samples", (*FINE, *UNKNOWN), never=("tratum", "strata"))
def labels_with_few_samples(rng):
    y, mu, s = calibrated(rng, 300)
    return (y, mu, s), {"by": np.minimum(np.arange(300) // 15, 5)}


def in_rows(rng: np.random.Generator, sites: int, each: int) -> tuple[np.ndarray, ...]:
    """Errors in stds, stds, predictions, and the site of each sample; rows of a site follow each other."""
    n = sites * each
    return rng.normal(size=n), spread_stds(rng, n, 0.3), rng.normal(size=n), np.repeat(np.arange(sites), each)


@scenario(
    "rows site by site, so that neighbors are alike; one of eight 1.8 times too small", PLACES,
    says=("tratum '4' ", "no error found in the other 7"),
)  # fmt: skip
def one_site_in_rows(rng):
    z, s, mu, site = in_rows(rng, 8, 250)
    return (mu + np.where(site == 4, 1.8, 1) * s * z, mu, s), {"by": site}


@scenario(
    "rows site by site; predictions are 0.5 std too low at three sites, too high at three", PLACES,
    says=("stratum", "other strata too"), never=("Recalibrate",),
)  # fmt: skip
def biased_sites_in_rows(rng):
    z, s, mu, site = in_rows(rng, 6, 300)
    return (mu + s * (z + np.where(site % 2, 0.5, -0.5)), mu, s), {"by": site}


@scenario("a calibrated series, neighbors alike, by month", (*FINE, *UNKNOWN), never=("tratum '",), slow=True)
def calibrated_months(rng):
    s, mu = spread_stds(rng, 1200, 0.2), series(rng, 1200, 0.8)
    return (mu + s * series(rng, 1200, 0.9), mu, s), {"by": np.arange(1200) // 100}


@scenario(
    "thirty entities of 20 rows, one after the other, with errors of sizes of their own", PLACES, FLAT,
    says=("trat", "recalibrate each"), never=("nor in any",),
)  # fmt: skip
def panel_in_rows(rng):
    size, mu = np.exp(0.4 * rng.normal(size=30)), rng.normal(size=600)
    size = np.repeat(size / np.sqrt(np.mean(np.square(size))), 20)
    return (mu + size * rng.normal(size=600), mu, np.ones(600)), {"by": np.arange(600) // 20}


# ---- bias ----


@scenario(
    "0.3 std too low", ("biased", *SHAPE, *OVER), USEFUL, bias=True, says=("too low",), never=("Recalibrate",)
)
def biased(rng):
    s, mu = spread_stds(rng, 1000, 0.3), rng.normal(size=1000)
    return mu + s * (0.3 + rng.normal(size=1000)), mu, s


@scenario(
    "lognormal truth, its medians passed as means", ("biased", *MOST, *SHAPE), USEFUL, bias=None,
    says=("cdf_isotonic",), never=("Look at", "Add ", "add "),
)  # fmt: skip
def medians_as_means(rng):
    mu = np.exp(3 + rng.normal(size=800))
    return mu * np.exp(0.5 * rng.normal(size=800)), mu, 0.5 * mu


@scenario("0.2 std too low, and stds over orders of magnitude", ("biased", *OVER, *PLACES), USEFUL, bias=True)
def biased_at_all_sizes(rng):
    s = np.exp(2.5 * rng.normal(size=1000))
    mu = s * rng.normal(size=1000)
    return mu + s * (0.2 + rng.normal(size=1000)), mu, s


@scenario(
    "bias of a two-hundredth of a std: too little to matter", FINE, USEFUL, bias=None,
    never=("on average",), slow=True,
)  # fmt: skip
def negligibly_biased(rng):
    y, mu, s = calibrated(rng, 300_000)
    return y + 0.005 * s, mu, s


@scenario(
    "every prediction 0.4 too low: more stds where these are small", ("biased", *SHAPE), USEFUL, bias=True,
    never=("in places", "Recalibrate"),
)  # fmt: skip
def constant_offset(rng):
    y, mu, s = calibrated(rng, 2000)
    return y + 0.4, mu, s


@scenario(
    "0.05 std too low, 50,000 samples: slight",
    ("biased",),
    USEFUL,
    bias=True,
    says=("Slightly biased",),
    slow=True,
)
def slightly_biased(rng):
    y, mu, s = calibrated(rng, 50_000)
    return y + 0.05 * s, mu, s


# ---- samples that are not independent ----


@scenario("20 calibrated images, neighbors alike, nobody said so", (*FINE, *UNKNOWN), slow=True)
def images(rng):
    s, mu = spread_stds(rng, (20, 32, 32), 0.3), field(rng, 20, 32, 4)
    return mu + s * field(rng, 20, 32, 3), mu, s


@scenario("20 images, 1.5 times too small", OVER, slow=True)
def images_too_small(rng):
    s, mu = spread_stds(rng, (20, 32, 32), 0.3), field(rng, 20, 32, 4)
    return mu + 1.5 * s * field(rng, 20, 32, 3), mu, s


@scenario("12 calibrated images of three channels whose errors are alike", FINE, bias=None)
def images_of_alike_channels(rng):
    s, mu = spread_stds(rng, (12, 3, 32, 32), 0.3), field(rng, 36, 32, 4).reshape(12, 3, 32, 32)
    own, common = field(rng, 36, 32, 2).reshape(mu.shape), field(rng, 12, 32, 2)[:, None]
    return mu + s * (0.3 * own + np.sqrt(0.91) * common), mu, s


@scenario(
    "20 images, the exponentials of normal logs passed as means", (*MOST, *OVER, *SHAPE, "biased"), bias=None,
    says=("skewed", "cdf_isotonic"), never=("Look at", "std_scaling"),
)  # fmt: skip
def images_of_logs(rng):
    s, mu = 0.35 * spread_stds(rng, (20, 48, 48), 0.2), np.exp(0.5 * field(rng, 20, 48, 6))
    return mu * np.exp(s * field(rng, 20, 48, 2)), mu, s * mu


@scenario(
    "30 images, half of them of the night, 2 times too small", (*PLACES, *OVER), bias=None,
    says=("aps differ by more than chance", "pass it as by="), never=("no miscalibration is found",),
)  # fmt: skip
def half_of_the_images(rng):
    s, mu = spread_stds(rng, (30, 48, 48), 0.3), field(rng, 30, 48, 6)
    return mu + rng.permutation([1, 2] * 15)[:, None, None] * s * field(rng, 30, 48, 2), mu, s


@scenario(
    "15 calibrated images, each flipped to four sides, predictions nearly the same", UNKNOWN,
    says=("Score each pixel once, or pass groups=",),
)  # fmt: skip
def images_flipped(rng):
    s, mu, z = spread_stds(rng, (15, 40, 40), 0.3), field(rng, 15, 40, 4), field(rng, 15, 40, 2)
    y, mu, s = (np.concatenate([a, a[:, ::-1], a[:, :, ::-1], a[:, ::-1, ::-1]]) for a in (mu + s * z, mu, s))
    return y, mu + 0.02 * s * rng.normal(size=s.shape), s


@scenario(
    "20 calibrated images, padded with zeros to one size", ANY, bias=None, says=("If they are padding",),
)  # fmt: skip
def padded_images(rng):
    s, mu = spread_stds(rng, (20, 48, 48), 0.3), 3 + field(rng, 20, 48, 6)
    y = mu + s * field(rng, 20, 48, 2)
    is_padded = np.arange(48) >= rng.integers(30, 49, (2, 20, 1))
    outside = is_padded[0][:, :, None] | is_padded[1][:, None]
    return np.where(outside, 0, y), np.where(outside, 0, mu), np.where(outside, 1, s)


@scenario("one calibrated map, neighbors alike", (*FINE, *UNKNOWN))
def one_map(rng):
    s, mu = spread_stds(rng, (1, 128, 128), 0.3), field(rng, 1, 128, 6)
    return mu + s * field(rng, 1, 128, 3), mu, s


@scenario("one map whose errors are alike over a third of it: cannot be told", (*UNKNOWN, *FINE))
def one_smooth_map(rng):
    s, mu = spread_stds(rng, (1, 96, 96), 0.3), field(rng, 1, 96, 6)
    return mu + s * field(rng, 1, 96, 12), mu, s


@scenario("a calibrated series, neighbors alike", (*FINE, *UNKNOWN))
def autocorrelated(rng):
    s, mu = spread_stds(rng, 5000, 0.3), series(rng, 5000, 0.9)
    return mu + s * series(rng, 5000, 0.9), mu, s


@scenario("a series, 2 times too small", OVER, slow=True)
def autocorrelated_too_small(rng):
    s, mu = spread_stds(rng, 5000, 0.3), series(rng, 5000, 0.5)
    return mu + 2 * s * series(rng, 5000, 0.5), mu, s


@scenario("calibrated rows sorted by the truth: an order, but none in time", FINE, USEFUL)
def sorted_rows(rng):
    y, mu, s = calibrated(rng, 1000)
    place = np.argsort(y)
    return y[place], mu[place], s[place]


@scenario("40 groups that share a tenth of the variance", (*FINE, *UNKNOWN), (*USEFUL, *FLAT), slow=True)
def groups(rng):
    group = np.repeat(np.arange(40), 50)
    s, mu = spread_stds(rng, 2000, 0.4), rng.normal(size=2000)
    error = np.sqrt(0.1) * rng.normal(size=40)[group] + np.sqrt(0.9) * rng.normal(size=2000)
    return (mu + s * error, mu, s), {"groups": group}


def in_turn(rng: np.random.Generator, times: int, stations: int, correlation: float) -> np.ndarray:
    """Errors of stations, each correlated in time, shape (times, stations)."""
    return np.stack([series(rng, times, correlation) for _ in range(stations)], axis=1)


@scenario("calibrated rows of 24 stations in turn, each correlated in time (AR .8)", (*FINE, *UNKNOWN))
def stations_in_turn(rng):
    z = in_turn(rng, 100, 24, 0.8).ravel()
    s, mu = spread_stds(rng, 2400, 0.4), 3 * rng.normal(size=2400)
    return mu + s * z, mu, s


@scenario("calibrated rows of 24 stations in turn, each with an offset", (*FINE, *UNKNOWN))
def stations_with_offsets(rng):
    z = 0.8 * rng.normal(size=1440) + 0.6 * np.tile(rng.normal(size=24), 60)
    s, mu = spread_stds(rng, 1440, 0.4), 3 * rng.normal(size=1440)
    return mu + s * z, mu, s


@scenario("rows of 24 stations in turn, each correlated in time, 1.6 times too small", OVER)
def stations_in_turn_too_small(rng):
    z = in_turn(rng, 200, 24, 0.5).ravel()
    s, mu = spread_stds(rng, 4800, 0.4), 3 * rng.normal(size=4800)
    return mu + 1.6 * s * z, mu, s


def hourly(rng: np.random.Generator, amplitude: float, correlation: float = 0.0) -> tuple[np.ndarray, ...]:
    """Predictions, stds and errors of hourly data whose bias, in stds, has a daily cycle."""
    hour = 2 * np.pi * np.arange(2000) / 24
    s, mu = spread_stds(rng, 2000, 0.4), 10 + 3 * np.sin(hour) + rng.normal(size=2000)
    return mu, s, s * (amplitude * np.sin(hour + 1) + series(rng, 2000, correlation))


@scenario(
    "hourly data, predictions .8 std too low or too high by the hour", (*PLACES, *OVER), USEFUL,
    says=("rrors recur every 24 rows", "at each place in the period, add"), never=("Recalibrate with",),
)  # fmt: skip
def daily_bias(rng):
    mu, s, error = hourly(rng, 0.8)
    return mu + error, mu, s


@scenario(
    "the same, neighbors alike (AR .6)", (*PLACES, *OVER), bias=None,
    says=("rrors recur every 24 rows", "at each place in the period, add"), never=("Recalibrate with",),
)  # fmt: skip
def daily_bias_of_a_series(rng):
    mu, s, error = hourly(rng, 0.8, 0.6)
    return mu + error, mu, s


@scenario(
    "hourly data, errors .6 to 1.6 times the stated size by the hour", PLACES, USEFUL,
    says=("rrors recur every 24 rows", "Recalibrate each value of row % 24"),
    never=("Recalibrate with", ". Stated standard deviations are wrong"),
)  # fmt: skip
def daily_size(rng):
    mu, s, error = hourly(rng, 0.0)
    return mu + error * np.exp(0.5 * np.sin(2 * np.pi * np.arange(2000) / 24)), mu, s


@scenario(
    "a series whose last tenth is 3 times too small, with its order", (*TAILS, *PLACES),
    says=("n the last 10 % of the samples",), never=("no miscalibration",),
)  # fmt: skip
def last_tenth_too_small(rng):
    time, mu, s = np.arange(4000), 5 * rng.normal(size=4000), spread_stds(rng, 4000, 0.3)
    return (mu + s * rng.normal(size=4000) * np.where(time < 3600, 1, 3), mu, s), {"order": time}


@scenario(
    "20 patients, predictions of one 4 std too high", ("overconfident in few samples",), bias=None,
    says=("in group '7' (5 % of the samples)",), never=("no miscalibration",),
)  # fmt: skip
def one_patient_of_twenty(rng):
    patient, mu, s = np.repeat(np.arange(20), 200), 5 * rng.normal(size=4000), spread_stds(rng, 4000, 0.3)
    return (mu + s * (rng.normal(size=4000) - 4 * (patient == 7)), mu, s), {"groups": patient}


@scenario(
    "600 calibrated rows, each predicted five times with some noise",
    (*FINE, *UNKNOWN),
    says=("the 600 different ones",),
)
def several_passes(rng):
    row = rng.permutation(np.repeat(np.arange(600), 5))
    y, mu, s = (column[row] for column in calibrated(rng, 600))
    return y, mu + 0.05 * s * rng.normal(size=3000), s * np.exp(0.02 * rng.normal(size=3000))


@scenario(
    "calibrated; labels are decades of the truth", FINE, says=("intervals of the truth",), never=("stratum",)
)
def labels_of_the_truth(rng):
    mu, s = rng.uniform(20, 80, 5000), spread_stds(rng, 5000, 0.3)
    y = mu + 4 * s * rng.normal(size=5000)
    return (y, mu, 4 * s), {"by": (y // 10).astype(int)}


@scenario("50 hospitals, each with a bias (std .3)", PLACES, bias=None, says=("in each stratum of",))
def hospitals(rng):
    at, mu, s = rng.integers(0, 50, 10_000), 3 * rng.normal(size=10_000), spread_stds(rng, 10_000, 0.3)
    return (mu + s * (0.3 * rng.normal(size=50)[at] + rng.normal(size=10_000)), mu, s), {"by": at}


@scenario(
    "a constant offset, stds over orders of magnitude",
    ("biased",),
    bias=None,
    says=("Add 0.",),
    never=("vary too",),
)
def offset_of_a_sensor(rng):
    mu, s = 10 * rng.normal(size=4000), spread_stds(rng, 4000, 0.9)
    return mu + 0.5 + s * rng.normal(size=4000), mu, s


@scenario(
    "gamma variables of many shapes, with their means and stds", SHAPE, says=("some miscalibration is left",),
    never=("vary too", "no miscalibration"),
)  # fmt: skip
def shapes_by_prediction(rng):
    mean = np.exp(0.9 * rng.normal(size=8000))
    return rng.gamma(2 * mean) / 2, mean, np.sqrt(mean / 2)


@scenario(
    "counts, most of them 0, with their means and stds",
    SHAPE,
    bias=None,
    says=("State a distribution of whole numbers",),
    never=("vary too", "no miscalibration"),
)
def sparse_counts(rng):
    mean = np.exp(rng.normal(size=5000) - 1.2)
    return rng.poisson(mean).astype(float), mean, np.sqrt(mean)


@scenario(
    "Poisson distributions of rare counts, 1.5 times too low", ("biased", *OVER, *PLACES, *TAILS), USEFUL, bias=True,
    never=("Multiply the spread",),
)  # fmt: skip
def low_rare_counts(rng):
    rate = np.exp(0.7 * rng.normal(size=800) - 2.2)
    return (uq.Predictions.from_distribution(rng.poisson(1.5 * rate).astype(float), stats.poisson(rate)),)


@scenario("calibrated Poisson distributions of rare counts", FINE, USEFUL)
def rare_counts(rng):
    rate = np.exp(0.7 * rng.normal(size=800) - 2.2)
    return (uq.Predictions.from_distribution(rng.poisson(rate).astype(float), stats.poisson(rate)),)


@scenario(
    "24 maps, predictions .6 std too low at the right edge", PLACES, USEFUL, bias=None,
    says=("n columns 39:48 predictions are", "in that area, add"), never=("Recalibrate with",), slow=True,
)  # fmt: skip
def edge_of_maps(rng):
    z, s, mu = field(rng, 24, 48, 2), spread_stds(rng, (24, 48, 48), 0.4), 3 * rng.normal(size=(24, 48, 48))
    z[:, :, 38:] += 0.6
    return mu + s * z, mu, s


@scenario(
    "24 maps, 1.8 times too small within 5 pixels of the border", (*PLACES, *OVER), USEFUL, bias=None,
    says=("recalibrate each separately",), never=("no miscalibration is found",), slow=True,
)  # fmt: skip
def border_of_maps(rng):
    z, s, mu = field(rng, 24, 48, 2), spread_stds(rng, (24, 48, 48), 0.4), 3 * rng.normal(size=(24, 48, 48))
    inner = np.s_[:, 5:-5, 5:-5]
    z[inner] /= 1.8
    return mu + 1.8 * s * z, mu, s


@scenario("calibrated frames of a video, each like the one before (AR .8)", (*FINE, *UNKNOWN))
def frames(rng):
    noise, z = field(rng, 60, 16, 2), np.zeros((60, 16, 16))
    z[0] = noise[0]
    for time in range(1, 60):
        z[time] = 0.8 * z[time - 1] + 0.6 * noise[time]
    s, mu = spread_stds(rng, z.shape, 0.4), 3 * rng.normal(size=z.shape)
    return mu + s * z, mu, s


@scenario("ten calibrated frames of a video, nearly alike", (*FINE, *UNKNOWN))
def few_frames(rng):
    z = ndimage.gaussian_filter(rng.normal(size=(10, 48, 48)), (3, 2, 2), mode="wrap")
    z /= z.std()
    s, mu = spread_stds(rng, z.shape, 0.3), 3 * rng.normal(size=z.shape)
    return mu + s * z, mu, s


def voxels(rng: np.random.Generator, factor: float) -> tuple[np.ndarray, ...]:
    """A volume whose neighbors are alike, and errors of so many times the stated size."""
    z = ndimage.gaussian_filter(rng.normal(size=(48, 48, 48)), 1.4, mode="wrap")
    s, mu = spread_stds(rng, z.shape, 0.3), 3 * rng.normal(size=z.shape)
    return mu + factor * s * z / z.std(), mu, s


@scenario("a calibrated volume of 48 slices, each like the one before", FINE, slow=True)
def volume(rng):
    return voxels(rng, 1.0)


@scenario("a volume of 48 slices, 1.3 times too small", OVER, slow=True)
def volume_too_small(rng):
    return voxels(rng, 1.3)


def overlapping(
    rng: np.random.Generator, origins: int, leads: int, correlation: float
) -> tuple[np.ndarray, ...]:
    """Exact forecasts, with their stds, of a series for several leads from each origin, shape (origins, leads)."""
    z = series(rng, origins + leads, correlation)
    origin, lead = np.arange(origins)[:, None], np.arange(1, leads + 1)
    std = np.sqrt(1 - correlation ** (2 * lead)) * np.ones((origins, 1))
    return z[origin + lead], z[origin] * correlation**lead, std


@scenario("exact forecasts for 24 leads from each of 200 origins, whose errors overlap", (*FINE, *UNKNOWN))
def overlapping_origins(rng):
    return overlapping(rng, 200, 24, 0.9)


@scenario("the same forecasts in one column, origin by origin", (*FINE, *UNKNOWN))
def overlapping_origins_in_rows(rng):
    return tuple(each.ravel() for each in overlapping(rng, 200, 24, 0.9))


@scenario("exact forecasts of a random walk ten steps ahead, in order", (*FINE, *UNKNOWN))
def ten_steps_ahead(rng):
    walk = np.cumsum(rng.normal(size=610))
    return walk[10:], walk[:600], np.full(600, np.sqrt(10))


@scenario("calibrated rows, sorted by their absolute error", FINE)
def sorted_by_error(rng):
    y, mu, s = calibrated(rng, 500)
    order = np.argsort(-np.abs(y - mu))
    return y[order], mu[order], s[order]


@scenario("an array of 24 series of 30 steps: calibrated", (*FINE, *UNKNOWN))
def array_of_series(rng):
    mu, s = 3 * rng.normal(size=(24, 30)), spread_stds(rng, (24, 30), 0.3)
    return mu + s * np.stack([series(rng, 30, 0.6) for _ in range(24)]), mu, s


@scenario("an array of 60 steps of 16 series: 1.5 times too small", OVER)
def array_of_series_too_small(rng):
    mu, s = 3 * rng.normal(size=(60, 16)), spread_stds(rng, (60, 16), 0.3)
    return mu + 1.5 * s * np.stack([series(rng, 60, 0.6) for _ in range(16)], axis=1), mu, s


@scenario(
    "depth maps of 30 images, each with a scale of its own: errors of an image are all alike",
    OVER, ANY_RANKING, bias=None, says=("about 30 independent ones",),
)  # fmt: skip
def scale_of_each_image(rng):
    depth = 3 + 10 * rng.random((30, 24, 24))
    mean = depth * np.exp(0.15 * rng.normal(size=(30, 1, 1))) * (1 + 0.01 * rng.normal(size=depth.shape))
    return depth, mean, 0.05 * mean


def panel(rng: np.random.Generator, bias: float) -> tuple[tuple[np.ndarray, ...], dict[str, np.ndarray]]:
    """Eight stores by week, whose errors last for some; those of the first are biased by so many stds."""
    mu, store = 3 * rng.normal(size=1600), np.repeat(np.arange(8), 200)
    z = np.concatenate([series(rng, 200, 0.5) for _ in range(8)]) + bias * (store == 0)
    return (mu + z, mu, np.ones(1600)), {"by": store, "order": np.tile(np.arange(200), 8)}


@scenario("200 weeks of eight stores: calibrated", (*FINE, *UNKNOWN), ANY_RANKING, never=("tratum",))
def stores_by_week(rng):
    return panel(rng, 0.0)


@scenario(
    "the same, one store 1.5 std too low", (*PLACES, *OVER), ANY_RANKING, bias=None,
    says=("n stratum '0' predictions are",), never=("to each prediction",),
)  # fmt: skip
def one_store_too_low(rng):
    return panel(rng, 1.5)


@scenario("an array of 40 stations and 60 dates, whose errors share the date: calibrated", (*FINE, *UNKNOWN))
def stations_and_dates(rng):
    mu, s = 3 * rng.normal(size=(40, 60)), spread_stds(rng, (40, 60), 0.3)
    return mu + s * (np.sqrt(0.5) * rng.normal(size=60) + np.sqrt(0.5) * rng.normal(size=(40, 60))), mu, s


@scenario(
    "the same, and errors of a station are alike too", ANY, ANY_RANKING, bias=None,
    says=("alike in each row of the array, and in each column too", "a date as groups="),
)  # fmt: skip
def stations_alike_and_dates(rng):
    mu, s = 3 * rng.normal(size=(40, 60)), spread_stds(rng, (40, 60), 0.3)
    shared = np.sqrt(0.3) * (rng.normal(size=60) + rng.normal(size=(40, 1)))
    return mu + s * (shared + np.sqrt(0.4) * rng.normal(size=(40, 60))), mu, s


@scenario(
    "volatile times and quiet ones follow each other (GARCH); stds are constant, of the right size",
    (*FINE, *UNKNOWN, *SHAPE, *TAILS, *MOST), FLAT,
    says=("calm and wild spells, which the standard deviations do not follow",),
)  # fmt: skip
def volatile_times(rng):
    error, variance = np.empty(3000), 1.0
    for place in range(3000):
        error[place] = np.sqrt(variance) * rng.normal()
        variance = 0.05 + 0.15 * error[place] ** 2 + 0.8 * variance
    mu = 0.1 * np.cumsum(rng.normal(size=3000))
    return mu + error, mu, np.ones(3000)


@scenario(
    "volatility that lasts for 50 rows; stds are those of the last 60 errors", (*FINE, *OVER, *SHAPE, *TAILS, *MOST),
    bias=None, says=("which the standard deviations follow in part at most: give more weight to recent errors",),
)  # fmt: skip
def stds_of_recent_errors(rng):
    size, mu = np.exp(0.5 * series(rng, 2060, 0.98)), 10 + 3 * np.sin(np.arange(2000) / 4)
    error = size * rng.normal(size=2060)
    stds = np.lib.stride_tricks.sliding_window_view(error, 60)[:-1].std(axis=1)
    return (mu + error[60:], mu, stds), {"order": np.arange(2000)}


@scenario(
    "an array of 30 stations and 365 dates, whose weather lasts for days: calibrated", (*FINE, *UNKNOWN)
)
def stations_and_days(rng):
    mu, shared = 3 * rng.normal(size=(30, 365)), series(rng, 365, 0.7)
    return mu + np.sqrt(0.4) * shared + np.sqrt(0.6) * rng.normal(size=(30, 365)), mu, np.ones((30, 365))


@scenario("the same in one column, station by station", (*FINE, *UNKNOWN))
def stations_and_days_in_rows(rng):
    return tuple(np.ravel(column) for column in stations_and_days(rng))


@scenario(
    "groups= are dates, each like the one before", ANY, ANY_RANKING, bias=None,
    says=("Each group has errors like those of the group before", "by order="),
)  # fmt: skip
def dates_as_groups(rng):
    mu, shared = 3 * rng.normal(size=(100, 20)), series(rng, 100, 0.8)[:, None]
    y = mu + np.sqrt(0.5) * shared + np.sqrt(0.5) * rng.normal(size=(100, 20))
    return (y.ravel(), mu.ravel(), np.ones(2000)), {"groups": np.repeat(np.arange(100), 20)}


@scenario(
    "groups= are patients, by= their visits: stds too large at first, too small later", PLACES, bias=None,
    says=("n stratum", "recalibrate each stratum"), never=("First check",),
)  # fmt: skip
def visits_of_patients(rng):
    visit, mu = np.tile(np.arange(8), 150), 3 * rng.normal(size=1200)
    y = mu + (0.5 + visit / 7) * rng.normal(size=1200)
    return (y, mu, np.ones(1200)), {"groups": np.repeat(np.arange(150), 8), "by": visit}


@scenario(
    "each error is like the one before with the other sign: calibrated", (*FINE, *UNKNOWN), FLAT, never=("spells",)
)  # fmt: skip
def alternating_errors(rng):
    mu = 3 * rng.normal(size=800)
    return (mu + series(rng, 800, -0.5), mu, np.ones(800)), {"order": np.arange(800)}


# ---- drift ----


def in_time(rng: np.random.Generator, n: int = 2000) -> tuple[np.ndarray, ...]:
    """Errors in stds, stds, predictions, and times from 0 to 1, in whose order rows are not."""
    return rng.normal(size=n), spread_stds(rng, n, 0.4), rng.normal(size=n), rng.permutation(n) / n


@scenario("calibrated, the order given", FINE, USEFUL, never=("Drift",), slow=True)
def calibrated_in_time(rng):
    z, s, mu, time = in_time(rng)
    return (mu + s * z, mu, s), {"order": time}


@scenario(
    "errors grow from 0.8 to 2 times the stated size, the order given", (*OVER, *PLACES), USEFUL,
    says=("Drift along the order of the samples: errors grow", "no fixed correction will hold"),
    never=("Recalibrate",), slow=True,
)  # fmt: skip
def drift_of_scale(rng):
    z, s, mu, time = in_time(rng)
    return (mu + (0.8 + 1.2 * time) * s * z, mu, s), {"order": time}


@scenario(
    "predictions drift from 0.4 std too low to 0.4 std too high, the order given", PLACES, USEFUL, bias=None,
    says=("Drift along the order of the samples: predictions are", "no fixed correction will hold"),
    never=("Recalibrate",), slow=True,
)  # fmt: skip
def drift_of_bias(rng):
    z, s, mu, time = in_time(rng)
    return (mu + s * (z + 0.4 - 0.8 * time), mu, s), {"order": time}


@scenario(
    "rows in the order of time: errors shrink from twice the stated size to 0.7 times; nobody said so",
    (*OVER, *PLACES), says=("errors shrink", "no fixed correction will hold"), never=("Recalibrate",),
)  # fmt: skip
def drift_in_rows(rng):
    z, s, mu, _ = in_time(rng)
    return mu + np.linspace(2, 0.7, 2000) * s * z, mu, s


@scenario(
    "rows in the order of time: predictions drift from 2 std too high to 2 std too low; nobody said so", PLACES,
    bias=None, says=("Drift along the order of the samples: predictions are",), never=("Recalibrate",),
)  # fmt: skip
def drift_of_bias_in_rows(rng):
    z, s, mu, _ = in_time(rng, 1000)
    return mu + s * (z + np.linspace(-2, 2, 1000)), mu, s


@scenario(
    "batches in the order of time: errors grow from 0.8 to 2 times the stated size", (*OVER, *PLACES),
    says=("errors grow",), never=("Recalibrate",), slow=True,
)  # fmt: skip
def stream_drifts(rng):
    z, s, mu, _ = in_time(rng)
    return (mu + np.linspace(0.8, 2, 2000) * s * z, mu, s), {"evaluate": partial(streamed, batch=100)}


@scenario(
    "a series whose errors are three times the stated size in the middle", (*OVER, *PLACES), bias=None,
    says=("etween 40 % and 60 % of the way", "Find out what is special there"), never=("Recalibrate",),
)  # fmt: skip
def burst_of_scale(rng):
    y, mu, s = calibrated(rng, 1500)
    y[600:900] = mu[600:900] + 3 * (y - mu)[600:900]
    return (y, mu, s), {"order": np.arange(1500)}


@scenario(
    "a series whose predictions are a std too low in the middle", (*OVER, *PLACES, "biased"), bias=None,
    says=("between 40 % and 60 %",), never=("Recalibrate",),
)  # fmt: skip
def burst_of_bias(rng):
    y, mu, s = calibrated(rng, 1500)
    y[600:900] += s[600:900]
    return (y, mu, s), {"order": np.arange(1500)}


@scenario(
    "order=: the last 30 % of 400 rows 1.5 std too low", (*PLACES, *OVER), bias=None, says=("n the last",)
)
def breaks_late(rng):
    mu, late = rng.normal(size=400), np.arange(400) >= 280
    return (mu + 1.5 * late + rng.normal(size=400), mu, np.ones(400)), {"order": np.arange(400)}


@scenario(
    "order=: errors of the last 30 % of 500 rows twice the stated size", (*OVER, *PLACES), says=("n the last",)
)  # fmt: skip
def breaks_in_size(rng):
    mu, late = rng.normal(size=500), np.arange(500) >= 350
    return (mu + (1 + late) * rng.normal(size=500), mu, np.ones(500)), {"order": np.arange(500)}


@scenario("sixty maps in time, the last quarter .5 std too low", PLACES, bias=None, says=("n the last",))
def maps_break_late(rng):
    mu, late = 3 * rng.normal(size=(60, 16, 16)), np.arange(60)[:, None, None] >= 45
    return mu + 0.5 * late + rng.normal(size=mu.shape), mu, np.ones(mu.shape)


# ---- ranking ----


@scenario("stds that say nothing of the errors", (*PLACES, *SHAPE, *OVER, *TAILS), FLAT)
def uninformative(rng):
    s, mu = spread_stds(rng, 2000, 0.5), rng.normal(size=2000)
    return mu + np.sqrt(np.mean(s**2)) * rng.normal(size=2000), mu, s


@scenario(
    "stds are the spread of three draws, which say nothing: the smallest are far too small",
    (*PLACES, *OVER, "overconfident, most in the tails"), FLAT,
    never=("is the truth in another unit", "Look at that one"),
)  # fmt: skip
def stds_of_three(rng):
    s, mu = np.sqrt(rng.chisquare(2, 1000) / 2), 3 * rng.normal(size=1000)
    return mu + rng.normal(size=1000), mu, s


@scenario("larger stds go with smaller errors", (*PLACES, *SHAPE, *OVER, *TAILS), WORSE)
def reversed_stds(rng):
    s, mu = spread_stds(rng, 2000, 0.5), rng.normal(size=2000)
    return mu + rng.normal(size=2000) / s, mu, s


# ---- what was passed is not what it should be ----


@scenario("variances in place of stds", ANY, USEFUL, says=("from_variance",))
def variances(rng):
    s, mu = 0.3 * spread_stds(rng, 2000), rng.normal(size=2000)
    return mu + s * rng.normal(size=2000), mu, np.square(s)


@scenario("variances in place of stds, some above 1 and some below", ANY, USEFUL, says=("from_variance",))
def variances_about_one(rng):
    s, mu = rng.uniform(0.2, 2, 2000), 3 * rng.normal(size=2000)
    return mu + s * rng.normal(size=2000), mu, s**2


@scenario(
    "stds in another unit, a hundredth of the right one",
    OVER,
    USEFUL,
    says=("another unit", "multiply it by 100"),
)
def std_in_another_unit(rng):
    y, mu, s = calibrated(rng, 2000)
    return y, mu, s / 100


@scenario("precisions in place of stds", ANY, says=("1 / np.sqrt(y_std)",))
def precisions(rng):
    s, mu = 0.2 * spread_stds(rng, 2000, 0.4), rng.normal(size=2000)
    return mu + s * rng.normal(size=2000), mu, s**-2


@scenario("stds of standardized targets", OVER, USEFUL, says=("scale of standardized targets?",))
def stds_of_standardized(rng):
    s, mu = 10 * spread_stds(rng, 1500, 0.3), 200 + 37 * rng.normal(size=1500)
    return mu + s * rng.normal(size=1500), mu, s / np.hypot(37, 11)


@scenario("calibrated, but one std in two hundred is next to 0", ANY, bias=None, says=("set std_floor=",))
def next_to_zero(rng):
    y, mu, s = calibrated(rng, 1000)
    return y, mu, np.where(np.arange(1000) < 5, 1e-9, s)


@scenario("truth and prediction in different units", ANY, bias=None, says=("same unit",))
def truth_in_another_unit(rng):
    y, mu, s = calibrated(rng, 1000)
    return 100 * y, mu, s


@scenario("rows in another order", ANY, bias=None, says=("same order",))
def shuffled(rng):
    s, mu = spread_stds(rng, 1000, 0.3), 3 * rng.normal(size=1000)
    return rng.permutation(mu + s * rng.normal(size=1000)), mu, s


@scenario(
    "predictions of a series three rows early", ANY, ANY_RANKING, bias=None,
    says=("Predictions fit the truth of 3 rows later far better", "y_true[3:], y_pred[:-3], y_std[:-3]"),
)  # fmt: skip
def rows_early(rng):
    truth = 5 * series(rng, 800, 0.97)
    mu = truth + 0.5 * rng.normal(size=800)
    return truth[:-3], mu[3:], np.full(797, 0.5)


@scenario(
    "each prediction is the value three rows before: no rows are shifted", (*FINE, *PLACES, *UNKNOWN), FLAT,
    bias=None, says=("3 rows before", "does the model repeat past values?"), never=("First check",),
)  # fmt: skip
def persistence(rng):
    truth = 5 * series(rng, 3000, 0.97)
    return truth[3:], truth[:-3], np.full(2997, 5 * np.sqrt(2 * (1 - 0.97**3)))


@scenario("20 flattened images with groups=, errors smooth: calibrated", FINE, never=("First check",))
def flat_images(rng):
    smooth = (
        ndimage.gaussian_filter(rng.normal(size=(20, 32, 32)), (0, 3, 3), mode="wrap") * 6 * np.sqrt(np.pi)
    )
    mu = 20 * ndimage.gaussian_filter(rng.normal(size=(20, 32, 32)), (0, 4, 4))
    s = 0.5 + np.abs(mu) / 4
    y = mu + s * np.sqrt(0.5) * (smooth + rng.normal(size=mu.shape))
    return (y.ravel(), mu.ravel(), s.ravel()), {"groups": np.repeat(np.arange(20), 1024)}


@scenario(
    "40 stations as groups=, whose errors share the date", ANY, ANY_RANKING, bias=None,
    says=("The first samples of all groups have similar errors", "in place of yours"),
)  # fmt: skip
def stations_as_groups(rng):
    mu, s, shared = (
        3 * rng.normal(size=(40, 60)),
        spread_stds(rng, 2400, 0.3).reshape(40, 60),
        rng.normal(size=60),
    )
    y = mu + s * (np.sqrt(0.4) * shared + np.sqrt(0.6) * rng.normal(size=(40, 60)))
    return (y.ravel(), mu.ravel(), s.ravel()), {"groups": np.repeat(np.arange(40), 60)}


@scenario(
    "a third of the rows are of the training data: errors 20 times too small", ANY, ANY_RANKING, bias=None,
    says=("of the errors are below a tenth of their std", "Score held-out ones"),
)  # fmt: skip
def rows_of_training(rng):
    mu, s = 3 * rng.normal(size=1500), spread_stds(rng, 1500, 0.3)
    return mu + s * np.where(rng.random(1500) < 1 / 3, 0.05, 1) * rng.normal(size=1500), mu, s


@scenario(
    "a tenth of the predictions filled with 0", ANY, ANY_RANKING, bias=None,
    says=("of the predictions are exactly 0", "mask=(y_pred == 0)"),
)  # fmt: skip
def filled_predictions(rng):
    y, mu, s = calibrated(rng, 2000)
    filled = rng.random(2000) < 0.1
    return y + 3 * filled, np.where(filled, 0.0, mu), np.where(filled, 1.0, s)


@scenario("everything off by 273", ANY, bias=None, says=("one offset",))
def offset(rng):
    y, mu, s = calibrated(rng, 1000)
    return y + 273.15, mu, s


@scenario(
    "one target in twenty is -999, which stands for missing", ANY, bias=None, says=("mask=(y_true == -999)",)
)
def missing_code(rng):
    y, mu, s = calibrated(rng, 1000)
    y[rng.random(1000) < 0.05] = -999
    return y, mu, s


@scenario("targets standardized, predictions not", ANY, bias=None, says=("Standardize both",))
def standardized(rng):
    mu = 50 + 10 * rng.normal(size=2000)
    y = mu + 3 * rng.normal(size=2000)
    return (y - y.mean()) / y.std(), mu, np.full(2000, 3.0)


@scenario("honest targets with many zeros, as rain has", ANY, never=("stands for missing",), bias=None)
def zeros(rng):
    mu = rng.gamma(1, 2, 2000)
    return np.maximum(mu - 1 + rng.normal(size=2000), 0), np.maximum(mu - 1, 0), np.ones(2000)


# ---- streams ----


def streamed(*arrays: np.ndarray, batch: int, metric: str = "rmse", **labels: np.ndarray) -> uq.Report:
    """Count batches, and score them."""
    stream = uq.Accumulator(metrics=(metric,))
    for start in range(0, len(arrays[0]), batch):
        part = slice(start, start + batch)
        own = {name: label[part] for name, label in labels.items()}
        stream.update(*(array[part] for array in arrays), **own)
    return stream.compute()


@scenario(
    "32 calibrated images in batches, neighbors alike; half of the pixels are kept",
    (*FINE, *UNKNOWN),
    slow=True,
)
def stream_of_images(rng):
    s, mu = spread_stds(rng, (32, 48, 48), 0.3), field(rng, 32, 48, 4)
    return (mu + s * field(rng, 32, 48, 3), mu, s), {"evaluate": partial(streamed, batch=8)}


@scenario("32 images in batches, 1.5 times too small; half of the pixels are kept", OVER, slow=True)
def stream_of_images_too_small(rng):
    s, mu = spread_stds(rng, (32, 48, 48), 0.3), field(rng, 32, 48, 4)
    return (mu + 1.5 * s * field(rng, 32, 48, 3), mu, s), {"evaluate": partial(streamed, batch=8)}


@scenario("batches of a calibrated series, neighbors alike", (*FINE, *UNKNOWN), slow=True)
def stream_of_a_series(rng):
    return (*autocorrelated(rng),), {"evaluate": partial(streamed, batch=100)}


@scenario(
    "batches; std too small where small, too large where large",
    PLACES,
    USEFUL,
    says=("vary too much",),
    slow=True,
)
def stream_varies_too_much(rng):
    return (*varies_too_much(rng),), {"evaluate": partial(streamed, batch=100)}


@scenario(
    "batches; one site of twelve 1.8 times too small", PLACES, USEFUL,
    says=("stratum '3' standard", "times too small"), slow=True)  # fmt: skip
def stream_of_sites(rng):
    arrays, labels = one_site_too_small(rng)
    return arrays, {"evaluate": partial(streamed, batch=1000), **labels}


@scenario("three large calibrated maps, one by one: how alike pixels are is not known", UNKNOWN, slow=True)
def stream_of_few_maps(rng):
    s, mu = spread_stds(rng, (3, 160, 160), 0.3), field(rng, 3, 160, 6)
    return (mu + s * field(rng, 3, 160, 3), mu, s), {"evaluate": partial(streamed, batch=1)}


@scenario("batches of 10 calibrated draws", FINE, USEFUL, slow=True)
def stream_of_draws(rng):
    y, mu, s = calibrated(rng, 3000)
    draws = mu + s * rng.normal(size=(10, 3000))

    def evaluate(truth, samples):
        stream = uq.Accumulator(metrics=("rmse",))
        for start in range(0, 3000, 500):
            part = slice(start, start + 500)
            stream.update(uq.Predictions.from_samples(truth[part], samples[:, part]))
        return stream.compute()

    return (y, draws), {"evaluate": evaluate}


# ---- unusual data ----


@scenario(
    "heavy tails of the right size, and one error in 5000 a hundred times as large",
    (*SHAPE, *TAILS), bias=None, never=("Consistent",),
)  # fmt: skip
def heavy_tails_and_one(rng):
    y, mu, s = calibrated(rng, 5000, lambda n: rng.standard_t(3, n) / np.sqrt(3))
    y[0] = mu[0] + 100 * s[0]
    return y, mu, s


@scenario(
    "heavy tails, half of the right size", (*OVER, "overconfident, most in the tails"), USEFUL,
    never=("Do not widen",), slow=True,
)  # fmt: skip
def heavy_tails_too_small(rng):
    y, mu, s = calibrated(rng, 2000, lambda n: rng.standard_t(3, n) / np.sqrt(3))
    return y, mu, s / 2


@scenario(
    "predictions too smooth where data are few, stds that vary by a percent", (*PLACES, *OVER), FLAT, bias=None,
    says=("First correct the predictions", "too little to rank errors"), never=("worse than chance",),
)  # fmt: skip
def too_smooth(rng):
    x = rng.uniform(0, 6, 600)
    return x + np.sin(2 * x) + 0.6 * rng.normal(size=600), x, 0.6 - 0.005 * np.sin(2 * x) ** 2


@scenario("calibrated; stds differ by half a percent", FINE, FLAT, never=("The uncertainty ranks errors",))
def nearly_constant(rng):
    mu, s = rng.normal(size=2000), 0.7 * (1 + 0.005 * rng.normal(size=2000))
    return mu + 0.7 * rng.normal(size=2000), mu, s


@scenario(
    "500 calibrated rows, each four times, shuffled",
    FINE,
    USEFUL,
    says=("the 500 different ones of 2,000 were judged",),
    slow=True,
)
def copies(rng):
    row = rng.permutation(np.repeat(np.arange(500), 4))
    return tuple(column[row] for column in calibrated(rng, 500))


@scenario(
    "truth and prediction clipped to 0 and 1, half of the rows equal",
    ANY,
    USEFUL,
    bias=None,
    says=("mask them",),
    never=("copies", "largest errors"),
)
def clipped(rng):
    y = rng.normal(0.5, 0.8, 1000)
    mu = np.clip(y + 0.1 * rng.normal(size=1000), 0, 1)
    return np.clip(y, 0, 1), mu, np.where((mu == 0) | (mu == 1), 0.02, 0.1)


@scenario("calibrated; 30 samples cannot show it", (*FINE, *UNKNOWN))
def calibrated_30(rng):
    return calibrated(rng, 30)


@scenario("2 times too small, 30 samples", (*OVER, *UNKNOWN), never=("Calibrated", "Consistent"))
def too_small_30(rng):
    y, mu, s = calibrated(rng, 30)
    return y, mu, s / 2


@scenario(
    "a million samples, bias of 0.02 std by the sign of the prediction: negligible", FINE, USEFUL, slow=True
)
def negligible_million(rng):
    y, mu, s = calibrated(rng, 1_000_000)
    return y + 0.02 * s * np.sign(mu), mu, s


@scenario("calibrated, exponential weights", FINE, USEFUL)
def weighted(rng):
    return calibrated(rng, 1000), {"weights": rng.exponential(size=1000)}


@scenario("2 times too small where the weights are", OVER)
def weighted_too_small(rng):
    y, mu, s = calibrated(rng, 2000)
    large = s > np.quantile(s, 0.9)
    weight = np.where(large, 20.0, 0.1)
    return (mu + (y - mu) * np.where(large, 2, 1), mu, s), {"weights": weight}


@scenario("counts, with the right mean and std", (*FINE, *SHAPE), USEFUL)
def counts(rng):
    mu = rng.gamma(4, 2, 2000)
    return rng.poisson(mu).astype(float), mu, np.sqrt(mu)


@scenario(
    "truth cut at 0, predictions not", PLACES, bias=True, says=("predictions are biased. The lowest", "too low"),
    never=("Recalibrate",),
)  # fmt: skip
def cut_at_zero(rng):
    mu = rng.normal(0.5, 1, 2000)
    return np.maximum(0, mu + 0.8 * rng.normal(size=2000)), mu, np.full(2000, 0.8)


@scenario("noisy quantiles that cross", (*OVER, *FINE), bias=None, says=("Quantiles cross in",))
def crossing_quantiles(rng):
    (y, mu, s), levels = calibrated(rng, 1000), np.asarray([0.05, 0.25, 0.5, 0.75, 0.95])
    noisy = stats.norm.ppf(levels) + 0.25 * rng.normal(size=(1000, 5))
    return (uq.Predictions.from_quantiles(y, mu[:, None] + s[:, None] * noisy, levels),)


@scenario("5 draws, 1.5 times too close together", OVER)
def few_narrow_draws(rng):
    y, mu, s = calibrated(rng, 1000)
    return (uq.Predictions.from_samples(y, mu + s / 1.5 * rng.normal(size=(5, 1000))),)


@scenario("normal errors, declared as a Student t", (*OVER, *SHAPE), USEFUL, never=("Recalibrate",))
def wrong_family(rng):
    return calibrated(rng, 2000), {"family": "student_t", "dof": 4.0}


@scenario(
    "a calibrated series, neighbors alike, its order given", (*FINE, *UNKNOWN), never=("Drift",), slow=True
)
def ordered(rng):
    s, mu = spread_stds(rng, 1000, 0.3), series(rng, 1000, 0.9)
    return (mu + s * series(rng, 1000, 0.8), mu, s), {"order": np.arange(1000)}


@scenario("40 small groups and one as large as all of them", (*FINE, *UNKNOWN), bias=None, slow=True)
def huge_group(rng):
    group = np.concatenate([np.zeros(1000, dtype=int), np.repeat(np.arange(1, 41), 25)])
    s, mu = spread_stds(rng, 2000, 0.4), rng.normal(size=2000)
    error = np.sqrt(0.2) * rng.normal(size=41)[group] + np.sqrt(0.8) * rng.normal(size=2000)
    return (mu + s * error, mu, s), {"groups": group}


@scenario("stds that were computed from the errors", ANY, bias=None, says=("computed from the errors",))
def leaked_stds(rng):
    y, mu, _ = calibrated(rng, 1000)
    return y, mu, np.abs(y - mu) + 1e-6


@scenario(
    "truth filled with predictions in 30 %", ANY, says=("errors are exactly 0",), never=("Recalibrate",)
)
def filled_truth(rng):
    y, mu, s = calibrated(rng, 1000)
    return np.where(rng.random(1000) < 0.3, mu, y), mu, s


@scenario(
    "half of the stds in another unit",
    (*OVER, *TAILS, *PLACES),
    says=("multiply them by 100",),
    never=("Recalibrate",),
)
def two_units(rng):
    y, mu, s = calibrated(rng, 2000)
    return y, mu, np.where(rng.random(2000) < 0.5, s, s / 100)


@scenario(
    "half of the errors half, the others 1.32 times the stated size, by something unknown",
    (*SHAPE, *TAILS, "too wide for most, too narrow for a few"), USEFUL,
)  # fmt: skip
def unknown_covariate(rng):
    y, mu, s = calibrated(rng, 3000)
    return mu + (y - mu) * np.where(rng.random(3000) < 0.5, 0.5, 1.32), mu, s


@scenario("uniform errors of the right size", SHAPE, USEFUL)
def uniform_errors(rng):
    return calibrated(rng, 2000, lambda n: np.sqrt(3) * rng.uniform(-1, 1, n))


@scenario(
    "one std in ten in another unit", ANY, says=("If the former are in another unit, multiply them by 1,000",),
    never=("Recalibrate",),
)  # fmt: skip
def unit_of_some(rng):
    y, mu, s = calibrated(rng, 2000)
    return y, mu, np.where(rng.random(2000) < 0.1, s / 1000, s)


@scenario(
    "one std in ten a hundred times too large", ANY, says=("divide them by 100",), never=("Recalibrate",)
)
def large_unit_of_some(rng):
    y, mu, s = calibrated(rng, 2000)
    return y, mu, np.where(rng.random(2000) < 0.1, 100 * s, s)


@scenario(
    "temperatures in float16, so rounded to 0.25", (*FINE, *SHAPE), USEFUL, never=("First check", "exactly 0")
)  # fmt: skip
def half_precision(rng):
    s, mu = spread_stds(rng, 2000, 0.3), 288 + 10 * rng.normal(size=2000)
    return tuple(values.astype(np.float16) for values in (mu + s * rng.normal(size=2000), mu, s))


@scenario("ages: truth and prediction rounded to years, std 3 years", FINE, never=("shape", "tails"))
def rounded_ages(rng):
    mu = rng.uniform(20, 70, 800)
    return np.round(mu + 3 * rng.normal(size=800)), np.round(mu), np.full(800, 3.03)


@scenario(
    "the same with Student t(3) errors",
    (*SHAPE, *TAILS, *OVER, *UNDER),
    bias=False,
    says=("tate that Student t",),
)
def rounded_ages_of_heavy_tails(rng):
    mu = rng.uniform(20, 70, 3000)
    return np.round(mu + 3 * rng.standard_t(3, 3000) / np.sqrt(3)), np.round(mu), np.full(3000, 3.0)


@scenario(
    "0 in 60 %, else gamma; mean and std are right", SHAPE, ANY_RANKING, bias=False, never=("First check",)
)
def mostly_zeros(rng):
    mu, there = np.exp(0.8 * rng.normal(size=1000)), rng.uniform(size=1000) < 0.4
    return there * mu / 0.4 * rng.gamma(2, 0.5, 1000), mu, mu * np.sqrt(1.5 / 0.4 - 1)


@scenario(
    "predictions a std too low where they are high: a step",
    (*PLACES, *OVER),
    bias=None,
    says=("too low",),
    never=("Predictions vary", "Recalibrate"),
)
def step(rng):
    y, mu, s = calibrated(rng, 3000)
    return y + np.where(mu > 2, s, 0), mu, s


# ---- other forms ----


@scenario("20 calibrated draws", FINE, USEFUL)
def draws(rng):
    y, mu, s = calibrated(rng, 1000)
    return (uq.Predictions.from_samples(y, mu + s * rng.normal(size=(20, 1000))),)


@scenario("5 calibrated draws", FINE)
def few_draws(rng):
    y, mu, s = calibrated(rng, 1000)
    return (uq.Predictions.from_samples(y, mu + s * rng.normal(size=(5, 1000))),)


@scenario("20 draws, 1.5 times too far apart", UNDER)
def wide_draws(rng):
    y, mu, s = calibrated(rng, 1000)
    return (uq.Predictions.from_samples(y, mu + 1.5 * s * rng.normal(size=(20, 1000))),)


@scenario("right quantiles of a skewed distribution", FINE)
def skewed_quantiles(rng):
    mean, levels = np.exp(0.5 * rng.normal(size=1000)), np.asarray([0.05, 0.25, 0.5, 0.75, 0.95])
    quantiles = mean[:, None] * stats.expon.ppf(levels)
    return (uq.Predictions.from_quantiles(mean * rng.exponential(size=1000), quantiles, levels),)


@scenario("right quantiles of a target that is 0 in 30 %", FINE)
def quantiles_of_zeros(rng):
    levels, mean = np.array([0.05, 0.25, 0.5, 0.75, 0.95]), np.exp(0.7 * rng.normal(size=800))
    quantiles = mean[:, None] * stats.expon.ppf(np.maximum(levels - 0.3, 0) / 0.7)
    y = mean * rng.exponential(size=800) * (rng.random(800) > 0.3)
    return (uq.Predictions.from_quantiles(y, quantiles, levels),)


@scenario("quantiles too close to the median", OVER)
def narrow_quantiles(rng):
    y, mu, s = calibrated(rng, 1000)
    levels = np.asarray([0.05, 0.25, 0.5, 0.75, 0.95])
    return (
        uq.Predictions.from_quantiles(y, mu[:, None] + s[:, None] * stats.norm.ppf(levels) / 1.5, levels),
    )


@scenario("quantiles 0.2 std too high", ANY, bias=None, says=("lie below the predicted median",))
def high_quantiles(rng):
    y, mu, s = calibrated(rng, 1000)
    levels = np.asarray([0.05, 0.25, 0.5, 0.75, 0.95])
    return (
        uq.Predictions.from_quantiles(y, mu[:, None] + s[:, None] * (0.2 + stats.norm.ppf(levels)), levels),
    )


@scenario(
    "19 right quantiles, each from a model of its own: neighboring ones often cross", FINE, ANY_RANKING, bias=None,
    says=("Quantiles cross", "Sort them"), never=("columns swapped",),
)  # fmt: skip
def crossing_neighbors(rng):
    (y, mu, s), levels = calibrated(rng, 1000), np.arange(1, 20) / 20
    noisy = stats.norm.ppf(levels) + 0.1 * rng.normal(size=(1000, 19))
    return (uq.Predictions.from_quantiles(y, mu[:, None] + s[:, None] * noisy, levels),)


@scenario(
    "medians 0.8 times as far from 0 as they should be, quantiles as far from them as they should be",
    PLACES, USEFUL, bias=None, says=("predictions vary too little", "by the pinball loss at its level"),
)  # fmt: skip
def shrunk_medians(rng):
    (y, mu, s), levels = calibrated(rng, 1000), np.asarray([0.05, 0.5, 0.95])
    return (
        uq.Predictions.from_quantiles(y, 0.8 * mu[:, None] + s[:, None] * stats.norm.ppf(levels), levels),
    )


@scenario("quantiles at .25 and .75 exchanged", ANY, bias=None, says=("Are columns swapped",))
def exchanged_columns(rng):
    (y, mu, s), levels = calibrated(rng, 1000), np.asarray([0.05, 0.25, 0.5, 0.75, 0.95])
    quantiles = mu[:, None] + s[:, None] * stats.norm.ppf(levels)
    return (uq.Predictions.from_quantiles(y, quantiles[:, [0, 3, 2, 1, 4]], levels),)


@scenario(
    "quantiles at .25 and .75 too close to the median, the others right",
    (*SHAPE, *UNDER),
    says=("quantile is too",),
)
def inner_quantiles(rng):
    (y, mu, s), levels = calibrated(rng, 1500), np.asarray([0.05, 0.25, 0.5, 0.75, 0.95])
    scores = stats.norm.ppf(levels) * np.asarray([1, 0.6, 1, 0.6, 1])
    return (uq.Predictions.from_quantiles(y, mu[:, None] + s[:, None] * scores, levels),)


@scenario(
    "right quantiles at .1, .5 and .95: no central interval", FINE, says=("the 85 % intervals contain",)
)
def asymmetric_quantiles(rng):
    (y, mu, s), levels = calibrated(rng, 900), np.asarray([0.1, 0.5, 0.95])
    return (uq.Predictions.from_quantiles(y, mu[:, None] + s[:, None] * stats.norm.ppf(levels), levels),)


@scenario(
    "90 % intervals that contain 56 %, around predictions that are noisy, and so vary a little too much", OVER,
    bias=None, says=("Widen them until they contain 90 %",), never=("First correct",),
)  # fmt: skip
def narrow_intervals_of_noisy_predictions(rng):
    mu = 2 * rng.normal(size=500)
    y, predicted = mu + rng.normal(size=500), mu + 0.8 * rng.normal(size=500)
    return (uq.Predictions.from_interval(y, predicted - 1, predicted + 1, 0.9),)


FIVE = [0.05, 0.25, 0.5, 0.75, 0.95]


@scenario(
    "quantiles of prices, those of high ones too low", (*PLACES, *SHAPE), bias=None,
    says=("by the pinball loss at its level",), never=("Shift all", "Raise the median"),
)  # fmt: skip
def quantiles_of_prices(rng):
    price = np.exp(rng.normal(2, 0.7, 2000))
    y = price * np.exp(0.6 * rng.normal(size=2000))
    quantiles = (1.1 * price**0.85)[:, None] * np.exp(0.6 * stats.norm.ppf(FIVE))
    return (uq.Predictions.from_quantiles(y, quantiles, FIVE),)


@scenario(
    "quantiles of rain: 42 % of the days are dry, 52 % stated so", (*SHAPE, *PLACES, *OVER, *UNDER, *FINE, *UNKNOWN),
    bias=None, never=("Shift all",),
)  # fmt: skip
def quantiles_of_rain(rng):
    size, levels = np.exp(0.6 * rng.normal(size=2000)), np.asarray([0.1, 0.25, 0.5, 0.75, 0.9])
    y = np.where(rng.random(2000) < 0.42, 0, size * rng.gamma(1, size=2000))
    quantiles = size[:, None] * stats.gamma.ppf(np.clip((levels - 0.52) / 0.48, 0, 1), 1)
    return (uq.Predictions.from_quantiles(y, quantiles, levels),)


@scenario(
    "90 % intervals of four sites, of one 2.2 times too narrow, of one 2.2 times too wide", PLACES, FLAT, bias=None,
    says=("In each stratum, multiply the widths by what makes 90 % lie inside",),
)  # fmt: skip
def intervals_of_two_wrong_sites(rng):
    mu, site = 3 * rng.normal(size=2000), rng.integers(0, 4, 2000)
    y = mu + np.asarray([2.2, 0.45, 1, 1])[site] * rng.normal(size=2000)
    return (uq.Predictions.from_interval(y, mu - 1.645, mu + 1.645, 0.9, by=site),)


@scenario(
    "quantiles 0.5 std too low: intervals miss the truth, but on one side",
    SHAPE,
    bias=True,
    says=("quantile is too low",),
)
def low_quantiles(rng):
    (y, mu, s), levels = calibrated(rng, 1000), np.asarray([0.05, 0.25, 0.5, 0.75, 0.95])
    quantiles = mu[:, None] + s[:, None] * (stats.norm.ppf(levels) - 0.5)
    return (uq.Predictions.from_quantiles(y, quantiles, levels),)


@scenario("right 90 % intervals, 30 samples", (*FINE, *UNKNOWN))
def intervals_30(rng):
    y, mu, s = calibrated(rng, 30)
    return (uq.Predictions.from_interval(y, mu - 1.645 * s, mu + 1.645 * s, 0.9),)


@scenario("90 % intervals that contain 90.3 %: too little to matter", FINE, USEFUL, slow=True)
def negligible_intervals(rng):
    (y, mu, s), half = calibrated(rng, 100_000), stats.norm.ppf(0.9515)
    return (uq.Predictions.from_interval(y, mu - half * s, mu + half * s, 0.9),)


@scenario(
    "90 % intervals: 1 % of the truth below, 9 % above",
    SHAPE,
    bias=None,
    says=("% quantile is too low",),
)
def shifted_intervals(rng):
    (y, mu, s), ends = calibrated(rng, 2000), stats.norm.ppf([0.01, 0.91])
    return (uq.Predictions.from_interval(y, mu + ends[0] * s, mu + ends[1] * s, 0.9),)


@scenario("right 90 % intervals", FINE)
def intervals(rng):
    y, mu, s = calibrated(rng, 1000)
    return (uq.Predictions.from_interval(y, mu - 1.645 * s, mu + 1.645 * s, 0.9),)


@scenario(
    "the spread of five members' means, without the noise of the data", (*OVER, *PLACES), says=("noise",)
)
def spread_of_means(rng):
    s, mu = 0.3 * spread_stds(rng, 1000, 0.3), rng.normal(size=1000)
    members = mu + s * rng.normal(size=(5, 1000))
    return (uq.Predictions.from_ensemble(mu + s * rng.normal(size=1000) + rng.normal(size=1000), members),)


@scenario(
    "members' means whose spread is the std over 3.3", (*OVER, *PLACES), says=("times the std fits better",)
)
def spread_of_means_in_proportion(rng):
    y, mu, s = calibrated(rng, 1000)
    return (uq.Predictions.from_ensemble(y, mu + 0.3 * s * rng.normal(size=(30, 1000))),)


@scenario(
    "an inverted mask, which leaves only the pixels without a truth",
    ANY,
    bias=None,
    says=("mask= inverted?",),
)
def inverted_mask(rng):
    z, mu, s = field(rng, 16, 30, 2.0), 10 + field(rng, 16, 30, 6.0), np.ones((16, 30, 30))
    is_known = rng.random(z.shape) < 0.7
    return (np.where(is_known, mu + z, 0.0), mu, s), {"mask": is_known}


@scenario(
    "one of five targets is constant", ANY, bias=None, says=("All true values of axis 1 index 2 are equal",)
)
def constant_target(rng):
    y, mu, s = calibrated(rng, (500, 5))
    y[:, 2], mu[:, 2] = 1.0, 1 + 0.03 * s[:, 2] * rng.normal(size=500)
    return y, mu, s


@scenario("maps of the truth in another order", ANY, bias=None, says=("of shuffled pairs",))
def maps_in_another_order(rng):
    mu, z = 3 * field(rng, 40, 48, 6.0), field(rng, 40, 48, 2.0)
    return np.roll(mu + z, 1, axis=0), mu, np.ones(mu.shape)


@scenario(
    "maps of predictions that follow the truth hardly, with right stds",
    (*FINE, *OVER),
    bias=None,
    never=("of shuffled pairs",),
)
def weak_predictions_of_maps(rng):
    mu, z = 0.3 * field(rng, 20, 48, 8.0), field(rng, 20, 48, 2.0)
    return mu + z, mu, np.ones(mu.shape)


def vectors(rng, correlation):
    """Normal vectors of five components, and a covariance that says that these are correlated by 0.7."""
    s, mu = spread_stds(rng, (200, 1), 0.3), rng.normal(size=(200, 5))
    shared = np.sqrt(correlation) * rng.normal(size=(200, 1))
    y = mu + s * (shared + np.sqrt(1 - correlation) * rng.normal(size=(200, 5)))
    return (uq.Predictions.from_covariance(y, mu, np.square(s)[:, :, None] * (0.7 + 0.3 * np.eye(5))),)


@scenario("a right covariance", (*FINE, *UNKNOWN), never=("whole vectors",))
def right_covariance(rng):
    return vectors(rng, 0.7)


@scenario("components as stated, but without the stated correlation", SHAPE, says=("whole vectors",))
def wrong_correlation(rng):
    return vectors(rng, 0.0)


@scenario(
    "1.5 times too small, 3 % of the rows from elsewhere", (*OVER, "overconfident, most in the tails"), bias=None,
    says=("Look at the largest",),
)  # fmt: skip
def too_small_beside_other_rows(rng):
    y, mu, s = calibrated(rng, 2000)
    return np.where(rng.random(2000) < 0.03, 50 * rng.normal(size=2000), mu + 1.5 * (y - mu)), mu, s


@scenario("three targets of unlike sizes, 4 % of the rows joined to others", TAILS, bias=None)
def joined_to_other_rows(rng):
    y, mu, s = calibrated(rng, (800, 3))
    y, mu = y + (other := [3, 10, 60] * rng.normal(size=(800, 3))), mu + other
    return np.where(rng.random((800, 1)) < 0.04, rng.permutation(y), y), mu, s


@scenario("a right mixture of two modes", FINE, slow=True)
def mixture(rng):
    side = np.where(rng.random(1000) < 0.5, 1.0, -1.0)
    means, stds = np.stack([np.full(1000, -1.0), np.full(1000, 1.0)]), np.full((2, 1000), 0.3)
    y = side + 0.3 * rng.normal(size=1000)
    return (uq.Predictions.from_ensemble(y, means, stds, combine="mixture"),)


@scenario(
    "modes twice too narrow in a mixture: its std, that between them, is nearly right",
    (*SHAPE, *OVER),
    bias=None,
    says=("true values lie at or below the stated",),
    slow=True,
)
def narrow_modes(rng):
    side = np.where(rng.random(1000) < 0.5, 1.0, -1.0)
    means, stds = np.stack([np.full(1000, -1.0), np.full(1000, 1.0)]), np.full((2, 1000), 0.15)
    return (uq.Predictions.from_ensemble(side + 0.3 * rng.normal(size=1000), means, stds, combine="mixture"),)


@scenario("30 calibrated draws of a skewed law", FINE, bias=None)
def skewed_draws(rng):
    s, mu = spread_stds(rng, 3000, 0.5), rng.normal(size=3000)
    y, *draws = mu + s * (rng.exponential(size=(31, 3000)) - 1)
    return (uq.Predictions.from_samples(y, np.asarray(draws)),)


@scenario("10 calibrated draws whose stds and means differ by chance alone", FINE, FLAT, bias=None)
def equal_draws(rng):
    y, *draws = rng.normal(size=(11, 3000))
    return (uq.Predictions.from_samples(y, np.asarray(draws)),)


@scenario(
    "10 draws, 1.5 times too near to each other", OVER, FLAT, bias=None,
    never=("orrect the predictions", "vary too little"),
)  # fmt: skip
def equal_draws_too_small(rng):
    y, *draws = rng.normal(size=(11, 3000))
    return (uq.Predictions.from_samples(y, np.asarray(draws) / 1.5),)


@scenario(
    "20 draws, half a std too low or high by the sign of the prediction",
    PLACES,
    bias=None,
    says=("predictions vary too little",),
)
def draws_biased_by_prediction(rng):
    y, mu, s = calibrated(rng, 3000)
    return (uq.Predictions.from_samples(y + 0.5 * s * np.sign(mu), mu + s * rng.normal(size=(20, 3000))),)


@scenario(
    "20 draws, twice too near to each other at one of four sites",
    PLACES,
    bias=None,
    says=("in stratum '1' standard deviations are",),
)
def draws_of_one_site(rng):
    y, mu, s = calibrated(rng, 3000)
    site = rng.integers(0, 4, 3000)
    draws = mu + s * np.where(site == 1, 0.5, 1) * rng.normal(size=(20, 3000))
    return (uq.Predictions.from_samples(y, draws, by=site),)


@scenario(
    "a distribution from SciPy, right in size, biased by the sign of the prediction",
    PLACES,
    bias=None,
    says=("predictions vary too little",),
)
def law_biased_by_prediction(rng):
    y, mu, s = calibrated(rng, 3000)
    return (uq.Predictions.from_distribution(y + 0.5 * s * np.sign(mu), stats.norm(mu, s)),)


@scenario(
    "90 % intervals, too wide where predictions are high, too narrow where they are low", PLACES, bias=False,
    says=("where predictions are the highest", "the 90 % intervals contain"), never=("Widen them",),
)  # fmt: skip
def intervals_wrong_in_halves(rng):
    y, mu, s = calibrated(rng, 2000)
    half = 1.645 * s * np.where(mu > 0, 1.8, 0.68)
    return (uq.Predictions.from_interval(y, mu - half, mu + half, 0.9),)


@scenario("quantiles at 99 levels, too close to the median", OVER, says=("Widen them",))
def narrow_outer_quantiles(rng):
    y, mu, s = calibrated(rng, 2000)
    levels = np.arange(1, 100) / 100
    return (
        uq.Predictions.from_quantiles(y, mu[:, None] + 0.75 * s[:, None] * stats.norm.ppf(levels), levels),
    )


@scenario(
    "quantiles too close to the median at one of four sites",
    PLACES,
    bias=None,
    says=("in stratum '1' the 80 % intervals contain",),
)
def quantiles_of_one_site(rng):
    y, mu, s = calibrated(rng, 3000)
    site = rng.integers(0, 4, 3000)
    half = s * np.where(site == 1, 0.5, 1)
    levels = np.arange(1, 10) / 10
    return (
        uq.Predictions.from_quantiles(
            y, mu[:, None] + half[:, None] * stats.norm.ppf(levels), levels, by=site
        ),
    )


@scenario(
    "15 samples whose errors are ten times the stated size",
    OVER,
    bias=None,
    says=("more than chance explains",),
)
def few_gross_errors(rng):
    y, mu, s = calibrated(rng, 15)
    return mu + 10 * (y - mu), mu, s


@scenario(
    "stds computed from the errors, with noise of 10 %", ANY, bias=None, says=("computed from the errors",)
)
def leaked_stds_with_noise(rng):
    y, mu, _ = calibrated(rng, 1000)
    return y, mu, np.abs(y - mu) * np.exp(0.1 * rng.normal(size=1000))


@scenario("honest errors of two values", SHAPE, bias=None, never=("computed from the errors",))
def errors_of_two_values(rng):
    return calibrated(
        rng, 2000, lambda n: (rng.choice([-1, 1], n) + 0.3 * rng.normal(size=n)) / np.sqrt(1.09)
    )


@scenario(
    "12 sites in turn, each independent, one 2 times too small",
    PLACES,
    USEFUL,
    says=("in stratum '0' standard", "no error found in the other 11"),
    never=("Pass more samples",),
)
def sites_in_turn(rng):
    mu, s, site = 2 * rng.normal(size=2400), spread_stds(rng, 2400), np.arange(2400) % 12
    y = mu + s * np.where(site == 0, 2, 1) * rng.normal(size=2400)
    return (y, mu, s), {"by": site}


@scenario(
    "0.25 std too low, stds over orders of magnitude",
    ("biased", *PLACES),
    bias=None,
    never=("Add 0.3 to", "Add 0.4 to", "Add 0.5 to"),
)
def biased_by_a_share_of_the_std(rng):
    mu, s = 2 * rng.normal(size=1500), spread_stds(rng, 1500, 1.2)
    return mu + 0.25 * s + s * rng.normal(size=1500), mu, s


@scenario(
    "90 % intervals of a calibrated series, neighbors alike (AR .5)", (*FINE, *UNKNOWN), bias=None,
    never=("Drift",),
)  # fmt: skip
def intervals_of_a_series(rng):
    mu, s = 2 * rng.normal(size=2000), spread_stds(rng, 2000)
    return (
        uq.Predictions.from_interval(mu + s * series(rng, 2000, 0.5), mu - 1.645 * s, mu + 1.645 * s, 0.9),
    )


@scenario(
    "quantiles, only that of 95 % too low: 88 % lie below it", (*OVER, *SHAPE), bias=None,
    says=("the 95 % quantile is too low", "by a share of each row's width, until 95 % do"), never=("Widen",),
)  # fmt: skip
def one_low_quantile(rng):
    y, mu, s = calibrated(rng, 3000)
    z = stats.norm.ppf([0.05, 0.25, 0.5, 0.75, 0.88])
    return (uq.Predictions.from_quantiles(y, mu[:, None] + s[:, None] * z, [0.05, 0.25, 0.5, 0.75, 0.95]),)


@scenario("30 draws, 1.5 times too close", OVER, says=("score",))
def close_draws(rng):
    y, mu, s = calibrated(rng, 1500)
    return (uq.Predictions.from_samples(y, mu + s / 1.5 * rng.normal(size=(30, 1500))),)


@scenario(
    "counts whose std is .45 times their mean, stated as its root", OVER, never=("First check the input",)
)
def roots_of_the_mean(rng):
    mean = rng.gamma(3, 5, 1500) + 2
    return mean + 0.45 * mean * rng.normal(size=1500), mean, np.sqrt(mean)


def small_sites(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Errors in stds, stds, predictions, and the site of each sample: fifty sites of 40 samples."""
    return rng.normal(size=2000), spread_stds(rng, 2000), 2 * rng.normal(size=2000), np.arange(2000) % 50


@scenario(
    "calibrated at fifty sites of 40 samples", (*FINE, *UNKNOWN), USEFUL, never=("stratum", "trata differ")
)
def calibrated_small_sites(rng):
    z, s, mu, site = small_sites(rng)
    return (mu + s * z, mu, s), {"by": site}


@scenario(
    "1.25 times too small at 25 of fifty sites of 40 samples, 1.25 times too large at the others", PLACES, USEFUL,
    says=("recalibrate each stratum",), never=("Recalibrate with",),
)  # fmt: skip
def small_sites_of_two_sizes(rng):
    z, s, mu, site = small_sites(rng)
    return (mu + np.where(site < 25, 1.25, 0.8) * s * z, mu, s), {"by": site}


@scenario(
    "predictions .25 std too high at every other of fifty sites of 40 samples, too low between", PLACES, USEFUL,
    bias=None, says=("First correct the predictions: in each stratum",), never=("Recalibrate with", "Multiply"),
)  # fmt: skip
def small_sites_of_either_bias(rng):
    z, s, mu, site = small_sites(rng)
    return (mu + s * (z + np.where(site % 2, 0.25, -0.25)), mu, s), {"by": site}


@scenario(
    "quantiles, the outer .8 times as far from the median, the inner .6 times", OVER,
    says=("Widen them until they contain 90 %, and lower the 25 % quantile until", "raise the 75 % quantile until"),
)  # fmt: skip
def quantiles_of_two_widths(rng):
    y, mu, s = calibrated(rng, 2000)
    z = stats.norm.ppf([0.05, 0.25, 0.5, 0.75, 0.95]) * [0.8, 0.6, 1, 0.6, 0.8]
    return (uq.Predictions.from_quantiles(y, mu[:, None] + s[:, None] * z, [0.05, 0.25, 0.5, 0.75, 0.95]),)


@scenario(
    "split conformal: 90 % intervals of one width but for rounding; errors grow with the prediction", PLACES, FLAT,
    says=("where predictions are the highest", "All widths are equal"), never=("idths vary", "idths are too"),
)  # fmt: skip
def split_conformal(rng):
    mu = rng.uniform(1, 10, 3000)
    half = np.quantile(0.3 * mu * np.abs(rng.normal(size=3000)), 0.9)
    return (
        uq.Predictions.from_interval(mu + 0.3 * mu * rng.normal(size=3000), mu - half, mu + half, 0.9, mu),
    )


@scenario(
    "90 % intervals that contain 81 % at every other of 20 sites, 98 % between", PLACES,
    says=("strata differ", "each stratum"), never=("no error found", "contain 98", "contain 97"),
)  # fmt: skip
def intervals_of_two_widths(rng):
    mu, s, site = 2 * rng.normal(size=6000), spread_stds(rng, 6000), rng.integers(0, 20, 6000)
    y = mu + s * np.where(site % 2, 1.25, 0.72) * rng.normal(size=6000)
    return (uq.Predictions.from_interval(y, mu - 1.645 * s, mu + 1.645 * s, 0.9, by=site),)


@scenario(
    "98 % intervals: 0.1 % of the truth below, 1.9 % above", SHAPE,
    says=("% quantile is too low", "Raise it, by", ", and raise the"), never=("Shift", "Widen", "Narrow"),
)  # fmt: skip
def intervals_of_two_tails(rng):
    (y, mu, s), ends = calibrated(rng, 20_000), stats.norm.ppf([0.001, 0.981])
    return (uq.Predictions.from_interval(y, mu + ends[0] * s, mu + ends[1] * s, 0.98),)


@scenario(
    "quantiles of a skewed distribution, its mean in place of the median", SHAPE, bias=True,
    says=("Lower the median until 50 % do.", "the median is wrong"), never=("Shift", "% quantile"),
)  # fmt: skip
def mean_as_median(rng):
    mu, levels = 0.5 * rng.normal(size=3000), [0.05, 0.25, 0.5, 0.75, 0.95]
    quantiles = np.exp(mu[:, None] + 0.6 * stats.norm.ppf(levels))
    quantiles[:, 2] = np.exp(mu + 0.18)
    return (uq.Predictions.from_quantiles(np.exp(mu + 0.6 * rng.normal(size=3000)), quantiles, levels),)


@scenario(
    "quantiles, the median too high, that of 95 % too low", (*SHAPE, *OVER), bias=True,
    says=("Lower the median until 50 % do.", "row's width, until 95 % do"), never=("Shift", "Widen"),
)  # fmt: skip
def median_against_the_end(rng):
    (y, mu, s), levels = calibrated(rng, 5000), [0.05, 0.25, 0.5, 0.75, 0.95]
    z = stats.norm.ppf(levels) + np.asarray([0, 0, 0.2, 0, -0.4])
    return (uq.Predictions.from_quantiles(y, mu[:, None] + s[:, None] * z, levels),)


@scenario(
    "symmetric 90 % intervals of skewed errors: 0 % of the truth below, 8.2 % above", SHAPE, bias=None,
    says=("the 5 % quantile is too low", "until 5 % do, and raise the 95 % quantile until"),
    never=("Narrow",),
)  # fmt: skip
def symmetric_for_skewed(rng):
    y, mu, s = calibrated(rng, 3000, lambda n: rng.exponential(size=n) - 1)
    return (uq.Predictions.from_interval(y, mu - 1.5 * s, mu + 1.5 * s, 0.9, mu),)


@scenario(
    "90 % intervals .58 of their stds too high at one of two sites, too low at the other", PLACES, bias=None,
    says=("of the true values lie below the intervals", "shift each quantile until its stated share"),
    never=("standard deviations too", "y_pred - y_true"),
)  # fmt: skip
def intervals_of_biased_sites(rng):
    (y, mu, s), site = calibrated(rng, 4000), rng.integers(0, 2, 4000)
    y = y + s * np.where(site, 0.7, -0.7)
    return (uq.Predictions.from_interval(y, mu - 2 * s, mu + 2 * s, 0.9, mu, by=site),)


@scenario("right quantiles, in reverse in half of the rows", FINE, bias=None, says=("Sort them before use",))
def reversed_quantiles(rng):
    (y, mu, s), levels = calibrated(rng, 1000), [0.05, 0.25, 0.5, 0.75, 0.95]
    quantiles = mu[:, None] + s[:, None] * stats.norm.ppf(levels)
    quantiles[::2] = quantiles[::2, ::-1]
    return (uq.Predictions.from_quantiles(y, quantiles, levels),)


def with_zeros(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    """Means whose rows are 0 below 0, and targets about them: 0 in a third of the rows."""
    x = rng.normal(size=n)
    mu = 0.8 + 1.5 * x
    return np.maximum(mu + rng.normal(size=n), 0), mu, np.where(x > 0, 0.6, 1.7)


@scenario(
    "draws clipped at 0, .6 times as wide as they should be where high, 1.7 times where low",
    PLACES,
    bias=None,
)
def clipped_draws(rng):
    y, mu, s = with_zeros(rng, 800)
    return (uq.Predictions.from_samples(y, np.maximum(mu + s * rng.normal(size=(60, 800)), 0)),)


@scenario("right draws of a target that is 0 in a third of the rows", FINE)
def draws_of_zeros(rng):
    y, mu, _ = with_zeros(rng, 800)
    return (uq.Predictions.from_samples(y, np.maximum(mu + rng.normal(size=(60, 800)), 0)),)


@scenario("90 % intervals clipped at 0, too narrow where high and too wide where low", PLACES, bias=None)
def clipped_intervals(rng):
    y, mu, s = with_zeros(rng, 800)
    return (uq.Predictions.from_interval(y, *np.maximum(mu + 1.645 * s * np.array([[-1], [1]]), 0), 0.9),)


@scenario(
    "90 % intervals of one width but clipped at 0: they contain 90 % of all, 73 % where high", PLACES, bias=None,
    says=("only widths that are too small are looked for",), never=("perhaps a limit",),
)  # fmt: skip
def clipped_conformal(rng):
    x = 1.5 * rng.normal(size=11_000)
    mu, y = x * stats.norm.cdf(x) + stats.norm.pdf(x), np.maximum(x + rng.normal(size=11_000), 0)
    half = np.quantile(np.abs(y - mu)[1000:], 0.9)
    return (uq.Predictions.from_interval(y[:1000], np.maximum(mu - half, 0)[:1000], (mu + half)[:1000], 0.9),)


@scenario("right 90 % intervals of a target that is 0 in a third of the rows", FINE, never=("in places",))
def intervals_of_zeros(rng):
    y, mu, _ = with_zeros(rng, 800)
    return (uq.Predictions.from_interval(y, np.maximum(mu - 1.645, 0), np.maximum(mu + 1.645, 0), 0.9),)


@scenario("exact quantiles of counts", (*FINE, *UNKNOWN), bias=None, never=("in places",))
def quantiles_of_counts(rng):
    mean, levels = np.exp(rng.uniform(np.log(2), np.log(30), 2000)), [0.05, 0.25, 0.5, 0.75, 0.95]
    quantiles = np.stack([stats.poisson.ppf(level, mean) for level in levels], axis=1)
    return (uq.Predictions.from_quantiles(rng.poisson(mean).astype(float), quantiles, levels),)


@scenario(
    "30 normal draws for errors of a skewed law, the same everywhere", SHAPE, bias=None,
    says=("State another distribution",), never=("in places",),
)  # fmt: skip
def draws_of_another_shape(rng):
    mu, s = 3 * rng.normal(size=3000), spread_stds(rng, 3000, 0.4)
    y = mu + s * (rng.gamma(1.5, size=3000) - 1.5) / np.sqrt(1.5)
    return (uq.Predictions.from_samples(y, mu + s * rng.normal(size=(30, 3000))),)


@scenario("every error is the same", ("biased",), bias=True, says=("Add 1 to each prediction",))
def constant_error(rng):
    return np.ones(300), np.zeros(300), np.ones(300)


@scenario(
    "gamma distributions of too little variance at one of four sites, of the right mean", (*PLACES, *OVER), bias=None,
    says=("in stratum '2' standard deviations are",), never=("too high", "too low", "orrect the predictions"),
)  # fmt: skip
def gamma_of_one_site(rng):
    mean, site = np.exp(rng.normal(size=3000)), rng.integers(0, 4, 3000)
    k = np.where(site == 2, 1.0, 4.0)
    y = mean * rng.gamma(k, 1 / k)
    return (uq.Predictions.from_distribution(y, stats.gamma(4.0, scale=mean / 4), by=site),)


@scenario(
    "20 draws of the right width, one error in fifty eight times as large", TAILS, bias=None,
    says=("Look at the largest errors",), never=("Multiply",),
)  # fmt: skip
def draws_with_outliers(rng):
    mu, s = 3 * rng.normal(size=3000), spread_stds(rng, 3000, 0.3)
    y = mu + s * rng.normal(size=3000) * np.where(rng.random(3000) < 0.02, 8, 1)
    return (uq.Predictions.from_samples(y, mu + s * rng.normal(size=(20, 3000))),)


def centred(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    """Errors in stds, means and stds of a distribution from SciPy."""
    return rng.normal(size=n), rng.normal(size=n), rng.gamma(4, 0.25, n)


@scenario(
    "a Student t of the right centre, where errors are normal", SHAPE, bias=None,
    says=("State another distribution",), never=("Multiply",),
)  # fmt: skip
def student_for_normal(rng):
    z, m, s = centred(rng, 3000)
    return (uq.Predictions.from_distribution(m + s * z, stats.t(3, loc=m, scale=s)),)


@scenario(
    "a Student t, 1.6 times too narrow", OVER, bias=None, says=("Multiply the spread",), never=("by 1.3",)
)
def narrow_student(rng):
    m, s = centred(rng, 2000)[1:]
    y = m + 1.6 * s * rng.standard_t(3, 2000)
    return (uq.Predictions.from_distribution(y, stats.t(3, loc=m, scale=s)),)


@scenario(
    "lognormal distributions of any skewness, 1.4 times too narrow", (*OVER, *UNKNOWN), bias=None,
    never=("0.0", "orrect the predictions"),
)  # fmt: skip
def narrow_lognormal(rng):
    z, m, s = centred(rng, 2000)
    return (uq.Predictions.from_distribution(np.exp(m + 1.4 * s * z), stats.lognorm(s, scale=np.exp(m))),)


@scenario(
    "calibrated lognormal distributions of any skewness", (*FINE, *UNKNOWN), bias=None, never=("are 0.0",)
)
def calibrated_lognormal(rng):
    z, m, s = centred(rng, 2000)
    return (uq.Predictions.from_distribution(np.exp(m + s * z), stats.lognorm(s, scale=np.exp(m))),)


@scenario(
    "lognormal distributions 1.4 times too wide, with the right medians", UNDER, bias=False,
    says=("times too wide",), never=("orrect the predictions",),
)  # fmt: skip
def wide_lognormal(rng):
    z, m, _ = centred(rng, 2000)
    return (uq.Predictions.from_distribution(np.exp(m + 0.7 * z), stats.lognorm(1, scale=np.exp(m))),)


@scenario(
    "lognormal distributions whose medians are 1.4 times too low", ("biased", *SHAPE, *OVER), bias=True,
    says=("ultiply each prediction and its spread", "by 1.",), never=("add ", "Add "),
)  # fmt: skip
def low_lognormal(rng):
    z, m, _ = centred(rng, 2000)
    return (uq.Predictions.from_distribution(1.4 * np.exp(m + 0.6 * z), stats.lognorm(0.6, scale=np.exp(m))),)


def showers(rng, amount=1.0, spread=1.0):
    """Thirty draws of a day's rain, of which many are 0, as are all on dry days."""
    wet, size = rng.beta(0.6, 1.2, size=800), np.exp(0.7 * rng.normal(size=800))
    rain = (rng.random((31, 800)) < wet) * rng.gamma(1.5, size=(31, 800)) * size
    return uq.Predictions.from_samples(rain[0], amount * rain[1:], axis=0)


@scenario("draws of rain, all of them 0 on some days: calibrated", FINE)
def draws_of_rain(rng):
    return (showers(rng),)


@scenario(
    "draws of half the rain", (*OVER, *MOST, *TAILS, *SHAPE), bias=None,
    says=("ultiply each prediction and its spread",), never=(": add ",),
)  # fmt: skip
def draws_of_half_the_rain(rng):
    return (showers(rng, amount=0.5),)


# ---- mistakes in some rows, and errors that are skewed ----

SOME = {
    "says": ("all others are", "Look at those samples"),
    "never": ("First correct", "add ", "Multiply", "Recalibrate"),
}
"""What must be said where some rows are wrong by far, and all others right."""


@scenario("a tenth of the truth in feet, the predictions in metres", TAILS, bias=None, **SOME)
def some_in_feet(rng):
    mu, s = rng.gamma(4, 2, 1200), 0.5 * spread_stds(rng, 1200, 0.3)
    y = mu + s * rng.normal(size=1200)
    return np.where(rng.random(1200) < 0.1, 3.28 * y, y), mu, s


@scenario(
    "a fifth of the rows joined to another row's truth", (*TAILS, *MOST), bias=None, never=SOME["never"]
)
def some_wrong_joins(rng):
    mu, s = 5 * rng.normal(size=1500), spread_stds(rng, 1500, 0.3)
    y = mu + s * rng.normal(size=1500)
    wrong = np.flatnonzero(rng.random(1500) < 0.2)
    y[wrong] = y[rng.permutation(wrong)]
    return y, mu, s


@scenario("half of the truth in percent", TAILS, bias=None, **SOME)
def some_in_percent(rng):
    mu, s = rng.uniform(0.1, 0.9, 800), 0.05 * spread_stds(rng, 800, 0.3)
    y = mu + s * rng.normal(size=800)
    return np.where(rng.random(800) < 0.5, 100 * y, y), mu, s


@scenario("one of six stations in feet", ANY, bias=None, says=("In stratum '2', true values", "same unit"))
def station_in_feet(rng):
    mu, s, site = rng.gamma(4, 2, 1200), 0.5 * spread_stds(rng, 1200, 0.3), rng.integers(0, 6, 1200)
    y = mu + s * rng.normal(size=1200)
    return (np.where(site == 2, 3.28 * y, y), mu, s), {"by": site}


@scenario("gamma errors of the right size: nothing below the 5 % quantile", (*SHAPE, *MOST))
def slightly_skewed(rng):
    s, mu = spread_stds(rng, 1000, 0.5), 2 * rng.normal(size=1000)
    return mu + s * (rng.gamma(4, 1, 1000) - 4) / 2, mu, s


@scenario(
    "lognormal errors", (*SHAPE, *MOST), bias=None, says=("hey are skewed",),
    never=("Look at",),
)  # fmt: skip
def skewed_not_outliers(rng):
    s, mu = spread_stds(rng, 1200, 0.5), 2 * rng.normal(size=1200)
    return mu + s * (np.exp(0.8 * rng.normal(size=1200)) - np.exp(0.32)), mu, s


@scenario("stds of the relative error", ANY, bias=None, says=("y_std * abs(y_pred)", "relative"))
def relative_stds(rng):
    mu, share = np.exp(rng.normal(4, 0.7, 800)), rng.uniform(0.05, 0.2, 800)
    return mu * (1 + share * rng.normal(size=800)), mu, share


@scenario(
    "one std for all, in percent of the prediction", ANY, bias=None, says=("percent", "abs(y_pred) / 100")
)
def percent_stds(rng):
    mu = 20 * np.exp(0.5 * rng.normal(size=400))
    return mu * (1 + 0.08 * rng.normal(size=400)), mu, np.full(400, 8.0)


@scenario(
    "five targets of any scale in an array, the stds of the second in thousands", ANY, bias=None,
    says=("multiply them by 1,000",), never=("placeholders",),
)  # fmt: skip
def one_target_in_thousands(rng):
    unit = 10.0 ** np.arange(5)
    mu, s = 4 * unit * rng.normal(size=(300, 5)), unit * spread_stds(rng, (300, 5), 0.3)
    return mu + s * rng.normal(size=(300, 5)), mu, s * np.where(np.arange(5) == 1, 1e-3, 1)


@scenario(
    "stds of the logarithm beside predictions that are none", ANY, bias=None, says=("of the logarithm",)
)
def stds_of_the_logarithm(rng):
    mu, s = rng.normal(3, 0.8, 1000), rng.uniform(0.1, 0.3, 1000)
    return np.exp(mu + s * rng.normal(size=1000)), np.exp(mu), s


@scenario("stds to which a scaler has added the mean", ANY, bias=None, says=("scaler.inverse_transform",))
def stds_with_a_mean(rng):
    z, s = rng.normal(size=1000), 0.3 * spread_stds(rng, 1000, 0.4)
    return 50 + 10 * (z + s * rng.normal(size=1000)), 50 + 10 * z, 50 + 10 * s


@scenario("predictions of the wrong sign", ANY, bias=None, says=("sign of one of them",))
def reversed_sign(rng):
    y, mu, s = calibrated(rng, 1000)
    return y, -mu, s


@scenario("draws of the mean, without the noise of the data", ANY, bias=None, says=("leave out the noise",))
def draws_without_noise(rng):
    mu, spread = 2 * rng.normal(size=1000), 0.2 * spread_stds(rng, 1000, 0.3)
    truth = mu + spread * rng.normal(size=1000)
    draws = mu + spread * rng.normal(size=(50, 1000))
    return (uq.Predictions.from_samples(truth + rng.normal(size=1000), draws),)


@scenario("uniform forecasts that are right", (*FINE, *UNKNOWN), never=("Multiply",))
def uniform_forecasts(rng):
    s, mu = spread_stds(rng, 800, 0.5), 2 * rng.normal(size=800)
    return (mu + s * rng.uniform(-(3**0.5), 3**0.5, 800), mu, s), {"family": "uniform"}


@scenario("uniform forecasts of normal errors", SHAPE, never=("Multiply",))
def uniform_forecasts_of_normal_errors(rng):
    return calibrated(rng, 2000), {"family": "uniform"}


# ---- parts of the samples ----


@scenario(
    "100 sites, each with an offset (std .45)", PLACES, bias=None, says=("strata differ", "in each stratum")
)
def offsets_of_all_sites(rng):
    site, s, mu = np.repeat(np.arange(100), 30), spread_stds(rng, 3000, 0.3), 2 * rng.normal(size=3000)
    z = np.sqrt(0.8) * rng.normal(size=3000) + np.sqrt(0.2) * rng.normal(size=100)[site]
    return (mu + s * z, mu, s), {"by": site}


@scenario(
    "40 patients, stds .6 or 1.4 times right, each patient a group and a label", (*FINE, *PLACES, *UNKNOWN),
    bias=None, never=("strata",),
)  # fmt: skip
def labels_that_are_groups(rng):
    patient, s, mu = np.repeat(np.arange(40), 25), spread_stds(rng, 1000, 0.3), 2 * rng.normal(size=1000)
    y = mu + s * np.where(patient % 2, 1.4, 0.6) * rng.normal(size=1000)
    return (y, mu, s), {"groups": patient, "by": patient}


@scenario(
    "an array of 120 months and 20 stations, biased by the month (.5 std)", PLACES, bias=None,
    says=("recur every 12 rows", "add mean(y_true - y_pred)"),
)  # fmt: skip
def stations_by_the_month(rng):
    month, mu = np.arange(120)[:, None], 4 * rng.normal(size=(120, 20))
    y = mu + 0.5 * np.cos(2 * np.pi * month / 12) + rng.normal(size=(120, 20))
    return y, mu, np.ones((120, 20))


@scenario(
    "sixty maps, one a month, biased by the month (.5 std)", PLACES, bias=None,
    says=("recur every 12 cases", "add mean(y_true - y_pred)"),
)  # fmt: skip
def maps_by_the_month(rng):
    month, mu = np.arange(60)[:, None, None], 3 * rng.normal(size=(60, 16, 16))
    return mu + 0.5 * np.sin(2 * np.pi * month / 12) + rng.normal(size=mu.shape), mu, np.ones(mu.shape)


@scenario(
    "a year of days, predictions 1.5 std too high on Mondays", (*PLACES, *OVER), bias=None,
    says=("recur every 7 steps", "step % 7 is 0"),
)  # fmt: skip
def biased_on_mondays(rng):
    day, mu = np.arange(365), 4 * rng.normal(size=365)
    y = mu + np.where(day % 7 == 0, -1.5, 0.25) + rng.normal(size=365)
    return (y, mu, np.ones(365)), {"order": np.datetime64("2024-01-01") + day}


@scenario(
    "by=sensor, order=: one of eight drifts by 2 std", (*PLACES, *OVER), bias=None,
    says=("Drift along the order of the samples of stratum '3'",), never=("Recalibrate with", "to y_pred", "Add "),
)  # fmt: skip
def one_sensor_drifts(rng):
    sensor, mu = np.arange(1600) % 8, 3 * rng.normal(size=1600)
    y = mu + np.where(sensor == 3, np.linspace(0, 2, 1600), 0) + rng.normal(size=1600)
    return (y, mu, np.ones(1600)), {"by": sensor, "order": np.arange(1600) // 8}


@scenario(
    "by=sensor: one of eight is stuck in the last fifth, errors 4 times the stated size there",
    ANY, bias=None, says=("of the true values are exactly 0.7", "mask=(y_true == 0.7)"),
)  # fmt: skip
def one_sensor_is_stuck(rng):
    sensor, mu = np.arange(1600) % 8, 2 * rng.normal(size=1600)
    stuck = (sensor == 5) & (np.arange(1600) >= 1280)
    return (np.where(stuck, 0.7, mu + 0.5 * rng.normal(size=1600)), mu, np.full(1600, 0.5)), {"by": sensor}


@scenario("two raters of 300 cases, rater by rater: calibrated", (*FINE, *UNKNOWN), FLAT)
def two_raters(rng):
    mu = 3 * rng.normal(size=300)
    case = mu + np.sqrt(0.7) * rng.normal(size=300)
    return (case + np.sqrt(0.3) * rng.normal(size=(2, 300))).ravel(), np.tile(mu, 2), np.ones(600)


@scenario(
    "monthly data of 20 years, biased by the month (1 std)",
    PLACES,
    bias=None,
    says=("recur every 12",),
    never=("std_scaling",),
)
def biased_by_the_month(rng):
    s, mu, month = spread_stds(rng, 240, 0.3), 2 * rng.normal(size=240), np.arange(240) % 12
    return mu + s * (rng.normal(size=240) + np.sin(2 * np.pi * month / 12)), mu, s


@scenario(
    "the last 5 % of a series 1.5 std too low, with its order", PLACES, bias=None, says=("in the last 5 %",)
)
def newest_are_biased(rng):
    s, mu, at = spread_stds(rng, 2000, 0.3), 2 * rng.normal(size=2000), np.arange(2000)
    return (mu + s * (rng.normal(size=2000) + 1.5 * (at >= 1900)), mu, s), {"order": at}


@scenario(
    "stds 1.1 times too small where std and prediction are both small or both large, .9 times elsewhere", PLACES,
    says=("prediction", "Fit std_scaling to each of these four parts"), slow=True,
)  # fmt: skip
def wrong_in_cells(rng):
    s, mu = spread_stds(rng, 100_000, 0.5), 2 * rng.normal(size=100_000)
    return mu + s * np.where((mu > 0) == (s > 1), 1.1, 0.9) * rng.normal(size=100_000), mu, s


@scenario(
    "errors biased and of twice the size only out of domain, which is labelled",
    PLACES,
    bias=None,
    says=("in that stratum",),
)
def out_of_domain(rng):
    out, s, mu = rng.random(2000) < 0.3, spread_stds(rng, 2000, 0.3), 2 * rng.normal(size=2000)
    s = np.where(out, 2 * s, s)
    return (mu + s * (np.where(out, 2, 1) * rng.normal(size=2000) + 0.75 * out), mu, s), {
        "by": np.where(out, "out", "in")
    }


@scenario(
    "60 intervals from quantiles, 1.5 times too narrow on both sides",
    (*OVER, *UNKNOWN),
    bias=None,
    never=("But the",),
)
def few_narrow_quantiles(rng):
    s, mu = spread_stds(rng, 60, 0.5), 2 * rng.normal(size=60)
    ends = mu[:, None] + s[:, None] * np.asarray([-1.645, 0, 1.645])
    return (uq.Predictions.from_quantiles(mu + 1.5 * s * rng.normal(size=60), ends, [0.05, 0.5, 0.95]),)


@scenario(
    "one weight of 30 % of all", UNKNOWN, bias=None, says=("With these weights, the 500 samples count like",)
)
def one_heavy_weight(rng):
    weight = np.ones(500)
    weight[7] = 210
    return calibrated(rng, 500), {"weights": weight}


@scenario(
    "biased by .15 std where std and prediction are both small or both large, the other way elsewhere", PLACES,
    bias=None, says=("in each of these 4 parts, add mean(",), slow=True,
)  # fmt: skip
def biased_in_cells(rng):
    s, mu = spread_stds(rng, 20_000, 0.5), 2 * rng.normal(size=20_000)
    return mu + s * (rng.normal(size=20_000) + np.where((mu > 0) == (s > 1), 0.15, -0.15)), mu, s


# ---- labels, axes and times that explain what their samples share ----


def of_rows(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    """Means, stds and standardized errors."""
    return 3 * rng.normal(size=n), spread_stds(rng, n, 0.3), rng.normal(size=n)


@scenario(
    "by=: 600 rows of a version, then 600 of one whose stds are 1.6 times too small", (*PLACES, *OVER), bias=None,
    says=("n stratum 'v2' standard", "recalibrate each stratum separately"), never=("rift",),
)  # fmt: skip
def versions_in_rows(rng):
    mu, s, z = of_rows(rng, 1200)
    by = np.repeat(["v1", "v2"], 600)
    return (mu + s * np.where(by == "v2", 1.6, 1) * z, mu, s), {"by": by}


@scenario(
    "by=: six maps of each of two scanners, the stds of one 1.7 times too small", PLACES, bias=None,
    says=("in stratum 'B' standard",), never=("no miscalibration is found",),
)  # fmt: skip
def maps_of_two_scanners(rng):
    mu, s, z = (each.reshape(12, 20, 20) for each in of_rows(rng, 4800))
    by = np.repeat(["A", "B"], 6)[:, None, None]
    return (mu + s * np.where(by == "B", 1.7, 1) * z, mu, s), {"by": np.broadcast_to(by, mu.shape)}


@scenario("by=: six maps of each of two scanners, calibrated", FINE, bias=None, never=("stratum",))
def calibrated_maps_of_two_scanners(rng):
    mu, s, z = (each.reshape(12, 20, 20) for each in of_rows(rng, 4800))
    by = np.repeat(["A", "B"], 6)[:, None, None]
    return (mu + s * z, mu, s), {"by": np.broadcast_to(by, mu.shape)}


@scenario(
    "order=: errors shrink from 1.7 to .6 times the stated size and grow again", PLACES, bias=None,
    says=("between 40 % and 60 % of the way", "no one correction fits them all"), never=("Recalibrate with",),
)  # fmt: skip
def wave_of_sizes(rng):
    mu, s, z = of_rows(rng, 2000)
    return (mu + s * (0.6 + 1.1 * np.abs(np.linspace(-1, 1, 2000))) * z, mu, s), {"order": np.arange(2000)}


@scenario(
    "order=: hours of which a tenth are missing, a bias of .7 std by the hour", PLACES, bias=None,
    says=("errors recur every 24 steps", "where step % 24 is", "at each place in the period, add"),
    never=("Recalibrate",),
)  # fmt: skip
def hours_with_gaps(rng):
    (mu, s, z), at = of_rows(rng, 2000), np.arange(2000)
    kept = rng.random(2000) > 0.1
    y = mu + s * (z + 0.7 * np.cos(2 * np.pi * at / 24))
    order = np.datetime64("2024-01-01T00") + at * np.timedelta64(1, "h")
    return (y[kept], mu[kept], s[kept]), {"order": order[kept]}


@scenario(
    "order=: four years, errors .5 to 1.7 times the stated size by the season", PLACES, bias=None,
    says=("errors recur", "Recalibrate each part of the period, such as a month,"),
)  # fmt: skip
def four_years(rng):
    (mu, s, z), at = of_rows(rng, 1461), np.arange(1461)
    return (mu + s * (1.1 + 0.6 * np.cos(2 * np.pi * at / 365.25)) * z, mu, s), {"order": at}


@scenario(
    "maps of three channels, two of them biased by .5 std", PLACES, bias=None,
    says=("axis 1 index", "First correct the predictions"), never=("Recalibrate",),
)  # fmt: skip
def channels(rng):
    mu, s, z = (each.reshape(12, 3, 16, 16) for each in of_rows(rng, 9216))
    return mu + s * (np.array([0.5, -0.5, 0])[:, None, None] + z), mu, s


@scenario(
    "six targets in an array, the stds of the last 1.8 times too small", PLACES, bias=None,
    says=("axis 1 index 5 standard", "Recalibrate each place along that axis"), never=("State heavier",),
)  # fmt: skip
def six_targets(rng):
    mu, s, z = (each.reshape(200, 6) for each in of_rows(rng, 1200))
    return mu + s * np.array([1, 1, 1, 1, 1, 1.8]) * z, mu, s


@scenario("six targets in an array, calibrated", FINE, bias=None, never=("axis",))
def six_calibrated_targets(rng):
    mu, s, z = (each.reshape(200, 6) for each in of_rows(rng, 1200))
    return mu + s * z, mu, s


@scenario(
    "150 rows, scored in eight repeated cross-validations, each in another order", (*FINE, *UNKNOWN), FLAT,
    bias=None, says=("the 150 different ones of 1,200 were judged",),
)  # fmt: skip
def repeated_splits(rng):
    mu = 6 * rng.normal(size=150)
    y, places = mu + np.sqrt(0.9) * rng.normal(size=150), [rng.permutation(150) for _ in range(8)]
    predicted = [mu[place] + np.sqrt(0.1) * rng.normal(size=150) for place in places]
    return np.concatenate([y[place] for place in places]), np.concatenate(predicted), np.ones(1200)


@scenario(
    "stds 1.5 times too small, scaled by std_scaling fitted to the same rows", FINE, bias=None,
    says=("The fit is exact", "score others"),
)  # fmt: skip
def fitted_on_the_same(rng):
    mu, s, z = of_rows(rng, 300)
    return mu + 1.5 * s * z, mu, s * 1.5 * np.sqrt(np.mean(z**2))


@scenario(
    "a twentieth of the errors at one of four sites eight times too large", ("overconfident in few samples",),
    bias=None, says=("of stratum '2', errors are", "Check the truth and inputs"), never=("Recalibrate", "separately"),
)  # fmt: skip
def outliers_at_one_site(rng):
    mu, s, z = of_rows(rng, 3000)
    by = rng.integers(0, 4, 3000)
    far = (by == 2) & (rng.random(3000) < 0.05)
    return (mu + s * np.where(far, 8 * np.sign(z), z), mu, s), {"by": by}
