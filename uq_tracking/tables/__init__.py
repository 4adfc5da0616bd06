"""Tables of scores: one model, and a small renderer for each output format."""

from uq_tracking.tables.model import Cell, Column, Row, Table

__all__ = ["Cell", "Column", "Row", "Table"]
