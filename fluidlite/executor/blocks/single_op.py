"""`Alone`: an operator that is run on its own again and again, by its reference kernel; and what is kept of results."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import FLOATS, VarType, to_numpy
from ...base.lod import Lod
from ...base.rank_table import RankTable
from ...base.selected_rows import SelectedRows
from ...base.tensor_array import TensorArray
from ...framework import Operator
from ...ops.registry import LodArray
from .. import failures
from .environment import Environment

_NO_ARRAYS = frozenset({TensorArray, RankTable})


class Alone:
    """What `ProgramRun.run_op` finds out about an operator each time, found out once, for the usual case.

    That is: all inputs are values of the environment, of the types that the program declares, none of them
    SelectedRows, and only operators made for sequences get some.
    """

    __slots__ = ("_attrs", "_inputs", "_lods", "_outputs", "_single", "_updates", "op")

    def __init__(self, op: Operator) -> None:
        definition, block = op.definition, op.block
        self.op = op
        slots, words = definition._takes
        updates = set(definition.updates)
        self._attrs = {word: op.attrs.get(name, definition.attrs[name]) for name, word in words}
        taken = {name: (word, many) for name, word, many in slots}
        # Inputs that the kernel does not take are looked at too: their sequences count.
        self._inputs = [
            (
                slot.name,
                *taken.get(slot.name, ("", True)),
                [(n, declared_type(op, n)) for n in op.inputs[slot.name]],
            )
            for slot in definition.input_slots
            if op.inputs.get(slot.name)
        ]
        self._attrs.update(
            (word, [] if many else None)
            for name, (word, many) in taken.items()
            if not op.inputs.get(name) and name not in updates
        )
        self._updates = [
            (*taken[name], list(op.outputs.get(name) or ())) for name in definition.updates if name in taken
        ]
        self._lods = definition.lod
        self._single = len(definition.output_slots) == 1
        self._outputs = [
            (
                slot.many,
                [
                    (name, name in block.vars and not block.vars[name].persistable, *kept_as(op, name))
                    for name in op.outputs.get(slot.name) or ()
                ],
            )
            for slot in definition.output_slots
        ]

    def run(self, environment: Environment) -> bool:
        """Run the operator; False, with nothing done, if this is not the usual case."""
        arguments = dict(self._attrs)
        lods: dict[str, list[Any]] = {}
        for slot, word, many, names in self._inputs:
            values, levels = [], []
            for name, dtype in names:
                here: Environment | None = environment
                while here is not None and name not in here.values:
                    here = here.parent
                if here is None:
                    return False
                value = here.values[name]
                if type(value) is np.ndarray:
                    if dtype is not None and value.dtype != dtype:
                        return False
                elif type(value) not in _NO_ARRAYS:
                    return False
                lod = here.lods.get(name, ())
                if lod and not self._lods:
                    return False
                values.append(value)
                levels.append(lod)
            lods[slot] = levels
            if word:
                arguments[word] = values if many else values[0]
        for word, many, outs in self._updates:
            present = [environment.find(name) for name in outs]
            if any(type(value) is SelectedRows for value in present):
                return False
            arguments[word] = present if many else present[0] if present else None
        if self._lods:
            arguments["lod"] = lods
        op = self.op
        kernel = op.definition.direct or op.definition.kernel
        assert kernel is not None
        try:
            results = kernel(np, **arguments)
        except Exception as error:
            failures.raise_in_operator(op, error)
        for (several, targets), result in zip(
            self._outputs, (results,) if self._single else results, strict=True
        ):
            for (name, own, tensor, precision), value in zip(
                targets, result if several else (result,), strict=False
            ):
                if value is not None:
                    store(environment, name, own, tensor, precision, value)
        return True


def declared_type(op: Operator, name: str) -> np.dtype | None:
    """The type of elements that the program declares for a variable of `op`."""
    var = op.block._find_var_recursive(name)
    return None if var is None or var._dtype is None else to_numpy(var._dtype)


def kept_as(op: Operator, name: str) -> tuple[bool, np.dtype | None]:
    """Whether a result of `op` is a tensor, and its precision, which it does not exceed: for `fitted`."""
    var = op.block._find_var_recursive(name)
    if var is None or var.type != VarType.LOD_TENSOR:
        return False, None
    return True, to_numpy(var._dtype) if var._dtype in FLOATS else None


def fitted(
    value: Any, tensor: bool, precision: np.dtype | None, xp: Any = np, exact: np.dtype | None = None
) -> Any:
    """A result as an array: of type `exact`, or what the kernel made, in the declared precision if that is less.

    Other types that are declared and not computed make no difference, as in Fluid.
    """
    if value is None or not tensor or isinstance(value, (SelectedRows, TensorArray)):
        return value
    made = xp.asarray(value, dtype=exact)
    if (
        exact is None
        and precision is not None
        and made.dtype.kind == "f"
        and made.itemsize > precision.itemsize
    ):
        return made.astype(precision)
    return made


def store(
    environment: Environment,
    name: str,
    own: bool,
    tensor: bool,
    precision: np.dtype | None,
    value: Any,
    lod: Lod = (),
    xp: Any = np,
    exact: np.dtype | None = None,
) -> None:
    """Put a result where it belongs; `own`: the environment itself keeps it. For the rest see `fitted`."""
    if type(value) is LodArray:
        value, lod = value.array, value.lod
    value = fitted(value, tensor, precision, xp, exact)
    if own:
        environment.keep(name, value, lod)
    else:
        environment.put(name, value, lod)
