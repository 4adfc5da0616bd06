"""Scoring what does not fit into memory at once: batches, blocks, processes, dask chunks."""
