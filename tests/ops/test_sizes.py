"""One plan serves every batch: operators at other sizes than their plans were made for, as the interpreter has them.

`scripts/fuzz_operators.py --sizes` tries as many cases as are wanted; see docs/fuzzing.md.
"""

import numpy as np
import pytest

from .fuzz import recipes, sizes
from .fuzz.cases import RECIPES, case, drawn

assert recipes.__all__

EMPTY_BATCH = {"batch_norm"}
"""Operators whose reference kernels make NaN of no rows, which the native ones do not."""
TIES = {"top_k", "argsort"}
"""Operators that may take equal elements in any order; repeated columns are equal."""

ONE_ROW = {"unique"}
"""Operators that find one row in some of the batches, which is another size than more of them are, as in feeds."""


def differences(found: sizes.Found, op: str) -> list[str]:
    return [text for text in found.differences if op not in EMPTY_BATCH or "not finite" not in text]


@pytest.mark.parametrize("op", sorted(RECIPES))
def test_one_plan_for_every_number_of_rows(op):
    found = sizes.check(drawn(op, 0))
    assert differences(found, op) == []
    assert found.plans <= 1 + (op in ONE_ROW), found.guards


@pytest.mark.parametrize("op", sorted(set(RECIPES) - TIES))
def test_other_sizes_of_every_axis_give_the_numbers_of_the_interpreter(op):
    assert differences(sizes.check(drawn(op, 1), sizes.by_every_axis), op) == []


def plain(*shape: int) -> np.ndarray:
    return np.random.default_rng(8).uniform(-1, 1, shape).astype("float32")


@pytest.mark.parametrize(
    "given",
    [
        case("reshape2", {"X": plain(3, 4, 2)}, {"shape": [-1, 8]}, outputs={"Out": 1, "XShape": 1}),
        case("reshape2", {"X": plain(3, 4, 2)}, {"shape": [0, 2, -1]}, outputs={"Out": 1, "XShape": 1}),
        case("reshape2", {"X": plain(3, 4, 2)}, {"shape": [4, -1]}, outputs={"Out": 1, "XShape": 1}),
        case("reshape", {"X": plain(3, 4, 2)}, {"shape": [-1]}),
        case("flatten2", {"X": plain(3, 4, 2)}, {"axis": 2}, outputs={"Out": 1, "XShape": 1}),
        case("transpose2", {"X": plain(3, 4, 2)}, {"axis": [2, 0, 1]}, outputs={"Out": 1, "XShape": 1}),
        case("expand", {"X": plain(3, 1, 2)}, {"expand_times": [2, 4, 1]}),
        case("concat", {"X": [plain(3, 4), plain(3, 2)]}, {"axis": 1}),
        case("concat", {"X": [plain(3, 4), plain(3, 4)]}, {"axis": 0}),
        case("split", {"X": plain(3, 6)}, {"axis": 1, "num": 3, "sections": []}, outputs={"Out": 3}),
        case("strided_slice", {"Input": plain(3, 6)}, {"axes": [0, 1], "starts": [-1, 0], "ends": [-100, 6],
             "strides": [-1, 2]}),
        case("slice", {"Input": plain(3, 6)}, {"axes": [0], "starts": [1], "ends": [1000]}),
        case("slice", {"Input": plain(3, 6)}, {"axes": [0], "starts": [-1], "ends": [1000]}),
        case("elementwise_add", {"X": plain(3, 4), "Y": plain(3, 1)}, {"axis": -1}),
        case("elementwise_mul", {"X": plain(3, 4), "Y": plain(3)}, {"axis": 0}),
        case("matmul", {"X": plain(3, 4, 2), "Y": plain(3, 4, 2)},
             {"transpose_X": False, "transpose_Y": True, "alpha": 0.5}),
        case("matmul", {"X": plain(3, 4, 2), "Y": plain(2, 5)},
             {"transpose_X": False, "transpose_Y": False, "alpha": 1.0}),
        case("matmul", {"X": plain(3, 4, 2), "Y": plain(4, 5)},
             {"transpose_X": True, "transpose_Y": False, "alpha": 1.0}),
        case("mean", {"X": plain(3, 4)}),
        case("reduce_mean", {"X": plain(3, 4)}, {"dim": [0], "keep_dim": False, "reduce_all": False}),
        case("top_k", {"X": plain(3, 6)}, {"k": 2}, outputs={"Out": 1, "Indices": 1}),
        case("stack", {"X": [plain(3, 4), plain(3, 4)]}, {"axis": 1}, outputs={"Y": 1}),
        case("kron", {"X": plain(3, 2), "Y": plain(3, 5)}),
    ],
    ids=lambda given: given.op,
)  # fmt: skip
def test_what_nets_are_made_of_stays_on_one_plan(given):
    found = sizes.check(given)
    assert found.differences == []
    assert found.plans == 1 and found.sizes >= 4, found.guards


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("padding", ["EXPLICIT", "SAME", "VALID"])
def test_images_of_other_sizes_stay_on_one_plan(padding, ceil_mode):
    attrs = {
        "pooling_type": "avg", "ksize": [3, 2], "strides": [2, 3], "paddings": [1, 0], "ceil_mode": ceil_mode,
        "padding_algorithm": padding, "exclusive": False, "global_pooling": False, "adaptive": False,
    }  # fmt: skip
    found = sizes.check(case("pool2d", {"X": plain(2, 3, 7, 9)}, attrs), sizes.by_every_axis)
    assert found.differences == []
    # With SAME there is padding for some sizes and none for others.
    assert found.plans <= 1 + (padding == "SAME") and found.sizes == len(sizes.GROWTH), found.guards


@pytest.mark.parametrize("number", range(20))
def test_programs_at_other_sizes(number):
    assert sizes.check_program(number).differences == []
