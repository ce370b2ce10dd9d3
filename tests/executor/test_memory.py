"""The arena of a plan: storages get places, and it begins where vectors do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidlite.executor.memory import ALIGN, Storage, arena, place

lives = st.tuples(st.integers(0, 5000), st.integers(0, 30), st.integers(0, 30))


@given(st.lists(lives, max_size=40))
def test_living_storages_do_not_overlap(items):
    storages = [Storage(size, first=min(a, b), last=max(a, b)) for size, a, b in items]
    total = place(storages)
    for k, one in enumerate(storages):
        assert one.offset % ALIGN == 0
        assert one.offset + one.bytes <= total
        for other in storages[k + 1 :]:
            together = one.first <= other.last and other.first <= one.last
            apart = one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset
            assert apart or not together


def test_a_chain_needs_room_for_two_neighbours_only():
    chain = [Storage(1024, first=k, last=k + 1) for k in range(100)]
    assert place(chain) == 2048


def test_storages_that_nothing_touches_have_places_as_well():
    assert place([Storage(64), Storage(64)]) == 128
    assert place([]) == 0


def test_more_memory_than_can_be_counted_is_refused():
    for sizes in ([1 << 62], [1 << 59] * 3, [1 << 70]):
        with pytest.raises(MemoryError, match="no machine"):
            place([Storage(size, first=0, last=0) for size in sizes])


def test_the_arena_begins_at_a_multiple_of_the_alignment():
    block = arena(100)
    assert len(block) == 100 and block.ctypes.data % ALIGN == 0
    assert block.dtype == np.uint8
