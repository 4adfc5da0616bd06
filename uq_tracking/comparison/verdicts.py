"""What the reports say about each method, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.inference import words

UNJUDGED = "not enough data"


@dataclass(frozen=True)
class MethodVerdict:
    """The verdict on a method.

    Attributes
    ----------
    calibration, ranking : str
        As in the reports' verdicts; for several runs, the most frequent one.
    text : str
        Sentences; for several runs, the counts of each verdict.
    scale : float or None
        Factor by which standard deviations should be multiplied; for several runs, the median.
    recovered : float or None
        Share of the oracle's gain that sorting by uncertainty achieves; for several runs, the median.
    """

    calibration: str
    ranking: str
    text: str
    scale: float | None = None
    recovered: float | None = None

    @property
    def short(self) -> str:
        """Both in a few words, with their numbers."""
        return words.short(self.calibration, self.scale, self.ranking, self.recovered)


def method_verdicts(groups: Mapping[str, Sequence[ScoredRun]]) -> dict[str, MethodVerdict]:
    """The verdict on each method; methods whose reports could not be judged are left out."""
    found = {name: _of_runs(runs) for name, runs in groups.items()}
    return {name: verdict for name, verdict in found.items() if verdict.calibration != UNJUDGED}


def unjudged(groups: Mapping[str, Sequence[ScoredRun]]) -> dict[str, str]:
    """Why each left-out method has no verdict."""
    judged = method_verdicts(groups)
    return {name: _of_runs(runs).text for name, runs in groups.items() if name not in judged}


def _of_runs(runs: Sequence[ScoredRun]) -> MethodVerdict:
    verdicts = [run.report.verdict for run in runs]
    scale = _median(verdict.scale.value for verdict in verdicts if verdict.scale is not None)
    recovered = _median(verdict.recovered for verdict in verdicts if verdict.recovered is not None)
    if len(verdicts) == 1:
        return MethodVerdict(verdicts[0].calibration, verdicts[0].ranking, verdicts[0].text, scale, recovered)
    calibration: Counter[str] = Counter(verdict.calibration for verdict in verdicts)
    ranking: Counter[str] = Counter(verdict.ranking for verdict in verdicts)
    most, often = (counter.most_common(1)[0][0] for counter in (calibration, ranking))
    plain = words.short(most, None, "", None)
    middle = words.short(most, scale, "", None) if len(calibration) == 1 else plain
    factor = f" ({middle.split()[0]} in the median)" if middle != plain else ""
    text = (
        f"Of {len(verdicts)} runs, {_counted(calibration)}{factor}; ranking of errors: {_counted(ranking)}."
    )
    return MethodVerdict(most, often, text, scale, recovered)


def _median(values: Iterable[float]) -> float | None:
    found = list(values)
    return median(found) if found else None


def _counted(words: Counter[str]) -> str:
    if len(words) == 1:
        return f"all {next(iter(words))}"
    return ", ".join(f"{count} {word}" for word, count in words.most_common())
