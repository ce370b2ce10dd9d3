"""Layers by which processes exchange tensors: collective ones (`fluid.layers.collective`), and with servers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from ...base.errors import ArgumentAssertion
from ...distributed.communicator import REDUCTIONS
from ...framework import Block, Operator, OpRole, Variable, default_main_program
from ..layer_helper import LayerHelper
from .control_flow.conditional_block import BlockGuard

__all__: list[str] = []


def _new_like(x: Any, suffix: str, stop_gradient: bool = False) -> Any:
    """A new variable like `x`, named after it."""
    block = default_main_program().current_block()
    return block.create_var(
        name=block._new_name(f"{x.name}.{suffix}"),
        shape=x.shape,
        dtype=x.dtype,
        type=x.type,
        persistable=x.persistable if suffix != "tmp" else False,
        stop_gradient=stop_gradient,
    )


def _append(op_type: str, x: Any, out: Any, attrs: dict[str, Any]) -> Any:
    LayerHelper(op_type).append_op(type=op_type, inputs={"X": [x]}, outputs={"Out": [out]}, attrs=attrs)
    return out


def _check_reduction(reduce_type: str) -> None:
    if reduce_type not in REDUCTIONS:
        raise TypeError(f"reduce type can only be {', '.join(REDUCTIONS)}, got {reduce_type!r}")


def _allreduce(x: Any, out: Any = None, reduce_type: str = "sum", sync_mode: bool = False) -> Any:
    """The sum, prod, max or min of `x` over all processes, without gradient (operator allreduce).

    `out`: where to put it, by default a new variable of the shape of `x`. Raises TypeError for other reductions.
    """
    _check_reduction(reduce_type)
    if out is None:
        out = _new_like(x, "tmp", stop_gradient=True)
    return _append(
        "allreduce", x, out, {"reduce_type": REDUCTIONS.index(reduce_type), "sync_mode": sync_mode}
    )


def _broadcast(x: Any, root: int, sync_mode: bool = False) -> Any:
    """`x`, overwritten in all processes by what process `root` has (operator broadcast)."""
    return _append("broadcast", x, x, {"sync_mode": sync_mode, "root": root})


def _c_allreduce(
    x: Any, out: Any = None, reduce_type: str = "sum", ring_id: int = 0, use_calc_stream: bool = False
) -> Any:
    """The sum, prod, max or min of `x` over all processes (operators c_allreduce_*).

    `out`: where to put it, by default a new variable of the shape of `x`. The gradient of a sum is the sum of the
    gradients; the others have none. Raises TypeError for other reductions.
    """
    _check_reduction(reduce_type)
    op_type = f"c_allreduce_{reduce_type}"
    if out is None:
        out = _new_like(x, op_type)
    return _append(op_type, x, out, {"ring_id": ring_id, "use_calc_stream": use_calc_stream})


def _c_broadcast(x: Any, root: int = 0, ring_id: int = 0, use_calc_stream: bool = False) -> Any:
    """`x`, overwritten in all processes by what process `root` has (operator c_broadcast)."""
    return _append(
        "c_broadcast", x, x, {"root": root, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    )


def _c_allgather(x: Any, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Any:
    """The rows of all `nranks` processes concatenated (operator c_allgather)."""
    out = _new_like(x, "c_allgather")
    attrs = {"nranks": nranks, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    return _append("c_allgather", x, out, attrs)


def _c_reducescatter(x: Any, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Any:
    """This process' share of the rows of the sum over `nranks` processes (operator c_reducescatter).

    Raises TypeError if `x` is no Variable, ValueError if its rows are no multiple of `nranks`.
    """
    if not isinstance(x, Variable):
        raise TypeError(f"x must be a Variable, got {type(x).__name__}")
    if x.shape[0] > 0 and x.shape[0] % nranks:
        raise ValueError(f"x.shape[0] ({x.shape[0]}) cannot be evenly divided by nranks ({nranks})")
    out = _new_like(x, "c_reducescatter")
    attrs = {"nranks": nranks, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    return _append("c_reducescatter", x, out, attrs)


def _c_sync_calc_stream(x: Any) -> Any:
    """`x`, once the stream that computes it is done (operator c_sync_calc_stream)."""
    return _append("c_sync_calc_stream", x, x, {})


def _c_sync_comm_stream(x: Any, ring_id: int) -> Any:
    """`x`, once the communication stream is done (operator c_sync_comm_stream)."""
    return _append("c_sync_comm_stream", x, x, {"ring_id": ring_id})


def _variables(given: list[Variable], name: str, count: int) -> list[Variable]:
    if not isinstance(given, list):
        raise ArgumentAssertion(f"{name} must be a list of Variables, got {type(given).__name__}")
    if len(given) != count:
        raise ArgumentAssertion(
            f"there are {count} endpoints, one for each of {name}, but {len(given)} of these"
        )
    return given


def Send(
    endpoints: str, send_vars: list[Variable], dummy_output: Variable | None = None, sync: bool = True
) -> None:
    """Send variables to parameter servers (`fluid.layers.io.Send`).

    Args:
        endpoints: a server for each variable, `host:port`, with commas between them.
        send_vars: what to send.
        dummy_output: a variable that `Recv` may take to come after this.
        sync: whether to wait until all trainers have sent.

    Raises:
        ArgumentAssertion: `send_vars` is no list, or there are not as many servers.
    """
    hosts = endpoints.split(",")
    _variables(send_vars, "send_vars", len(hosts))
    outputs = [] if dummy_output is None else [dummy_output]
    block = default_main_program().current_block()
    block.append_op("send", {"X": send_vars}, {"Out": outputs}, {"epmap": hosts, "op_role": OpRole.RPC})
    if sync:
        each = {"endpoints": list(dict.fromkeys(hosts))}
        block.append_op("send_barrier", {"X": outputs}, {"Out": []}, each)


def Recv(
    endpoints: str, get_vars: list[Variable], dummy_input: Variable | None = None, sync: bool = True
) -> list[Variable]:
    """Get variables from parameter servers, which call them the same; returns them (`fluid.layers.io.Recv`).

    Args:
        endpoints: a server for each variable, `host:port`, with commas between them.
        get_vars: what to get.
        dummy_input: what `Send` took as `dummy_output`.
        sync: whether to tell the servers that this trainer has them.

    Raises:
        ArgumentAssertion: `get_vars` is no list, or there are not as many servers.
    """
    hosts = endpoints.split(",")
    _variables(get_vars, "get_vars", len(hosts))
    inputs = [] if dummy_input is None else [dummy_input]
    block = default_main_program().current_block()
    block.append_op("recv", {"X": inputs}, {"Out": get_vars}, {"epmap": hosts})
    if sync:
        each = {"endpoints": list(dict.fromkeys(hosts))}
        block.append_op("fetch_barrier", {}, {"Out": get_vars}, each)
    return get_vars


class ListenAndServ:
    """A parameter server that runs its block once for each round of the trainers (`fluid.layers.io.ListenAndServ`).

    `with server.do():` holds the layers of the block. An executor that runs the program serves until all trainers
    are done.

    Args:
        endpoint: `host:port` of this server.
        inputs: names of variables that trainers send.
        fan_in: how many trainers there are.
        optimizer_mode: whether the block consists of updates (see `get_params_and_grads`).
    """

    def __init__(
        self, endpoint: str, inputs: Sequence[str], fan_in: int = 1, optimizer_mode: bool = True
    ) -> None:
        self.helper = LayerHelper("listen_and_serv")
        self.inputs = list(inputs)
        self.outputs: list[str] = []
        self.endpoint, self.fan_in, self.optimizer_mode = endpoint, fan_in, optimizer_mode

    def do(self) -> AbstractContextManager[None]:
        """A context in which layers append to the server's block."""
        return BlockGuardServ(self)

    def get_params_and_grads(self) -> tuple[list[str], list[str]]:
        """The names of the parameters that the block updates, and of their gradients.

        Without `optimizer_mode`: of all that it reads from the block around, twice.
        """
        block = self.helper.main_program.current_block()
        if self.optimizer_mode:
            updates = [op for op in block.ops if "Param" in op.inputs and "Grad" in op.inputs]
            return [op.input("Param")[0] for op in updates], [op.input("Grad")[0] for op in updates]
        outer = self.parent_block()
        read = [name for op in block.ops for name in op.input_arg_names if outer.has_var(name)]
        return read, list(read)

    def parent_block(self) -> Block:
        """The parent of the server's block; AssertionError outside of `do`."""
        program = self.helper.main_program
        parent = program.current_block().parent_idx
        if parent < 0:
            raise ArgumentAssertion("a block around the current one is there only within ListenAndServ.do()")
        return program.block(parent)

    def complete_op(self) -> Operator:
        """Append the operator listen_and_serv to the parent block."""
        return self.parent_block().append_op(
            "listen_and_serv",
            {"X": self.inputs},
            {},
            {
                "endpoint": self.endpoint,
                "Fanin": self.fan_in,
                "optimize_blocks": [self.helper.main_program.current_block()],
                "distributed_mode": 0,
                "grad_to_block_id": [""],
            },
        )


class BlockGuardServ(BlockGuard):
    """`with BlockGuardServ(server):` is `with server.do():` (`fluid.layers.io.BlockGuardServ`).

    Raises TypeError for anything but a ListenAndServ.
    """

    def __init__(self, server: ListenAndServ) -> None:
        if not isinstance(server, ListenAndServ):
            raise TypeError(f"BlockGuardServ takes a ListenAndServ, got {type(server).__name__}")
        super().__init__(server.helper.main_program)
        self.server = server

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if kind is None:
            self.server.complete_op()
        return super().__exit__(kind, error, trace)
