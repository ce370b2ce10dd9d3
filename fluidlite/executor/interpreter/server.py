"""The store of a parameter server: the variables of its scope, and the update blocks of `listen_and_serv`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import VarType, to_numpy
from ...base.errors import EnforceNotMet
from ...base.selected_rows import SelectedRows
from ...base.storage.files import atomic_files, atomic_writer, make_folder
from ...framework import Block, Operator, Variable
from ...framework.pruning import LR_COUNTER
from ..lod_tensor import LoDTensor
from ..tensor_files import write_tensor
from .frame import Frame

if TYPE_CHECKING:
    from .interpreter import Interpreter

_SYNC, _GEO = 0, 3


class ServedParameters:
    """The `rpc.server.Store` of a program with `listen_and_serv`, which runs its update blocks by `run`.

    `merges`: gradients of all trainers are kept and make one update; otherwise each makes one when it arrives.
    """

    def __init__(self, op: Operator, run: Interpreter) -> None:
        self._op, self._runner, self._scope, self._program = op, run, run.scope, op.block.program
        self._home: Block = self._program.global_block()
        self._of_gradient: dict[str, Block] = {}
        for text in filter(None, op.attr("grad_to_block_id")):
            name, _, index = text.rpartition(":")
            self._of_gradient[name] = self._program.block(int(index))
        self._each_round: list[Block] = list(self._of_gradient.values())
        if not self._of_gradient:  # one block for all that arrives, as layers.io.ListenAndServ builds it
            self._each_round = list(op.attr("optimize_blocks"))
        decay = op.attr("lr_decay_block_id")
        self._decay = self._program.block(decay) if decay >= 0 else None
        self._arriving: list[str] = list(op.inputs.get("X", []))
        self.merges = op.attr("distributed_mode") == _SYNC
        self._received: dict[str, Any] = {}
        self._rounds = 0
        self._tables: dict[str, str] = {}
        self._changed: dict[str, list[list[np.ndarray]]] = {}
        if op.attr("distributed_mode") == _GEO:
            self._arriving = list(self._of_gradient)
            self._tables = dict(text.split(":") for text in op.attr("sparse_grad_to_param"))
            self._changed = {table: [[] for _ in range(op.attr("Fanin"))] for table in self._tables.values()}
        if self._decay is not None and not self.merges:
            self._run([self._decay], {})  # gradients may come before any count of steps

    def take(self, name: str, value: Any, trainer: int) -> None:
        """See `Store`; EnforceNotMet for a gradient that this server does not have, or of another size."""
        if name.startswith(LR_COUNTER) and self._decay is not None:
            if self.merges:
                return  # rounds are counted here
            self._fits(name, value)
            held = self._variable(name).get_tensor()
            held.set(held.numpy() + np.asarray(value))
            self._run([self._decay], {})
            return
        if name not in self._arriving and f"{name}.trainer_{trainer}" in self._arriving:
            name = f"{name}.trainer_{trainer}"
        if name not in self._arriving:
            raise EnforceNotMet(f"gradient {name!r} is none of this server's: {', '.join(self._arriving)}")
        self._fits(name, value)
        if self.merges:
            self._received[name] = value
            return
        if name in self._tables:
            self._add_rows(self._tables[name], value)
            return
        whole = name.partition(".trainer_")[0]
        given = {name: value, "@TRAINER_ID@": np.array([trainer])}
        if whole != name:
            given.update(
                {
                    n: self._nothing(n)
                    for n in self._arriving
                    if n.startswith(whole + ".trainer_") and n != name
                }
            )
        self._run([self._of_gradient[whole]], given)

    def _add_rows(self, table: str, change: SelectedRows) -> None:
        """Add a trainer's change of distinct rows to a table, and record these for all trainers."""
        self._variable(table).get_tensor().add_rows(change.rows, change.values)
        for rows in self._changed[table]:
            rows.append(change.rows)

    def changes(self, table: str, trainer: int) -> SelectedRows:
        """See `Store`."""
        listed, self._changed[table][trainer] = self._changed[table][trainer], []
        rows = np.unique(np.concatenate(listed)) if listed else np.zeros(0, "int64")
        return SelectedRows(rows, self.rows(table, rows), self._home.var(table).shape[0])

    def _fits(self, name: str, value: Any) -> None:
        var = self._home.var(name)
        rows = isinstance(value, SelectedRows)
        kind, expected = value.values.dtype if rows else value.dtype, to_numpy(var.dtype)
        fits = kind == expected and tuple(value.shape) == tuple(var.shape)
        if not fits or rows != (var.type == VarType.SELECTED_ROWS):
            raise EnforceNotMet(
                f"gradient {name!r} must be {expected} of shape {list(var.shape)} and type {var.type}, got "
                f"{'SelectedRows' if rows else 'an array'} of {kind} and shape {list(value.shape)}"
            )

    def _nothing(self, name: str) -> Any:
        """The gradient of a trainer that has sent none."""
        var: Variable = self._home.var(name)
        dtype = to_numpy(var.dtype)
        if var.type == VarType.SELECTED_ROWS:
            return SelectedRows(np.zeros(0, "int64"), np.zeros((0, *var.shape[1:]), dtype), var.shape[0])
        return np.zeros(var.shape, dtype)

    def update(self) -> None:
        """See `Store`."""
        given = {name: self._received.pop(name, None) for name in self._arriving}
        given = {name: self._nothing(name) if value is None else value for name, value in given.items()}
        self._count_round()
        self._run(([] if self._decay is None else [self._decay]) + self._each_round, given)

    def _count_round(self) -> None:
        """Set the step counters of trainers so that their sum, which learning rates decay by, is the round's number."""
        counted = [name for name in self._home.vars if name.startswith(f"{LR_COUNTER}.trainer_")]
        for name in counted:
            held = self._variable(name).get_tensor()
            held.set(np.full_like(held.numpy(), self._rounds if name == counted[0] else 0))
        self._rounds += 1

    def _run(self, blocks: list[Block], given: dict[str, Any]) -> None:
        frame = Frame(self._home, context=self._runner.frame.context)
        for name, value in given.items():
            frame.keep(name, value)
        with np.errstate(all="ignore"):
            for block in blocks:
                self._runner.run_block(block, Frame(block, frame))

    def _variable(self, name: str) -> Any:
        found = self._scope.find_var(name)
        if found is None or not found.is_set():
            raise KeyError(name)
        return found

    def get(self, name: str, trainer: int) -> Any:
        """See `Store`."""
        value = np.array(to_host(self._variable(name).get_tensor().array))
        backup = f"{name}.trainer_{trainer}_bak"
        if self._op.attr("dc_asgd") and self._home.has_var(backup):
            (self._scope.find_var(backup) or self._scope.var(backup)).get_tensor().set(value)
        return value

    def rows(self, table: str, ids: np.ndarray) -> np.ndarray:
        """See `Store`; EnforceNotMet for ids that the table does not have."""
        held = to_host(self._variable(table).get_tensor().array)
        if ids.dtype != np.int64:
            raise EnforceNotMet(f"ids of rows of {table!r} must be int64, got {ids.dtype}")
        if ids.size and not 0 <= ids.min() <= ids.max() < len(held):
            raise EnforceNotMet(
                f"{table!r} has the rows 0 to {len(held) - 1}, asked for {ids.min()} to {ids.max()}"
            )
        return held[ids]

    def save(self, folder: str, table: str) -> None:
        """See `Store`: each parameter, or each part of `table`, in a file of its name."""
        target = Path(folder)
        make_folder(target)
        with atomic_files():
            for name, var in self._home.vars.items():
                mine = var.persistable and "@GRAD" not in name and self._scope.find_var(name) is not None
                if mine and (not table or name == table or name.startswith(table + ".block")):
                    with atomic_writer(target / name.replace(os.sep, "_")) as file:
                        array = to_host(self._variable(name).get_tensor().array)
                        write_tensor(file, LoDTensor.wrap(np.array(array)))


def run_listen_and_serv(run: Interpreter, op: Operator, frame: Frame) -> None:
    """Be a parameter server until all trainers are done."""
    from ...distributed.rpc.server import ParameterServer

    store = ServedParameters(op, run)
    ParameterServer(op.attr("endpoint"), op.attr("Fanin"), store, store.merges).run()
