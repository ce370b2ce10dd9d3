"""Operators on images: sizes, grids, order of pixels and channels, patches."""

from . import deformable, fsp, grid_sampler, im2sequence, interp, shuffle, similarity_focus  # noqa: F401
