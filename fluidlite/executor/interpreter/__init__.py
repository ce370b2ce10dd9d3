"""Runs programs operator by operator, and in segments that are plans."""
