"""Compiled parts: one extension per concern; nothing here imports the rest of fluidlite."""
