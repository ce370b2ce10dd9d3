"""Operators on sequences: variables with levels of detail."""

from . import beam_search, conv, expand, lod_reset, order, pad, parts, pool, row_conv, softmax  # noqa: F401
