"""Processes that make batches: pool, worker, transport of messages and errors."""
