"""Symbolic sizes: integers with the formula that they come from, for plans that serve many shapes.

A plan is made for one set of sizes and kept for all others that its guards admit. While it is made, each size that may
change is a `SymInt`: it calculates like its current value, and results are `SymInt`s, too. Where its value decides
something (a comparison, use as an index), a *guard* is noted: the plan is valid while its guards hold. A formula is a
polynomial over *symbols*: sizes of feeds (input symbols), and quotients and remainders that have no simpler form. So
`(n * 64) // 64` is `n`, and neither `n * 64 < 0` nor `n * 64 == 64 * n` needs a guard.

Sizes 0 and 1 have a meaning of their own (no elements; broadcasting), so they are specialised: plain integers with a
guard. All other input symbols are at least 2.

The classes are compiled (`_ext/sizes.pyx`); shapes and windows over them are the modules of this package.
"""

from __future__ import annotations

from ..._ext.sizes import (
    INFINITE,
    ShapeEnv,
    SymFloat,
    SymInt,
    WouldSpecialise,
    always_equal,
    current,
    current_shape,
    formula,
    free_symbols,
    is_data_dependent,
    is_fixed,
    substituted,
    whole,
)

Terms = dict[tuple[int, ...], int]
"""A polynomial: product of symbols, sorted -> its coefficient."""

__all__ = [
    "INFINITE",
    "ShapeEnv",
    "SymFloat",
    "SymInt",
    "Terms",
    "WouldSpecialise",
    "always_equal",
    "current",
    "current_shape",
    "formula",
    "free_symbols",
    "is_data_dependent",
    "is_fixed",
    "substituted",
    "whole",
]
