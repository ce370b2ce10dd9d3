"""Passes over instructions: fusion, elimination, layouts, packed weights."""
