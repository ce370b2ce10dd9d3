"""Arrays of all sorts through every door: what arrives must be what was handed over, whatever becomes of its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import fluidlite as fluid

PLACE = fluid.CPUPlace()
DTYPES = (
    "float32", "float64", "int32", "int64", "int16", "int8", "uint8", "bool", "float16", "q", ">f4", ">i8",
)  # fmt: skip
FLUID = ("float32", "float64", "int32", "int64", "int16", "int8", "uint8", "bool", "float16")
LAYOUTS = (
    "plain", "fortran", "strided", "reversed", "slice", "unaligned", "frozen", "subclass", "mapped", "packed",
)  # fmt: skip
GARBAGE = 77


def memory(layout: str, shape: tuple[int, ...], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """(what is handed over, what writes the same memory)."""
    kind = np.dtype(dtype)
    if layout == "fortran":
        made = np.zeros(shape, kind, order="F")
    elif layout == "strided":
        made = np.zeros((*shape, 3), kind)[..., 1]
    elif layout == "reversed":
        made = np.zeros(shape, kind)[tuple(slice(None, None, -1) for _ in shape)]
    elif layout == "slice":
        made = np.zeros((3, *shape), kind)[1]
    elif layout in ("unaligned", "mapped"):
        count = int(np.prod(shape))
        start = int(layout == "unaligned")
        made = np.frombuffer(bytearray(count * kind.itemsize + start or 1), kind, count, start).reshape(shape)
    elif layout == "packed":
        made = np.zeros(shape, np.dtype([("a", "u1"), ("b", kind)]))["b"]
    else:
        made = np.zeros(shape, kind)
    made = made[...]
    handed = made.view()
    if layout == "frozen":
        handed.flags.writeable = False
    elif layout == "subclass":
        handed = made.view(np.recarray)
    return handed, made


@dataclass
class Case:
    """Batches of one shape and dtype in a few pieces of memory that are filled in turn."""

    dtype: str
    layout: str
    contents: list[np.ndarray]
    arrays_in_use: int

    def __post_init__(self) -> None:
        self.memory = [memory(self.layout, self.shape, self.dtype) for _ in range(self.arrays_in_use)]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.contents[0].shape

    @property
    def native(self) -> str:
        return np.dtype(self.dtype).newbyteorder("=").name

    def filled(self) -> Iterator[np.ndarray]:
        """The batches one after the other, each overwritten later on."""
        for number, content in enumerate(self.contents):
            handed, writes = self.memory[number % self.arrays_in_use]
            writes[...] = content
            yield handed
        self.spoil()

    def spoil(self) -> None:
        """Overwrite all memory."""
        for _, writes in self.memory:
            writes[...] = GARBAGE


@st.composite
def cases(draw: st.DrawFn, dtypes: tuple[str, ...] = DTYPES) -> Case:
    dtype, layout = draw(st.sampled_from(dtypes)), draw(st.sampled_from(LAYOUTS))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    contents = [
        np.random.default_rng(draw(st.integers(0, 99))).integers(0, 50, shape).astype(dtype)
        for _ in range(draw(st.integers(1, 6)))
    ]
    return Case(dtype, layout, contents, draw(st.integers(1, 4)))


def variable(case: Case, name: str = "x", batch: bool = False) -> Any:
    shape = [-1, *case.shape[1:]] if batch else list(case.shape)
    return fluid.layers.data(name, shape, append_batch_size=False, dtype=case.native)


def copied(x: Any) -> Any:
    """A copy of `x` by an operator, for types that Fluid's `assign` takes; else `x`."""
    kind = fluid.data_feeder.convert_dtype(x.dtype)
    return x if kind in ("int16", "int8", "uint8") else fluid.layers.assign(x)


def each(case: Case, door: Callable[[np.ndarray], Any]) -> list[Any]:
    """The result of `door` for each batch, whose memory is overwritten before the result is checked."""
    return [door(array) for array in case.filled()]


def tensor_set(case: Case) -> list[Any]:
    def door(array: np.ndarray) -> Any:
        tensor = fluid.LoDTensor()
        tensor.set(array, PLACE)
        return tensor

    return each(case, door)


def tensor_set_twice(case: Case) -> list[Any]:
    tensor = fluid.LoDTensor()

    def door(array: np.ndarray) -> Any:
        tensor.set(array, PLACE)
        return np.array(tensor)

    return each(case, door)


def create_lod_tensor(case: Case) -> list[Any]:
    return each(case, lambda array: fluid.create_lod_tensor(array, [[len(array)]], PLACE))


def to_variable(case: Case) -> list[Any]:
    with fluid.dygraph.guard():
        return each(case, lambda array: fluid.dygraph.to_variable(array, zero_copy=False))


def set_value(case: Case) -> list[Any]:
    with fluid.dygraph.guard():
        tensor = fluid.dygraph.to_variable(np.zeros(case.shape, case.native))

        def door(array: np.ndarray) -> Any:
            tensor.set_value(array)
            return tensor.numpy()

        return each(case, door)


def eager_results(case: Case) -> list[Any]:
    with fluid.dygraph.guard():
        return each(case, lambda array: fluid.layers.assign(fluid.dygraph.to_variable(array)))


def detached(case: Case) -> list[Any]:
    with fluid.dygraph.guard():
        return each(case, lambda array: fluid.dygraph.to_variable(array).detach())


def fed(
    case: Case, return_numpy: bool = True, wrap: Callable[[np.ndarray], Any] = lambda array: array
) -> list[Any]:
    x = variable(case)
    y = copied(x)
    exe = fluid.Executor(PLACE)
    got = each(
        case, lambda array: exe.run(feed={"x": wrap(array)}, fetch_list=[x, y], return_numpy=return_numpy)
    )
    if not all(np.array_equal(np.array(first), np.array(second)) for first, second in got):
        raise LookupError("a fed variable is not what was computed from it")
    return [second for _, second in got]


def fed_tensors(case: Case) -> list[Any]:
    def wrap(array: np.ndarray) -> Any:
        tensor = fluid.LoDTensor()
        tensor.set(array, PLACE)
        return tensor

    return fed(case, False, wrap)


def fed_by_two(case: Case) -> list[Any]:
    program = fluid.default_main_program()
    x = variable(case, batch=True)
    y = fluid.layers.scale(x, 1.0)
    compiled = fluid.CompiledProgram(program).with_data_parallel(places=fluid.cpu_places(2))
    exe = fluid.Executor(PLACE)
    return each(case, lambda array: exe.run(compiled, feed={"x": array}, fetch_list=[y])[0])


def data_feeder(case: Case) -> list[Any]:
    feeder = fluid.DataFeeder([variable(case, batch=True)], PLACE)
    return each(case, lambda array: feeder.feed([(row,) for row in array])["x"])


def data_feeder_lists(case: Case) -> list[Any]:
    feeder = fluid.DataFeeder([variable(case, batch=True)], PLACE)
    return each(case, lambda array: feeder.feed([(row.tolist(),) for row in array])["x"])


def loader(case: Case, kind: str, process: bool = False, iterable: bool = True) -> list[Any]:
    x = variable(case, batch=case.shape != ())
    made = fluid.io.DataLoader.from_generator([x], capacity=8, iterable=iterable, use_multiprocess=process)
    set_generator(made, case, kind, [PLACE] if iterable else [])
    if iterable:
        return [feed["x"] for (feed,) in list(made)]
    y = copied(x)
    exe = fluid.Executor(PLACE)
    made.start()
    got = [exe.run(fetch_list=[y])[0] for _ in case.contents]
    made.reset()
    return got


def set_generator(made: Any, case: Case, kind: str, places: list[Any]) -> None:
    def samples() -> Iterator[Any]:
        for array in case.filled():
            for row in array:
                yield (row,)

    if kind == "sample":
        made.set_sample_generator(samples, len(case.contents[0]), True, *places)
    elif kind == "list":
        made.set_sample_list_generator(
            lambda: ([(row,) for row in array] for array in case.filled()), *places
        )
    elif kind == "batch":
        made.set_batch_generator(lambda: ([array] for array in case.filled()), *places)
    elif kind == "one list":
        together: list[Any] = [None]

        def batches() -> Iterator[Any]:
            for array in case.filled():
                together[0] = array
                yield together

        made.set_batch_generator(batches, *places)
    else:
        made.set_batch_generator(lambda: ((array.copy(),) for array in case.filled()), *places)


def eager_loader(case: Case, kind: str, process: bool = False) -> list[Any]:
    with fluid.dygraph.guard():
        made = fluid.io.DataLoader.from_generator(capacity=8, use_multiprocess=process)
        set_generator(made, case, kind, [PLACE])
        return [batch[0] for batch in list(made)]


class Rows(fluid.io.Dataset):
    """All rows of the batches, in memory that is used again."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.whole = memory(case.layout, case.shape, case.dtype)

    def __len__(self) -> int:
        return len(self.case.contents) * self.case.shape[0]

    def __getitem__(self, number: int) -> Any:
        batch, row = divmod(number, self.case.shape[0])
        handed, writes = self.whole
        writes[row] = self.case.contents[batch][row]
        return (handed[row],)

    def collate(self, samples: Any) -> Any:
        return [self.whole[0]]


def dataset(case: Case, workers: int, custom: bool) -> list[Any]:
    rows = Rows(case)
    x = variable(case, batch=True)
    made = fluid.io.DataLoader(
        rows,
        feed_list=[x],
        places=PLACE,
        batch_size=case.shape[0],
        num_workers=workers,
        collate_fn=rows.collate if custom else None,
    )
    return [feed["x"] for (feed,) in list(made)]


DOORS: dict[str, Callable[[Case], list[Any]]] = {
    "LoDTensor.set": tensor_set,
    "LoDTensor.set again": tensor_set_twice,
    "create_lod_tensor": create_lod_tensor,
    "to_variable": to_variable,
    "set_value": set_value,
    "eager results": eager_results,
    "detach": detached,
    "feed": fed,
    "feed, fetched as tensors": lambda case: fed(case, False),
    "feed of LoDTensors": fed_tensors,
    "feed of two places": fed_by_two,
    "DataFeeder": data_feeder,
    "DataFeeder, lists": data_feeder_lists,
}
for _kind in ("sample", "list", "batch", "one list", "fresh"):
    DOORS[f"loader, {_kind}"] = lambda case, kind=_kind: loader(case, kind)  # type: ignore[misc]
    DOORS[f"loader for a program, {_kind}"] = lambda case, kind=_kind: loader(case, kind, iterable=False)  # type: ignore[misc]
    DOORS[f"eager loader, {_kind}"] = lambda case, kind=_kind: eager_loader(case, kind)  # type: ignore[misc]
    DOORS[f"process, {_kind}"] = lambda case, kind=_kind: loader(case, kind, True)  # type: ignore[misc]
    DOORS[f"eager process, {_kind}"] = lambda case, kind=_kind: eager_loader(case, kind, True)  # type: ignore[misc]
for _workers in (0, 2):
    for _custom in (False, True):
        DOORS[f"dataset, {_workers} workers, {'its' if _custom else 'no'} collate_fn"] = (  # type: ignore[misc]
            lambda case, workers=_workers, custom=_custom: dataset(case, workers, custom)
        )
SLOW = tuple(name for name in DOORS if "process" in name or "2 workers" in name)


def by_rows(name: str) -> bool:
    """Whether this door takes batches apart, so that they need rows."""
    return (
        any(word in name for word in ("sample", "list", "DataFeeder", "dataset", "lod", "two"))
        and "one list" not in name
    )


def go_through(name: str, case: Case) -> bool:
    """Send the batches of a case through a door and compare; False if it refused them, which must then be allowed."""
    if by_rows(name) and (len(case.shape) == 0 or case.shape[0] == 0):
        return False
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        try:
            got = DOORS[name](case)
        except (AssertionError, TypeError, ValueError, RuntimeError, fluid.core.EnforceNotMet):
            if case.dtype in FLUID:
                raise
            return False
        case.spoil()
        arrays = [np.array(item.numpy() if hasattr(item, "numpy") else item) for item in got]
    assert len(arrays) == len(case.contents), f"{len(case.contents)} batches went in, {len(arrays)} came out"
    for number, (array, content) in enumerate(zip(arrays, case.contents, strict=True)):
        assert array.shape == content.shape or (content.shape == () and array.shape == (1,)), (
            number,
            array.shape,
        )
        assert array.dtype == case.native, (number, array.dtype)
        assert np.array_equal(array.reshape(content.shape), content), (
            f"batch {number}: {array}, not {content}"
        )
    return True
