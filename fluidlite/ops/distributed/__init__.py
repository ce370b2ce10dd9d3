"""Operators of trainers and parameter servers."""

from . import remote, shards  # noqa: F401
