"""Operators that run blocks, tensor arrays, and splitting of rows by conditions."""
