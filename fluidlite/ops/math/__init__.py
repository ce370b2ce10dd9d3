"""Arithmetic, comparisons, functions element by element, reductions, products of matrices."""
