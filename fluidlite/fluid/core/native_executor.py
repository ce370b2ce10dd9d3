"""`fluid.core.Executor`: runs a program whose `feed` and `fetch` operators use lists in a scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ... import executor
from ...base.errors import EnforceNotMet
from ...base.place import Place
from ...executor.lod_tensor import LoDTensor, LoDTensorArray
from ...executor.scope import Scope
from ...framework import Program
from ...framework.serialization.descs import ProgramDesc, VarDesc

__all__ = [
    "DeviceContext",
    "Executor",
    "ExecutorPrepareContext",
    "FetchList",
    "diff_tensor_shape",
    "get_fetch_variable",
    "set_feed_variable",
]


class FetchList(LoDTensorArray):
    """The tensors fetched into a variable, in the order of their columns (`fluid.core.FetchList`)."""

    def _move_to_list(self) -> list[LoDTensor]:
        """Take the tensors out of the list."""
        result = list(self)
        self.clear()
        return result


class DeviceContext:
    """The context of a place (`fluid.core.DeviceContext`)."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @classmethod
    def create(cls, place: Place) -> DeviceContext:
        return cls(place)


def set_feed_variable(scope: Scope, tensor: LoDTensor, var_name: str, index: int) -> None:
    """Set the tensor that a `feed` operator of column `index` reads."""
    var = scope.var(var_name)
    held = var.get()
    listed = held if isinstance(held, LoDTensorArray) else LoDTensorArray()
    while len(listed) <= index:
        listed.append(LoDTensor())
    listed[index] = tensor
    var.set(listed)


def get_fetch_variable(scope: Scope, var_name: str, index: int) -> LoDTensor:
    """The tensor that a `fetch` operator of column `index` wrote to a variable.

    Raises EnforceNotMet if the variable is missing, no FetchList, or too short.
    """
    found = scope.find_var(var_name)
    if found is None:
        raise EnforceNotMet(f"Variable {var_name} is not found in scope.")
    held = found.get()
    if not isinstance(held, FetchList):
        raise EnforceNotMet(f"variable {var_name} holds a {type(held).__name__}, not a FetchList")
    if not 0 <= index < len(held):
        raise EnforceNotMet(f"{len(held)} values were fetched into {var_name}, index {index} is out of range")
    tensor: LoDTensor = held[index]
    return tensor


class ExecutorPrepareContext:
    """A block of a program, ready to be run (`fluid.core.ExecutorPrepareContext`); see `Executor.run_prepared_ctx`."""

    def __init__(self, program: ProgramDesc, block_id: int) -> None:
        self._program, self._block_id = program, block_id


class Executor:
    """Runs the programs that descriptions show (`fluid.core.Executor`).

    `place`: where. Raises TypeError for anything else.
    """

    def __init__(self, place: Place) -> None:
        self._executor = executor.Executor(place)

    def run(
        self,
        program: ProgramDesc,
        scope: Scope,
        block_id: int,
        create_local_scope: bool,
        create_vars: bool,
        skip_vars: Sequence[str] = (),
    ) -> None:
        """Run the first block; the last three arguments have no effect.

        Raises EnforceNotMet for another block or a missing feed, and whatever running a program does.
        """
        _only_block_0(block_id)
        whole = program._shown
        feed, fetched = {}, dict[tuple[str, int], str]()
        for op in whole.global_block().ops:
            if op.type == "feed":
                feed[op.output("Out")[0]] = _fed(scope, op.input("X")[0], op.attr("col"))
            elif op.type == "fetch":
                fetched[op.output("Out")[0], op.attr("col")] = op.input("X")[0]
        values = self._executor.run(
            self._bare(program), feed, list(fetched.values()), scope=scope, return_numpy=False
        )
        lists: dict[str, FetchList] = {}
        for (name, _), value in sorted(zip(fetched, values, strict=True), key=lambda pair: pair[0]):
            lists.setdefault(name, FetchList()).append(value)
        for name, listed in lists.items():
            scope.var(name).set(listed)

    def prepare(
        self,
        program: ProgramDesc,
        block_id: int,
        skip_vars: Sequence[str] = (),
        force_disable_gc: bool = False,
    ) -> ExecutorPrepareContext:
        """The context for `run_prepared_ctx`; the last two arguments have no effect."""
        return ExecutorPrepareContext(program, block_id)

    def run_prepared_ctx(self, context: ExecutorPrepareContext, scope: Scope, *how: Any) -> None:
        """Run a prepared context, as `run` does.

        `how`: switches for scopes and variables, which have no effect; or a dict of tensors by the names of `feed`
        outputs, and a dict that is filled by the names of `fetch` inputs.
        """
        if how and isinstance(how[0], Mapping):
            given, wanted = how[0], how[1]
            whole = context._program._shown
            _only_block_0(context._block_id)
            names = [op.input("X")[0] for op in whole.global_block().ops if op.type == "fetch"]
            values = self._executor.run(
                self._bare(context._program), dict(given), names, scope=scope, return_numpy=False
            )
            wanted.update(zip(names, values, strict=True))
            return
        self.run(context._program, scope, context._block_id, True, True)

    def _bare(self, program: ProgramDesc) -> Program:
        """The program without operators that feed and fetch."""
        whole = program._shown
        if not any(op.type in ("feed", "fetch") for op in whole.global_block().ops):
            return whole
        bare = whole.clone()
        block = bare.global_block()
        block.ops = [op for op in block.ops if op.type not in ("feed", "fetch")]
        bare._changed()
        return bare

    def create_variables(self, program: ProgramDesc, scope: Scope, block_id: int) -> None:
        """Create the variables of a block in `scope`, without values."""
        for name in program._shown.block(block_id).vars:
            scope.var(name)

    def close(self) -> None:
        self._executor.close()


def _only_block_0(block_id: int) -> None:
    if block_id != 0:
        raise EnforceNotMet(f"core.Executor runs block 0, got {block_id}")


def _fed(scope: Scope, name: str, column: int) -> LoDTensor:
    found = scope.find_var(name)
    held = None if found is None else found.get()
    if not isinstance(held, LoDTensorArray) or column >= len(held) or held[column].array is None:
        raise EnforceNotMet(f"nothing was put into column {column} of the feed variable {name}")
    tensor: LoDTensor = held[column]
    return tensor


def diff_tensor_shape(tensor: LoDTensor, var: VarDesc, num_devices: int) -> list[int] | None:
    """The shape of `tensor` if it does not fit a variable that as many devices share; None if it does."""
    shape, declared = list(np.shape(tensor.array)), list(var.shape())
    if len(shape) == len(declared):
        first = shape[0] if not shape or declared[0] < 0 or num_devices == 1 else shape[0] // num_devices
        if all(want < 0 or have == want for have, want in zip([first, *shape[1:]], declared, strict=True)):
            return None
    return shape
