"""`_ext.shm`: messages between processes, how values are written in them, and the ring that they go through."""

from __future__ import annotations

import gc
import os
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fluidlite._ext import shm

BIG = 1 << 18


def alike(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(alike, one.values(), other.values()))
    return one == other or one != one


PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text()
    | st.binary()
    | hnp.arrays(
        st.sampled_from(["?", "i1", "u2", "i8", "f2", "f4", "f8", "c8"]),
        hnp.array_shapes(min_dims=0, min_side=0, max_side=3),
    )
)
NESTED = st.recursive(
    PLAIN,
    lambda parts: (
        st.lists(parts) | st.lists(parts).map(tuple) | st.dictionaries(st.text() | st.integers(0, 9), parts)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=300)
@given(NESTED)
def test_what_is_packed_is_unpacked(value: Any) -> None:
    message = shm.pack(None, (3, True, [0.5]), value)
    assert message is not None
    unpacked, head, shared = shm.unpack(None, message)
    assert alike(value, unpacked) and (head, shared) == ((3, True, [0.5], [], None), 0)


Pair = namedtuple("Pair", "a b")
CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63) - 1,
        1j,
        {1, 2},
        print,
        Pair(1, 2),
        np.float32(1),
        np.arange(6)[::2],
        np.arange(6.0).reshape(2, 3).T,
        np.arange(3, dtype=">i4"),
        np.array(["a"]),
        np.array([None]),
        np.zeros(2, [("a", "i4")]),
        np.array(["2001-01-01"], "datetime64[D]"),
        np.ma.zeros(3),
        CYCLE,
        "\ud800",
        {"a": [1, (2, object())]},
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_other_things_are_left_to_pickle(file: int, value: Any) -> None:
    arena = shm.Arena(file, 2)
    assert shm.pack(arena, (), [np.zeros(BIG), value]) is None
    size = os.fstat(file).st_size
    message = shm.pack(arena, (), np.ones(BIG))
    assert message is not None and os.fstat(file).st_size == size, "the slot of what was not sent is kept"


def test_big_arrays_arrive_without_a_copy_and_slots_are_reused(file: int) -> None:
    arena, window = shm.Arena(file, 2), shm.Window(file)
    views = []
    for i in range(20):
        message = shm.pack(arena, (), [np.full((4, BIG), i, "uint8"), {"small": np.arange(i)}])
        assert message is not None and len(message) < 1000
        (big, small), _, shared = shm.unpack(window, message)
        assert big.shape == (4, BIG) and (big == i).all() and small["small"].tolist() == list(range(i))
        assert big.flags.writeable and big.flags.aligned and shared == 4 * BIG
        views.append((i, big[1:3, ::7]))
        del big
        views = views[-3:]
        assert all((view == k).all() for k, view in views), "memory was used again while it was held"
    assert os.fstat(file).st_size < 7 * 4 * BIG
    assert shm.counters()["leases"] == 3
    views.clear()


def test_beyond_the_limit_arrays_travel_in_the_message(file: int) -> None:
    arena, window = shm.Arena(file, 2, limit=2 * BIG), shm.Window(file)
    held = []
    for i in range(4):
        message = shm.pack(arena, (), np.full(BIG, i, "uint8"))
        assert message is not None
        array, head, _ = shm.unpack(window, message)
        held.append(array)
    assert head[-1] == arena.shortage is not None and len(message) > BIG
    assert all((array == i).all() for i, array in enumerate(held))
    held.clear()
    del array


def test_messages_go_round_the_ring_in_order(file: int) -> None:
    writer, reader = shm.Ring(file), shm.Ring(file)
    put = taken = 0
    for count in range(1, 400):
        while put < taken + count % 40:
            assert writer.put(put, bytes([put % 251]) * (put * 37 % 1200))
            put += 1
        while taken < put - count % 7:
            assert reader.take(taken) == bytes([taken % 251]) * (taken * 37 % 1200)
            taken += 1


def test_what_finds_no_room_goes_another_way(file: int) -> None:
    writer, reader = shm.Ring(file), shm.Ring(file)
    assert not writer.put(0, bytes(1 << 16)) and writer.put(1, b"one")
    assert reader.take(0) is None and reader.take(1) == b"one" and reader.take(2) is None
    count = 2
    while writer.put(count, bytes(1000)):
        count += 1
    assert 50 < count < 70
    assert reader.take(2) == bytes(1000) and writer.put(count, bytes(1000))


def test_who_waits_is_woken_once(file: int) -> None:
    writer, reader = shm.Ring(file), shm.Ring(file)
    assert not writer.wanted()
    assert reader.doze()
    assert writer.put(0, b"a") and writer.wanted() and not writer.wanted()
    assert not reader.doze(), "there is something"
    assert reader.take(0) == b"a" and reader.doze()


@pytest.mark.parametrize("kind", ["list", "list of lists", "dict"])
def test_what_changes_while_it_is_packed_arrives_as_it_is_then(file: int, kind: str) -> None:
    """Finalizers, and other threads during the copy of an array, may change a value while it is packed."""
    arrays = [np.full(BIG, k, "uint8") for k in range(4)]
    inner: Any = {k: array for k, array in enumerate(arrays)} if kind == "dict" else list(arrays)
    value = [inner, 7] if kind == "list of lists" else inner

    class Circle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            if kind != "dict":
                inner.append("more")
            else:
                inner.pop(0, None)

    arena, window = shm.Arena(file, 4), shm.Window(file)
    threshold = gc.get_threshold()
    gc.freeze()
    Circle()
    gc.set_threshold(1)
    try:
        message = shm.pack(arena, ("head",), value)
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()
    found, head, _ = shm.unpack(window, message)
    assert head[0] == "head"
    items = found[0] if kind == "list of lists" else list(found.values()) if kind == "dict" else found
    assert len(items) >= 3 and (kind != "list of lists" or found[1] == 7)
    for item in items:
        assert isinstance(item, str) or any(alike(item, array) for array in arrays)
