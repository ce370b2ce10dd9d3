"""`+ - * / ** // %` and comparisons of Variables and eager tensors with each other, numbers and arrays.

`data/operators.json` was recorded from real Paddle 1.8.5. Its `pairs` are declared shapes of two operands of `+` with
the axis that is written, the declared shape of the result, and its shape where open sizes are 3 (null: refused). Its
`numbers` have the operators that `variable METHOD number` (or the other way round, with `r`) appends, and the first
elements of the result, or an error.
"""

import json
import operator
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid

pytestmark = pytest.mark.usefixtures("alone")

RECORDED = json.loads((Path(__file__).parent / "data" / "operators.json").read_text())
OPERANDS = {
    "2": 2, "-1": -1, "2.5": 2.5, "0.1": 0.1, "True": True, "np.float64(2.5)": np.float64(2.5),
    "np.float32(2.5)": np.float32(2.5), "np.float16(0.1)": np.float16(0.1), "np.int64(2)": np.int64(2),
    "np.int8(2)": np.int8(2), "np.bool(2)": np.bool_(True), "array(2,float32)": np.array(2, "float32"),
    "array([2],float32)": np.array([2], "float32"),
}  # fmt: skip


def filled(shape, dtype="float32", seed=0):
    base = (np.arange(np.prod(shape)) * 7 + seed * 3) % 11 + 1
    return (base * 0.75 if dtype == "float32" else base).astype(dtype).reshape(shape)


def lined_up(x, y, axis):
    """The two arrays so that they broadcast as Fluid has it."""
    if axis == 0 and x.ndim != y.ndim:
        most = max(x.ndim, y.ndim)
        x, y = (array.reshape(array.shape + (1,) * (most - array.ndim)) for array in (x, y))
    return x, y


@pytest.mark.parametrize("left", RECORDED["pairs"])
def test_how_operands_line_up(left):
    x = fluid.data("x", json.loads(left))
    feed = {"x": filled([3 if n < 0 else n for n in x.shape])}
    made = {}
    for right, (axis, shape, runs) in RECORDED["pairs"][left].items():
        y = fluid.data(f"y{right}", json.loads(right))
        z = x + y
        assert (z.block.ops[-1].attr("axis"), list(z.shape)) == (axis, shape), right
        feed[y.name] = filled([3 if n < 0 else n for n in y.shape], seed=1)
        if runs is not None:
            made[z] = np.add(*lined_up(feed["x"], feed[y.name], axis)), runs
        else:
            z.block._remove_op(len(z.block.ops) - 1)
    for found, (wanted, shape) in zip(
        fluid.Executor().run(feed=feed, fetch_list=[*made]), made.values(), strict=True
    ):
        assert list(found.shape) == shape
        assert np.array_equal(found, wanted)


def short(op):
    if op.type == "scale":
        return f"scale {np.float32(op.attr('scale')):g} {np.float32(op.attr('bias')):g}"
    if op.type.startswith("fill"):
        return f"{op.type} {list(op.attr('shape'))} {np.float32(op.attr('value')):g}"
    return f"{op.type} @{op.attr('axis')}"


def applied(method, var, number):
    name, *reflected = method.split()
    return getattr(operator, name)(*((number, var) if reflected else (var, number)))


def check(found, wanted):
    assert np.allclose(found.ravel()[:3].astype("float64"), wanted, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("dtype", RECORDED["numbers"])
def test_what_numbers_become_in_programs(dtype):
    x = fluid.data("x", [None, 3], dtype)
    block, made = x.block, {}
    for number, methods in RECORDED["numbers"][dtype].items():
        for method, recorded in methods.items():
            before = len(block.ops)
            if isinstance(recorded, str):
                with pytest.raises(AssertionError, match="cannot convert to integer"):
                    applied(method, x, OPERANDS[number])
                continue
            z = applied(method, x, OPERANDS[number])
            assert "; ".join(map(short, block.ops[before:])) == recorded[0], (number, method)
            made[z] = recorded[1]
    results = fluid.Executor().run(feed={"x": filled([3, 3], dtype)}, fetch_list=[*made])
    for found, wanted in zip(results, made.values(), strict=True):
        check(found, wanted)


@pytest.mark.parametrize("dtype", RECORDED["numbers"])
def test_numbers_with_eager_tensors(dtype):
    with fluid.dygraph.guard():
        x = fluid.dygraph.to_variable(filled([3, 3], dtype))
        for number, methods in RECORDED["numbers"][dtype].items():
            for method, recorded in methods.items():
                if isinstance(recorded, str):
                    with pytest.raises(AssertionError, match="cannot convert to integer"):
                        applied(method, x, OPERANDS[number])
                else:
                    check(applied(method, x, OPERANDS[number]).numpy(), recorded[1])


def test_a_number_on_the_left_of_open_sizes_fills_one_of_them():
    x = fluid.data("x", [-1, 3, -1])
    z = 2 / x
    filling = z.block.ops[0]
    assert (filling.type, filling.attr("shape"), filling.attr("input_dim_idx")) == (
        "fill_constant_batch_size_like", [-1, 3, 1], 0,
    )  # fmt: skip
    array = filled([2, 3, 4])
    (found,) = fluid.Executor().run(feed={"x": array}, fetch_list=[z])
    assert np.allclose(found, 2 / array)


def test_small_types_of_numpy_are_not_computed_with():
    x = fluid.data("x", [None])
    made = [x / np.float16(3), x / np.int8(3), x * np.float16(0.1)]
    found = fluid.Executor().run(feed={"x": np.ones(2, "float32")}, fetch_list=made)
    assert np.allclose([value[0] for value in found], [1 / 3, 1 / 3, 0.0999755859375], rtol=1e-6)
    with fluid.dygraph.guard():
        y = fluid.dygraph.to_variable(np.ones(2, "float32"))
        assert np.allclose([(y / n).numpy()[0] for n in (np.float16(3), np.int8(3))], 1 / 3, rtol=1e-6)
