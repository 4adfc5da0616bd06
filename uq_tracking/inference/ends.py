"""Scores beyond the ends of their scale: better than an oracle, or no better than a constant.

n-MeRCI runs from the oracle (0) to a constant uncertainty (1). The oracle's mean covers all errors, but the score
only the uncertainties that cover a share alpha of them: if the errors beyond carry much of the mean, a model that
ignores them comes out below the oracle. That is no merit, so such a score is not ranked.
"""

from __future__ import annotations

from collections.abc import Mapping

SCALED = ("merci", "n_merci")
"""Scores on the scale from oracle to constant."""


def below_oracle(scores: Mapping[str, float], key: str) -> bool:
    """Whether a score is below its oracle's, so that it does not rank methods.

    >>> below_oracle({"n_merci": -1.4}, "n_merci"), below_oracle({"n_merci": 0.4}, "n_merci")
    (True, False)
    """
    return key in SCALED and scores.get("n_merci", 0.0) < 0


def end_notes(scores: Mapping[str, float]) -> list[str]:
    """A sentence for each score beyond an end of its scale.

    >>> end_notes({"n_merci": 1.25})
    ['n_merci: 1.25 is no better than a constant uncertainty, which scores 1']
    """
    value = scores.get("n_merci")
    if value is None:
        return []
    if value < 0:
        return [
            f"n_merci: {value:.3g} is below its oracle, which scores 0: errors beyond alpha carry much of the mean "
            "error, and merci leaves them out. Neither ranks methods here"
        ]
    if value >= 1:
        return [f"n_merci: {value:.3g} is no better than a constant uncertainty, which scores 1"]
    return []
