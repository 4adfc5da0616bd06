"""What the reports say of each method, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uq_tracking.comparison.runs import ScoredRun

UNJUDGED = "not enough data"


@dataclass(frozen=True)
class MethodVerdict:
    """The verdict on a method.

    Attributes
    ----------
    calibration, ranking : str
        As in the reports' verdicts; of several runs the most frequent one.
    text : str
        Sentences; of several runs how many are what.
    """

    calibration: str
    ranking: str
    text: str

    @property
    def short(self) -> str:
        """Both in a few words."""
        ranking = "" if self.ranking == UNJUDGED else f"ranking {self.ranking}"
        return ", ".join(part for part in (self.calibration, ranking) if part)


def method_verdicts(groups: Mapping[str, Sequence[ScoredRun]]) -> dict[str, MethodVerdict]:
    """The verdict on each method; methods whose reports could not be judged are left out."""
    found = {name: _of_runs(runs) for name, runs in groups.items()}
    return {name: verdict for name, verdict in found.items() if verdict.calibration != UNJUDGED}


def _of_runs(runs: Sequence[ScoredRun]) -> MethodVerdict:
    verdicts = [run.report.verdict for run in runs]
    if len(verdicts) == 1:
        return MethodVerdict(verdicts[0].calibration, verdicts[0].ranking, verdicts[0].text)
    calibration: Counter[str] = Counter(verdict.calibration for verdict in verdicts)
    ranking: Counter[str] = Counter(verdict.ranking for verdict in verdicts)
    counts = (_counted(calibration), f"ranking of errors: {_counted(ranking)}")
    text = f"Of {len(verdicts)} runs, {'; '.join(counts)}."
    return MethodVerdict(calibration.most_common(1)[0][0], ranking.most_common(1)[0][0], text)


def _counted(words: Counter[str]) -> str:
    if len(words) == 1:
        return f"all {next(iter(words))}"
    return ", ".join(f"{count} {word}" for word, count in words.most_common())
