"""Blocks of programs that decide while they run: values of a run, pieces, elements of arrays."""
