"""What a running `fluid.communicator.Communicator` does for the operators that talk with parameter servers.

`WithBarriers` leaves sending and receiving to the operators. `InBackground` sends gradients in a thread of its own,
several of one variable at once, and keeps the newest parameters for the next step. `ByChanges` is for trainers that
update by themselves: it sends what has changed since the last exchange, and takes over what others have changed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...backend import to_host
from ...base.selected_rows import SelectedRows
from ...rpc.client import Client
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope

_running: Running | None = None

_CHANGE = ".delta"
"""Stands behind the name of a parameter: what has changed of it."""


class Running:
    """A communicator that is running; there is one at most in a process."""

    def stop(self) -> None:
        """Let everything arrive that is on its way."""


class WithBarriers(Running):
    """Trainers that wait: the operators of the program do all."""


def running() -> Running | None:
    """The communicator of this process, if one is running."""
    return _running


def set_running(communicator: Running | None) -> None:
    """Have operators use `communicator`, or none."""
    global _running
    _running = communicator


def cut_rows(value: Any, sections: Sequence[int]) -> list[Any]:
    """An array or SelectedRows cut into parts of so many rows."""
    if len(sections) <= 1:
        return [value]
    ends = np.cumsum(sections)
    if not isinstance(value, SelectedRows):
        return np.split(value, ends[:-1])
    place = np.searchsorted(ends, value.rows, side="right")
    parts = []
    for number, (end, height) in enumerate(zip(ends, sections, strict=True)):
        mine = place == number
        parts.append(SelectedRows(value.rows[mine] - (end - height), value.values[mine], height))
    return parts


@dataclass(frozen=True)
class Parts:
    """The parts of a variable, each on a server: names there, and how many rows each has."""

    endpoints: list[str]
    names: list[str]
    sections: list[int]

    def send(self, line: Client, value: Any, suffix: str = "") -> None:
        """Send the parts of a value to their servers, or all of it to each."""
        names, cut = self.names, cut_rows(value, self.sections)
        if not self.sections:
            names, cut = names * len(self.endpoints), cut * len(self.endpoints)
        for endpoint, name, part in zip(self.endpoints, names, cut, strict=True):
            line.send(endpoint, {name + suffix: part})


@dataclass
class _Waiting:
    """Values of one variable that are to be sent."""

    line: Client
    parts: Parts
    adds: bool
    values: deque[Any]


class InBackground(Running):
    """Sends and receives beside the steps.

    Args:
        received: the parameters that are received, by name.
        merged: how many gradients of a variable become one message at most.
        queue: how many may wait before a step does.
        between: after how many messages parameters are received.
        adds: whether gradients that are merged are added up, so that it is as if each had made an update of its own by
            SGD; otherwise their mean is taken.
    """

    def __init__(
        self, received: Mapping[str, Parts], merged: int, queue: int, between: int, adds: bool
    ) -> None:
        self._received, self._merged, self._queue = dict(received), max(1, merged), max(1, queue)
        self._between, self._adds = max(1, between), adds
        self._state = threading.Condition()
        self._waiting: dict[str, _Waiting] = {}
        self._newest: dict[str, np.ndarray] = {}
        self._failure: Exception | None = None
        self._over = False
        self._thread = threading.Thread(target=self._work, name="communicator", daemon=True)
        self._thread.start()

    def send(self, line: Client, parts: Parts, value: Any, adds: bool) -> None:
        """Have a gradient sent; waits while too many are waiting. Raises what went wrong in the background."""
        name = parts.names[0]
        if isinstance(value, SelectedRows):
            value = SelectedRows(value.rows.copy(), value.values.copy(), value.height)
        else:
            value = np.array(value)
        with self._state:
            held = self._waiting.setdefault(name, _Waiting(line, parts, adds or self._adds, deque()))
            while self._failure is None and len(held.values) >= self._queue:
                self._state.wait()
            if self._failure is not None:
                raise self._failure
            held.values.append(value)
            self._state.notify_all()

    def newest(self, name: str) -> np.ndarray | None:
        """A parameter that has arrived and that nobody has taken yet."""
        with self._state:
            if self._failure is not None:
                raise self._failure
            return self._newest.pop(name, None)

    def stop(self) -> None:
        with self._state:
            self._over = True
            self._state.notify_all()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        sent = 0
        try:
            while True:
                with self._state:
                    while not self._over and not any(held.values for held in self._waiting.values()):
                        self._state.wait()
                    if self._over and not any(held.values for held in self._waiting.values()):
                        return
                    taken = [
                        (held, [held.values.popleft() for _ in range(min(self._merged, len(held.values)))])
                        for held in self._waiting.values()
                        if held.values
                    ]
                    self._state.notify_all()
                for held, values in taken:
                    held.parts.send(held.line, merged(values, held.adds))
                    sent += 1
                line = taken[0][0].line
                line.flush()
                if sent >= self._between:
                    sent = 0
                    self._receive(line)
        except Exception as error:  # whoever sends next is told
            with self._state:
                self._failure = error
                self._state.notify_all()

    def _receive(self, line: Client) -> None:
        wanted = list(self._received.values())
        found = line.get([e for p in wanted for e in p.endpoints], [n for p in wanted for n in p.names])
        at = 0
        for name, parts in self._received.items():
            mine, at = found[at : at + len(parts.names)], at + len(parts.names)
            with self._state:
                self._newest[name] = joined(mine)


def merged(values: Sequence[Any], adds: bool) -> Any:
    """The sum, or the mean, of arrays or SelectedRows."""
    if len(values) == 1:
        return values[0]
    scale = 1 if adds else len(values)
    if isinstance(values[0], SelectedRows):
        rows = np.concatenate([value.rows for value in values])
        both = np.concatenate([value.values for value in values])
        return SelectedRows(rows, both / both.dtype.type(scale), values[0].height)
    total = np.sum(values, axis=0, dtype=values[0].dtype)
    return total if adds else total / total.dtype.type(scale)


class ByChanges(Running):
    """Exchanges what has changed, every `every` steps (GEO-SGD).

    A trainer sends the part of its changes that is 1 / `trainers`, and a server adds up what arrives. What a trainer
    has beyond that stays with it and is part of its next changes.

    Args:
        variables: the parameters by name, with their parts on servers.
        tables: those of which only rows that were looked up are exchanged.
    """

    def __init__(
        self, variables: Mapping[str, Parts], tables: Sequence[str], trainers: int, every: int
    ) -> None:
        self._variables, self._tables = dict(variables), set(tables)
        self._trainers, self._every, self._steps = trainers, every, 0
        self._known: dict[str, np.ndarray] = {}
        self._rows: dict[str, list[np.ndarray]] = {name: [] for name in tables}
        self._line: Client | None = None
        self._tensor: Callable[[str], LoDTensor] | None = None

    def start(self, line: Client, scope: Scope) -> None:
        """Take the parameters of the servers."""
        self._line = line

        def tensor(name: str) -> LoDTensor:
            found = scope.find_var(name)
            assert found is not None
            return found.get_tensor()

        self._tensor = tensor
        for name, parts in self._variables.items():
            value = joined(line.get(parts.endpoints, parts.names))
            tensor(name).set(value)
            self._known[name] = value.copy()
            if name in self._tables:
                line.changes(parts.endpoints, parts.names)  # from now on

    def step(self, looked_up: Mapping[str, Sequence[np.ndarray]]) -> None:
        """A step has been made, which looked up these rows of tables. Raises RuntimeError before `start`."""
        if self._line is None:
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
        """What has changed since the last exchange stays here, as in Fluid."""

    def _exchange(self) -> None:
        assert self._line is not None and self._tensor is not None
        for name, parts in self._variables.items():
            here = self._tensor(name)
            mine, known = to_host(here.array), self._known[name]
            if name in self._tables:
                self._exchange_rows(name, parts, here, mine, known)
                continue
            change = (mine - known) / known.dtype.type(self._trainers)
            known += change
            parts.send(self._line, change, _CHANGE)
            theirs = joined(self._line.get(parts.endpoints, parts.names))
            here.set(mine + (theirs - known))
            self._known[name] = theirs

    def _exchange_rows(
        self, name: str, parts: Parts, here: LoDTensor, mine: np.ndarray, known: np.ndarray
    ) -> None:
        assert self._line is not None
        listed, self._rows[name] = self._rows[name], []
        rows = np.unique(np.concatenate(listed)) if listed else np.zeros(0, "int64")
        rows = rows[(rows >= 0) & (rows < len(known))].astype("int64")
        change = (mine[rows] - known[rows]) / known.dtype.type(self._trainers)
        known[rows] += change
        parts.send(self._line, SelectedRows(rows, change, len(known)), _CHANGE)
        first = 0
        for height, theirs in zip(
            parts.sections, self._line.changes(parts.endpoints, parts.names), strict=True
        ):
            moved = theirs.rows + first
            here.add_rows(moved, theirs.values - known[moved])
            known[moved] = theirs.values
            first += height


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """What has come in parts."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
