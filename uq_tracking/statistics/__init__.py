"""Sufficient statistics: sums over sorted groups of samples, which merge and which every number is made of."""
