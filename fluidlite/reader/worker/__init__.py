"""Processes that make batches: a pool of them, what one does, how messages and errors travel."""
