"""Operators for a program's input and output: feeds, fetches, readers, printing, functions, other processes."""
