"""Sufficient statistics: mergeable sums over sorted groups of samples, from which every number is computed."""
