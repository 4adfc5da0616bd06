"""The experiments of five papers, run again: their tables and figures beside the papers' numbers.

One module per paper, each with a function ``reproduce(study)`` that tells the study what it finds.
"""

from uq_tracking.reproduction.papers import PAPERS, Paper
from uq_tracking.reproduction.study import Size, Study
from uq_tracking.reproduction.verb import reproduce

__all__ = ["PAPERS", "Paper", "Size", "Study", "reproduce"]
