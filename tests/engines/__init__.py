"""Tests with engines and trackers that are too heavy for `make test`: `make test-engines` runs them."""
