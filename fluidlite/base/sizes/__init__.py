"""Sizes that change from step to step: numbers that remember the formula they come from.

A plan is made for one set of sizes and kept for all others. While it is made, each size that may change is a `Size`: it
counts like the integer it is at the moment, and its results are `Size`s again. Where its value decides something (a
comparison, use as an index), a *guard* is noted: the plan holds as long as its guards do. A formula is a polynomial
over *atoms*: sizes of what is fed, and quotients and remainders that have no simpler form. So `(n * 64) // 64` is `n`,
and whether `n * 64` is negative, or another than `64 * n`, needs no guard.

Sizes of 0 and 1 mean something else than others (nothing to do; broadcasting), so that those are plain integers, with a
guard; all other sizes are known to be 2 or more.
"""

from __future__ import annotations

from .guards import INFINITE, Sizes, Undecided
from .inspection import always_equal, atoms_of, current, current_shape, is_fixed, is_found, rebuilt, whole
from .polynomials import Terms
from .reals import Real
from .size import Size, formula

__all__ = [
    "INFINITE",
    "Real",
    "Size",
    "Sizes",
    "Terms",
    "Undecided",
    "always_equal",
    "atoms_of",
    "current",
    "current_shape",
    "formula",
    "is_fixed",
    "is_found",
    "rebuilt",
    "whole",
]
