"""Gradients of programs: which operators compute them, in blocks too, and what is computed again for them."""
