"""Scoring streams: batches, blocks, devices, processes, dask chunks."""
