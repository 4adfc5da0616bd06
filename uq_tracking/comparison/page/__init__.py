"""The comparison as one HTML page that needs no network, and as a table for notebooks."""

from uq_tracking.comparison.page.assemble import comparison_page
from uq_tracking.comparison.page.fragment import comparison_fragment

__all__ = ["comparison_fragment", "comparison_page"]
