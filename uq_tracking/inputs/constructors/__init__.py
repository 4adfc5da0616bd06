"""The other constructors of `Predictions`, one file per kind of input; each also accepts its options."""

from uq_tracking.inputs.constructors.base import Options, read_equal
from uq_tracking.inputs.constructors.frames import FromFrames as Constructors

__all__ = ["Constructors", "Options", "read_equal"]
