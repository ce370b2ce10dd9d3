"""`_ext.shm`: slots that go from a worker to its parent and back."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest

from fluidlite._ext import shm
from fluidlite._ext.collate import Collator, Spec
from fluidlite.executor.lod_tensor import LoDTensor

BIG = 1 << 18


def sent(arena: shm.Arena, value: object) -> tuple[bytes, list, list]:
    contents = pickle.dumps(value, 5, buffer_callback=arena.place)
    return contents, *arena.commit()


def received(window: shm.Window, message: tuple[bytes, list, list]) -> object:
    contents, places, gone = message
    leases = [window.lease(*place) for place in places]
    for slot in gone:
        window.forget(slot)
    return pickle.loads(contents, buffers=leases)


def test_arrays_arrive_without_a_copy_and_slots_are_reused(file: int) -> None:
    arena, window = shm.Arena(file, 2), shm.Window(file)
    for i in range(10):
        message = sent(arena, {"big": np.full(BIG, i, "uint8"), "small": np.arange(i)})
        assert len(message[0]) < 2000 and len(message[1]) == 1
        got = received(window, message)
        assert isinstance(got, dict)
        assert (got["big"] == i).all() and got["small"].tolist() == list(range(i))
        assert got["big"].flags.writeable and got["big"].flags.aligned
        assert os.fstat(file).st_size < 3 * BIG
        del got


def test_held_arrays_keep_their_slots(file: int) -> None:
    arena, window = shm.Arena(file, 2), shm.Window(file)
    held = [received(window, sent(arena, np.full(BIG, i, "uint8"))) for i in range(8)]
    assert shm.counters()["leases"] == 8
    parts = [array[100:200] for array in held]  # type: ignore[index]
    del held, window
    assert shm.counters()["leases"] == 8, "a view keeps the slot"
    assert all((part == i).all() for i, part in enumerate(parts))


def test_slots_that_are_no_longer_needed_are_given_back(file: int) -> None:
    arena, window = shm.Arena(file, 2), shm.Window(file)
    held = [received(window, sent(arena, np.zeros(BIG, "uint8"))) for _ in range(20)]
    assert os.fstat(file).st_blocks * 512 >= 20 * BIG
    held.clear()
    for _ in range(3):
        held = [received(window, sent(arena, np.zeros(BIG, "uint8")))]
    assert os.fstat(file).st_blocks * 512 < 6 * BIG
    assert shm.counters()["mappings"] < 20
    held.clear()


def test_arrays_of_growing_sizes(file: int) -> None:
    arena, window = shm.Arena(file, 2), shm.Window(file)
    for size in range(BIG, 8 * BIG, BIG // 4):
        got = received(window, sent(arena, np.full(size, 7, "uint8")))
        assert isinstance(got, np.ndarray) and got.size == size and (got == 7).all()
        del got
    assert os.fstat(file).st_blocks * 512 < 40 * BIG


def test_a_batch_collated_in_a_slot_is_not_copied(file: int) -> None:
    arena, window = shm.Arena(file, 2), shm.Window(file)
    collator = Collator([Spec("x", "float32", (-1, 1000))], LoDTensor.wrap, memory=arena)
    (tensor,) = collator.collate([(np.full(1000, i, "float32"),) for i in range(50)])
    message = sent(arena, tensor.array)
    tensor.array[:] = 5  # seen on the other side: it is the same memory
    got = received(window, message)
    assert isinstance(got, np.ndarray) and got.shape == (50, 1000) and (got == 5).all()


def test_a_slot_that_the_worker_still_uses_is_not_reused(file: int) -> None:
    arena, window = shm.Arena(file, 2), shm.Window(file)
    block = arena.block(BIG)
    assert block is not None
    mine = np.ndarray((BIG,), "uint8", block)
    mine[:] = 1
    del block
    received(window, sent(arena, mine))  # the parent lets go of it at once
    other = received(window, sent(arena, np.full(BIG, 2, "uint8")))
    third = received(window, sent(arena, mine))
    assert (mine == 1).all() and (other == 2).all() and (third == 1).all()  # type: ignore[attr-defined]


def test_a_message_that_is_not_sent_leaves_its_slots(file: int) -> None:
    arena, window = shm.Arena(file, 2), shm.Window(file)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps([np.zeros(BIG), lambda: 1], 5, buffer_callback=arena.place)
    arena.cancel()
    size = os.fstat(file).st_size
    got = received(window, sent(arena, np.ones(BIG)))
    assert os.fstat(file).st_size == size and (got == 1).all()  # type: ignore[attr-defined]


def test_beyond_the_limit_arrays_travel_in_the_message(file: int) -> None:
    arena, window = shm.Arena(file, 2, limit=2 * BIG), shm.Window(file)
    held = []
    for i in range(4):
        message = sent(arena, np.full(BIG, i, "uint8"))
        held.append(received(window, message))
    assert arena.shortage is not None
    needed, available = arena.shortage
    assert BIG < needed < 1.2 * BIG and available < BIG
    assert len(message[0]) > BIG and not message[1]
    assert all((array == i).all() for i, array in enumerate(held))  # type: ignore[attr-defined]
    assert arena.block(BIG) is None
    held.clear()
