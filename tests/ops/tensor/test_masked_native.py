"""Elements chosen by conditions, as plans run them, and what stays of them."""

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite._ext.engine import KernelFailure

from .. import in_native

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("shape", ((0,), (1,), (17,), (3, 5), (1000,)), ids=str)
def test_where(shape):
    condition = RNG.integers(0, 2, shape).astype(bool)
    inputs = {"Condition": condition, "X": RNG.uniform(-1, 1, shape), "Y": RNG.uniform(-1, 1, shape)}
    in_native.check("where", inputs)
    for kind in ("int32", "int64"):
        numbers = {slot: RNG.integers(-9, 9, shape).astype(kind) for slot in ("X", "Y")}
        in_native.check("where", {"Condition": condition, **numbers}, grads=False)


def test_where_has_the_sequences_of_x():
    inputs = {"Condition": np.ones((3, 1), bool), "X": np.ones((3, 1)), "Y": np.ones((3, 1))}
    for x in ([], [[0, 1, 3]]):
        names = {slot: [slot] for slot in inputs}
        lods = {"Condition": [[0, 2, 3]], "X": x, "Y": [[0, 3]]}
        view = in_native.view_of(in_native.registry.find("where"), names, {"Out": ["out"]}, {}, inputs, lods)
        assert in_native.run(view, "baseline").lods == {"out": x}


def test_what_is_not_a_number_is_chosen_as_it_is():
    x = np.array([np.nan, np.inf, -0.0])
    inputs = {"Condition": np.array([True, False, True]), "X": x, "Y": -x}
    in_native.check("where", inputs)


@pytest.mark.parametrize("shape", ((0,), (1,), (17,), (3, 5)), ids=str)
def test_masked_select(shape):
    for mask in (RNG.integers(0, 2, shape).astype(bool), np.zeros(shape, bool), np.ones(shape, bool)):
        in_native.check("masked_select", {"X": RNG.uniform(-1, 1, shape), "Mask": mask})


def test_a_mask_that_chooses_another_number_is_noticed():
    with pytest.raises(KernelFailure):
        operands = [np.ones(2, "float32"), np.ones(3, bool), np.zeros(3, "float32")]
        kernels.call("masked_select_grad", operands, [3, 2, 4])
    with pytest.raises(KernelFailure):
        kernels.call("where", [np.ones(1, bool), *[np.zeros(3, "uint8") for _ in range(3)]], [1, 3])


@pytest.mark.parametrize(
    ("op_type", "slot"), [("where_index", "Condition"), ("unique", "X"), ("unique_with_counts", "X")]
)
def test_sizes_that_only_the_data_know(op_type, slot):
    for given in (np.array([True, False, True]), np.zeros(4, bool), np.zeros(0, bool)):
        made = given if op_type == "where_index" else given.astype("int64")
        in_native.check(op_type, {slot: made}, {}, {slot: [[[0, len(given)]]]})
