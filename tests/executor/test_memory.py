"""The arena: storages that live at the same time never overlap."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from fluidlite.executor import memory
from fluidlite.executor.memory import ALIGN, Storage, arena, place

lives = st.tuples(st.integers(0, 5000), st.integers(0, 30), st.integers(0, 30))


@given(st.lists(lives, max_size=40), st.sampled_from([0, 5, memory._FITTED]))
def test_living_storages_do_not_overlap(items, fitted):
    with patch.object(memory, "_FITTED", fitted):
        _check_places(items)


def _check_places(items):
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


def test_many_small_storages_come_behind_the_large_ones_and_share_memory():
    large = [Storage(4096, first=k, last=k) for k in range(memory._FITTED)]
    small = [Storage(64, first=k, last=k + 1) for k in range(4000)]
    assert place([*small, *large]) == 4096 + 128
    assert min(s.offset for s in small) == 4096


def test_the_arena_begins_at_a_multiple_of_the_alignment():
    block = arena(100)
    assert len(block) == 100 and block.ctypes.data % ALIGN == 0
