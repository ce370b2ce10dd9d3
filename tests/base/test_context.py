"""Ambient state: blocks that end in any order, threads, and finalizers that run while a value is set."""

import gc
import threading

from fluidlite.base.context import Slot


def test_blocks_nest_and_set_changes_the_innermost():
    slot = Slot("tried", 0)
    with slot.hold(1):
        slot.set(2)
        with slot.hold(3):
            assert slot.get() == 3
        assert slot.get() == 2
    assert slot.get() == 0
    slot.set(4)
    assert slot.get() == 4


def test_a_forgotten_generator_that_ends_late_takes_nothing_from_others():
    slot = Slot("tried", 0)

    def generate():
        with slot.hold(1):
            yield

    forgotten = generate()
    next(forgotten)
    with slot.hold(2):
        forgotten.close()
        assert slot.get() == 2
        inner = generate()
        next(inner)
    closing = threading.Thread(target=inner.close)
    closing.start()
    closing.join()
    assert slot.get() == 0


def test_a_thread_starts_from_the_default_unless_it_carries_what_holds():
    slot = Slot("tried", 0)
    seen = []

    def look():
        seen.append(slot.get())
        slot.set(5)

    with slot.hold(1):
        for target in (look, Slot.carrying(look)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        assert slot.get() == 1
    assert seen == [0, 1]
    assert slot.get() == 5


class Garbage:
    """Part of a cycle; its finalizer holds a value for a moment."""

    def __init__(self, slots):
        self.slots, self.own = slots, self

    def __del__(self):
        for slot in self.slots[::3]:
            with slot.hold(-1):
                pass


def test_finalizers_that_hold_values_while_others_are_set_lose_none():
    """With ContextVars this crashed CPython 3.11."""
    slots = [Slot(f"tried {number}", None) for number in range(20)]
    before = gc.get_threshold()
    gc.set_threshold(3, 1, 1)
    try:
        for number in range(300):
            blocks = [slot.hold(number) for slot in slots]
            for block in blocks:
                Garbage(slots)
                block.__enter__()
            assert [slot.get() for slot in slots] == [number] * len(slots)
            for block in reversed(blocks):
                Garbage(slots)
                block.__exit__(None, None, None)
    finally:
        gc.set_threshold(*before)
    assert [slot.get() for slot in slots] == [None] * len(slots)
