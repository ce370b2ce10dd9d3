"""Arrays are taken over only if no other reference to them exists; all others are copied."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, UserDict, namedtuple
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from fluidlite._ext.collate import Handover, counters

SIZE = 4


def fresh(value: float = 1) -> np.ndarray:
    return np.full(SIZE, value, "float32")


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


class Noted:
    """Makes arrays and remembers only where they were."""

    def __init__(self) -> None:
        self.at: list[int] = []

    def __call__(self, dtype: str = "float32") -> np.ndarray:
        array = np.ones(SIZE, dtype)
        self.at.append(address(array))
        return array


NOTED = Noted()

SOLE: dict[str, Callable[[], object]] = {
    "array": lambda: NOTED(),
    "list": lambda: [NOTED()],
    "tuple": lambda: (NOTED(), 1),
    "dict": lambda: {"x": NOTED()},
    "nested": lambda: {"x": [(NOTED(),)]},
    "yielded": (NOTED() for _ in iter(int, 1)).__next__,
    "yielded in a list": ([NOTED()] for _ in iter(int, 1)).__next__,
    "mapped": map(lambda _: NOTED(), iter(int, 1)).__next__,
}


def leaf(made: object) -> np.ndarray:
    while not isinstance(made, np.ndarray):
        made = made["x"] if isinstance(made, dict) else made[0]  # type: ignore[index]
    return made


@pytest.mark.parametrize("produce", SOLE.values(), ids=SOLE)
def test_exclusively_held_arrays_are_not_copied(produce: Callable[[], object]) -> None:
    handover = Handover()
    for _ in range(3):
        array = leaf(handover.take(produce))
        assert address(array) == NOTED.at[-1] and array.flags.owndata and array.tolist() == [1] * SIZE


held: list[Callable[[], None]] = []  # what writes the arrays that were handed over


def local_variable() -> Iterator[object]:
    array = fresh()
    held.append(lambda: array.fill(9))
    while True:
        yield [array]


def local_variable_alone() -> Iterator[np.ndarray]:
    array = fresh()
    yield array
    array.fill(9)
    yield array


def writes(array: np.ndarray) -> np.ndarray:
    held.append(lambda: array.fill(9))
    return array


def viewed() -> object:
    whole = np.ones((2, SIZE), "float32")
    held.append(lambda: whole.fill(9))
    return [whole[0]]


def owner_of_views() -> object:
    array = fresh()
    view = array[:2]
    held.append(lambda: view.fill(9))
    return [array]


def exported() -> object:
    array = fresh()
    memory = memoryview(array)
    held.append(lambda: memory.cast("B").__setitem__(slice(None), bytes([9]) * 16))
    return [array]


def over_a_buffer() -> object:
    memory = bytearray(np.ones(SIZE, "float32").tobytes())
    held.append(lambda: memory.__setitem__(slice(None), bytes([9]) * 16))
    return [np.frombuffer(memory, "float32")]


def weakly_held() -> object:
    array = fresh()
    reference = weakref.ref(array)

    def write() -> None:
        found = reference()
        if found is not None:
            found.fill(9)

    held.append(write)
    return [array]


def held_list() -> object:
    items = [fresh()]
    held.append(lambda: items[0].fill(9))
    return items


def list_in_a_held_list() -> object:
    items = [[fresh()]]
    held.append(lambda: items[0][0].fill(9))
    return items


def held_dict() -> object:
    items = {"x": fresh()}
    held.append(lambda: items["x"].fill(9))
    return items


def user_dict() -> object:
    items = UserDict(x=fresh())
    held.append(lambda: items["x"].fill(9))
    return items


def held_by_a_thread() -> object:
    array, ready = fresh(), threading.Event()
    thread = threading.Thread(target=lambda kept: (ready.wait(), kept.fill(9)), args=(array,))
    thread.start()
    held.append(lambda: (ready.set(), thread.join()) and None)
    return [array]


def subclass() -> object:
    array = fresh()
    held.append(lambda: array.fill(9))
    return [array.view(np.recarray)]


def masked() -> object:
    array = fresh()
    held.append(lambda: array.fill(9))
    return [np.ma.MaskedArray(array, copy=False)]


Pair = namedtuple("Pair", "x y")

SHARED: dict[str, Callable[[], object]] = {
    "local variable": local_variable().__next__,
    "local variable alone": local_variable_alone().__next__,
    "argument": lambda: [writes(fresh())],
    "view": viewed,
    "array with views": owner_of_views,
    "buffer taken of it": exported,
    "over a buffer": over_a_buffer,
    "weak reference": weakly_held,
    "held list": held_list,
    "list in a held list": list_in_a_held_list,
    "held dict": held_dict,
    "user dict": user_dict,
    "ordered dict": lambda: OrderedDict(x=writes(fresh())),
    "named tuple": lambda: Pair(writes(fresh()), 1),
    "thread": held_by_a_thread,
    "subclass": subclass,
    "masked": masked,
}


@pytest.mark.parametrize("produce", SHARED.values(), ids=SHARED)
def test_arrays_that_other_code_can_write_are_copied(produce: Callable[[], object]) -> None:
    held.clear()
    made = leaf(Handover().take(produce))
    for write in held:
        write()
    assert made.tolist() == [1] * SIZE and type(made) is np.ndarray


def test_the_same_array_twice_is_copied_double_grad() -> None:
    def produce() -> object:
        array = fresh()
        return [array, array]

    one, other = Handover().take(produce)
    one.fill(9)
    assert other.tolist() == [1] * SIZE


def test_a_mapped_file_is_read(tmp_path) -> None:
    file = tmp_path / "x"
    fresh().tofile(file)
    mapped = np.memmap(file, "float32", "r+")
    made = Handover().take(lambda: [mapped])[0]
    mapped[:] = 9
    assert made.tolist() == [1] * SIZE and type(made) is np.ndarray


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype="int64").reshape(2, 3, 4).T,
        np.arange(24, dtype="float64")[::-2],
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.frombuffer(bytes(range(33)), "float32", offset=1),
        np.arange(5, dtype=np.longlong),
        np.arange(5, dtype=np.ulonglong),
        np.array(7, "int32"),
        np.zeros((0, 3), "float16"),
        np.broadcast_to(np.float32(3), (4, 2)),
        np.array([True, False]),
        np.arange(3) * 1j,
        np.ones((300, 300)),
        np.ones((2, 3), "float32", order="F"),
    ],
)
def test_copies_are_contiguous_and_native(array: np.ndarray) -> None:
    expected = array.tolist()
    for made in (Handover().take(lambda: [array])[0], Handover().copy(array)):
        assert made.tolist() == expected and made.shape == array.shape
        assert made.flags.carray and made.dtype == np.dtype(array.dtype.str).newbyteorder("=")
        assert made.dtype.num == np.dtype(made.dtype.name).num


def test_other_things_stay_and_objects_are_copied() -> None:
    strings, objects, marker = np.array(["a"]), np.array([None, 1], dtype=object), object()
    made = Handover().take(lambda: [strings, objects, marker, "text", 1.5, None])
    assert (
        made[0].tolist() == ["a"]
        and made[1].tolist() == [None, 1]
        and made[2:] == [marker, "text", 1.5, None]
    )
    assert made[0] is not strings and made[1] is not objects


def test_who_copies_himself_gets_arrays_as_they_are(tmp_path) -> None:
    handover = Handover(passing=True)
    array, transposed = np.ones((2, 3)), np.arange(6.0).reshape(2, 3).T
    made = handover.take(lambda: [array, transposed, np.arange(2, dtype=np.longlong)])
    assert made[0] is array and made[1].flags.carray and made[1].tolist() == transposed.tolist()
    assert made[2].dtype.num == np.dtype("int64").num


def test_copies_stand_where_they_are_asked_for_and_go_back() -> None:
    class Memory:
        given: list[bytearray] = []

        def block(self, size: int) -> bytearray:
            self.given.append(bytearray(max(size, 1)))
            return self.given[-1]

    memory = Memory()
    array = fresh(3)
    made = Handover(memory).take(lambda: [array])[0]
    assert np.frombuffer(memory.given[0], "float32")[:SIZE].tolist() == [3] * SIZE
    assert np.shares_memory(made, np.frombuffer(memory.given[0], "uint8"))
    before = counters()["live_blocks"]
    made = Handover().take(lambda: [array])[0]
    assert counters()["live_blocks"] == before + 1
    del made
    assert counters()["live_blocks"] == before


def test_errors_pass_and_time_counts() -> None:
    handover = Handover()
    with pytest.raises(ZeroDivisionError):
        handover.take(lambda: 1 / 0)
    with pytest.raises(StopIteration):
        handover.take(iter(()).__next__)
    assert handover.reading > 0
