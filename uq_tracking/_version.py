"""The version, in a file of its own so that whatever needs it imports nothing else."""

__version__ = "0.1.0"
