"""Tests of a regression: the scale of its standard deviations or the coverage of its intervals, shape, and bias."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import special

from uq_tracking.families import Standard, family_of
from uq_tracking.formatting import format_number
from uq_tracking.inference import doctor, words
from uq_tracking.inference.doctor import Cure, Suspicion
from uq_tracking.inference.findings import (
    GROSS,
    ONE,
    SHAPE_LEVEL,
    SLIGHT_SHAPE,
    UNKNOWN,
    Findings,
    Shape,
    Share,
    Tail,
)
from uq_tracking.inference.intervals import effective_share_limits
from uq_tracking.inference.limits import (
    DOMINATED,
    Estimated,
    Influence,
    Range,
    heavy_tails,
    means_of,
    share_limits,
)
from uq_tracking.inference.noise import floor_of, kolmogorov_floor, kolmogorov_stretch
from uq_tracking.inference.places import (
    LEVEL,
    LEVEL_OF_CELLS,
    LEVEL_OF_LABELS,
    PARTS,
    Errors,
    Grade,
    Made,
    Pattern,
    Places,
    find_drift,
    find_drifting_label,
    find_narrow,
    find_places,
    find_strata,
    grade_of_factor,
    tests_of,
)
from uq_tracking.inference.samples import is_slow, without_labels
from uq_tracking.inference.verdict import Calibration, Estimate, Ranked, Tests, Verdict, gain_sign, no_verdict
from uq_tracking.inputs.forms import form_of
from uq_tracking.inputs.forms.draws import MOST_HALVED
from uq_tracking.metrics import groups
from uq_tracking.metrics.accuracy import cv, sharpness
from uq_tracking.metrics.calibration import pit_ks
from uq_tracking.metrics.gaps import QUANTILE, Reduction, coverage_at, quantile_shares
from uq_tracking.metrics.proper_scores import LEVELS, share_within
from uq_tracking.metrics.ranking import Sparsification, n_merci, sparsification, spearman
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.groups import bucket_spans
from uq_tracking.statistics.orders import FloatArray, IntArray
from uq_tracking.statistics.regression import HIGH, LOW, POINT, expected_below, is_distribution
from uq_tracking.typed import cached_property, override

SCALE_LEVEL, BIAS_LEVEL, BIAS_LEVEL_OF_TILES, SHARE_LEVEL = 0.98, 0.95, 0.98, 0.975
SHARES = (0.5, ONE, 0.9, 0.95, 0.99)
FEWEST_OUTSIDE = 5
"""Samples expected outside an interval for its share to be looked at."""
FEWEST_TILES = 20
"""With fewer tiles, only scale and bias are tested: shape and places would claim too much."""
BEYOND_DEPENDENCE = 2.69
"""No dependence makes the root mean square of calibrated z exceed this in more than 2 % of sets."""
CENTRED_SHAPE = 1.035
"""Lilliefors' 1 % point times the root of n."""
ENOUGH_DRAWS = 50
"""With at least this many draws, the noise of their std inflates the spread of z by less than 3 %."""
CURABLE_SHAPES = ("miscalibrated in shape", "overconfident, most in the tails")
CURABLE = ("overconfident", "underconfident", "miscalibrated in places", *CURABLE_SHAPES)
"""Words for which a recalibration is looked for."""
LARGEST_ERROR, SURROUNDINGS = 6.0, 20
"""Size of an error, in the mean one of similar predictions, a part of so many, from which on it may be a mistake."""
CROSSED, OFTEN, EXCHANGED = 0.001, 0.03, 0.9
"""Shares of rows whose quantiles cross, beyond which a caveat says it, and the sentence does, and of those that cross
at as many places, beyond which that is no noise."""
SECANTS, CLOSE, FLATTEST = 12, 1e-4, 0.05
"""Most steps to the factor of a family, and where they end; least slope of the scores along it."""
MANY = 100_000
"""Of more samples, the mean of skewed errors is taken for normal."""
MOST_EQUAL = 0.05
"""Share of targets that equal a quantile, as counts do, from which on their F(y) depends on where they are."""
EXACT = 1e-9
"""Distance of a factor from 1 that only a recalibration fitted to the same samples leaves."""
EQUAL = 1e-9
"""Coefficient of variation below which standard deviations differ by rounding."""
FEW_GROUPS, OUTLYING, LARGER, ABOUT = (4, 8), 5.0, math.log(1.9), 0.1
"""At most one group (block of a series) of so many is an exception, whose log size is so many standard deviations of
the others', and by so much, above theirs, if these are right within so much."""
RARE_OF_LABEL = 0.02
"""Share of the errors of a label beyond three standard deviations from which on they are gross."""
FAR = 3.0
"""Size of all others, in that of most, beyond which more than a few samples are wrong."""
TAILS, TAILS_LEVEL, FEWEST_OF_TAILS = (0.05, 0.95), 0.998, 200
"""Quantiles that are tested by themselves, the level of both, and least samples: skewed errors are worst there."""
CELLS = [
    f"samples of {size} std and {side} prediction" for side in ("low", "high") for size in ("small", "large")
]
SHIFTED = 0.02
"""Share of the targets that a shift of all quantiles may move out of the widest intervals."""
CURVED = 3
"""Degree of the curve that is fitted to the truth along predictions."""
FEWEST_BEYOND = 5
"""With fewer samples, nothing is said of errors of any size."""
OF_QUANTILES = 0.01
"""Share of right forecasts of which any quantile is said to be wrong."""
FARTHEST, FACTORS = 1.5, 301
"""Log of the largest factor on the spread of distributions that is tried, and number of factors."""
SKEWED, SKEWED_BY_CHANCE = math.log(1.5), 6.0
"""Least log ratio of the distances of both outer tenths of errors from their median, and three standard errors of
it times the root of n, from which on errors are skewed."""
HARDLY = 3.0
"""Ratio of medians below which errors are hardly larger than others: normal ones beyond three stds are 5 times."""
FEWEST_DRAWS = 10
"""Of fewer draws, F(y) is known too roughly, and z too noisy, to compare them."""
ROUNDING = 1e-6
"""Differences below this share of the largest value are those of digits."""
ENOUGH_FOR_GRID, FINEST = 2000, 0.02
"""Errors that tell whether all lie on a grid, and its smallest step in stds that bears on their distribution."""
OF_CASE = 1.2
"""Independent samples of a case, such as an image, below which its errors are all alike."""
COARSE = 4.0
"""Standard deviations of whole numbers below which their steps shape the errors."""
UNIFORM = 1.628
"""Kolmogorov's 1 % point times the root of n."""
OF_VECTORS = 0.1, 0.25, 0.5, 0.75, 0.9
"""Probabilities of the ellipsoids whose shares of whole vectors are tested, at the level of shape together."""
OF_ALL = 0.9, 2.0
"""Log of the factor that fits most of F(y), over that of its scores, within which it may hold for all."""
OF_DRAWS = 1.05
"""Least lower limit of the size of errors of draws from which on it is wrong, whatever ranks among draws say."""
DEEPEST = 8.2
"""Gaussian score of the largest F(y) below 1 in float64."""


class RegressionTests(Tests):
    """Tests of predictive distributions of a number."""

    shows = "RMSE"

    @override
    def scale(self) -> Estimated:
        found = std_scale(self.statistics, family_of(self.settings), self.at(SCALE_LEVEL))
        heavy = not is_distribution(self.statistics) and heavy_tails(self.statistics)
        return replace(found, dominance=math.inf) if heavy else found

    @property
    @override
    def bias_level(self) -> float:
        """Level of the limits of the bias: tiles are not quite independent, and reject 7 to 9 % at 95 %."""
        tiles = self.dependence is not None and self.dependence.kind == "tiles"
        return self.at(BIAS_LEVEL_OF_TILES if tiles else BIAS_LEVEL)

    @override
    def bias(self) -> Estimated:
        return mean_bias(self.statistics, self.bias_level, values=self._errors())

    @override
    def ranking(self) -> tuple[Sparsification, Callable[[float, float], int]]:
        curve = sparsification(self.statistics, "sq_error")
        return curve, partial(gain_sign, self.statistics, curve.model)

    @override
    def _ranking(self) -> Ranked:
        """Test whether uncertainty sorts errors; rounding alone does not, nor the wrong way stds that hardly vary."""
        found = super()._ranking()
        least = doctor.ALIKE if found.word == "worse than constant" else EQUAL
        is_equal = found.word != "not enough data" and self._score(cv) < least
        return found._replace(word="no better than constant", recovered=0.0) if is_equal else found

    @override
    def verdict(self) -> Verdict:
        suspicions = self.suspicions()
        if self.dependence is not None and self.dependence.alike and self.dependence.group is None:
            return self._unjudged(suspicions)
        no_error = not self.statistics.orders["abs_error"].sum("abs_error")
        if reason := self.too_little() or "every error is 0" * no_error:
            return self._unjudged(suspicions, no_verdict(reason).text)
        self.caveats.extend(self.of_data())
        found, inside = self.findings(), inside_widest(self.statistics, self.at(SCALE_LEVEL))
        calibration: Calibration
        grade, few, aside = found.grade(), None, False
        if inside is not None:
            calibration, grade = inside.misses or inside.unproven, inside.grade
            if found.shape is not None and self._is_of_shape(inside):
                calibration = "miscalibrated in shape"
                grade = "off" if any(each.severity > 2 for each in self._surely_off) else "slight"
            aside = calibration == inside.misses and self._is_aside(inside, found)
            if (in_places := found.grade_of_places(inside.misses, aside=aside)) is not None:
                calibration, grade, aside = "miscalibrated in places", in_places, False
            off = [each for each in self._surely_off if not _is_median(each)]
            sentence = words.of_interval(calibration, inside, found, self._ends_off, off)
        else:
            calibration = found.kind()
            by_few = self._is_gaussian and found.scale and found.dominated and found.scale.low > 1
            by_few = by_few and not found.of_small_stds
            few = few_samples(self.statistics) if by_few else None
            if self._is_gaussian and few is None:
                few = self._few_of_label(found) if calibration == words.IN_PLACES else self._few_groups()
            if few is not None:
                calibration, grade = "overconfident in few samples", "off"
            sentence = words.of_calibration(calibration, found, self.settings, few)
            if found.untested and calibration != "not enough data":
                self.caveats.append(f"The scale is not tested: {found.untested}.")
        if found.scale is not None and abs(found.scale.value - 1) < EXACT:
            self.caveats.append(words.OF_FITTED)
        if calibration == "underconfident":
            self.caveats.append(
                "If the model was trained on these samples, score others: its errors on these are too small."
            )
        ranked = self._ranking()
        of_ranking, sorts_only = self._of_ranking(ranked, suspicions, is_right=calibration in words.NO_ERROR)
        settle_first = ranked.word == "worse than constant" or any(each.is_mistake for each in suspicions)
        is_said = calibration == "biased" or found.bias_of_one_label()
        of_bias = "" if is_said else words.of_bias(found, self.settings)
        if inside is not None:  # a median that is off explains the other quantiles
            of_crossed = f"{words.of_crossed(self._crossed)} Sort them before use." * (self._crossed > OFTEN)
            sentence, of_bias = " ".join(filter(None, [of_crossed, of_bias, sentence])), ""
            of_ranking = words.of_widths(of_ranking)
        unjudged = "Calibration is not judged" if calibration == words.UNTOLD else words.ONLY_SHAPE
        sentence = sentence or f"{unjudged}: {found.untested}."
        if ranked.word == "worse than constant":  # no recalibration mends that
            sentence, of_ranking = f"{of_ranking} {sentence}", ""
        cure = None if settle_first else self._cure(calibration, found)
        if cure is not None and cure.method and of_ranking == words.NO_SIGN:
            of_ranking = words.NO_CURE
        is_named = settle_first or aside or found.all_shifted
        step = "" if is_named else self._of_step(calibration, found, cure)
        overall = words.of_all(calibration, found.scale if inside is None else None)
        if calibration in words.NO_CLAIM and (vectors := self._of_vectors()) is not None:
            calibration, grade = "miscalibrated in shape", "off"
            sentence = f"{vectors} {words.lowered(sentence)}"
        rest = (of_bias, step, overall, *self.notes, of_ranking, "" if few else self._of_spells(found))
        return self.conclude(
            calibration,
            sentence,
            ranked,
            rest,
            suspicions=suspicions,
            cure=None if step else cure,
            grade=grade,
            scale=found.scale,
            shape_p=None if found.shape is None else found.shape.p,
            bias=found.bias,
            places=found.places,
            sorts_only=sorts_only,
        )

    @property
    def _is_gaussian(self) -> bool:
        """Whether predictions are means and standard deviations of normal distributions."""
        return self.settings.family == "gaussian" and not is_distribution(self.statistics)

    def findings(self) -> Findings:
        """Test scale, places, shape and bias."""
        scale, dominated, untested = self._scale(self.at(SCALE_LEVEL))
        tiles = groups.count(self.statistics) or 0
        is_cut = self.dependence is not None and self.dependence.kind == "tiles"
        zero = has_zeros(self.statistics)
        few_tiles = is_cut and tiles < FEWEST_TILES
        if few_tiles and not zero:
            self.caveats.append(
                f"Shape and local errors are not tested: there are {tiles} tiles, and {FEWEST_TILES} are needed."
            )
        shape = None if few_tiles or zero else self._shape()
        median = next((each for each in self._below if _is_median(each)), None)
        shares, within, bulk, tail = self._shares(scale)
        of_distribution = is_distribution(self.statistics)
        bulk, left = best_factor(self.statistics) if of_distribution else (bulk, math.nan)
        places = None if few_tiles else self._places()
        are_biased = places is not None and any(each.quantity == "bias" for each in places.found())
        one_sided = median is None and not form_of(self.statistics.facts).is_interval
        bias = self._bias() if one_sided else None
        found = Findings(
            scale=scale,
            untested=untested,
            dominated=dominated,
            shares=shares,
            within_scale=within,
            tail=tail,
            places=places,
            shape=shape,
            bias=bias,
            shift_in_std=bias is not None and self._is_shift_in_std(bias.value),
            bias_in_std=self._bias_in_std() if one_sided else None,
            below_median=median,
            all_shifted=median is not None and not are_biased and self._are_all_like(median),
            of_small_stds=scale is not None and scale.low > 1 and self._are_stds_small(),
            shape_level=self.at(SHAPE_LEVEL),
            bulk=bulk,
            left=left,
            multiple=self._multiple() if of_distribution else None,
            single_values=of_distribution and self.statistics.counts["n_zero_std"] > 0,
            median_is_right=of_distribution and self._is_median_right(),
        )
        few = self._few_of_label(found)
        is_local = any(each.on == "label" and each.made != "cell" for each in found.in_places.found())
        if found.is_gross() and not (is_local and (few is None or math.log(few.rest) <= ABOUT)):
            # they bias whatever they are part of
            return replace(found, places=None, bias=None, bias_in_std=None)
        return found

    def _are_stds_small(self) -> bool:
        """Return whether many errors exceed three standard deviations, but are hardly larger than all others."""
        if self.samples is None:
            return False
        target, mean, std = (self.samples.rows[name] for name in ("target", "mean", "std"))
        error = np.abs(target.astype(np.float64) - mean)
        beyond = error > 3 * std
        are_many = RARE_OF_LABEL < beyond.mean() < 1
        return bool(are_many and np.median(error[beyond]) < HARDLY * np.median(error[~beyond]))

    def _of_spells(self, found: Findings) -> str:
        """Say that sizes of neighboring errors are alike, where nothing else that is found explains that; else ""."""
        is_explained = found.in_places.found() or is_distribution(self.statistics)
        is_series = self.dependence is None or self.dependence.kind == "blocks"
        are_slow = self.samples.slow_in_spells() if self.samples and is_series and not is_explained else None
        return "" if are_slow is None else words.OF_SPELLS.format(words.BESIDE_SPELLS[are_slow])

    def _few_groups(self) -> Few | None:
        """The few groups whose errors are far larger than those of all others, whose size is about right."""
        found = groups.count(self.statistics) and groups.moments(self.statistics, "z")
        if not found:
            return None
        count, middle, spread = found
        square = spread + count * middle**2
        logs = np.log(np.maximum(square / count, 1e-300)) / 2
        order = np.argsort(-logs)
        in_order = self.samples is not None and self.samples.in_order(self.dependence)
        for most in range(len(order) // FEW_GROUPS[in_order], 0, -1):
            few, rest = order[:most], order[most:]
            size = math.sqrt(float(square[rest].sum() / count[rest].sum()))
            apart = logs[few].min() - logs[rest].mean() > max(OUTLYING * logs[rest].std(), LARGER)
            if apart and abs(math.log(max(size, 1e-300))) < ABOUT:
                samples, of = float(count[few].sum()), float(count.sum())
                errors = math.sqrt(float(square[few].sum()) / samples)
                where, bias = self._where(np.sort(few), count), float(count[few] @ middle[few]) / samples
                return Few(samples, of, errors, size, where, bias)
        return None

    def _few_of_label(self, found: Findings) -> Few | None:
        """Return the few errors of a label that are far too large, if all others are about right."""
        known = [each for each in found.in_places.found() if each.made in ("given", "area")]
        first = next((each for each in known if (each.on, each.quantity) == ("label", "scale")), None)
        if first is None or self.samples is None:
            return None
        part = max((found.in_places.strata[place] for place in first.named), key=lambda part: part.factor)
        z, held = self.samples.z(), [each for each in self.samples.sets if part.name in each[0]]
        if not held:  # a whole map
            return None
        here = held[0][1] == held[0][0].index(part.name)
        large = here & (np.abs(z) > FAR)
        share = float(large.sum() / here.sum())
        if share > 1 / 2 or (share < RARE_OF_LABEL and part.factor < GROSS):
            return None
        size, own, rest = (
            math.sqrt(float(np.square(z[part]).mean())) for part in (large, here & ~large, ~large)
        )
        if own <= 0 or abs(math.log(own)) > ABOUT:
            return None
        where = f"in {words.percent(share)} of {words.label_name(part, first.made)}"
        return Few(float(large.sum()), len(z), size, rest, where)

    def _is_median_right(self) -> bool:
        """Return whether half of the truth may lie below the medians of distributions: then no shift mends them."""
        statistics = self.statistics
        if statistics.groups is not None:
            return False
        low, high = _limits(statistics, expected_below(statistics, 0.5), self.at(SCALE_LEVEL))
        begun, ended = (float(_up_to(statistics, order, 0.5)[0]) for order in (LOW, HIGH))
        return low <= 0.5 <= high and 2 * (begun - ended) < statistics.n  # else most equal their median

    def _multiple(self) -> float | None:
        """Return the factor on distributions of positive numbers that leaves smaller errors than a shift does."""
        form = form_of(self.statistics.facts)
        if self.samples is None or form.is_interval:
            return None
        target, mean, std = (self.samples.rows[name].astype(np.float64) for name in ("target", "mean", "std"))
        if not np.all(target >= 0) or not np.all(mean >= 0) or not mean.any():
            return None
        if np.any(mean == 0) and not mean[std == 0].any():  # a shift would leave no day without rain
            return float(target.sum() / mean.sum())
        if form.noisy_std or not (np.all(mean > 0) and np.all(std > 0)):
            return None
        multiple = float(np.sum(target / std) / np.sum(mean / std))
        return multiple if np.std((target / multiple - mean) / std) < np.std((target - mean) / std) else None

    def _is_shift_in_std(self, bias: float) -> bool:
        """Return whether shifts by a share of each standard deviation leave smaller z than one by the bias does."""
        if self.samples is None or form_of(self.statistics.facts).noisy_std:
            return False
        rows = self.samples.rows
        target, mean, std, weight = (rows.get(name) for name in ("target", "mean", "std", "weight"))
        error = np.asarray(target, np.float64) - mean
        if not np.all(std > 0):
            return False
        z = error / std
        of_shares = np.average(np.square(z - np.average(z, weights=weight)), weights=weight)
        return bool(of_shares < np.average(np.square((error + bias) / std), weights=weight))

    def _of_step(self, calibration: Calibration, found: Findings, cure: Cure | None) -> str:
        """Say what to do where no recalibration is named: predictions come first, if they are wrong."""
        if cure is not None and cure.method:
            return ""
        biased = [each for each in found.in_places.patterns if each.found and each.quantity == "bias"]
        biased = biased if found.multiple is None else []  # a factor mends those, too
        if calibration in words.NO_CLAIM:
            is_said = found.is_biased() and found.bias_grade != "fine"
            return words.MORE_FIRST * (calibration == "consistent with calibrated" and is_said)
        off, law = biased or found.bias_grade == "off", self._law(calibration, found)
        of_skew = words.OF_MEDIANS.format(law or words.SKEWED) * self._is_skewed()
        if calibration == "biased" or (of_skew and off and not biased and calibration in CURABLE):
            return of_skew or f"{words.of_shift(found, self.settings)}."
        is_std = not is_distribution(self.statistics)
        are_counts = not is_std and self._has_whole_numbers()
        sizes = words.of_sizes(calibration, found, is_std=is_std, are_counts=are_counts) * (not self._below)
        of_sizes = sizes and f"{sizes[0].upper()}{sizes[1:]}, then score other samples."
        if not off and cure is None and not self._below:
            if found.in_places.found():
                return of_sizes
            return words.of_step(calibration, found, self.settings, law, is_std=is_std)
        if not off or any(each.on in ("order", "within") for each in biased) or calibration not in CURABLE:
            return ""
        alike = self.dependence if self.dependence is not None and self.dependence.kind == "cases" else None
        is_of_case = alike is not None and alike.worth < OF_CASE * (groups.count(self.statistics) or 0)
        if is_of_case and any(each.on == "mean" for each in biased):
            return words.OF_CASES
        what, how = "quantiles" if self._below else "predictions", self._correction(biased, found)
        if how is not None:
            if words.OWN in law and how.endswith("by it"):
                return f"State {law}, or else correct the {what}{how}. Then score other samples."
            then = f"Then {sizes}, and score" if sizes else "Then score"
            return f"First correct the {what}{how}. {then} other samples."
        if any(part.low == part.high for each in biased for part in found.in_places.parts.get(each.on, ())):
            return words.AT_LIMIT
        size, part = np.abs(self.samples.z()), _parts_of(self.samples.rows["mean"], SURROUNDINGS)
        is_far = np.max(size / np.maximum(means_of(size, part)[part], 1e-300)) > LARGEST_ERROR
        return of_skew or (words.LOOK_FIRST if is_far else of_sizes or words.NO_CURVE)

    def _law(self, calibration: Calibration, found: Findings) -> str:
        """Name a distribution that is likely to fit better; "" if none is known."""
        if self.samples is None or not self._is_gaussian:
            return ""
        if calibration == "miscalibrated in shape" and words.of_heavy(found):
            return words.STUDENT_T
        if self._has_whole_numbers():
            return words.WHOLE_NUMBERS
        target = self.samples.rows["target"]
        usual = target.min(), target.max(), 0.0
        share, value = max((float(np.mean(target == each)), float(each)) for each in usual)
        if MOST_EQUAL < share < 1:
            return words.of_frequent(value, share)
        return words.SKEWED * found.is_skewed()

    def _has_whole_numbers(self) -> bool:
        """Return whether targets are whole numbers, whose steps shape the errors."""
        if self.samples is None:
            return False
        target, std = self.samples.rows["target"], self.samples.rows["std"]
        return bool(np.median(std) < COARSE and np.all(target == np.round(target)))

    def _is_skewed(self) -> bool:
        """Return whether most errors reach further to one side, as those of medians passed as means do."""
        if self.samples is None or not self._is_gaussian:
            return False
        low, middle, high = np.quantile(self.samples.z(), (0.1, 0.5, 0.9)).tolist()
        least = max(SKEWED, SKEWED_BY_CHANCE / math.sqrt(len(self.samples.rows["std"])))
        return low < middle < high and abs(math.log((high - middle) / (middle - low))) > least

    def _correction(self, biased: Sequence[Pattern], found: Findings) -> str | None:
        """Say how to correct predictions; None if errors grow, as where a few large ones are all that is wrong."""
        samples, on = self.samples, {each.on for each in biased}
        said = f": {words.lowered(words.of_shift(found, self.settings))}"
        said = words.of_correction(biased, of_quantiles=bool(self._below)) if biased else said
        if samples is None or is_distribution(self.statistics) or not np.all(samples.rows["std"] > 0):
            return said
        target, mean, std = (samples.rows[name].astype(np.float64) for name in ("target", "mean", "std"))
        error = target - mean
        most = FAR * max(float(np.median(np.abs(error / std))), 1.0)

        def loss(left: FloatArray) -> float:
            return float(np.square(np.minimum(np.abs(left / std), most)).mean())

        if not biased:
            bias = found.bias_in_std if found.shift_in_std else found.bias
            shift = 0.0 if bias is None else bias.value
            left = loss(error + shift * std if found.shift_in_std else error + shift)
        elif "mean" in on and not any(each.made == "period" for each in biased):
            left, fifth = loss(self._off_curve(target, mean)), _parts_of(mean, PARTS)[:, None] == range(PARTS)
            by_share = loss(self._off_fit(fifth, error / std) * std)
            if by_share < loss(error) <= left:
                said, left = words.of_correction(biased, in_std=True), by_share
        elif "label" in on and samples.sets:
            label = np.unique([place for _, place in samples.sets], axis=1, return_inverse=True)[1]
            by_mean = loss(error - means_of(error, label)[label])
            by_share = loss(error - means_of(error / std, label)[label] * std)
            said, left = words.of_correction(biased, in_std=by_share < by_mean), min(by_mean, by_share)
        else:
            return said
        return said if left < loss(error) else None

    def _off_curve(self, target: FloatArray, mean: FloatArray) -> FloatArray:
        """Return the truth minus a curve of predictions."""
        return self._off_fit(np.vander((mean - mean.mean()) / max(mean.std(), 1e-300), CURVED + 1), target)

    def _off_fit(self, columns: FloatArray, values: FloatArray) -> FloatArray:
        """Return values minus what columns explain, which each half of the samples fits for the other."""
        left = values.copy()
        side = doctor.halves_of(len(left), self.samples.units(self.dependence), fewest=0)
        for half in (side == 0, side == 1):
            left[half] -= columns[half] @ np.linalg.lstsq(columns[~half], values[~half], rcond=None)[0]
        return left

    def _is_aside(self, inside: Inside, found: Findings) -> bool:
        """Return whether intervals are too narrow beside a bias along predictions, which is not the cause.

        A curve of predictions then restores less than half of what the widest intervals miss beyond doubt.
        """
        on = {each.on for each in found.in_places.found() if each.quantity == "bias"}
        if self.samples is None or on != {"mean"}:
            return False
        target, mean = (self.samples.rows[name].astype(np.float64) for name in ("target", "mean"))
        held = self._inside(np.stack([target - mean, self._off_curve(target, mean)]))
        return bool(held[1] - held[0] < (inside.level - inside.high) / 2)

    def _inside(self, errors: FloatArray) -> FloatArray:
        """Return the share of each row of errors that lies inside the widest intervals."""
        rows, levels = self.samples.rows, self.statistics.facts["levels"]
        low, high = special.ndtri([min(levels), max(levels)])[:, None] * rows["std"]
        held = np.average((low <= errors) & (errors <= high), axis=1, weights=rows.get("weight"))
        return np.asarray(held)

    def _cure(self, calibration: Calibration, found: Findings) -> Cure | None:
        """Return what removes the error, where standard deviations or the shape are all that is wrong."""
        samples, places = self.samples, found.places
        if samples is None or places is None or calibration not in CURABLE or not self._is_gaussian:
            return None
        if any(each.quantity == "bias" or each.on not in ("std", "mean") for each in places.found()):
            return None
        shape = calibration in CURABLE_SHAPES
        if samples.rows.get("weight") is not None if shape else found.bias_grade == "off":
            return None
        label = samples.by[1] if samples.by is not None and samples.sets else None
        unit = samples.units(self.dependence)
        cure = doctor.find_cure(samples.rows, unit, self.settings, shape=shape, label=label)
        if cure is None or (cure.removes and cure.method):
            return cure and replace(cure, removes=shape or found.bias_grade != "slight")
        if any(each.on != "std" for each in places.found()):  # what no function of the std mends
            return Cure(instead=words.of_sizes(calibration, found, is_std=True))
        law = self._law(calibration, found)
        if cure.method:
            is_evident = law not in ("", words.STUDENT_T, words.SKEWED)
            return replace(cure, step=f"State {law}, or recalibrate") if is_evident else cure
        unless = ", unless parts differ (pass by=, such as the site of each sample)" * (words.OWN not in law)
        return Cure(instead=f"state {law}{unless}") if law else cure

    def suspicions(self) -> tuple[Suspicion, ...]:
        """Look for mistakes in the input; () where its samples are gone."""
        samples = self.samples
        if samples is None:
            return ()
        crossed = samples.rows.get("crossed", np.zeros(1))
        if np.unique(crossed[crossed > 0], return_counts=True)[1].max(initial=0) > EXCHANGED * len(crossed):
            fix = "Are columns swapped, or levels in another order?"
            return (Suspicion("crossing quantiles", words.of_crossed(self._crossed), fix),)
        target, mean, std = (samples.rows[name] for name in ("target", "mean", "std"))
        if alike := doctor.alike_across(samples, self.dependence, samples.z(), [target, mean, std]):
            return (alike,)
        if is_distribution(self.statistics):
            error, spread = target.astype(np.float64) - mean, std.astype(np.float64)
            are_draws = form_of(self.statistics.facts).noisy_std and np.all(spread > 0)
            lacking = doctor.no_noise(error, spread) if are_draws else None
            return () if lacking is None else (lacking,)
        gaussian = self.settings.family == "gaussian"
        in_order = len(samples.shape) == 1 and samples.shape == target.shape
        group, of_means = samples.units(self.dependence), samples.members
        found = doctor.examine(
            target, mean, std, gaussian=gaussian, spread_of_means=of_means, in_order=in_order, group=group
        )
        along_axes = [each for each in samples.sets if samples.by is None and each[0][0].startswith("axis")]
        for name, here in ((name, label == k) for names, label in along_axes for k, name in enumerate(names)):
            if np.ptp(target[here]) == 0:
                text = f"All true values of {name.replace(': ', ' ')} are equal."
                return (
                    Suspicion("constant truth", text, "Leave them out: they hide what is said of others."),
                )
        own = samples.sets if samples.by is not None and not (samples.recur or found) else []
        of_labels = (doctor.unit_of_label(target, mean, label, names) for names, label in own)
        return found or tuple(each for each in of_labels if each is not None)[:1]

    @property
    def _crossed(self) -> float:
        """The share of rows whose quantiles cross."""
        return float(self.statistics.counts.get("n_crossed", 0) / self.statistics.counts["n"])

    def _bias_in_std(self) -> Estimate | None:
        """Return the bias in standard deviations: of z, or relative to their mean square where they are estimates."""
        level, errors, size = self.bias_level, self._errors(), 1.0
        std = None if self.samples is None else self.samples.rows["std"]
        z = errors / std if errors is not None and std is not None and np.all(std > 0) else None
        try:
            if is_distribution(self.statistics):
                found, size = self.bias(), sharpness(self.statistics, self.settings)
            else:
                found = mean_bias(self.statistics, level, "z", z)
        except Undefined:
            return None
        return Estimate(found.value / size, found.low / size, found.high / size, level)

    def _errors(self) -> FloatArray | None:
        """Return truth minus prediction of all samples, unless so many that the law of their mean is normal."""
        samples, n = self.samples, self.statistics.counts["n"]
        if samples is None or not len(samples.rows["std"]) == n <= MANY:
            return None
        weight = samples.rows.get("weight")
        if weight is not None and np.any(weight != weight[0]):
            return None
        return np.asarray(samples.rows["target"].astype(np.float64) - samples.rows["mean"])

    def _of_vectors(self) -> str | None:
        """Say which share of whole vectors inside an ellipsoid is wrong by most, beyond doubt; else None."""
        samples, size = self.samples, self.statistics.facts.get("vector_length")
        rows = {} if samples is None or samples.total or "weight" in samples.rows else samples.rows
        if samples is None or "joint_pit" not in rows or not rows["whole"].any():
            self.caveats.extend([words.OF_VECTORS] * bool(size))
            return None
        first = np.flatnonzero(rows["whole"])[::size]
        pit, group = rows["joint_pit"][first], samples.units(self.dependence)
        label = np.arange(len(first)) if group is None else np.unique(group[first], return_inverse=True)[1]
        shares, level, held = [], 1 - (1 - self.at(SHAPE_LEVEL)) / len(OF_VECTORS), np.bincount(label)
        for stated in OF_VECTORS:
            inside, of = np.asarray([np.bincount(label, pit <= stated), held], dtype=np.float64)
            value, influence = float(inside.sum() / of.sum()), Influence.of_ratio(inside, of)
            shares.append(Share(stated, value, *effective_share_limits(value, influence, len(held), level)))
        worst = max((each for each in shares if each.is_off), key=lambda each: each.severity, default=None)
        if worst is None or size == 1:
            return None
        z = samples.z()[rows["whole"] > 0].reshape(-1, size)
        return words.of_vectors(worst, float(np.corrcoef(z.T)[np.triu_indices(size, 1)].mean()))

    def _places(self) -> Places | None:
        samples, are_known = self.samples, np.any if is_distribution(self.statistics) else np.all
        if samples is None or not are_known(samples.rows["std"] > 0):
            return None
        rows, group = samples.rows, samples.units(self.dependence)
        if self._equal_quantiles:
            self.notes.append(words.OF_EQUAL)
            return find_narrow(self._of_rows(self._inside_of(rows), group), LEVEL / self.among)
        errors = along = rest = self._of_rows(rows, group)
        if form_of(self.statistics.facts).noisy_std and rows["size"].min() <= MOST_HALVED:
            along, rest = (self._of_rows(_half_of(rows, half), group) for half in ("one_", "other_"))
        in_order = samples.in_order(self.dependence)
        in_series = samples.by is not None and not samples.recur and samples.is_series
        more = in_order + bool(samples.sets) + in_series
        level, each = LEVEL / self.among, LEVEL_OF_LABELS / self.among / max(more, 1)
        found = Places()
        if np.all(along.std > 0):
            # past errors move a slow forecast, so that its own errors seem to depend on it
            mean = None if in_order and is_slow(along.mean, group) else along.mean
            scored = replace(rest, error=rest.z * along.std, std=along.std, mean=mean)
            found = find_places(scored, level - more * each)
        if in_order:
            label = None if samples.recur else samples.recurring  # what they explain is no drift
            own_error = errors.error if label is None else errors.std * without_labels(errors.z, label)
            found = found.joined(find_drift(replace(errors, error=own_error), group, level=each))
        made: Made = "area" if samples.by is None else "period" if samples.recur else "given"
        if samples.by is not None and in_order:
            errors = replace(errors, group=samples.units_of_labels(samples.by[1]))
        tests = sum(tests_of(label) for _, label in samples.sets)
        for own, label in samples.sets:
            of = str(own[0]).partition(": ")[0] if len(samples.sets) > 1 else samples.recur
            strata = find_strata(errors, label, own, level=each, tests_of_all=tests, of=of, made=made)
            if made == "given" and len(own) > 1 and all(each.word == "too few" for each in strata.strata):
                self.notes.append(words.FEW_OF_LABELS)
            found = found.joined(strata) if made != "area" or strata.found() else found
            if in_series and "weight" not in rows:
                order = slice(None) if samples.clock is None else np.argsort(samples.clock, kind="stable")
                of_one = each / len(samples.sets)
                found = found.joined(find_drifting_label(errors.at(order), label[order], own, level=of_one))
        if (quarters := samples.quarters(self.dependence)) is not None:
            names, case, quarter = quarters
            rest = errors.z - means_of(errors.z, case)[case]  # what maps share is their own
            rest *= errors.std * np.linalg.norm(errors.z) / np.linalg.norm(rest)
            own = replace(errors, error=rest, group=quarter)
            strata = find_strata(own, case, names, level=each, made="area")
            found = found.joined(strata) if any(each.grade == "off" for each in strata.found()) else found
        is_plain = not is_distribution(self.statistics) and "weight" not in rows
        if is_plain and not found.found() and not _are_shifted(errors):
            some = errors.thinned()
            cell = (some.std > np.median(some.std)) + 2 * (some.mean > np.median(some.mean))
            if np.bincount(cell, minlength=len(CELLS)).all():
                strata = find_strata(some, cell, CELLS, level=LEVEL_OF_CELLS / self.among, made="cell")
                found = found.joined(strata) if strata.found() else found
        return found

    def _inside_of(self, rows: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return rows in which targets equal to quantiles lie on the inner side of these."""
        edges = np.asarray([0.0, *sorted(self.statistics.facts["levels"]), 1.0])
        first, end = (np.searchsorted(edges, rows[name] - EXACT) for name in ("pit_low", "pit_high"))
        cell = np.clip(np.searchsorted(edges, 0.5) - 1, first, end - 1)
        return {**rows, "pit_low": edges[cell], "pit_high": edges[cell + 1]}

    def _of_rows(self, rows: Mapping[str, Any], group: IntArray | None) -> Errors:
        """Return errors and stds, with what intervals contain, or squared errors and variances.

        Errors of predictions in another form are Gaussian scores of F(y), times their std: drawn at random where F(y)
        is known between two values only, as of draws.
        """
        size = "width_widest" if "width_widest" in rows else "std"
        target, mean, std = (rows[name].astype(np.float64) for name in ("target", "mean", size))
        std = np.maximum(std, np.min(std, where=std > 0, initial=std.max()))  # draws may all be equal
        found = Errors(target - mean, std, mean, rows.get("weight"), group)
        if not is_distribution(self.statistics):
            return found
        form, low, high = form_of(self.statistics.facts), rows["pit_low"], rows["pit_high"]
        # The same draws for all data would share their chance trends.
        own = np.random.default_rng(zlib.crc32(target.tobytes()))
        pit = low + (high - low) * own.random(len(low))
        scored = replace(found, error=np.clip(special.ndtri(pit), -DEEPEST, DEEPEST) * std)
        if form.is_interval and (inside := rows.get("inside_widest")) is not None:
            has_median = any(map(_is_median, self._below))
            above = (low > 0.5) * (1 - inside)
            return replace(scored, inside=np.stack([inside] if has_median else [inside, above], axis=1))
        if form.is_interval:
            return scored
        scored = scored if form.noisy_std else replace(scored, plain=found.z)
        if heavy_tails(self.statistics):
            return scored
        return replace(scored, square=np.square(found.error), variance=np.square(std))

    def _shape(self) -> Shape:
        statistics, settings = self.statistics, self.settings
        n, own, high = statistics.n_effective, True, None
        if self._is_gaussian:
            z, order = statistics.moments["z"], statistics.orders["z"]
            at = z.mean + math.sqrt(max(z.variance(), 1e-300)) * special.ndtri(LEVELS)
            rest = float(np.abs(order.position(at) / order.total - LEVELS).max())
            own = rest > CENTRED_SHAPE / math.sqrt(n) and z.variance() > 0
        grouped = groups.count(statistics) is not None
        below = quantile_shares(statistics, settings, LEVELS)
        worst = int(np.abs(below - LEVELS).argmax())
        gap = abs(float(below[worst] - LEVELS[worst])) if grouped else pit_ks(statistics, settings)
        excluded = self._gap_of_quantiles()
        gap = gap if excluded is None else min(gap, excluded)
        if self._off_grid is not None:
            level, at = special.ndtr(self._off_grid), np.arange(len(self._off_grid) + 1) / len(self._off_grid)
            gap = min(gap, float(np.maximum(level - at[:-1], at[1:] - level).max()))
        elif self._is_gaussian and (tail := self._tail_off()) is not None:
            return tail
        if grouped:
            p = floor_of(QUANTILE.law_of_groups(statistics, settings)(Reduction("largest")), gap).p
        else:
            p = kolmogorov_floor(round(n), gap).p
        if not grouped and n == statistics.counts["n"]:
            high = gap + float(special.kolmogi(1 - self.at(SHAPE_LEVEL))) / kolmogorov_stretch(round(n))
        return Shape(gap, p, high, own, LEVELS[worst], below[worst], 1 - below[-1 - worst])

    def _tail_off(self) -> Shape | None:
        """Return the tail that is wrong beyond doubt, also of errors of the right size and mean, else None."""
        statistics, n = self.statistics, self.statistics.n_effective
        z = statistics.moments["z"]
        if n < FEWEST_OF_TAILS or not 0 < z.variance() < math.inf:
            return None
        scores = special.ndtri(TAILS)
        ways, p, found = (scores, z.mean + math.sqrt(z.variance()) * scores), 1 - self.at(TAILS_LEVEL), []
        for level, *at in zip(TAILS, *special.ndtr(ways).tolist(), strict=True):
            held = (_up_to(statistics, "z", each) for each in at)
            stated, own = (_share(statistics, level, each, 1 - p / len(TAILS)) for each in held)
            is_off = stated.is_off and (own.is_off or own.severity >= stated.severity)
            if is_off and min(stated.severity, own.severity) > 1 and stated.is_high == own.is_high:
                found.append(stated)
        if not found:
            return None
        worst = max(found, key=lambda each: each.severity)
        is_light = any(each.is_high == (each.level > 0.5) for each in found)
        return Shape(
            abs(worst.value - worst.level), p, None, True, worst.level, worst.value, is_light=is_light
        )

    def _shares(self, scale: Estimate | None) -> tuple[tuple[Share, ...], Share | None, float, Tail | None]:
        """Return shares inside central intervals, the share within the scale, the size of the bulk, and the tail."""
        statistics = self.statistics
        of_z, grouped = not is_distribution(statistics), statistics.groups is not None
        if scale is None or self.settings.family != "gaussian" or (grouped and not of_z):
            return (), None, math.nan, None
        levels = np.asarray(SHARES)
        levels = levels[statistics.n_effective * (1 - levels) >= FEWEST_OUTSIDE]
        halves = np.append(special.ndtri((1 + levels) / 2), scale.value)
        if grouped:
            inside = list(groups.within(statistics, halves).T)
        elif self._off_grid is not None:
            inside = list(np.sum(np.abs(self._off_grid) <= halves[:, None], axis=1)[:, None])
        else:
            found = coverage_at(statistics, self.settings, levels), share_within(statistics, [scale.value])
            inside = list(statistics.n * np.concatenate(found)[:, None])
        *shares, within = (
            _share(statistics, level, held, SHARE_LEVEL)
            for level, held in zip([*levels.tolist(), ONE], inside, strict=True)
        )
        if not of_z:
            return tuple(shares), None, math.nan, None
        count, carried, total, up = _sums_within(statistics, 3.0)
        rest = math.sqrt(carried / count) if count else math.nan
        tail = Tail(1 - count / statistics.n, up / statistics.n, 1 - carried / total if total else 0.0, rest)
        return tuple(shares), within, _bulk(statistics.orders["z"]), tail

    @cached_property
    def _off_grid(self) -> FloatArray | None:
        """Standardized errors of rounded numbers, each drawn anew within its step, sorted; None if not rounded."""
        if self.samples is None or not self._is_gaussian or self.statistics.groups is not None:
            return None
        target, mean, std = (self.samples.rows[name] for name in ("target", "mean", "std"))
        step = step_of_grid(target[:ENOUGH_FOR_GRID].astype(np.float64) - mean[:ENOUGH_FOR_GRID])
        if len(target) != self.statistics.n_effective or not step > FINEST * np.median(std):
            return None
        spread = np.random.default_rng(0).uniform(-step / 2, step / 2, len(target))
        return np.sort((target.astype(np.float64) - mean + spread) / std)

    def _gap_of_quantiles(self) -> float | None:
        """Return by how much a share misses its level, whichever side targets equal to their quantile are on.

        F(y) of such a target is spread over more than its jump where the next level is far; None without levels.
        """
        total = _total(self.statistics)
        gaps = [
            max(float(below.sum()) / total - level, level - float(upto.sum()) / total, 0.0)
            for level, below, upto in _at_quantiles(self.statistics)
        ]
        return max(gaps, default=None)

    def _shares_below(self, level: float) -> list[Share]:
        """Return the share of targets below each quantile; those equal to it count half."""
        shares = []
        for stated, *held in _at_quantiles(self.statistics):
            below, upto = (_share(self.statistics, stated, each, level) for each in held)
            shares.append(Share(stated, (below.value + upto.value) / 2, below.low, upto.high))
        return shares

    @cached_property
    def _below(self) -> list[Share]:
        """The share of targets below each quantile."""
        return self._shares_below(self.bias_level)

    @cached_property
    def _equal_quantiles(self) -> bool:
        """Whether many targets equal a quantile."""
        equal = sum(float((upto - below).sum()) for _, below, upto in _at_quantiles(self.statistics))
        return equal > MOST_EQUAL * _total(self.statistics)

    @property
    def _off(self) -> list[Share]:
        """The shares below quantiles, not the median, that are off by more than chance."""
        return [each for each in self._below if each.is_off and not _is_median(each)]

    @property
    def _ends_off(self) -> list[Share]:
        """Those of the lowest and the highest quantile: both, if one is as narrow or as wide as the other may be."""
        ends = low, high = self._below[0], self._below[-1]
        missed = low.value - low.level, high.level - high.value
        halves = [(each.high - each.low) / 2 for each in ends]
        are_alike = missed[0] * missed[1] > 0 and abs(missed[0] - missed[1]) < math.hypot(*halves)
        off = [each for each in ends if each.is_off and not _is_median(each)]
        return list(ends) if off and are_alike else off

    @cached_property
    def _surely_off(self) -> list[Share]:
        """Those, or of the median, that are off though many were looked at, and by enough to matter."""
        found = self._shares_below(self.at(1 - OF_QUANTILES / max(len(self._below), 1)))
        return [each for each in found if each.is_off and each.severity > 1]

    def _are_all_like(self, median: Share) -> bool:
        """Return whether the median is off, as most other quantiles are, and a shift keeps targets inside."""
        like = [each.is_high == median.is_high for each in self._off]
        are_like = median.is_off and all(like) and 2 * len(like) >= len(self._below) - 1
        if self.samples is None or not are_like or self._equal_quantiles:
            return are_like and not self._equal_quantiles
        error = self.samples.rows["target"].astype(np.float64) - self.samples.rows["mean"]
        held = self._inside(np.stack([error, error - np.median(error)]))
        return bool(held[1] > held[0] - SHIFTED)

    def _is_of_shape(self, inside: Inside) -> bool:
        """Return whether quantiles are wrong that no change of widths mends."""
        ends = [each.is_high for each in self._ends_off]
        if inside.misses is None or (len(ends) > 1 and ends[0] == ends[1]):
            return bool(self._surely_off)
        missed = inside.level - inside.value
        are_worse = any(abs(each.value - each.level) > missed for each in self._surely_off)
        are_near = all(each.is_high == (each.level < 0.5) for each in self._off)
        on_both_sides = len({each.level < 0.5 for each in self._off}) > 1
        return inside.misses == "overconfident" and are_worse and not (are_near and on_both_sides)

    def _unjudged(self, suspicions: tuple[Suspicion, ...], reason: str = "") -> Verdict:
        """Say why nothing is judged, by default that samples are alike, unless errors are too large for that."""
        z, dependence, cause = self.statistics.moments["z"], None if reason else self.dependence, "chance"
        enough = dependence is not None or self.statistics.counts["n"] >= FEWEST_BEYOND
        is_known = math.isfinite(z.m2) and not form_of(self.statistics.facts).is_interval
        size = math.sqrt(z.variance() + z.mean * z.mean) if is_known else math.nan
        if dependence is not None:
            cause, reason = "any dependence", words.of_too_alike(dependence, size, self.samples.shape)
        beyond = enough and size > BEYOND_DEPENDENCE and not is_distribution(self.statistics)
        reason = words.of_beyond(size, cause) if beyond else reason
        word: Calibration = "overconfident" if beyond else "not enough data"
        return replace(
            no_verdict(""),
            calibration=word,
            enough_data=beyond,
            grade="off" if beyond else "unclear",
            text=(suspicions and words.of_mistakes(suspicions, word, reason)) or reason,
            suspicions=suspicions,
            caveats=tuple(str(each) for each in suspicions if not each.is_mistake),
            worth=None if dependence is None else dependence.worth,
        )

    def _of_ranking(
        self, ranked: Ranked, suspicions: tuple[Suspicion, ...], *, is_right: bool
    ) -> tuple[str, bool]:
        """Say whether the uncertainty ranks errors, and whether it only sorts them.

        It knows only if its stds vary, and intervals scaled by them are shorter.
        """
        dispersion, width = self._score(cv), self._score(n_merci)
        vary = f"{format_number(100 * dispersion, 2)} %" if dispersion < doctor.ALIKE else ""
        if ranked.word == "no better than constant" and vary:
            alike = f"The standard deviations vary by only {vary}, too little to rank errors."
            return words.EQUAL_STDS if dispersion < EQUAL else alike, False
        but = ""
        if vary:
            but = f", but they vary by only {vary}."
        elif width >= 1:
            but = "." if is_right else ", but intervals of one width with the same coverage are no longer."
        elif any(each.name == "near-constant std" for each in suspicions):
            but = ", but nearly all of them are the same."
        few = ranked.recovered is not None and ranked.recovered <= 0
        if ranked.word != "useful" or not (but or few):
            return words.of_ranking(ranked), False
        correlation = self._score(spearman)
        value = "" if math.isnan(correlation) else f" (Spearman {correlation:.2f})"
        of_few = ". Of the largest errors, though, a few decide the RMSE-based curve."
        return f"Larger standard deviations go with larger errors{value}{but or of_few}", bool(but)

    def of_data(self) -> list[str]:
        """Caveats on stds that are estimates, and on what is not tested."""
        of_truth = self.samples is not None and self.samples.of_truth
        caveats, size = [words.OF_TRUTH] * of_truth, self.statistics.moments.get("size")
        form = form_of(self.statistics.facts)
        if form.noisy_std and size is not None and size.low < ENOUGH_DRAWS:
            caveats.append(
                f"The std of {size.low:.0f} draws is noisy, which inflates ence, uce and z_std: how large these are "
                "by chance is not known. Coverage, crps and the scale above do not depend on the number of draws."
            )
        elif form.std_caveat:
            caveats.append(f"How large ence and uce are by chance is not known: {form.std_caveat}.")
        if CROSSED < self._crossed <= OFTEN:
            caveats.append(words.of_crossed(self._crossed))
        if self.samples is None:
            alike = ", and whether neighboring errors are correlated," * (not groups.count(self.statistics))
            caveats.append(
                f"Where standard deviations are wrong{alike} is not tested: these statistics do not keep samples in "
                "their order."
            )
        if self.samples is not None and self.samples.total is not None:
            caveats.append(
                "Where standard deviations are wrong, and whether neighboring errors are correlated, is tested on "
                f"{len(self.samples.rows['std']):,} of the {self.samples.total:,} samples, evenly spread."
            )
        return caveats

    def _score(self, metric: Callable[[Any, Settings], float]) -> float:
        """Return a score, NaN if it is undefined."""
        try:
            return metric(self.statistics, self.settings)
        except Undefined:
            return math.nan


def _parts_of(values: FloatArray, parts: int) -> IntArray:
    """Return which of so many parts, of as many samples each, in increasing order, holds each value."""
    return np.asarray(np.argsort(np.argsort(values)) * parts // len(values))


def _are_shifted(errors: Errors) -> bool:
    """Return whether errors have something in common: it is more standard deviations where these are small."""
    known = errors.error, errors.z
    means = ((values.mean(), values.std() / math.sqrt(len(values))) for values in known)
    return any(abs(mean) > FAR * noise for mean, noise in means)


def _half_of(rows: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return rows as one half of the draws makes them; without a std where there are too few to halve."""
    halved = {key.removeprefix(name): column for key, column in rows.items() if key.startswith(name)}
    return {**rows, "std": np.zeros(1), **halved}


def std_scale(statistics: Any, family: Standard, level: float) -> Estimated:
    """Root of the mean squared standardized error.

    Errors are standardized by their stated distribution: Gaussian scores of F(y), which for Gaussian forecasts equal
    z. For distributions in another form (draws, mixtures ...) it is the ratio of the sums of squared errors and of
    variances, unless a few samples of skewed or heavy-tailed ones decide it. Quantiles and intervals have no
    variance: their std is read off a line, and says nothing about scale. Under families without a fourth moment, z
    itself has no interval.
    """
    if math.isfinite(family.quantile(np.ones(1))[0]):
        raise Undefined(
            f"the largest error alone decides the scale of a {family.name} distribution; see coverage_95 instead"
        )
    if has_zeros(statistics):
        count = statistics.counts["n_zero_std"]
        raise Undefined(
            f"{count} standard deviation{' is' if count == 1 else 's are'} 0, so errors have no scale; set std_floor"
        )
    if is_distribution(statistics):
        return _scale_of_distribution(statistics, level)
    if groups.count(statistics) is not None:
        if not family.has_variance:
            raise Undefined("the family has no variance, and nothing else is known about groups")
        count, middle, spread = groups.moments(statistics, "z")
        square = spread + count * middle**2
        mean = float(square.sum() / count.sum())
        influence = Influence.of_ratio(square, count, groups.freedom(statistics))
    elif family.name == "gaussian":
        mean, influence = _independent_square(statistics, family)
    else:
        return _scale_of_family(statistics, family, level)
    _require_size(mean, influence)
    return _root(mean, influence, level)


def has_zeros(statistics: Any) -> bool:
    """Return whether stds of 0 leave errors without a scale; those of draws, all dry in weather, still have ranks."""
    is_zero = statistics.counts["n_zero_std"] and statistics.moments["std"].low <= 0
    return bool(is_zero) and not is_distribution(statistics)


def _total(statistics: Any) -> float:
    """Return the total count of samples, in which those of groups or of all are counted."""
    return float(statistics.n) if statistics.groups is None else groups.total(statistics)


def _share(statistics: Any, stated: float, held: FloatArray, level: float) -> Share:
    """Return the share of the targets that are held, by group, with limits at a level."""
    return Share(stated, float(held.sum()) / _total(statistics), *_limits(statistics, held, level))


def _sums_within(statistics: Any, limit: float) -> list[float]:
    """Return how many z are within a limit, the sums of their squares and of all, and how many are above it."""

    def within(z: FloatArray) -> FloatArray:
        square, inside = np.square(z), np.abs(z) <= limit
        return np.stack([inside, square * inside, square, z > limit])

    found: list[float] = groups.power_sums(statistics, within).tolist()
    return found


def _bulk(z: Any) -> float:
    """Return the size within which 68.27 % of the errors lie."""
    return float(z.absolute_value([max(1, math.ceil(ONE * z.total))])[0])


@dataclass(frozen=True)
class Few:
    """The few samples that carry most of the squared standardized errors, or those of few groups."""

    samples: float
    of: float
    carried: float
    """Share of the squared errors; of groups, the scale of their errors."""
    rest: float
    """Scale of all others."""
    where: str = ""
    """Which groups they are."""
    bias: float = 0.0
    """Mean of truth minus prediction of these groups, in standard deviations."""


def few_samples(statistics: Any) -> Few | None:
    """The sample with the largest standardized error, or a thousandth of all, if it carries most of the squares.

    For calibrated Gaussian forecasts, the thousandth carries a hundredth. All others must be about as large as most.
    """
    order = statistics.orders["z"]
    counts = sorted({1, max(order.total // 1000, 1)})
    bulk = _bulk(order)
    for limit in order.absolute_value([max(order.total - count, 1) for count in counts]).tolist():
        samples, below, total, _ = _sums_within(statistics, limit)
        if 0 < below < min(total / 2, (FAR * bulk) ** 2 * samples):
            return Few(order.total - samples, order.total, 1 - below / total, math.sqrt(below / samples))
    return None


def _scale_of_distribution(statistics: Any, level: float) -> Estimated:
    """Root of the sum of squared errors over the sum of variances.

    Noisy stds, such as those of a few draws, inflate z but not this ratio. Of skewed or heavy-tailed distributions, a
    few samples decide it: then, or where the Gaussian scores say otherwise or it is hardly known, it is the factor
    that fits these.
    """
    if statistics.facts.get("spread"):
        raise Undefined("a predicted distribution has no variance")
    if form_of(statistics.facts).is_interval:
        raise Undefined("a few quantiles do not determine the variance")
    if groups.count(statistics) is not None:
        square, variance = groups.squares(statistics)
        ratio = float(square.sum() / variance.sum())
        influence = Influence.of_ratio(square, variance, groups.freedom(statistics))
    else:
        square, variance, count = groups.sample_squares(statistics)
        total = float(statistics.orders["std"].sum("std2"))
        ratio = float(statistics.orders["abs_error"].sum("sq_error")) / total
        share = groups.effective(statistics)[1]
        influence = Influence.of(
            (square - ratio * variance) / (total * share), None if count is None else count * share
        )
    if ratio <= 0:
        raise Undefined("every error is 0")
    found, of_scores = _root(ratio, influence, level), _scale_of_scores(statistics, level)
    of_draws = form_of(statistics.facts).noisy_std
    few_decide = not of_draws and (found.dominance > DOMINATED or heavy_tails(statistics))
    if of_scores.low <= 1 <= of_scores.high:
        is_known = found.low <= 1 <= found.high and max(found.high, 1 / max(found.low, 1e-9)) <= UNKNOWN
        are_outlying = of_draws and found.low > OF_DRAWS  # scores do not see how far beyond draws
        return found if are_outlying or (is_known and not few_decide) else of_scores
    factor, left = best_factor(statistics)
    log, of_all = math.log(factor), math.log(of_scores.value)
    fits = OF_ALL[0] < log / of_all < OF_ALL[1] and left <= max(
        UNIFORM / math.sqrt(statistics.n_effective), SLIGHT_SHAPE
    )
    differs = few_decide or (fits and not of_draws and not found.low <= factor <= found.high)
    if not differs and math.log(found.value) * of_all > 0:
        return found
    if of_draws or not fits:
        return of_scores
    low, high = (end ** (log / of_all) for end in (of_scores.low, of_scores.high))
    return replace(of_scores, value=factor, low=low, high=high)


def best_factor(statistics: Any) -> tuple[float, float]:
    """Return the factor on the spread of distributions that fits F(y) best, and the largest gap that it leaves.

    Where distributions are widened about their means, F(y) is that of a smaller z; where they are on a scale on which
    they are normal, as lognormal ones on that of logs, its Gaussian scores are smaller. Whichever fits better counts.
    """
    few = form_of(statistics.facts).noisy_std and statistics.moments["size"].low < FEWEST_DRAWS
    if few or statistics.groups is not None:
        return math.nan, math.nan
    factors, order = np.exp(np.linspace(-FARTHEST, FARTHEST, FACTORS))[:, None], statistics.orders["z"]

    def below(levels: FloatArray) -> FloatArray:
        return np.asarray(expected_below(statistics, levels.ravel()) / statistics.n)

    stated = order.value(np.clip(np.ceil(below(LEVELS) * order.total), 1, order.total))
    shares = (
        order.position((factors * stated).ravel()) / order.total,
        below(special.ndtr(factors * special.ndtri(LEVELS))),
    )
    gap = min((np.abs(each.reshape(FACTORS, -1) - LEVELS).max(axis=1) for each in shares), key=min)
    return float(factors[gap.argmin(), 0]), float(gap.min())


def _scale_of_scores(statistics: Any, level: float) -> Estimated:
    """Root of the mean square of the Gaussian scores of F(y).

    They are those of samples where groups know F(y) between two values only, as of draws.
    """
    tables = statistics.groups
    table = None if tables is None else tables.orders[LOW]
    if table is not None and np.all(table.sums["point"].data >= table.sums["count"].data):
        low, width = bucket_spans(table.bucket, tables.bits)
        score = np.clip(low + width / 2, -DEEPEST, DEEPEST)
        of_groups = groups.sums_of(table, "count")
        square = np.asarray(table.sums["count"] @ np.square(score))
        mean = float(square.sum() / of_groups.sum())
        return _root(mean, Influence.of_ratio(square, of_groups, groups.freedom(statistics)), level)
    low, high, count = _ends(statistics)
    square = mean_square_scores(low, high)
    mean = float(np.average(square, weights=count))
    n, share = groups.effective(statistics)
    influence = Influence.of((square - mean) / n, None if count is None else count * share)
    return _root(mean, influence, level)


def _ends(statistics: Any) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return the ends between which F(y) of each sample, or bucket of a sketch, lies, and how many have them."""
    if statistics.kind == "exact":
        rows, count = groups.weighted_rows(statistics) or (statistics.rows(), None)
        return rows["pit_low"], rows["pit_high"], count
    found = []
    for block in statistics.orders[LOW].blocks(("point", "rate", "rate_low")):
        point, rate, low = (block.sums[name] for name in ("point", "rate", "rate_low"))
        at, spread = special.ndtr((block.low + block.high) / 2), block.count - point
        wide = spread > 0
        low, width = low[wide] / rate[wide], spread[wide] / rate[wide]
        ends = np.clip([low, low + width], 0.0, 1.0)  # sums of weights round
        found += [np.stack([at, at, point]), np.stack([*ends, spread[wide]])]
    low, high, count = np.concatenate(found, axis=1)
    return low[count > 0], high[count > 0], count[count > 0]


def mean_square_scores(low: FloatArray, high: FloatArray) -> FloatArray:
    """Mean of the squared Gaussian scores of values that are spread evenly over intervals."""
    width = np.asarray(high - low, dtype=np.float64)
    middle, one, other = (
        np.clip(special.ndtri(end), -DEEPEST, DEEPEST) for end in ((low + high) / 2, low, high)
    )
    inside = other * np.exp(-other * other / 2) - one * np.exp(-one * one / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = 1 - inside / math.sqrt(2 * math.pi) / width
    return np.asarray(np.where(width <= POINT, np.square(middle), spread))


def _root(mean: float, influence: Influence, level: float) -> Estimated:
    """Root of a mean square, with its limits."""
    low, high = influence.log_limits(mean, level)
    return Estimated(math.sqrt(mean), math.sqrt(low), math.sqrt(high), influence.dominance)


def _require_size(mean: float, influence: Influence) -> None:
    """Raise Undefined if a mean square, or what is known of its spread, is no number to work with."""
    if mean <= 0 or not math.isfinite(influence.fourth):
        raise Undefined("every error is 0" if mean <= 0 else "standardized errors overflow 64-bit numbers")


def normal_scores(family: Standard, z: FloatArray) -> FloatArray:
    """Gaussian scores of standardized errors: ``Phi^-1(F(z))``, computed in the nearer tail."""
    if family.name == "gaussian":
        return z
    with np.errstate(divide="ignore"):
        made = -special.ndtri(family.cdf(-np.abs(z)))
    return np.asarray(np.minimum(made, 38.0) * np.sign(z))


def _independent_square(statistics: Any, family: Standard, scale: float = 1.0) -> tuple[float, Influence]:
    """Return the mean square of the Gaussian scores of the errors over a multiple of their stds."""
    n, share = groups.effective(statistics)
    if family.name == "gaussian":
        z = statistics.moments["z"]
        mean = z.variance() + z.mean * z.mean
    else:
        mean = groups.mean_of_z(statistics, lambda z: np.square(normal_scores(family, z / scale)))

    def powers(z: FloatArray) -> FloatArray:
        u = (np.square(normal_scores(family, z / scale)) - mean) / n
        square = u * u
        return np.stack([square, square * u, square * square])

    return float(mean), Influence(n, *(groups.power_sums(statistics, powers) * share).tolist())


def mean_bias(
    statistics: Any, level: float, of: str = "error", values: FloatArray | None = None
) -> Estimated:
    """Mean of prediction minus truth; with ``of="z"`` in standard deviations.

    ``values`` are the errors of single samples, if they are known: the skewness of few matters.
    """
    moments = statistics.moments[of]
    if groups.count(statistics) is not None:
        count, mean, _ = groups.moments(statistics, of)
        influence = Influence.of_ratio(-count * mean, count, groups.freedom(statistics))
    elif (known := groups.weighted_rows(statistics)) is not None:  # errors may be larger where weights are
        rows, weight = known
        values = rows["error"] / rows["std"] if of == "z" else rows["error"]
        influence = Influence.of(weight * (moments.mean - values) / weight.sum())
    elif values is not None:
        influence = Influence.of((moments.mean - values) / len(values))
    else:
        n, share = groups.effective(statistics)
        spread = moments.m2 * share
        influence = Influence(n, spread / n**2, 0.0, 3 * spread * spread / n**5)
    low, high = influence.limits(-moments.mean, level, cautious=True)
    if not math.isfinite(low + high):
        raise Undefined("errors overflow 64-bit numbers")
    return Estimated(-moments.mean, low, high, influence.dominance)


def _scale_of_family(statistics: Any, family: Standard, level: float) -> Estimated:
    """Factor on the standard deviations after which the Gaussian scores of the errors have a mean square of 1.

    Larger stds change scores by another factor than they change z; so it is found by secants, on the log scale, and
    the limits of the scores are those of the factor through the last slope.
    """
    log, step, slope, before = 0.0, 0.0, 1.0, 0.0
    for turn in range(SECANTS):
        mean, influence = _independent_square(statistics, family, math.exp(log))
        _require_size(mean, influence)
        now = math.log(mean) / 2
        if turn and abs(step) > CLOSE:
            slope = max((before - now) / step, FLATTEST)
        if abs(now) <= CLOSE:
            break
        step, before = now / slope, now
        log += step
    found = _root(mean, influence, level)
    low, high = (math.exp(log + math.log(max(end, 1e-300)) / slope) for end in (found.low, found.high))
    return Estimated(math.exp(log) * found.value, low, high, found.dominance)


@dataclass(frozen=True)
class Inside(Share):
    """The share of the targets inside the widest interval.

    A target that equals an end is neither clearly inside nor outside: a quantile q of counts, say, is valid if
    P(y < q) <= p <= P(y <= q). So intervals contain too few if they do with their ends, and too many only if they do
    without.
    """

    least: float
    """Lower limit of the share between the ends."""

    def _factor(self, share: float) -> float:
        """Return how many times as wide intervals with this share should be, were errors normal."""
        wide, found = special.ndtri((1 + np.asarray([self.level, share])) / 2)
        return float(wide / max(found, 1e-300))

    @property
    def grade(self) -> Grade:
        """How much the difference matters."""
        return grade_of_factor(*(self._factor(share) for share in (self.value, self.high, self.least)))

    @property
    def misses(self) -> Literal["overconfident", "underconfident"] | None:
        """What a share that differs from the stated one by more than chance, and matters, says of the intervals."""
        if self.grade not in ("slight", "off"):
            return None
        return "overconfident" if self.high < self.level else "underconfident"

    @property
    def unproven(self) -> Literal["consistent with calibrated", "not enough data"]:
        """What is said of intervals without an error: whether half as wide again would be too wide."""
        return "consistent with calibrated" if self._factor(self.low) <= UNKNOWN else "not enough data"


def inside_widest(statistics: Any, level: float) -> Inside | None:
    """The share between the lowest and the highest quantile; None where predictions have no two."""
    quantiles = list(_at_quantiles(statistics))
    if len(quantiles) < 2:
        return None
    (lowest, below, upto), *_, (highest, below_highest, upto_highest) = quantiles
    within = _share(statistics, highest - lowest, upto_highest - below, level)
    between = np.maximum(below_highest - upto, 0)
    return Inside(**vars(within), least=_limits(statistics, between, level)[0])


def _at_quantiles(statistics: Any) -> Iterator[tuple[float, FloatArray, FloatArray]]:
    """Each level with the sums of targets, per group or of all, below its quantile, and not above it.

    The PIT of a target between two quantiles is spread over their levels, that of a target equal to a quantile over
    the levels around it.
    """
    levels = [0.0, *sorted(statistics.facts.get("levels") or ()), 1.0]
    for before, level, after in zip(levels, levels[1:-1], levels[2:], strict=False):
        below = _up_to(statistics, HIGH, (level + after) / 2)
        yield level, below, np.maximum(_up_to(statistics, LOW, (before + level) / 2), below)


def step_of_grid(values: FloatArray) -> float:
    """Return the step of which all differences of values are multiples, as of rounded ones; 0 if there is none."""
    gaps = np.diff(np.unique(values))
    gaps = gaps[gaps > ROUNDING * np.abs(values).max(initial=0.0)]
    step = float(gaps.min(initial=math.inf))
    return step if len(gaps) and np.all(np.abs(gaps / step - np.rint(gaps / step)) < 0.01) else 0.0


def _is_median(share: Share) -> bool:
    return abs(share.level - 0.5) < 1e-9


def _up_to(statistics: Any, order: str, place: float) -> FloatArray:
    """Targets with an end of the PIT up to a place: of each group, or all."""
    score = special.ndtri([place])
    if statistics.groups is None:
        return np.asarray(statistics.orders[order].position(score), dtype=np.float64)
    table = statistics.groups.orders[order]
    at = groups.whole(table, order, statistics.groups.bits).position(score)
    return groups.sums_below(table, "count", at)[:, 0]


def _limits(statistics: Any, inside: FloatArray, level: float) -> Range:
    if statistics.groups is None:
        count = statistics.n_effective
        return share_limits(float(inside[0]) / statistics.n * count, count, level)
    sizes = statistics.groups.sizes_by_weight
    influence = Influence.of_ratio(inside, sizes, groups.freedom(statistics))
    return effective_share_limits(inside.sum() / sizes.sum(), influence, len(sizes), level)
