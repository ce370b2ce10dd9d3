"""Operators that run blocks, tensor arrays, and rows that go several ways."""
