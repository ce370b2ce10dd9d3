"""Gradients of programs: backward operators, also in blocks; recomputation; and the exchange between trainers."""
