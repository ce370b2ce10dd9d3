"""Selection of the variables of a program to save, and their values (`fluid.io.is_parameter`, ...)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...base.errors import EnforceNotMet, TypeAssertion
from ...base.storage.files import atomic_writer, make_folder
from ...executor.lod_tensor import LoDTensor
from ...executor.scope import Scope, global_scope
from ...executor.tensor_files import write_tensor
from ...framework import Parameter, Program, Variable, default_main_program

_NOT_VALUES = frozenset({VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.READER, VarType.RAW})


def is_parameter(var: Any) -> bool:
    """Whether `var` is a Parameter (`fluid.io.is_parameter`)."""
    return isinstance(var, Parameter)


def is_persistable(var: Variable) -> bool:
    """Whether `var` outlives a step and holds a value: no reader, no holder of feeds
    (`fluid.io.is_persistable`).
    """
    return var.persistable and var.type not in _NOT_VALUES


def is_belong_to_optimizer(var: Variable) -> bool:
    """Whether `fluid.save` puts `var` into the `.pdopt` file: persistable but no Parameter."""
    return is_persistable(var) and not is_parameter(var)


def get_program_parameter(program: Program | None) -> list[Variable]:
    """The parameters of `program` (the default main program if None), as `fluid.io.get_program_parameter`."""
    return [var for var in as_program(program).list_vars() if is_parameter(var)]


def get_program_persistable_vars(program: Program | None) -> list[Variable]:
    """The persistable variables of `program`, as `fluid.io.get_program_persistable_vars`."""
    return [var for var in as_program(program).list_vars() if is_persistable(var)]


def get_parameter_value(para: Parameter, executor: Any) -> np.ndarray:
    """A copy of the value that parameter `para` has in the global scope (`fluid.io.get_parameter_value`).

    Raises TypeError if `para` is no Parameter, EnforceNotMet if it has no value yet.
    """
    if not is_parameter(para):
        raise TypeAssertion(f"get_parameter_value takes a Parameter, got {type(para).__name__}")
    return tensor_in(global_scope(), para.name).numpy()


def get_parameter_value_by_name(name: str, executor: Any, program: Program | None = None) -> np.ndarray:
    """A copy of the value of the parameter called `name` in `program`; see `get_parameter_value`."""
    var = as_program(program).global_block().var(name)
    return get_parameter_value(var, executor)  # type: ignore[arg-type]


def as_program(program: Any) -> Program:
    """`program` itself, the program that a CompiledProgram runs, or the default main program for None.

    Raises TypeError for anything else.
    """
    if program is None:
        return default_main_program()
    inner = getattr(program, "_program", program)
    if not isinstance(inner, Program):
        raise TypeError(
            "The type of input main_program is invalid, expected type is fluid.Program, but received "
            f"{type(program)}"
        )
    return inner


def tensor_in(scope: Scope, name: str) -> LoDTensor:
    """The tensor that variable `name` holds in `scope`; EnforceNotMet saying what to do if it has none."""
    found = scope.find_var(name)
    if found is None or not found.is_set():
        raise EnforceNotMet(
            f"variable {name!r} is not initialized: it has no value in the scope. Run the startup program "
            "(exe.run(fluid.default_startup_program())) or load the variable first"
        )
    return found.get_tensor()


def check_fits(var: Variable, array: np.ndarray, source: str) -> None:
    """Raise RuntimeError if `array`, found in `source`, cannot be the value of `var`: another element type, or another
    shape for a parameter.
    """
    wanted, found = list(var.shape), list(array.shape)
    if is_parameter(var) and (
        len(wanted) != len(found) or any(w not in (-1, f) for w, f in zip(wanted, found, strict=True))
    ):
        raise RuntimeError(
            f"Variable's shape does not match: the program requires {var.name!r} with shape {wanted}, while "
            f"{source} has it with shape {found}"
        )
    if array.dtype != to_numpy(var.dtype):
        raise RuntimeError(
            f"Variable's data type does not match: the program requires {var.name!r} of "
            f"{to_numpy(var.dtype)}, while "
            f"{source} has it with {array.dtype}"
        )


def put_all(scope: Scope, tensors: dict[str, LoDTensor]) -> None:
    """Make `tensors` the values of the variables of their names in `scope`, making those that are missing.

    Memory is kept where shape and dtype stay. Raises TypeError, before anything is changed, if a variable
    holds something other than a tensor.
    """
    for name in tensors:
        found = scope.find_var(name)
        if found is not None:
            found.get_tensor()
    for name, tensor in tensors.items():
        found = scope.find_var(name)
        holder = (found if found is not None else scope.var(name)).get_tensor()
        array = tensor.array
        assert array is not None
        if holder.array is not None and (holder.array.shape, holder.array.dtype) == (
            array.shape,
            array.dtype,
        ):
            holder.set(array)
        else:
            holder.replace(array)
        holder.set_lod(tensor.offsets)


_WITH_TRAINER_ID = ("recv", "send_barrier", "fetch_barrier", "distributed_lookup_table")
_REMOTE = ("RemotePrefetch", "Optimizer")


def held_elsewhere(program: Program) -> set[str]:
    """The variables of a trainer's program that only servers hold."""
    found = program._parameters_on_pservers.get_distributed_vars_by_vtypes(_REMOTE)
    return {var.origin.name for var in found}


def save_remote(program: Program, folder: str | os.PathLike[str]) -> None:
    """Fetch the variables of a trainer's program that only servers hold, and write each, whole, to a file."""
    groups = program._parameters_on_pservers.get_distributed_vars_by_vtypes(_REMOTE, groupby=True)
    from ...distributed.rpc.client import client  # few programs have servers

    line = client(_trainer_of(program))
    make_folder(folder)
    for name, parts in groups.items():
        taken = sorted(parts, key=lambda var: var.block_id) if parts[0].is_slice else parts[:1]
        arrays = line.get([var.endpoint for var in taken], [var.slice.name for var in taken])
        whole = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        with atomic_writer(Path(folder) / name) as file:
            write_tensor(file, LoDTensor.wrap(whole.reshape(parts[0].origin.shape)))


def looked_up(variables: Iterable[Variable]) -> dict[str, LoDTensor]:
    """The values of distributed lookup tables, fetched from the parameter servers, by the names of their variables."""
    result = {}
    for var in variables:
        for op in var.block.program.global_block().ops:
            if op.type == "distributed_lookup_table" and op.input("W") == [var.name]:
                from ...distributed.rpc.client import client

                parts = client(op.attr("trainer_id")).get(op.attr("endpoints"), op.attr("table_names"))
                result[var.name] = LoDTensor.wrap(np.concatenate(parts).reshape(var.shape))
                break
    return result


def _trainer_of(program: Program) -> int:
    """The number of the trainer that a program is for."""
    ids = [op.attr("trainer_id") for op in program.global_block().ops if op.type in _WITH_TRAINER_ID]
    return ids[0] if ids else int(os.environ.get("PADDLE_TRAINER_ID", "0"))


def on_this_server(program: Program) -> dict[str, tuple[str, int, int] | None]:
    """For each variable of a server's program its origin's name, first row and number of rows; None if it is whole."""
    result: dict[str, tuple[str, int, int] | None] = {}
    for var in program._parameters_on_pservers.distributed_vars:
        if var.endpoint == program._ps_endpoint:
            row = int(np.prod(var.slice.shape[1:], dtype=int))
            part = (var.origin.name, var.offset // row, var.slice.shape[0])
            result[var.slice.name] = part if var.is_slice else None
    return result


def is_server(program: Program) -> bool:
    """Whether a program of several machines is a server's."""
    return any(op.type == "listen_and_serv" for op in program.global_block().ops)
