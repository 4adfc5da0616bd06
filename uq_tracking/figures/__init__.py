"""Drawings of a report's numbers and of 2-D predictions; the only subpackage that imports matplotlib.

Every function takes numbers and returns a ``matplotlib.figure.Figure`` made with the object interface, or draws on
given axes: pyplot is never imported and the global settings (``rcParams``) never change, so drawing in a thread is
safe.
"""

from uq_tracking.figures.picture import to_png, to_rgb

__all__ = ["to_png", "to_rgb"]
