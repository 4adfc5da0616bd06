"""The papers' toy data sets, each with the distribution from which its targets are drawn.

One module per paper; functions take the number of samples and a seed, and return a `Sample` whose ``truth`` can be
scored: ``uq.evaluate(sample.truth)`` gives the scores of the best possible model.
"""

from uq_tracking_papers.datasets import gustafsson, levi, merci, xiong
from uq_tracking_papers.datasets.conditional import Conditional
from uq_tracking_papers.datasets.sample import Sample, Seed

__all__ = ["Conditional", "Sample", "Seed", "gustafsson", "levi", "merci", "xiong"]
