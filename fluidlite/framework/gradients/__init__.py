"""Gradients of programs: which operators compute them, in blocks too, what is computed again for them, and how
trainers exchange them."""
