"""A small program with the variables of fc + Adam, as Paddle 1.8.5 names them, and values for them."""

from collections.abc import Iterator

import numpy as np
import pytest

import fluidlite.ops  # noqa: F401  (declares the operators)
from fluidlite.executor.scope import Scope, global_scope, scope_guard
from fluidlite.framework import Program

PARAMETERS = {"fc_0.w_0": [4, 3], "fc_0.b_0": [3], "fc_1.w_0": [3, 2], "fc_1.b_0": [2]}


@pytest.fixture
def program() -> Program:
    """x -> fc(3, tanh) -> fc(2), with Adam's variables."""
    program = Program()
    block = program.global_block()
    block.create_var(name="x", shape=[-1, 4], dtype="float32", need_check_feed=True, is_data=True)
    for name, shape in PARAMETERS.items():
        block.create_parameter(name=name, shape=shape, dtype="float32")
    for name, shape in PARAMETERS.items():
        for suffix, size in (
            ("moment1", shape),
            ("moment2", shape),
            ("beta1_pow_acc", [1]),
            ("beta2_pow_acc", [1]),
        ):
            block.create_var(name=f"{name}_{suffix}_0", shape=size, dtype="float32", persistable=True)
    block.create_var(name="learning_rate_0", shape=[1], dtype="float32", persistable=True)
    widths = {"fc_0.tmp_0": 3, "fc_0.tmp_1": 3, "fc_0.tmp_2": 3, "fc_1.tmp_0": 2, "fc_1.tmp_1": 2}
    for name, width in widths.items():
        block.create_var(name=name, shape=[-1, width], dtype="float32")
    ops = [
        ("mul", ["x", "fc_0.w_0"], "fc_0.tmp_0"),
        ("elementwise_add", ["fc_0.tmp_0", "fc_0.b_0"], "fc_0.tmp_1"),
        ("tanh", ["fc_0.tmp_1"], "fc_0.tmp_2"),
        ("mul", ["fc_0.tmp_2", "fc_1.w_0"], "fc_1.tmp_0"),
        ("elementwise_add", ["fc_1.tmp_0", "fc_1.b_0"], "fc_1.tmp_1"),
    ]
    for kind, inputs, out in ops:
        attrs = {"axis": 1} if kind == "elementwise_add" else {}
        slots = dict(zip("XY", inputs, strict=False))
        block.append_op(type=kind, inputs=slots, outputs={"Out": out}, attrs=attrs)
    return program


@pytest.fixture
def scope() -> Iterator[Scope]:
    """A global scope of the test's own, empty."""
    with scope_guard(Scope()):
        yield global_scope()


class Values:
    """Random values of the persistable variables of a program in a scope."""

    def __init__(self, program: Program, scope: Scope) -> None:
        self.scope = scope
        rng = np.random.default_rng(0)
        self.arrays: dict[str, np.ndarray] = {}
        for var in program.list_vars():
            if var.persistable:
                self.arrays[var.name] = rng.uniform(-1, 1, var.shape).astype("float32")
        self.names = list(self.arrays)
        self.reset()

    def reset(self) -> None:
        for name, array in self.arrays.items():
            self.scope.var(name).get_tensor().set(array)

    def clear(self) -> None:
        """Set every variable to zeros."""
        for name, array in self.arrays.items():
            self.scope.find_var(name).get_tensor().set(np.zeros_like(array))

    def differing(self) -> list[str]:
        """The variables that do not have now what they were given."""
        return [
            name
            for name, array in self.arrays.items()
            if not np.array_equal(np.array(self.scope.find_var(name).get_tensor()), array)
        ]


@pytest.fixture
def values(program: Program, scope: Scope) -> Values:
    """Every persistable variable of `program` set to something in `scope`."""
    return Values(program, scope)
