"""Operators of trainers with parameter servers, and `listen_and_serv`, the server; `rpc/` has the messages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import to_numpy
from ...base.selected_rows import SelectedRows
from ...base.storage.files import atomic_writer
from ...framework import Operator
from ...rpc.client import Client, client
from .. import failures
from ..tensors.lod_tensor import LoDTensor
from .communicators import Asynchronous, GeoSgd, Parts, joined, running

if TYPE_CHECKING:
    from ..interpreter.frame import Frame, Run


_WITH_TRAINER_ID = ("send_barrier", "recv", "fetch_barrier", "distributed_lookup_table")
"""Operators with the attribute `trainer_id`; `send` lacks it in Fluid's programs."""


def _client(op: Operator) -> Client:
    """The client of the trainer whose program `op` is in."""
    if op.type in _WITH_TRAINER_ID:
        return client(op.attr("trainer_id"))
    others = [other for other in op.block.ops if other.type in _WITH_TRAINER_ID]
    return client(others[-1].attr("trainer_id") if others else op.attr("trainer_id"))


def _value(name: str, op: Operator, frame: Frame) -> Any:
    value = frame.get(name, op)
    if isinstance(value, SelectedRows):
        return SelectedRows(to_host(value.rows), to_host(value.values), value.height)
    return to_host(value)


def _put(run: Run, frame: Frame, name: str, value: Any) -> None:
    frame.put(name, run.xp.array(value))


def run_send(run: Run, op: Operator, frame: Frame) -> None:
    """Send X, whole or in the parts that attributes name, each to its server, without waiting."""
    trainer, endpoints, names = _client(op), op.attr("epmap"), op.inputs.get("X", [])
    sections, communicator = op.attr("sections"), running()
    if op.attr("use_send_handler") and not sections and len(op.attr("send_varnames")) == len(names):
        return _exchange_changes(op, frame)
    if isinstance(communicator, Asynchronous) and op.attr("send_varnames"):
        whole = Parts(endpoints, op.attr("send_varnames"), sections)
        return communicator.send(trainer, whole, _value(names[0], op, frame), op.attr("merge_add"))
    if not op.attr("use_send_handler"):  # a count of steps, for every server
        Parts(endpoints, names[:1], []).send(trainer, _value(names[0], op, frame))
    elif sections:
        Parts(endpoints, op.attr("send_varnames"), sections).send(trainer, _value(names[0], op, frame))
    else:
        for endpoint, name in zip(endpoints, names, strict=True):
            trainer.send(endpoint, {name: _value(name, op, frame)})


def _exchange_changes(op: Operator, frame: Frame) -> None:
    """Report the start of a GEO-SGD trainer, or a step with the rows that it looked up, to the communicator."""
    communicator = running()
    if not isinstance(communicator, GeoSgd):
        raise failures.refusal(
            op,
            "a program of GEO-SGD needs a running communicator: call fleet.init_worker() or Communicator.start()",
        )
    names, tables = op.inputs.get("X", []), op.attr("send_varnames")
    if names == ["param_init"]:
        communicator.start(_client(op), frame.context.scope)
        return
    looked_up: dict[str, list[np.ndarray]] = {}
    for name, table in zip(names, tables, strict=True):
        looked_up.setdefault(table, []).append(to_host(frame.get(name, op)))
    communicator.step(looked_up)


def run_send_barrier(run: Run, op: Operator, frame: Frame) -> None:
    _client(op).barrier(op.attr("endpoints"))


def run_recv(run: Run, op: Operator, frame: Frame) -> None:
    outs, parts, communicator = op.outputs.get("Out", []), op.attr("recv_varnames"), running()
    if isinstance(communicator, Asynchronous) and parts:
        newest = communicator.newest(outs[0])
        if newest is not None:
            _put(run, frame, outs[0], newest)
        return
    if op.attr("do_not_run") and communicator is None:
        return
    values = _client(op).get(op.attr("epmap"), parts or outs)
    if parts:
        values = [joined(values)]
    for name, value in zip(outs, values, strict=True):
        _put(run, frame, name, value)


def run_fetch_barrier(run: Run, op: Operator, frame: Frame) -> None:
    """Do nothing: a server does not update before this trainer has sent for the next round."""


def run_lookup(run: Run, op: Operator, frame: Frame) -> None:
    """Request the rows of all Ids from the servers, one request each."""
    arrays = [to_host(frame.get(name, op)) for name in op.inputs["Ids"]]
    sections, padding = op.attr("height_sections"), op.attr("padding_idx")
    flat = np.concatenate([ids.reshape(-1) for ids in arrays]).astype("int64", copy=False)
    ids, place = np.unique(flat, return_inverse=True)
    ends = np.cumsum(sections)
    kept = ids if padding < 0 else ids[ids != padding]
    if len(kept) and not 0 <= kept[0] <= kept[-1] < ends[-1]:
        raise failures.refusal(op, f"Ids must be from 0 to {ends[-1] - 1}, got {kept[0]} to {kept[-1]}")
    bounds = np.searchsorted(kept, [0, *ends])
    servers = [n for n in range(len(sections)) if bounds[n] < bounds[n + 1]]
    rows = _client(op).rows(
        [op.attr("endpoints")[n] for n in servers],
        [op.attr("table_names")[n] for n in servers],
        [kept[bounds[n] : bounds[n + 1]] - (ends[n] - sections[n]) for n in servers],
    )
    table = op.block._var_recursive(op.inputs["W"][0])
    values = np.zeros((len(ids), table.shape[1]), to_numpy(table.dtype))
    if rows:
        values[np.searchsorted(ids, kept)] = np.concatenate(rows)
    values, at = values[place.reshape(-1)], 0
    drops = op.attr("lookup_table_version") == "lookup_table"
    for name, array, source in zip(op.outputs["Outputs"], arrays, op.inputs["Ids"], strict=True):
        shape = array.shape[:-1] if drops else array.shape
        part = values[at : at + array.size].reshape(*shape, table.shape[1])
        frame.put(name, run.xp.asarray(part), frame.lod_of(source))
        at += array.size


def run_checkpoint_notify(run: Run, op: Operator, frame: Frame) -> None:
    client(op.attr("trainer_id")).save(op.attr("epmap"), op.attr("dir"), op.attr("lookup_table"))


def run_recv_save(run: Run, op: Operator, frame: Frame) -> None:
    """Write a variable whose parts are on servers to a file."""
    from ..tensors.tensor_file import write_tensor

    parts = client(op.attr("trainer_id")).get(op.attr("endpoints"), op.attr("remote_varnames"))
    whole = np.concatenate(parts).reshape(op.attr("shape"))
    path = op.attr("file_path")
    if not op.attr("overwrite") and os.path.exists(path):
        raise failures.refusal(op, f"{path} exists, and overwrite is False")
    with atomic_writer(path) as file:
        write_tensor(file, LoDTensor.wrap(whole))


def run_listen_and_serv(run: Run, op: Operator, frame: Frame) -> None:
    """Run a parameter server until all trainers are done."""
    run.serve(op)


FUNCTIONS = {
    "send": run_send,
    "recv": run_recv,
    "send_barrier": run_send_barrier,
    "fetch_barrier": run_fetch_barrier,
    "distributed_lookup_table": run_lookup,
    "checkpoint_notify": run_checkpoint_notify,
    "recv_save": run_recv_save,
    "listen_and_serv": run_listen_and_serv,
}
