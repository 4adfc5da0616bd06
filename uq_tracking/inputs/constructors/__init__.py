"""The constructors of `Predictions` besides the plain one, a file per kind of input; each takes its options too."""

from uq_tracking.inputs.constructors.base import Options, read_equal
from uq_tracking.inputs.constructors.frames import FromFrames as Constructors

__all__ = ["Constructors", "Options", "read_equal"]
