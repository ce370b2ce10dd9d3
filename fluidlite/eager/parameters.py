"""The initial values of eager parameters, the same as those of startup programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.dtypes import VarType
from ..executor.scope import Scope
from ..framework import Block, Program, Variable


def initial_value(
    fill: Callable[[Variable, Block], Any], shape: Sequence[int], dtype: VarType, name: str, seed: int = 0
) -> np.ndarray:
    """The array that initializer `fill` makes for a parameter.

    `seed`: the `random_seed` of the program that it counts as part of.
    """
    program = Program()
    program.random_seed = seed
    block = program.global_block()
    fill(block.create_var(name=name, shape=list(shape), dtype=dtype, persistable=True), block)
    scope = Scope()
    from ..executor.plan_cache import run_once  # what runs programs is loaded when one runs

    run_once(program, scope)
    holder = scope.find_var(name)
    assert holder is not None
    array = holder.get_tensor().array
    assert array is not None
    return np.ascontiguousarray(array).reshape(array.shape)
