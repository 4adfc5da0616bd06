"""After the runs: rescore logged runs, pool them, and copy them to another tracker."""

from uq_tracking.rescoring.copying import sync
from uq_tracking.rescoring.pooling import pool
from uq_tracking.rescoring.summary import Outcome, Summary
from uq_tracking.rescoring.verb import rescore

__all__ = ["Outcome", "Summary", "pool", "rescore", "sync"]
