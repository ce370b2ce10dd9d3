"""Batches that programs read from loaders and data sets instead of feeds."""
