"""Trainers with parameter servers: their operators, and the communicators that run in the background; `rpc/` has the
messages.

`Synchronous` leaves sending and receiving to the operators. `Asynchronous` sends gradients in a thread of its own,
several of one variable at once, and keeps the newest parameters for the next step. `GeoSgd` is for trainers that
update their own parameters: it sends the changes since the last exchange, and applies those of other trainers.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backend import to_host
from ..base.dtypes import to_numpy
from ..base.selected_rows import SelectedRows
from ..base.storage.files import atomic_writer
from ..distributed.rpc.client import Client, client
from ..framework import Operator
from . import failures
from .lod_tensor import LoDTensor
from .scope import Scope

if TYPE_CHECKING:
    from .interpreter.frame import Frame
    from .interpreter.interpreter import Interpreter


_running: Running | None = None

_DELTA = ".delta"
"""The suffix of a parameter's name in messages with its changes."""


class Running:
    """A running communicator; a process has one at most."""

    def stop(self) -> None:
        """Wait until all queued messages are sent."""


class Synchronous(Running):
    """Synchronous training: the operators of the program send and receive."""


def running() -> Running | None:
    """The running communicator of this process, or None."""
    return _running


def set_running(communicator: Running | None) -> None:
    """Set the communicator that operators use; None for none."""
    global _running
    _running = communicator


def split_rows(value: Any, sections: Sequence[int]) -> list[Any]:
    """An array or SelectedRows split into parts with these numbers of rows."""
    if len(sections) <= 1:
        return [value]
    ends = np.cumsum(sections)
    if not isinstance(value, SelectedRows):
        return np.split(value, ends[:-1])
    part_of_row = np.searchsorted(ends, value.rows, side="right")
    parts = []
    for number, (end, height) in enumerate(zip(ends, sections, strict=True)):
        own = part_of_row == number
        parts.append(SelectedRows(value.rows[own] - (end - height), value.values[own], height))
    return parts


@dataclass(frozen=True)
class Parts:
    """The parts of a variable on servers: the endpoint, name and number of rows of each."""

    endpoints: list[str]
    names: list[str]
    sections: list[int]

    def send(self, client: Client, value: Any, suffix: str = "") -> None:
        """Send the parts of a value to their servers, or the whole to each server if it is not split."""
        names, parts = self.names, split_rows(value, self.sections)
        if not self.sections:
            names, parts = names * len(self.endpoints), parts * len(self.endpoints)
        for endpoint, name, part in zip(self.endpoints, names, parts, strict=True):
            client.send(endpoint, {name + suffix: part})


@dataclass
class _Queue:
    """The values of one variable that wait to be sent."""

    client: Client
    parts: Parts
    adds: bool
    values: deque[Any]


class Asynchronous(Running):
    """Sends and receives in a thread of its own.

    Args:
        received: the parameters that are received, by name.
        merged: the largest number of gradients of a variable in one message.
        queue: the largest number of queued gradients of a variable; `send` blocks at more.
        between: the number of messages after which parameters are received.
        adds: whether merged gradients are summed, as if SGD had applied each of them; otherwise their mean is sent.
    """

    def __init__(
        self, received: Mapping[str, Parts], merged: int, queue: int, between: int, adds: bool
    ) -> None:
        self._received, self._merged, self._limit = dict(received), max(1, merged), max(1, queue)
        self._between, self._adds = max(1, between), adds
        self._state = threading.Condition()
        self._queues: dict[str, _Queue] = {}
        self._newest: dict[str, np.ndarray] = {}
        self._failure: Exception | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="communicator", daemon=True)
        self._thread.start()

    def send(self, client: Client, parts: Parts, value: Any, adds: bool) -> None:
        """Queue a gradient; blocks while the queue is full. Raises an error of the background thread."""
        name = parts.names[0]
        if isinstance(value, SelectedRows):
            value = SelectedRows(value.rows.copy(), value.values.copy(), value.height)
        else:
            value = np.array(value)
        with self._state:
            queue = self._queues.setdefault(name, _Queue(client, parts, adds or self._adds, deque()))
            while self._failure is None and len(queue.values) >= self._limit:
                self._state.wait()
            if self._failure is not None:
                raise self._failure
            queue.values.append(value)
            self._state.notify_all()

    def newest(self, name: str) -> np.ndarray | None:
        """The received value of a parameter; None if it was returned before or none has arrived."""
        with self._state:
            if self._failure is not None:
                raise self._failure
            return self._newest.pop(name, None)

    def stop(self) -> None:
        with self._state:
            self._stopped = True
            self._state.notify_all()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        sent = 0
        try:
            while True:
                with self._state:
                    while not self._stopped and not any(queue.values for queue in self._queues.values()):
                        self._state.wait()
                    if self._stopped and not any(queue.values for queue in self._queues.values()):
                        return
                    taken = [
                        (queue, [queue.values.popleft() for _ in range(min(self._merged, len(queue.values)))])
                        for queue in self._queues.values()
                        if queue.values
                    ]
                    self._state.notify_all()
                for queue, values in taken:
                    queue.parts.send(queue.client, merged(values, queue.adds))
                    sent += 1
                client = taken[0][0].client
                client.flush()
                if sent >= self._between:
                    sent = 0
                    self._receive(client)
        except Exception as error:  # raised by the next call
            with self._state:
                self._failure = error
                self._state.notify_all()

    def _receive(self, client: Client) -> None:
        wanted = list(self._received.values())
        values = client.get([e for p in wanted for e in p.endpoints], [n for p in wanted for n in p.names])
        at = 0
        for name, parts in self._received.items():
            own, at = values[at : at + len(parts.names)], at + len(parts.names)
            with self._state:
                self._newest[name] = joined(own)


def merged(values: Sequence[Any], adds: bool) -> Any:
    """The sum of arrays or SelectedRows, or their mean unless `adds`."""
    if len(values) == 1:
        return values[0]
    scale = 1 if adds else len(values)
    if isinstance(values[0], SelectedRows):
        rows = np.concatenate([value.rows for value in values])
        elements = np.concatenate([value.values for value in values])
        return SelectedRows(rows, elements / elements.dtype.type(scale), values[0].height)
    total = np.sum(values, axis=0, dtype=values[0].dtype)
    return total if adds else total / total.dtype.type(scale)


class GeoSgd(Running):
    """Exchanges changes of parameters every `every` steps (GEO-SGD).

    A trainer sends its changes divided by `trainers`, and a server adds up the changes that arrive. The rest of a
    trainer's changes stays in its parameters and is part of its next changes.

    Args:
        variables: the parameters by name, with their parts on servers.
        tables: the parameters of which only the rows that were looked up are exchanged.
    """

    def __init__(
        self, variables: Mapping[str, Parts], tables: Sequence[str], trainers: int, every: int
    ) -> None:
        self._variables, self._tables = dict(variables), set(tables)
        self._trainers, self._every, self._steps = trainers, every, 0
        self._base: dict[str, np.ndarray] = {}
        self._rows: dict[str, list[np.ndarray]] = {name: [] for name in tables}
        self._client: Client | None = None
        self._tensor: Callable[[str], LoDTensor] | None = None

    def start(self, client: Client, scope: Scope) -> None:
        """Set the parameters to those of the servers."""
        self._client = client

        def tensor(name: str) -> LoDTensor:
            variable = scope.find_var(name)
            assert variable is not None
            return variable.get_tensor()

        self._tensor = tensor
        for name, parts in self._variables.items():
            value = joined(client.get(parts.endpoints, parts.names))
            tensor(name).set(value)
            self._base[name] = value.copy()
            if name in self._tables:
                client.changes(parts.endpoints, parts.names)  # from now on

    def step(self, looked_up: Mapping[str, Sequence[np.ndarray]]) -> None:
        """Count a step that looked up these rows of tables. Raises RuntimeError before `start`."""
        if self._client is None:
            raise RuntimeError(
                "the communicator does not know the parameters yet: run the startup program after "
                "fleet.init_worker() (Communicator.start())"
            )
        for name, ids in looked_up.items():
            self._rows[name] += [np.array(one).reshape(-1) for one in ids]
        self._steps += 1
        if self._steps % self._every == 0:
            self._exchange()

    def stop(self) -> None:
        """Do nothing: changes since the last exchange are not sent, as in Fluid."""

    def _exchange(self) -> None:
        assert self._client is not None and self._tensor is not None
        for name, parts in self._variables.items():
            tensor = self._tensor(name)
            own, base = to_host(tensor.array), self._base[name]
            if name in self._tables:
                self._exchange_rows(name, parts, tensor, own, base)
                continue
            change = (own - base) / base.dtype.type(self._trainers)
            base += change
            parts.send(self._client, change, _DELTA)
            received = joined(self._client.get(parts.endpoints, parts.names))
            tensor.set(own + (received - base))
            self._base[name] = received

    def _exchange_rows(
        self, name: str, parts: Parts, tensor: LoDTensor, own: np.ndarray, base: np.ndarray
    ) -> None:
        assert self._client is not None
        looked_up, self._rows[name] = self._rows[name], []
        rows = np.unique(np.concatenate(looked_up)) if looked_up else np.zeros(0, "int64")
        rows = rows[(rows >= 0) & (rows < len(base))].astype("int64")
        change = (own[rows] - base[rows]) / base.dtype.type(self._trainers)
        base[rows] += change
        parts.send(self._client, SelectedRows(rows, change, len(base)), _DELTA)
        first = 0
        for height, received in zip(
            parts.sections, self._client.changes(parts.endpoints, parts.names), strict=True
        ):
            moved = received.rows + first
            tensor.add_rows(moved, received.values - base[moved])
            base[moved] = received.values
            first += height


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The concatenation of the parts of a variable."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


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


def _put(run: Interpreter, frame: Frame, name: str, value: Any) -> None:
    frame.put(name, run.xp.array(value))


def run_send(run: Interpreter, op: Operator, frame: Frame) -> None:
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


def run_send_barrier(run: Interpreter, op: Operator, frame: Frame) -> None:
    _client(op).barrier(op.attr("endpoints"))


def run_recv(run: Interpreter, op: Operator, frame: Frame) -> None:
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


def run_fetch_barrier(run: Interpreter, op: Operator, frame: Frame) -> None:
    """Do nothing: a server does not update before this trainer has sent for the next round."""


def run_lookup(run: Interpreter, op: Operator, frame: Frame) -> None:
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


def run_checkpoint_notify(run: Interpreter, op: Operator, frame: Frame) -> None:
    client(op.attr("trainer_id")).save(op.attr("epmap"), op.attr("dir"), op.attr("lookup_table"))


def run_recv_save(run: Interpreter, op: Operator, frame: Frame) -> None:
    """Write a variable whose parts are on servers to a file."""
    from .tensor_files import write_tensor

    parts = client(op.attr("trainer_id")).get(op.attr("endpoints"), op.attr("remote_varnames"))
    whole = np.concatenate(parts).reshape(op.attr("shape"))
    path = op.attr("file_path")
    if not op.attr("overwrite") and os.path.exists(path):
        raise failures.refusal(op, f"{path} exists, and overwrite is False")
    with atomic_writer(path) as file:
        write_tensor(file, LoDTensor.wrap(whole))


FUNCTIONS = {
    "send": run_send,
    "recv": run_recv,
    "send_barrier": run_send_barrier,
    "fetch_barrier": run_fetch_barrier,
    "distributed_lookup_table": run_lookup,
    "checkpoint_notify": run_checkpoint_notify,
    "recv_save": run_recv_save,
}
