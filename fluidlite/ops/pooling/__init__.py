"""Pooling: windows, bins, and maxima put back."""
