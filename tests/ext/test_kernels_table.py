"""The table of kernels, and the rows of the documentation against it."""

import re
from pathlib import Path

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite._ext.engine import KernelFailure

from .native import blank, draw

PAGE = Path(__file__).parents[2] / "docs" / "kernels.md"
FAMILIES = {"OP", "OP_mid", "OP_dims", "OP_grad", "OP_mid_grad", "OP_dims_grad", "cast.SRC.DST"}


def test_every_instruction_set_has_every_kernel():
    tables = [kernels.table(target) for target in kernels.targets()]
    assert kernels.targets()[-1] == "baseline"
    for table in tables:
        assert table.keys() == tables[0].keys()
        assert all(table.values())


def test_kernels_of_double_are_compiled_for_one_instruction_set():
    tables = [kernels.table(target) for target in kernels.targets()]
    doubles = [
        name for name in tables[0] if name.endswith(".f64") and not name.startswith(("cast.", "chain."))
    ]
    assert {"gemm.f64", "relu.f64", "lstm_grad.f64", "reduce_max.f64"} <= set(doubles)
    assert all(table[name] == tables[-1][name] for table in tables for name in doubles)
    assert len(tables) == 1 or tables[0]["gemm.f32"] != tables[-1]["gemm.f32"]


def test_names_and_addresses():
    assert kernels.available("relu.f32") and not kernels.available("relu.f16")
    assert kernels.address("relu.f32") == kernels.table()["relu.f32"]
    with pytest.raises(KeyError, match="no kernel 'relu.f16'"):
        kernels.address("relu.f16")
    with pytest.raises(ValueError, match="cannot run 'sse9'"):
        kernels.table("sse9")


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not beside the tests")
def test_the_documentation_and_the_table_agree():
    text = PAGE.read_text()
    named = {word for part in re.findall(r"`([^`\n]+)`", text) for word in part.split()}
    stems = {re.sub(r"\.(f16|f32|f64|i32|i64|u8|b1)", "", name) for name in kernels.table()}
    assert {
        stem for stem in stems - {"cast"} if not {stem, re.sub("(_mid|_dims)?(_grad)?$", "", stem)} & named
    } == set()
    first_column = {
        word for part in re.findall(r"^\| `([^`\n]+)`", text, re.MULTILINE) for word in part.split()
    }
    optional = ("conv2d", "conv3d")  # where there is no oneDNN
    missing = {name for name in first_column if name not in FAMILIES and not name.startswith(optional)}
    assert missing - stems == set()


def test_operands_must_be_contiguous_arrays():
    with pytest.raises(ValueError, match="contiguous numpy arrays, got list"):
        kernels.call("relu.f32", [[1.0], blank(1)], [1])
    with pytest.raises(ValueError, match="contiguous"):
        kernels.call("relu.f32", [draw(4, 4)[:, ::2], blank(4, 2)], [8])


def test_failures_carry_their_details():
    with pytest.raises(KernelFailure) as info:
        kernels.call("one_hot.f32", [np.array([3]), blank(1, 3)], [1, 3, 0])
    assert info.value.err[:3] == (3, 0, 3)
