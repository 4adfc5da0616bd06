"""Confidence intervals of scores, and of differences between two methods: a bootstrap over groups.

Samples of one image resemble each other, so drawing samples one by one would make intervals far too narrow. Groups
(images, scenes, blocks) are drawn instead, with replacement (Efron 1979; Davison and Hinkley 1997, section 3.8):
every group counts a multinomial number of times, its statistics are weighted with that number and added up, and
every metric is computed on the sum as on any other statistics.

The statistics of a group are a coarse sketch, whose scores lie a little beside the exact ones; and the scores of
resamples lie, on average, beside the score they are resampled from: for error measures above it, because a resample
is noisier than the data. Both offsets are left out: an interval is the percentiles of (resample - mean of the
resamples) around the exact score. These are widened by ``t(G - 1) / normal * sqrt(G / (G - 1))`` for G groups,
without which intervals from few groups are too narrow (Hesterberg 2015, section 4.4), and end at the limits of the
metric's range.
"""

from uq_tracking.bootstrap.confidence import Intervals, interval_table, intervals, with_intervals
from uq_tracking.bootstrap.paired import PairedDifference, paired_differences
from uq_tracking.bootstrap.resampling import (
    DEFINED_SHARE,
    FEWEST_GROUPS,
    RESAMPLES,
    Resamples,
    check_level,
    deviation_range,
    resample,
)

__all__ = [
    "DEFINED_SHARE",
    "FEWEST_GROUPS",
    "RESAMPLES",
    "Intervals",
    "PairedDifference",
    "Resamples",
    "check_level",
    "deviation_range",
    "interval_table",
    "intervals",
    "paired_differences",
    "resample",
    "with_intervals",
]
