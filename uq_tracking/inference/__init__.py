"""How certain a report can be: noise floors, intervals, comparisons, and the verdict in words.

Everything here is a function of plain arrays (sums of each group in each bin, counts at each level), which `read`
extracts from statistics. Data flows one way: `gaps` and `limits` are arithmetic, `read` prepares their input, and
`noise`, `ranking` and `verdict` combine the two.
"""

from uq_tracking.inference.judgement import Judgement, judge
from uq_tracking.inference.noise import NoiseFloor
from uq_tracking.inference.verdict import Estimate, Verdict

__all__ = ["Estimate", "Judgement", "NoiseFloor", "Verdict", "judge"]
