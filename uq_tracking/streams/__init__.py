"""Score data that does not fit in memory at once: batches, blocks, processes, dask chunks."""
