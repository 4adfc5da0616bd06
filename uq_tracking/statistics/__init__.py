"""Mergeable sufficient statistics: what every number is a pure function of."""
