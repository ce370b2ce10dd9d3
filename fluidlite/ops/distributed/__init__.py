"""Operators of trainers and parameter servers."""
