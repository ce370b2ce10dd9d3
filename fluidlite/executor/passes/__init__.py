"""Passes over instructions."""
