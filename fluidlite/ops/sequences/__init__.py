"""Operators on sequences: variables with levels of detail."""
