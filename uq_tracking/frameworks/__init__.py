"""Shortcuts from training frameworks to this package; each module needs its framework only when used.

`uq_tracking.frameworks.lightning` has a callback, `uq_tracking.frameworks.sklearn` asks estimators for their
uncertainty.
"""
