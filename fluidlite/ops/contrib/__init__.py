"""Operators of `fluid.contrib.layers`."""
