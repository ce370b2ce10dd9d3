"""A training program with a DynamicRNN and a StaticRNN that real Paddle 1.8.5 saved runs here as it did there."""

from pathlib import Path

import numpy as np
import pytest

from fluidlite.base.place import CPUPlace
from fluidlite.executor import Executor, Scope, create_lod_tensor, scope_guard
from fluidlite.framework import Program

DATA = Path(__file__).parent / "data" / "recurrent"


def numbers(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype("float32")


@pytest.fixture
def program():
    return Program.parse_from_string((DATA / "program").read_bytes())


def test_saved_by_paddle(program):
    """Values, and gradients that Fluid declares in the blocks of gradients, or not at all."""
    results = np.load(DATA / "results.npz")
    scope = Scope()
    for name, value in {"w": numbers(1, 3, 4), "u": numbers(2, 4, 4), "b": numbers(3, 4)}.items():
        scope.var(name).get_tensor().set(value, CPUPlace())
    feed = {
        "x": create_lod_tensor(numbers(4, 9, 3), [[2, 4, 3]], CPUPlace()),
        "start": numbers(5, 3, 4),
        "s": numbers(6, 4, 2, 3),
    }
    names = [name.replace("_grad", "@GRAD") for name in results.files]
    with scope_guard(scope):
        found = Executor(CPUPlace()).run(program, feed=feed, fetch_list=names, return_numpy=False)
    assert len(names) == 9
    for name, got, want in zip(names, found, results.values(), strict=True):
        np.testing.assert_allclose(np.array(got), want, rtol=1e-5, atol=1e-7, err_msg=name)
    assert found[names.index("x@GRAD")].recursive_sequence_lengths() == [[2, 4, 3]]


def test_saved(program):
    """A saved program is read unchanged."""
    parsed = Program.parse_from_string(program.desc.serialize_to_string())
    assert parsed.to_string() == program.to_string()
    assert [block.forward_block_idx for block in parsed.blocks] == [-1, -1, -1, 2, 1]
