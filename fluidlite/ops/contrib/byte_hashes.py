"""XXH32 and MurmurHash3 of rows of bytes, and Bloom filters as Fluid keeps them in tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..registry import OperatorError

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
