"""Check that a run's stored data are what its report was made from, before anything is replaced."""

from __future__ import annotations

import math
from collections.abc import Callable

from uq_tracking import plugins
from uq_tracking.errors import FileFormatError
from uq_tracking.report import Report

EXACT, SKETCHED = (1e-6, 1e-9), (1e-3, 5e-4)
"""How far a recomputed score may deviate from the stored one, relatively and absolutely."""


def check_scores(old: Report, again: Callable[[], Report], source: str) -> None:
    """Compare the stored headline scores with those recomputed under the old settings.

    Raises
    ------
    FileFormatError
        One differs, so the source is not what the report was made from.
    """
    kept = old.provenance.get("kept", ())
    known = plugins.metrics(old.task)
    stored = {
        key: value
        for key, value in old.scores.items()
        if key in known and known[key].stable and key not in kept
    }
    if not stored:
        return
    found = again().scores_of(stored)
    for key, value in stored.items():
        relative, absolute = (
            EXACT if known[key].stable == "sums" or source == "exact statistics" else SKETCHED
        )
        if key in found and not math.isclose(found[key], value, rel_tol=relative, abs_tol=absolute):
            raise FileFormatError(
                f"the report says {key} = {value:.6g}, but its {source} say {found[key]:.6g}: they come from "
                "different predictions; log the run again, or rescore with force to replace the report"
            )
