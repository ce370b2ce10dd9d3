"""Sending gradients to parameter servers and receiving parameters (`fluid.communicator`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..executor.parameter_server import (
    Asynchronous,
    GeoSgd,
    Parts,
    Running,
    Synchronous,
    running,
    set_running,
)
from ..framework import Program
from .transpiler.distribute_transpiler import DistributedMode

__all__ = ["Communicator"]


class Communicator:
    """Has a trainer's program, which a transpiler has made with `runtime_split_send_recv`, send and receive.

    Args:
        program: the program of a trainer.
        mode: one of `DistributedMode`. SYNC and HALF_ASYNC: a step ends when its gradients have arrived and its
            parameters are there. ASYNC: a thread sends gradients, several of a variable in one message, and receives
            parameters, while steps go on with those that they have. GEO: what has changed is exchanged.
        kwargs: for GEO `push_vars`, `trainers` and `push_nums`, as `fleet` has them.
        envs: options as text: `communicator_max_merge_var_num`, `communicator_send_queue_size`,
            `communicator_min_send_grad_num_before_recv`, `communicator_is_sgd_optimizer`; others are accepted.

    Raises:
        TypeError: `program` is no Program.
        ValueError: a mode that there is not, or `kwargs` that lack something.
    """

    def __init__(
        self,
        program: Program,
        mode: int,
        kwargs: Mapping[str, Any] | None = None,
        envs: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(program, Program):
            raise TypeError(f"program must be a fluid.Program, got {type(program).__name__}")
        known = (
            DistributedMode.SYNC,
            DistributedMode.ASYNC,
            DistributedMode.HALF_ASYNC,
            DistributedMode.GEO,
        )
        if mode not in known:
            raise ValueError(f"mode must be one of DistributedMode, {known}, got {mode!r}")
        given = dict(kwargs or {})
        lacking = [name for name in ("push_vars", "trainers", "push_nums") if name not in given]
        if mode == DistributedMode.GEO and lacking:
            raise ValueError(f"kwargs of a communicator of mode GEO lack {', '.join(lacking)}")
        self._program, self._mode, self._kwargs, self._envs = program, mode, given, dict(envs or {})
        self._running: Running | None = None
        if mode != DistributedMode.GEO:
            for op in program.global_block().ops:
                if op.type == "recv":
                    op._set_attr("do_not_run", True)

    def start(self) -> None:
        """Begin. RuntimeError if another communicator runs in this process."""
        if self._running is not None:
            return
        if running() is not None:
            raise RuntimeError("another communicator is running in this process: stop it first")
        self._running = self._made()
        set_running(self._running)

    def _made(self) -> Running:
        if self._mode == DistributedMode.GEO:
            variables = self._kwargs["push_vars"]
            parts = {
                name: Parts(list(one["epmap"]), list(one["var_names"]), [int(n) for n in one["sections"]])
                for name, one in variables.items()
            }
            tables = [name for name, one in variables.items() if one["is_sparse"][0] == "True"]
            return GeoSgd(parts, tables, int(self._kwargs["trainers"]), int(self._kwargs["push_nums"]))
        if self._mode != DistributedMode.ASYNC:
            return Synchronous()
        received = {
            op.output("Out")[0]: Parts(op.attr("epmap"), op.attr("recv_varnames"), [])
            for op in self._program.global_block().ops
            if op.type == "recv"
        }

        def number(name: str, default: int) -> int:
            return int(self._envs.get(f"communicator_{name}", default))

        return Asynchronous(
            received,
            number("max_merge_var_num", 1),
            number("send_queue_size", 1),
            number("min_send_grad_num_before_recv", 1),
            bool(number("is_sgd_optimizer", 1)),
        )

    def stop(self) -> None:
        """Send pending gradients, and end. Raises the errors of background communication."""
        ended, self._running = self._running, None
        if ended is not None:
            if running() is ended:
                set_running(None)
            ended.stop()

    def is_running(self) -> bool:
        """Whether it has begun and not ended."""
        return self._running is not None
