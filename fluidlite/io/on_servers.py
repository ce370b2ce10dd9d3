"""Variables that parameter servers hold, all or in part: files have them whole, servers in parts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..base.storage.files import atomic_writer, make_folder
from ..executor.tensors.lod_tensor import LoDTensor
from ..executor.tensors.tensor_file import write_tensor
from ..framework import Program, Variable

_WITH_TRAINER_ID = ("recv", "send_barrier", "fetch_barrier", "distributed_lookup_table")
_REMOTE = ("RemotePrefetch", "Optimizer")


def held_elsewhere(program: Program) -> set[str]:
    """The variables of a trainer's program that only servers hold."""
    found = program._parameters_on_pservers.get_distributed_vars_by_vtypes(_REMOTE)
    return {var.origin.name for var in found}


def save_remote(program: Program, folder: str | os.PathLike[str]) -> None:
    """Fetch the variables of a trainer's program that only servers hold, and write each, whole, to a file."""
    groups = program._parameters_on_pservers.get_distributed_vars_by_vtypes(_REMOTE, groupby=True)
    from ..rpc.client import client  # few programs have servers

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
                from ..rpc.client import client

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
