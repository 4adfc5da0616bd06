"""Rerun the experiments of five papers: our tables and figures beside the papers' numbers.

One module per paper, each with a function ``reproduce(study)`` that reports its results to the study.
"""

from uq_tracking.reproduction.papers import PAPERS, Paper
from uq_tracking.reproduction.study import Size, Study
from uq_tracking.reproduction.verb import reproduce

__all__ = ["PAPERS", "Paper", "Size", "Study", "reproduce"]
