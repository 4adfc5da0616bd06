"""Sufficient statistics: arrays become sums over sorted groups once, which merge, and which every number is made of."""
