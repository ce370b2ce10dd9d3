"""Loops whose turns the engine takes, from the first to the last, without Python between them."""
