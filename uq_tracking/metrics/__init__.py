"""The metrics, in files named by what they judge."""
