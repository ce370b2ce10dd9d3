"""Loaders: from a generator or a data set to batches on the device, ahead of time."""
