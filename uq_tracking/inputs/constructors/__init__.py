"""The constructors of `Predictions` besides the plain one, a file per kind of input; each takes its options too."""

from uq_tracking.inputs.constructors.base import Options, read_equal
from uq_tracking.inputs.constructors.distributions import FromDistributions
from uq_tracking.inputs.constructors.draws import FromDraws
from uq_tracking.inputs.constructors.ensembles import FromEnsembles
from uq_tracking.inputs.constructors.quantiles import FromQuantiles
from uq_tracking.inputs.constructors.variances import FromVariances

__all__ = ["Constructors", "Options", "read_equal"]


class Constructors(FromVariances, FromDraws, FromEnsembles, FromQuantiles, FromDistributions):
    """All of them."""
