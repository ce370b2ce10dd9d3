"""Operators on images: sizes, grids, order of pixels and channels, patches."""
