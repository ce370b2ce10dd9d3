"""Batches that programs take by themselves, from loaders and data sets."""
