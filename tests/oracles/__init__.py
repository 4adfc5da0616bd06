"""Slow, literal transcriptions of every formula the package reports, and what they are checked against.

Nothing in ``literal``, ``regression``, ``curves`` or ``classification`` imports the package: they were
written from the papers' formulas, so that the package is compared with something that shares no code with it.
"""
