"""Tests of a classification: errors against those its probabilities imply, the shape of reliability, and bias."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from uq_tracking.errors import RecalibrationError
from uq_tracking.inference import words
from uq_tracking.inference.class_samples import CrossFit, changed, counted
from uq_tracking.inference.classes import Found, find
from uq_tracking.inference.doctor import FEWEST, GAIN, Cure, Suspicion, alike_across, surely_fall
from uq_tracking.inference.events import LEVEL_OF_EACH, Event, EventTests, Tested, impossible_events, step_of
from uq_tracking.inference.limits import (
    FEWEST_ERRORS,
    TINY,
    Estimated,
    Influence,
    Range,
    poisson_limits,
    too_few_errors,
    too_few_of,
)
from uq_tracking.inference.places import LEVEL_OF_LABELS, Grade
from uq_tracking.inference.verdict import (
    TEST_LEVEL,
    Calibration,
    Estimate,
    Ranked,
    Tests,
    Verdict,
    no_verdict,
    rank_sign,
)
from uq_tracking.inputs.forms.probabilities import are_probabilities
from uq_tracking.metrics import groups
from uq_tracking.metrics.classification import sparsification_brier
from uq_tracking.metrics.events import require_event, two_classes
from uq_tracking.metrics.groups import size_freedom
from uq_tracking.metrics.ranking import Sparsification
from uq_tracking.metrics.registry import Undefined, select
from uq_tracking.recalibration.base import ClassificationRecalibration
from uq_tracking.recalibration.classification import BiasTemperature, Isotonic, Logistic, Temperature
from uq_tracking.statistics.classification import samples_by_class
from uq_tracking.statistics.orders import Block, FloatArray
from uq_tracking.typed import override

JOINT = 0.05
"""Level of all tests of calibration together."""
FEW_ERRORS = 30
"""Up to this many samples that are misclassified, or classified right, their number is taken for a Poisson number."""
OF_CHANCE, MUCH = 2.6, 0.15
"""Standard errors by which predictions must be right more often than by chance, and how much more they must claim."""
FEWEST_RARER = 50
"""With fewer events, others or errors, a calibration error of halves tells little."""
FITTED = 1e-5
"""Sum of the errors of slope and rate, or score of a temperature of 1, that only a fit to the samples leaves."""
FEW_GROUPS, FAR, LARGER, OF_REST, SPREAD, OF_OTHERS = 4, 1e-4, 1.5, 3.0, 2.5, 5
"""At most one group of so many is an exception, whose errors have this p-value, over the number of groups, and are so
many times those stated, if errors of the others are right within so many standard errors, and their variance is at
most so many times that of independent samples; these are then tested at the level over so much."""
GROSS, ALIKE = 10, 0.01
"""Errors that are so many times those stated are named beside others of a larger variance, in samples of a group, as
where neighboring pixels are alike."""
FEW_VALUES = 10
"""Most different probabilities that are replaced by the rates observed where they are stated."""
AT_ZERO, OF_LABELS = 1e-6, 0.01
"""Probability that is about 0, and share of samples stated so, or at 1, up to which wrong labels explain that they
turn out otherwise, as they do where most of these do."""

CURES: Mapping[bool, tuple[type[ClassificationRecalibration], ...]] = {
    True: (Logistic, Isotonic),
    False: (Temperature, BiasTemperature),
}
"""Recalibrations of two classes, and of more, the simplest first."""


class ClassTests(Tests):
    """Tests of class probabilities."""

    shows = "the Brier score"

    @override
    def too_few_errors(self) -> str | None:
        if self.statistics.groups is not None:
            return too_few_errors(self.statistics.groups)
        n, share = groups.effective(self.statistics)
        return too_few_of(n - share * self.statistics.orders["one_minus_confidence"].sum("correct"))

    @override
    def scale(self) -> Estimated:
        statistics = self.statistics
        doubt = statistics.orders["one_minus_confidence"].sum("one_minus_confidence")
        wrong = statistics.n - statistics.orders["one_minus_confidence"].sum("correct")
        if doubt <= 0:
            raise Undefined("every stated probability is 1, which implies no errors")
        ratio, share = wrong / doubt, groups.effective(statistics)[1]
        if (rare := _rare_limits(statistics, wrong, TEST_LEVEL)) is not None:
            return Estimated(ratio, *(end / doubt for end in rare))
        if groups.count(statistics) is not None:
            count, own, correct = groups.class_sums(statistics)
            influence = Influence.of_ratio(count - correct, own, groups.freedom(statistics))
        else:
            influence = _independent(statistics, lambda wrong, own: (wrong - ratio * own) / (doubt * share))
        low, high = influence.limits(ratio, TEST_LEVEL)
        return Estimated(ratio, max(low, 0.0), high, influence.dominance)

    @override
    def verdict(self) -> Verdict:
        if self.dependence is not None and self.dependence.alike and self.dependence.group is None:
            text = words.of_too_alike(self.dependence, math.nan, self.samples.shape)
            made = replace(no_verdict(""), text=text, worth=self.dependence.worth)
        elif reason := self.too_little():
            return no_verdict(reason)
        else:
            made = self._of_event() if two_classes(self.statistics) else self._of_classes()
        samples = self.samples
        is_column = made.worth is not None and samples.case is None and len(samples.shape) == 1
        return replace(made, text=words.if_sorted(made.text)) if is_column and samples.in_runs else made

    @property
    def _share(self) -> float:
        """Number of reports that are judged together, and more where labels or an order take a part of the level."""
        return self.among / (1 - LEVEL_OF_LABELS / JOINT) if self._beside else self.among

    @property
    def _beside(self) -> int:
        """Number of statements beside those on all samples: on labels, and on the order of the samples."""
        samples = self.samples
        return 0 if samples is None else bool(samples.sets) + samples.in_order(self.dependence)

    def _concluded(
        self,
        calibration: Calibration,
        said: str,
        *,
        slight: bool,
        cure: Cure | None,
        suspicion: Suspicion | None = None,
        **found: Any,
    ) -> Verdict:
        """Name a drift, and the label of ``by=`` that is off by more than all samples if no cure mends all labels."""
        ranked, few = self._ranking(), None
        level = LEVEL_OF_LABELS / self.among / max(self._beside, 1)
        clauses = list[str]()
        if self.samples is not None:
            off = self.samples.off_stratum(self.dependence, level)
            few = self._without_few() if off is None else None
            drift = None if few else self.samples.drift(self.dependence, level)
            self.caveats.extend([words.OF_TRUTH] * self.samples.of_truth)
            self.caveats.extend([words.OF_WEIGHTS] * self.samples.weighs_classes)
            mends_all = cure is not None and cure.method is not None and cure.removes
            if off is not None and not mends_all:  # else all are wrong alike, though it shows most in some
                clauses.append(words.of_off_stratum(off, all_wrong=calibration not in words.NO_CLAIM))
            clauses += [] if drift is None else [words.of_class_drift(drift)]
        suspicions = tuple(each for each in (suspicion, self._mistake()) if each is not None)
        cure = None if suspicions else cure
        grade: Grade = "slight" if slight else "off"
        if calibration in words.NO_CLAIM:
            grade = "fine" if calibration == "calibrated" else "unclear"
        if clauses:
            overall = "" if calibration in words.NO_CLAIM else f"Overall, {words.lowered(said)}"
            calibration, grade, cure = "miscalibrated in places", "off", None
            said = " ".join(filter(None, [words.of_places(clauses[0]), *clauses[1:], overall]))
        rest = [] if few else [words.of_ranking(ranked, of_classes=True)]
        if few:
            calibration, grade, cure, (said, ranked) = "overconfident in few samples", "off", None, few
        if self.samples is not None and self.samples.repeated:
            different = int(self.statistics.counts["n"])
            equal = "equal probabilities" + ", or both reversed" * self.samples.mirrored
            rest.append(words.of_copies(different, self.samples.repeated, equal))
        found |= {"grade": grade, "bias": self._bias(), "suspicions": suspicions}
        return self.conclude(calibration, said, ranked, rest, cure=cure, **found)

    def _without_few(self) -> tuple[str, Ranked] | None:
        """Name the few units with far more errors than stated, if no error is found in the others.

        Errors of the others must vary nearly as those of independent samples do: else few units may, by chance, have
        many that are alike.
        """
        group = self.samples.units(self.dependence)
        if group is None or groups.count(self.statistics) != int(group.max()) + 1:
            return None
        share = groups.effective(self.statistics)[1]
        count, doubt, correct = (share * each for each in groups.class_sums(self.statistics))
        wrong, variance = count - correct, np.maximum(doubt * (1 - doubt / count), TINY)
        excess = wrong - doubt
        order = np.argsort(-excess / np.sqrt(variance))
        for most in range(len(order) // FEW_GROUPS, 0, -1):
            few, rest = order[:most], order[most:]
            of_rest = float(variance[rest].sum())
            spread = max(float(np.square(excess[rest]).sum()) / of_rest, 1.0)
            is_right = abs(float(excess[rest].sum())) < OF_REST * math.sqrt(spread * of_rest)
            p = special.betainc(wrong[few] / spread, (count - wrong)[few] / spread + 1, (doubt / count)[few])
            larger = LARGER if spread <= SPREAD else GROSS
            is_far = np.all(p * len(order) < FAR) and np.all(wrong[few] > larger * doubt[few])
            is_even = spread <= max(SPREAD, ALIKE * float(count[rest].mean()))
            if not is_far or not is_right or not is_even or doubt[rest].sum() < FEW_ERRORS:
                continue
            data = changed(self.samples.data, groups=group).part(~np.isin(group, few))
            among = OF_OTHERS * self.among
            others = ClassTests(counted(data), self.settings, among=among, names=self.names)
            found = others.verdict()
            if found.calibration in words.NO_CLAIM:
                expected, made = (float(each[few].sum() / count[few].sum()) for each in (doubt, wrong))
                where = self._where(np.sort(few), count)
                return words.of_few_units(where, expected, made, found.text), others._ranking()
        return None

    def _mistake(self) -> Suspicion | None:
        """Recognize probabilities that were passed as logits, groups that share errors, and training rows."""
        if self.samples is None or self.statistics.n < FEWEST:
            return None
        form, (stated, occurs) = self.samples.data.form, self.samples.event
        if alike := alike_across(self.samples, self.dependence, occurs - stated, [occurs, stated]):
            return alike
        doubt, n = self.statistics.orders["one_minus_confidence"], self.statistics.n
        wrong, implied = max(1 - doubt.sum("correct") / n, 0.0), doubt.sum("one_minus_confidence") / n
        if groups.effective(self.statistics)[0] * implied >= FEWEST_ERRORS and wrong <= OF_LABELS * implied:
            text = f"{words.percent(wrong)} of the predictions are wrong, where {words.percent(implied)} should be."
            return Suspicion("seen", text, "Was the model trained on those samples? Score held-out ones.")
        if not form.logits or not are_probabilities(form.values):
            return None
        text = "Every logit lies between 0 and 1, as probabilities do."
        return Suspicion("logits", text, "If they are, pass them without logits=True.")

    def _of_classes(self) -> Verdict:
        """Judge the probabilities of more than two classes."""
        scale, _, untested = self._scale()
        certain = self._errors_of_the_certain()
        found = find(self.statistics, self.names, self._share)
        calibration = "overconfident" if certain else of_classes(found)
        self.caveats.extend(words.untested_classes(self.statistics, found, untested))
        if found.sharpness is not None and abs(found.sharpness) < FITTED:
            self.caveats.append(words.OF_FITTED)
        slight = not certain and is_slight(calibration, found, scale)
        said, losses, off = words.of_certain(certain), self.losses(), found.level or found.slope
        if not certain:
            said = words.of_classes(calibration, found, scale, losses, slight=slight)
        score = "cwece" if found.lead == "slope" else "ece"
        score = "worst_class_gap" if found.lead == "level" else score
        top, chance = found.top_event, right_by_chance(self.statistics)
        sorts = (top.surely_sorts or top.observed > chance) and (off is None or off.event.sorts is None)
        cure, first = self._cure(calibration, score) if sorts else None, ""
        if cure is not None and not (cure.method and math.isfinite(losses[0])) and (cut := self._cut_off()):
            said = f"Classes stated at about 0 occur in {words.percent(cut)} of cases. {said}"
            first, cure = words.NO_ZEROS, replace(cure, instead=words.OF_ZEROS)
        if cure is not None and not (cure.method and cure.removes) and off is not None:
            if off.mixed and not first:
                ask = "First check labels: are some of class {} in fact class {}? Then correct them. Else "
                first, cure = ask.format(*off.mixed), replace(cure, step=words.lowered(cure.step))
            elif found.slope is not None and found.slope.stands_out:
                first = f"First look at the scores of class {found.slope.name}. "
            if not off.event.observed:
                rest = "if it cannot occur, and divide the others by their sum"
                cure = Cure(instead=f"set the probability of class {off.name} to 0, {rest}")
        cure = cure and replace(cure, step=f"{first}{cure.step}")
        return self._concluded(
            calibration,
            said,
            slight=slight,
            cure=cure,
            suspicion=order_of_classes(found) or order_of_rows(self.statistics, top, chance),
            scale=scale,
            shape_p=found.top.shape_p,
            off_class=off,
        )

    def _cut_off(self) -> float:
        """Return the share of samples whose class is stated at 0, or at one floor; 0 if wrong labels explain it."""
        rows, weights = self.samples.rows, self.samples.data.weights
        logs = np.maximum(rows["log_chosen"], math.log(TINY))
        is_cut = logs < math.log(AT_ZERO)
        share = float(np.average(is_cut, weights=weights))
        return share if share > OF_LABELS and np.ptp(logs[is_cut]) < 1 else 0.0

    def _cure(self, calibration: Calibration, score: str) -> Cure | None:
        """Return the simplest recalibration that removes what is wrong, or the one that removes most of it.

        Each at least halves the score that tells how much is wrong, of samples that it was not fitted to. That score
        is not 0 without an error: where it falls by less, or a simpler recalibration leaves no error either, the log
        loss must fall too, by one standard error; if an error is left, it or the Brier score by two. If the loss was
        infinite, which any recalibration mends, the Brier score must fall on average; with few events or errors, the
        loss alone tells. None surely raises the Brier score, nor the number of errors; of two classes, these are not
        counted, as each threshold has an equal one after it. One that may lower the loss is to be tried on other
        samples, as is the simplest one where samples, or events, are too few to show more; of the level of a class,
        the one with offsets, if there are samples enough to fit it. None for a shape that these may be too few for.
        """
        statistics, samples = self.statistics, self.samples
        if samples is None or calibration in words.NO_CLAIM:
            return None
        fit = CrossFit.of(samples, samples.units(self.dependence))
        in_shape, occurs = calibration == words.IN_SHAPE, samples.event[1]
        methods, is_wrong = CURES[two_classes(statistics)], not samples.rows["correct"].all()
        simplest = methods[score == "worst_class_gap" and samples.allow_offsets].method
        untold = Cure(instead=f"recalibrate with {simplest}", score="") if is_wrong and not in_shape else None
        if fit is None:
            return untold
        is_few = min(occurs.sum(), (1 - occurs).sum()) < FEWEST_RARER
        (metric,) = select("classification", [score])
        before = fit.score(fit.data, metric, self.settings)
        least, *others = fit.losses(fit.data)
        others = others[: 1 if two_classes(statistics) else 2]
        loss, brier, best, by_loss = float(least.mean()), others[0], Cure(), Cure()
        unclear, is_unclear = "", False
        for method in methods:
            try:
                data = fit.recalibrated(method)
                after = fit.score(data, metric, self.settings)
                tests = ClassTests(counted(data), self.settings, among=self.among)
                found = tests.verdict().calibration
            except (RecalibrationError, Undefined):
                if method is Isotonic and by_loss.method is None:
                    by_loss = Cure(instead=words.TRY_ISOTONIC)
                if simplest == BiasTemperature.method:  # halves lack samples
                    return untold
                continue
            left, *raised = fit.losses(data)
            if any(map(surely_fall, raised, others)):
                continue
            judged = replace(samples, data=data, group=data.groups)
            wrong = judged.off_stratum(None, LEVEL_OF_LABELS / self.among, fit.sets)
            clears = found in words.NO_CLAIM and wrong is None
            halves = after <= GAIN * before and not is_few
            falls = surely_fall(least, left, 1 if clears else 2)
            falls |= not clears and left.mean() < least.mean() and surely_fall(brier, raised[0])
            falls &= math.isfinite(loss) or raised[0].mean() < brier.mean()
            told = (before, after, score) if halves else (loss, float(left.mean()), "nll")
            if clears and (falls or (halves and not is_unclear)):
                return Cure(method.method, *told)
            unclear = unclear or method.method * surely_fall(least, left, 1 if in_shape and not clears else 0)
            is_unclear |= clears
            if halves and not clears and (best.method is None or after < GAIN * best.after):
                best = Cure(method.method, before, after, score, removes=False)
            elif falls and not halves:
                by_loss, least, brier = Cure(method.method, *told, removes=False), left, raised[0]
        best = best if best.method else by_loss
        if best.method is None and unclear:
            return Cure(instead=f"recalibrate with {unclear}", score="")
        if best.method is None and is_unclear and two_classes(statistics) and not is_few:
            return Cure(instead=words.lowered(words.MORE_FIRST.rstrip(".")))
        return untold if best.method is None and (is_few or is_unclear) else best

    def losses(self) -> tuple[float, float]:
        """Return the mean log loss, infinite where a label had probability 0, and the one that is implied."""
        statistics = self.statistics
        loss = math.inf if statistics.sums["impossible"] else statistics.sums["log_loss"] / statistics.n
        if "entropy" not in statistics.orders:
            return loss, math.nan
        return loss, statistics.orders["entropy"].sum("entropy") / statistics.n

    def _of_event(self) -> Verdict:
        """Judge the probability of the event of two classes; Undefined if it is not known."""
        require_event(self.statistics)
        tests = EventTests.of(self.statistics, LEVEL_OF_EACH / self._share)
        ends, always = impossible_events(self.statistics), self._errors_of_the_certain()
        step = any(count for count, _ in ends) and not always and step_of(self.statistics)
        if step and not any(_surely_more(*end, step / 2) for end in ends):
            tests, ends = tests.in_doubt(), ((0.0, 0.0), (0.0, 0.0))  # as rounding explains
        errors, aside = tests.too_many_errors(), ""
        is_systematic = any(
            2 * count <= total and _surely_more(count, total, OF_LABELS)
            for count, total in (*ends, np.sum(ends, axis=0).tolist())
        )
        if any(count for count, _ in ends) and not always and not is_systematic:
            others = tests.in_doubt()
            if others.too_many_errors() or of_event(*others.tested()) not in words.NO_CLAIM:
                aside = f" {words.of_impossible(*ends, aside=True)}"
                tests, ends = others, ((0.0, 0.0), (0.0, 0.0))  # labels do not explain the others
        found, event = tests.tested()
        calibration, stated = of_event(found, event), np.empty(0)
        if self.samples is not None:
            stated = self.samples.event[0]
        is_excluded = any(count > 0 for count, _ in ends)
        is_wrong = is_systematic or always or not is_excluded  # else labels explain it
        if found.refused:
            self.caveats.append(f"Slope and shape are not tested: {found.refused}.")
        if is_excluded:
            calibration = "overconfident"
            said = words.of_certain(always) if always else words.of_impossible(*ends)
            said += f" {words.of_level(event)}" * ("level" in found.strength and event.limits_agree)
        elif errors:
            calibration, said = "overconfident", words.of_too_many_errors(*errors)
        else:
            said = words.of_event(
                calibration, event, found, only_high=len(stated) > 0 and stated.min() >= 0.5
            )
        said += aside
        is_line = (
            event.slope is not None and abs(event.slope - 1) + abs(event.stated - event.observed) < FITTED
        )
        if is_line or (self.samples is not None and self.samples.is_isotonic_fit):
            self.caveats.append(words.OF_FITTED)
        cure = self._cure(calibration, "ece") if event.surely_sorts and is_wrong else None
        if cure is not None and cure.method is None:
            values = len(np.unique(stated))
            if 0 < values <= FEW_VALUES:
                cure = replace(cure, instead=words.of_values(values))
            elif event.slope is None and calibration == "underconfident":
                cure = replace(cure, instead=words.SEPARATED)
        if is_excluded and not always:
            cure = None if cure is None or cure.method is None else cure
            if not (is_systematic and cure):
                said += f" {words.CLIP if is_systematic else words.CHECK_LABELS}"
        slight = {"too high": event.is_level_slight, "too low": event.is_level_slight}
        slight |= dict.fromkeys(("overconfident", "underconfident"), event.is_slope_slight)
        is_slight = slight.get(calibration, False) and not (is_excluded or errors)
        return self._concluded(
            calibration, said, slight=is_slight, cure=cure, scale=None, shape_p=found.shape_p, event=event
        )

    def _errors_of_the_certain(self) -> float:
        """Return the share of errors of a classifier that states certainty for every sample; else 0."""
        doubt = self.statistics.orders["one_minus_confidence"]
        errors = 1 - doubt.sum("correct") / self.statistics.n
        return errors if doubt.sum("one_minus_confidence") <= 0 else 0.0

    @override
    def bias(self) -> Estimated:
        statistics = self.statistics
        n, by = statistics.n_effective, statistics.orders["one_minus_confidence"]
        gap = 1 - (by.sum("correct") + by.sum("one_minus_confidence")) / statistics.n
        if groups.count(statistics) is not None:
            count, doubt, correct = groups.class_sums(statistics)
            own = count - doubt - correct
            influence = Influence.of_ratio(own, count, groups.freedom(statistics))
        elif (known := groups.weighted_rows(statistics)) is not None:
            rows, weight = known
            wrong = 1 - rows["correct"] - rows["one_minus_confidence"]
            influence = Influence.of(weight * (wrong - gap) / weight.sum())
        else:
            influence = _independent(statistics, lambda wrong, doubt: (wrong - doubt - gap) / n)
        low, high = influence.limits(gap, self.bias_level, cautious=True)
        if (rare := _rare_limits(statistics, statistics.n - by.sum("correct"), self.bias_level)) is not None:
            doubt = by.sum("one_minus_confidence")
            few, many = ((end - doubt) / statistics.n for end in rare)
            low, high = min(low, few), max(high, many)
        return Estimated(gap, low, high, influence.dominance)

    @override
    def ranking(self) -> tuple[Sparsification, Callable[[float, float], int]]:
        by_doubt = partial(rank_sign, self.statistics, "one_minus_confidence", "correct")
        return sparsification_brier(self.statistics), lambda _, level: -by_doubt(level)


def of_event(found: Tested, event: Event) -> Calibration:
    """Conclude from the tests of level, slope and shape: the clearer one of level and slope leads.

    An error of these that is proven to be slight is none, however certain it is.
    """
    if event.is_proven and "shape" not in found.strength:
        return "calibrated"
    slope = found.slope if "slope" in found.strength and found.slope is not None else 0.0
    if "level" in found.strength and abs(found.level) >= abs(slope):
        return "too high" if found.level < 0 else "too low"
    if slope:
        return "overconfident" if slope < 0 else "underconfident"
    if "shape" in found.strength:
        return "miscalibrated in shape"
    return "not enough data" if event.is_unknown else "consistent with calibrated"


def of_classes(found: Found) -> Calibration:
    """Conclude from the tests of more than two classes: the one with the smallest p leads.

    Errors that are proven to be slight are none, however certain they are.
    """
    if found.is_proven:
        return "calibrated"
    if found.lead in ("level", "slope"):
        return "miscalibrated in classes"
    if found.lead == "top shape":
        return "miscalibrated in shape"
    if found.lead is not None:
        return "overconfident" if found.is_extreme else "underconfident"
    return "not enough data" if found.top_event.is_unknown else "consistent with calibrated"


def order_of_classes(found: Found) -> Suspicion | None:
    """Suspect another order of the classes where the probabilities of several say the opposite."""
    number = len(found.reversed)
    if number < 2:
        return None
    shown = ", ".join(found.reversed[:3]) + ", ..." * (number > 3)
    text = (
        f"{number} of {found.classes} classes ({shown}) occur less often the higher their probability is: the "
        "columns may be in another order than the labels."
    )
    cure = "Pass probs whose column k is the probability of label k; in scikit-learn, classes=model.classes_."
    return Suspicion("order of classes", text, cure)


def right_by_chance(statistics: Any) -> float:
    """Return the largest share of predictions that chance makes right."""
    true, predicted, _ = samples_by_class(statistics)
    chance = min(float(true @ predicted / statistics.n**2), 1.0)  # sums of weights round
    return chance + OF_CHANCE * math.sqrt(chance * (1 - chance) / float(statistics.n_effective))


def order_of_rows(statistics: Any, top: Event, chance: float) -> Suspicion | None:
    """Suspect another order of the rows where predictions say nothing about the labels, though they claim to."""
    if statistics.n < FEWEST or top.observed > chance or top.stated < chance + MUCH:
        return None
    text = (
        f"Predictions are right in {words.percent(top.observed)} of cases, no more than by chance, though the model "
        f"states {words.percent(top.stated)}."
    )
    cure = "Are labels and probabilities in the same order, of rows and of classes?"
    return Suspicion("shuffled", text, cure)


def is_slight(calibration: Calibration, found: Found, scale: Estimate | None) -> bool:
    """Return whether what is wrong is too little to matter."""
    if calibration == "miscalibrated in classes":
        offs = (found.level, found.slope)
        return all(each is None or each.is_slight for each in offs)
    if calibration == "miscalibrated in shape" or scale is None:
        return False
    is_sharp = "sharpness" not in found.strength or found.is_temperature_slight
    is_steep = "top slope" not in found.strength or found.top_event.is_slope_slight
    return is_sharp and is_steep and 1 / words.SLIGHT < scale.value < words.SLIGHT


def _surely_more(count: float, total: float, share: float) -> bool:
    """Return whether more than a share of a total is surely counted."""
    return poisson_limits(count, TEST_LEVEL)[0] > share * total


def _rare_limits(statistics: Any, wrong: float, level: float) -> Range | None:
    """Limits of the number of errors where few samples are misclassified, or few are right; else None.

    The smaller number is Poisson's. Groups that show too few errors count as one sample each, as if all samples of a
    group were right or wrong together.
    """
    n = statistics.n
    share, rare = groups.effective(statistics)[1], min(wrong, n - wrong)
    if groups.count(statistics) is not None:
        if too_few_errors(statistics.groups) is None:
            return None
        share = (size_freedom(groups.class_sums(statistics)[0]) + 1) / n
    elif rare * share > FEW_ERRORS:
        return None
    low, high = (min(end / share, n) for end in poisson_limits(rare * share, level))
    return (low, high) if wrong == rare else (n - high, n - low)


def _independent(statistics: Any, contribution: Callable[[int, FloatArray], FloatArray]) -> Influence:
    """Contributions ``contribution(wrong, doubt)`` of samples, with the doubt of those that share it."""

    def powers(block: Block) -> FloatArray:
        doubt, right = block.sums["one_minus_confidence"] / block.count, block.sums["correct"]
        hit, miss = contribution(0, doubt), contribution(1, doubt)
        return np.asarray([np.dot(right, hit**k) + np.dot(block.count - right, miss**k) for k in (2, 3, 4)])

    order = statistics.orders["one_minus_confidence"]
    parts = order.map_blocks(powers, ("one_minus_confidence", "correct"), "free")
    n, share = groups.effective(statistics)
    return Influence(n, *(np.sum(parts, axis=0) * share).tolist())
