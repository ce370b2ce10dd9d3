"""pyramid_hash: embeddings of runs of adjacent ids, concatenated from segments of one long vector.

XXH32 of a run's ids (Collet 2012) determines the segments; two Bloom filters over MurmurHash3 (Appleby 2011) select
the runs. As in Fluid, ids are hashed as float32 numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..grad_pairs import gradient_by
from ..host_fallback import hosted
from ..registry import Effects, Levels, LodArray, OperatorError, OpView, Sequences, grad_name, register
from ..sequence import Lods, input_lod

_MAGIC = 17070416

_PRIMES = tuple(np.uint32(p) for p in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1))


def rotated(x: Any, bits: int) -> Any:
    """Rotate unsigned integers to the left."""
    kind = x.dtype.type
    return x << kind(bits) | x >> kind(8 * x.dtype.itemsize - bits)


def xxh32(rows: Any, seed: int) -> Any:
    """XXH32 of each row of bytes, [n, length]; `length` is a multiple of 4. uint32."""
    one, two, three, four, five = _PRIMES
    words = np.ascontiguousarray(rows).view("<u4").astype(np.uint32)
    stripes = words.shape[1] // 4
    with np.errstate(over="ignore"):
        start = np.full(len(rows), seed, np.uint32)
        if stripes:
            lanes = [start + one + two, start + two, start, start - one]
            for stripe in range(stripes):
                lanes = [
                    rotated(lane + words[:, 4 * stripe + k] * two, 13) * one for k, lane in enumerate(lanes)
                ]
            made = rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18)
        else:
            made = start + five
        made = made + np.uint32(rows.shape[1])
        for k in range(4 * stripes, words.shape[1]):
            made = rotated(made + words[:, k] * three, 17) * four
        made = (made ^ made >> np.uint32(15)) * two
        made = (made ^ made >> np.uint32(13)) * three
    return made ^ made >> np.uint32(16)


_FIRST, _SECOND = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)


def _mixed(x: Any) -> Any:
    x = (x ^ x >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ x >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ x >> np.uint64(33)


def murmur3(rows: Any, seed: int) -> tuple[Any, Any]:
    """The two halves of MurmurHash3 x64_128 of each row of bytes, [n, length]: uint64."""
    length = rows.shape[1]
    padded = np.zeros((len(rows), -(-length // 16) * 16), np.uint8)
    padded[:, :length] = rows
    words = padded.view("<u8").astype(np.uint64)
    one = two = np.full(len(rows), seed, np.uint64)
    with np.errstate(over="ignore"):
        for block in range(words.shape[1] // 2):
            one = one ^ rotated(words[:, 2 * block] * _FIRST, 31) * _SECOND
            whole = (block + 1) * 16 <= length
            if whole:
                one = (rotated(one, 27) + two) * np.uint64(5) + np.uint64(0x52DCE729)
            two = two ^ rotated(words[:, 2 * block + 1] * _SECOND, 33) * _FIRST
            if whole:
                two = (rotated(two, 31) + one) * np.uint64(5) + np.uint64(0x38495AB5)
        one, two = one ^ np.uint64(length), two ^ np.uint64(length)
        one = one + two
        two = two + one
        one, two = _mixed(one), _mixed(two)
        one = one + two
        return one, two + one


def in_bloom_filter(array: Any, rows: Any, name: str) -> Any:
    """Whether each row of bytes may be in a Bloom filter.

    Its bytes, as float32 numbers, are four integers of 64 bits and the bits: a mark, the number of bits, that of
    hashes, and how many keys there are. `name` names the filter where it is none.
    """
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    mark, count, hashes = (int(n) for n in raw[:24].view("<u8")) if len(raw) >= 32 else (0, 0, 0)
    if mark != _MAGIC or count < 1 or len(raw) - 32 < -(-count // 8):
        raise OperatorError(
            f"operator pyramid_hash: {name} is no Bloom filter: it should begin with the number {_MAGIC}, the number "
            f"of its bits, and have so many, but begins with {mark} and {count} and has {8 * (len(raw) - 32)} bits"
        )
    bits = np.unpackbits(raw[32:], bitorder="big")
    result = np.ones(len(rows), bool)
    for seed in range(hashes):
        for half in murmur3(rows, seed):
            result &= bits[half % np.uint64(count)] != 0
    return result


_RAND_MAX = 0x7FFFFFFF


def _draws(seed: int) -> Iterator[int]:
    """The numbers, up to `_RAND_MAX`, that `rand_r` of the GNU C library gives."""
    state = seed & 0xFFFFFFFF
    while True:
        number = 0
        for bits in (11, 10, 10):
            state = (state * 1103515245 + 12345) & 0xFFFFFFFF
            number = number << bits | (state >> 16) & ((1 << bits) - 1)
        yield number


class _Runs:
    """The runs of two to `longest` ids in sequences: by sequence, then by length, then by where they begin."""

    def __init__(self, ids: Any, offsets: Any, longest: int) -> None:
        self._ids = ids
        whose, starts, lengths = [], [], []
        for number, (begin, end) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
            for length in range(2, min(longest, end - begin) + 1):
                first = np.arange(begin, end - length + 1)
                whose.append(np.full(len(first), number))
                starts.append(first)
                lengths.append(np.full(len(first), length))
        none = [np.zeros(0, "int64")]
        self.sequence, self._starts, self._lengths = (
            np.concatenate(parts or none) for parts in (whose, starts, lengths)
        )

    def __len__(self) -> int:
        return len(self.sequence)

    def each(self, function: Any, dtype: str) -> Any:
        """Return `function` of the bytes of all runs; it is called once for each length, with [runs, bytes]."""
        result = np.zeros(len(self), dtype)
        for length in np.unique(self._lengths):
            mine = np.flatnonzero(self._lengths == length)
            rows = self._ids[self._starts[mine][:, None] + np.arange(length)]
            result[mine] = function(np.ascontiguousarray(rows, "<f4").view(np.uint8))
        return result

    def columns(self, num_emb: int, rand_len: int, space_len: int) -> Any:
        """The indices into the flat W of each run's row, [runs, num_emb]."""
        starts = [
            self.each(lambda rows, seed=seed: xxh32(rows, seed) % np.uint32(space_len), "int64")
            for seed in range(0, num_emb, rand_len)
        ]
        return np.concatenate([start[:, None] + np.arange(rand_len) for start in starts], axis=1)


def _kept(runs: _Runs, white: Any, black: Any, is_training: bool, drop_out_percent: float, seed: int) -> Any:
    """The mask of runs that get an embedding: in the filter `white`, not in `black`, and not dropped."""
    kept = np.ones(len(runs), bool)
    if white is not None:
        kept = runs.each(lambda rows: in_bloom_filter(white, rows, "WhiteList"), "bool")
    if black is not None:
        kept &= ~runs.each(lambda rows: in_bloom_filter(black, rows, "BlackList"), "bool")
    if is_training:
        draws = _draws(seed)
        for index in np.flatnonzero(kept):
            kept[index] = np.float32(next(draws) / _RAND_MAX) >= np.float32(drop_out_percent)
    return kept


@hosted
def _pyramid_hash(
    xp: Any,
    X: Any,
    W: Any,
    WhiteList: Any,
    BlackList: Any,
    num_emb: int,
    space_len: int,
    pyramid_layer: int,
    rand_len: int,
    drop_out_percent: float,
    is_training: int,
    use_filter: bool,
    white_list_len: int,
    black_list_len: int,
    seed: int,
    lod: Lods,
) -> Any:
    levels = input_lod(lod, "X")
    if len(levels) != 1:
        raise OperatorError(f"operator pyramid_hash: X must have one level of sequences, got {len(levels)}")
    offsets = np.asarray(levels[0])
    ids = X.reshape(-1).astype("float32")
    runs = _Runs(ids, offsets, pyramid_layer)
    white = WhiteList if use_filter and white_list_len else None
    black = BlackList if use_filter and black_list_len else None
    kept = _kept(runs, white, black, bool(is_training), drop_out_percent, seed)
    counts = np.bincount(runs.sequence[kept], minlength=len(offsets) - 1)
    ends = np.concatenate([[0], np.cumsum(np.maximum(counts, 1))])
    out = np.zeros((ends[-1], num_emb), W.dtype)
    rows = W.reshape(-1)[runs.columns(num_emb, rand_len, space_len)[kept]]
    out[_rows_of(counts, ends)] = rows if is_training else rows * W.dtype.type(drop_out_percent)
    flags = np.zeros((len(X) * pyramid_layer, 1), "int32")
    flags[: len(runs), 0] = kept
    places = LodArray(flags, [np.concatenate([[0], np.cumsum(counts)])])
    return LodArray(out, [ends]), places, ids.reshape(-1, 1)


def _rows_of(counts: Any, ends: Any) -> Any:
    """The rows of Out that are of runs: a sequence without any has one of zeros."""
    position = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(ends[:-1], counts) + position


@hosted
def _pyramid_hash_grad(
    xp: Any,
    X: Any,
    W: Any,
    DropPos: Any,
    X_Temp_Out: Any,
    Out_grad: Any,
    num_emb: int,
    space_len: int,
    pyramid_layer: int,
    rand_len: int,
    lr: float,
    lod: Lods,
) -> Any:
    """W after the SGD step that Fluid's gradient operator takes by itself; X has no gradient."""
    offsets = np.asarray(input_lod(lod, "X")[0])
    runs = _Runs(X_Temp_Out.reshape(-1), offsets, pyramid_layer)
    kept = DropPos.reshape(-1)[: len(runs)] != 0
    counts = np.bincount(runs.sequence[kept], minlength=len(offsets) - 1)
    ends = np.concatenate([[0], np.cumsum(np.maximum(counts, 1))])
    after = W.reshape(-1).copy()
    columns = runs.columns(num_emb, rand_len, space_len)[kept]
    np.subtract.at(after, columns, Out_grad[_rows_of(counts, ends)] * after.dtype.type(lr))
    return None, after.reshape(W.shape)


def _infer(op: OpView) -> None:
    layers, width, part = op.attr("pyramid_layer"), op.attr("num_emb"), op.attr("rand_len")
    if len(op.shape("X")) != 2:
        raise op.fail(f"X must be [ids, 1], got {list(op.shape('X'))}")
    if layers < 2:
        raise op.fail(f"pyramid_layer must be at least 2, got {layers}")
    if part < 1 or width % part:
        raise op.fail(f"num_emb must be a multiple of rand_len, got {width} and {part}")
    wanted = (op.attr("space_len") + part, 1)
    if op.attr("space_len") < 1 or tuple(op.shape("W")) != wanted:
        raise op.fail(f"W must be [space_len + rand_len, 1] = {list(wanted)}, got {list(op.shape('W'))}")
    for slot, length in (("WhiteList", "white_list_len"), ("BlackList", "black_list_len")):
        if op.attr("use_filter") and op.attr(length):
            found = op.shape(slot) if op.has(slot) else None
            if found is None or tuple(found) != (op.attr(length), 1):
                raise op.fail(f"{slot} must be [{length}, 1] = [{op.attr(length)}, 1], got {found}")
    rows = op.shape("X")[0]
    op.set("Out", (-1, width), op.dtype("W"))
    op.set("DropPos", (rows * layers if rows >= 0 else -1, 1), VarType.INT32)
    op.set("X_Temp_Out", (rows, 1), VarType.FP32)


def _infer_grad(op: OpView) -> None:
    if not op.has("WOut"):
        raise op.fail("the output WOut, which is W, is missing: build the program anew")
    op.set(grad_name("X"), op.shape("X"), op.dtype("X"))
    op.set("WOut", op.shape("W"), op.dtype("W"))


_ATTRS: dict[str, Any] = {
    "num_emb": 0,
    "space_len": 0,
    "pyramid_layer": 2,
    "rand_len": 0,
    "drop_out_percent": 0.0,
    "is_training": 0,
    "use_filter": True,
    "white_list_len": 0,
    "black_list_len": 0,
    "seed": 0,
    "lr": 0.0,
    "distribute_update_vars": "",
}

register(
    "pyramid_hash",
    ("X", "W", "WhiteList?", "BlackList?"),
    ("Out", "DropPos", "X_Temp_Out"),
    _ATTRS,
    infer=_infer,
    kernel=_pyramid_hash,
    grad=gradient_by(
        "pyramid_hash_grad",
        {**{slot: slot for slot in ("X", "W", "DropPos", "X_Temp_Out")}, "Out@GRAD": "Out@GRAD"},
        {"X@GRAD": "X@GRAD", "WOut": "W"},
        lambda op: dict(op.attrs),
    ),
    no_grad=("W", "WhiteList", "BlackList", "DropPos", "X_Temp_Out"),
    sequences=Sequences(takes_lod=True, levels=Levels("X", outs=("Out",))),
    doc="A row for each run of two to pyramid_layer ids: segments of W, of rand_len numbers, at the run's hashes.",
)
register(
    "pyramid_hash_grad",
    ("X", "W", "DropPos", "X_Temp_Out", grad_name("Out")),
    (grad_name("X") + "?", "WOut?"),
    _ATTRS,
    infer=_infer_grad,
    kernel=_pyramid_hash_grad,
    sequences=Sequences(takes_lod=True),
    effects=Effects(updates=("WOut",)),
    doc="Subtracts lr times the gradient of each row from its segments of W.",
)
