"""Operators of models of clicks."""

from . import data_norm, filter_by_instag, hash  # noqa: F401
