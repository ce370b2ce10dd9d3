"""Operators of models of clicks."""
