"""Programs on sequences: results of plans are those of the interpreter for all lengths, and so are errors."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.executor.interpreter import interpreter as interpret

from ..engines import run_by

layers = fluid.layers
LENGTHS = [[2, 0, 4], [4, 2], [1, 3, 0, 2], [6, 2, 2, 2], [2, 0, 4], [0, 0], [1]]
WIDE = [[2, 0, 4], [4, 2], [6, 2, 2, 2], [0, 0], [8]]


@pytest.fixture
def interpreted(monkeypatch):
    """How many runs the interpreter made."""
    made = []
    begin = interpret.Interpreter.__init__

    def noted(self, *arguments, **more):
        if type(self) is interpret.Interpreter:
            made.append(self)
        begin(self, *arguments, **more)

    monkeypatch.setattr(interpret.Interpreter, "__init__", noted)
    return made


def tensor(array, *lengths):
    made = fluid.LoDTensor()
    made.set(array, fluid.CPUPlace())
    if lengths:
        made.set_recursive_sequence_lengths(lengths)
    return made


class Program:
    """`build` of rows with sequences, and the gradient of the sum of its squares."""

    def __init__(self, build):
        self.main = fluid.Program()
        with fluid.program_guard(self.main, fluid.Program()), fluid.unique_name.guard():
            x = fluid.data("x", [None, 4], "float32", lod_level=1)
            rows = layers.scale(x, 1.0)
            out = build(rows)
            fluid.backward.append_backward(layers.reduce_sum(layers.square(out)), parameter_list=[rows.name])
        self.fetches = [out, rows.name + "@GRAD"]
        self.executor, self.scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()

    def run(self, lengths, **more):
        rows = np.random.default_rng(sum(lengths)).uniform(-1, 1, (sum(lengths), 4)).astype("float32")
        feed = {"x": tensor(rows, lengths), **more}
        with fluid.scope_guard(self.scope):
            return self.executor.run(self.main, feed=feed, fetch_list=self.fetches, return_numpy=False)


def pooled(x):
    return layers.sequence_pool(x, "sum")


def padded(x, maxlen=None):
    return layers.sequence_pad(x, layers.fill_constant([1], "float32", 3.0), maxlen=maxlen)


def masked(x):
    batch, lengths = padded(x, 8)
    return layers.elementwise_mul(batch, layers.sequence_mask(lengths, maxlen=8, dtype="float32"), axis=0)


PLANNED = {
    "expand": (lambda x: layers.sequence_expand(pooled(x), x), LENGTHS),
    "expand_as": (lambda x: layers.sequence_expand_as(pooled(x), x), LENGTHS),
    "reshape": (lambda x: layers.sequence_reshape(x, 2), LENGTHS),
    "reshape to wider rows": (lambda x: pooled(layers.sequence_reshape(x, 8)), WIDE),
    "pad": (lambda x: padded(x, 8)[0], LENGTHS),
    "mask": (masked, LENGTHS),
    "lod_reset": (lambda x: pooled(layers.lod_reset(layers.square(x), y=x)), LENGTHS),
}
BY_DATA = {
    "expand": lambda x: layers.sequence_expand(x, x),
    "pad": lambda x: padded(x)[0],
    "unpad": lambda x: layers.sequence_unpad(*padded(x, 8)),
    "slice": lambda x: layers.sequence_slice(x, *ends(x)),
}


def ends(x):
    """Where the last row of each sequence begins, and 1; 0 and 0 for an empty one."""
    lengths = layers.reshape(padded(x, 8)[1], [-1, 1])
    count = layers.cast(layers.greater_than(lengths, layers.zeros_like(lengths)), "int64")
    return layers.elementwise_sub(lengths, count), count


def same(got, want):
    for mine, other in zip(got, want, strict=True):
        assert mine.lod() == other.lod()
        np.testing.assert_allclose(np.array(mine), np.array(other), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("what", [*PLANNED, *(f"{name} by data" for name in BY_DATA)])
def test_steps_with_other_lengths(what, interpreted):
    build, steps = PLANNED[what] if what in PLANNED else (BY_DATA[what.removesuffix(" by data")], LENGTHS)
    program, other = Program(build), Program(build)
    for lengths in steps:
        with run_by("interpret"):
            want = other.run(lengths)
        interpreted.clear()
        with run_by("plan"):
            got = program.run(lengths)
        same(got, want)
        if what in PLANNED:
            assert interpreted == [], f"{what} {lengths} was not planned"


def scattered(x):
    ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
    return layers.sequence_scatter(pooled(x), ids, layers.reduce_sum(x, dim=1, keep_dim=True))


def reset(x):
    return layers.lod_reset(x, y=fluid.data("y", [None], "int32"))


def repeated(x):
    return layers.elementwise_add(x, layers.sequence_expand_as(fluid.data("row", [None, 4]), x))


def cut(x):
    return layers.sequence_slice(x, fluid.data("at", [None, 1], "int64"), fluid.data("n", [None, 1], "int64"))


BAD = {
    "sequence_pad": (
        lambda x: padded(x, 4)[0], {}, [2, 5], {},
        "padded_length must be -1 or at least 5, the length of the longest sequence, got 4",
    ),
    "sequence_reshape": (
        lambda x: layers.sequence_reshape(x, 8), {}, [2, 3, 1], {},
        "sequence 1 has 12 elements, which rows of 8 do not divide",
    ),
    "sequence_scatter": (
        scattered, {"ids": tensor(np.array([[0], [1], [2], [3]]), [2, 2])}, [2, 2],
        {"ids": tensor(np.array([[0], [1], [4], [3]]), [2, 2])}, r"(Ids|ids) .*must be in \[0, 4\)[,;] got 4",
    ),
    "lod_reset": (
        reset, {"y": np.array([0, 3, 4], "int32")}, [2, 2], {"y": np.array([0, 3, 5], "int32")},
        "the offsets must go up from 0 to the 4 rows of X, got",
    ),
    "sequence_expand_as": (
        repeated, {"row": np.ones((2, 4), "float32")}, [4, 0, 2], {"row": np.ones((2, 4), "float32")},
        "X has 2 rows but Y has 3 sequences",
    ),
    "sequence_slice": (
        cut, {"at": np.ones((2, 1), "int64"), "n": np.ones((2, 1), "int64")}, [3, 2],
        {"at": np.ones((2, 1), "int64"), "n": np.full((2, 1), 2)},
        "sequence 1 has 2 rows, but Offset is 1 and Length 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("op_type", BAD)
def test_data_that_do_not_fit_are_found_in_a_later_step(op_type, engine):
    build, good, lengths, bad, message = BAD[op_type]
    program = Program(build)
    program.run([2, 2], **good)
    with pytest.raises(
        fluid.core.EnforceNotMet, match=f"(?s)operator {op_type}.*{message}.*test_sequence_plans.py"
    ):
        program.run(lengths, **bad)
    program.run([2, 2], **good)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: layers.sequence_reshape(x, 2),
        lambda x: padded(x, 8)[0],
        lambda x: padded(x)[0],
        lambda x: layers.sequence_expand(x, x),
        lambda x: layers.sequence_slice(x, *(layers.fill_constant([2, 1], "int64", 0) for _ in range(2))),
    ],
)
def test_rows_without_sequences_are_refused(build, engine):
    program = Program(build)
    with (
        pytest.raises(fluid.core.EnforceNotMet, match="has no LoD information"),
        fluid.scope_guard(program.scope),
    ):
        program.executor.run(program.main, feed={"x": np.ones((4, 4), "float32")}, fetch_list=program.fetches)


def test_batches_of_sequences_are_as_large_as_there_are_sequences():
    x = fluid.data("x", [None, 3], "float32", lod_level=1)
    like = fluid.layers.fill_constant_batch_size_like(x, [-1, 2], "float32", 1.5)
    exe = fluid.Executor()
    for lengths in ([2, 4], [1, 1, 1], [5]):
        rows = np.ones((sum(lengths), 3), "float32")
        tensor = fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())
        (got,) = exe.run(feed={"x": tensor}, fetch_list=[like])
        np.testing.assert_array_equal(got, np.full((len(lengths), 2), 1.5))
    (got,) = exe.run(feed={"x": np.ones((6, 3), "float32")}, fetch_list=[like])
    assert got.shape == (6, 2)
