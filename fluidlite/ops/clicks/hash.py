"""hash: rows of integers as numbers of buckets, by XXH64 of their bytes (Collet 2012)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..contrib.byte_hashes import rotated
from ..host_fallback import hosted
from ..registry import Attr, Levels, LodArray, OpDef, OpView, Sequences, register
from ..sequence import Lods, input_lod

_PRIMES = tuple(
    np.uint64(p)
    for p in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def _round(lane: Any, word: Any) -> Any:
    return rotated(lane + word * _PRIMES[1], 31) * _PRIMES[0]


def xxh64(rows: Any, seed: int) -> Any:
    """XXH64 of each row of bytes, [n, length]; `length` is a multiple of 4."""
    one, two, three, four, five = _PRIMES
    length = rows.shape[1]
    start = np.uint64(seed)
    words = np.ascontiguousarray(rows[:, : length // 8 * 8]).view("<u8").astype(np.uint64)
    stripes = length // 32
    if stripes:
        lanes = [np.full(len(rows), s) for s in (start + one + two, start + two, start, start - one)]
        for stripe in range(stripes):
            lanes = [_round(lane, words[:, 4 * stripe + k]) for k, lane in enumerate(lanes)]
        made = rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18)
        for lane in lanes:
            made = (made ^ _round(np.zeros_like(lane), lane)) * one + four
    else:
        made = np.full(len(rows), start + five)
    made = made + np.uint64(length)
    for k in range(4 * stripes, length // 8):
        made = rotated(made ^ _round(np.zeros_like(made), words[:, k]), 27) * one + four
    if length % 8:
        rest = np.ascontiguousarray(rows[:, length // 8 * 8 :]).view("<u4")[:, 0].astype(np.uint64)
        made = rotated(made ^ rest * one, 23) * two + three
    made = (made ^ made >> np.uint64(33)) * two
    made = (made ^ made >> np.uint64(29)) * three
    return made ^ made >> np.uint64(32)


@hosted
def _hash(xp: Any, X: Any, num_hash: int, mod_by: int, lod: Lods) -> Any:
    rows = np.ascontiguousarray(X).view(np.uint8).reshape(len(X), -1)
    with np.errstate(over="ignore"):
        made = [xxh64(rows, seed) % np.uint64(mod_by) for seed in range(num_hash)]
    out = np.stack(made, axis=1).astype(X.dtype)[:, :, None]
    return LodArray(out, input_lod(lod, "X")) if input_lod(lod, "X") else out


def _infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 2:
        raise op.fail(f"X must be [rows, width], got {list(shape)}")
    if op.dtype("X") not in (VarType.INT32, VarType.INT64):
        raise op.fail(f"X must be int32 or int64, got {op.dtype('X')}")
    if op.attr("num_hash") < 1 or op.attr("mod_by") < 1:
        raise op.fail(
            f"num_hash and mod_by must be positive, got {op.attr('num_hash')} and {op.attr('mod_by')}"
        )
    op.set("Out", (shape[0], op.attr("num_hash"), 1), op.dtype("X"))
    op.carry("Out", op.lod("X"))


register(
    OpDef(
        "hash",
        ("X",),
        ("Out",),
        {"num_hash": 1, "mod_by": Attr(100000, "LONG")},
        infer=_infer,
        kernel=_hash,
        no_grad=("Out",),
        sequences=Sequences(takes_lod=True, inferred=True, levels=Levels("X")),
        doc="`num_hash` numbers below mod_by for each row of integers: XXH64 of its bytes, from seeds 0, 1, ...",
    )
)
