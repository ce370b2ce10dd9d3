"""Helpers of transpilers (`fluid.transpiler.details`)."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Hashable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any
from zlib import crc32

from ...base.dtypes import VarType
from ...framework import Block, Operator, Parameter, Program, Variable

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = [
    "UnionFind",
    "VarDistributed",
    "VarStruct",
    "VarsDistributed",
    "block_to_code",
    "delete_ops",
    "find_op_by_input_arg",
    "find_op_by_output_arg",
    "get_indent_space",
    "op_to_code",
    "program_to_code",
    "string_types",
    "variable_to_code",
    "wait_server_ready",
]

string_types = (str,)


_PAUSE, _PRINT_EVERY = 0.1, 3.0


def wait_server_ready(endpoints: Iterable[str]) -> None:
    """Wait until every `IP:PORT` of `endpoints` accepts connections; prints every 3 seconds which do not.

    Raises AssertionError if `endpoints` is a string.
    """
    if isinstance(endpoints, str):
        raise AssertionError(f"endpoints must be a list of strings, got {endpoints!r}")
    printed = time.monotonic()
    while waiting := [endpoint for endpoint in endpoints if not _listens(endpoint)]:
        if time.monotonic() - printed >= _PRINT_EVERY:
            printed = time.monotonic()
            sys.stderr.write(f"not ready endpoints: {waiting}\n")
            sys.stderr.flush()
        time.sleep(_PAUSE)


def _listens(endpoint: str) -> bool:
    host, port = endpoint.rsplit(":", 1)
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as connection:
        connection.settimeout(2)
        return connection.connect_ex((host, int(port))) == 0


def delete_ops(block: Block, ops: Iterable[Operator]) -> None:
    """Remove `ops` from `block`; prints operators that are not in it."""
    for op in list(ops):
        try:
            block._remove_op(next(at for at, known in enumerate(block.ops) if known is op))
        except StopIteration:
            print(f"{op.type} is not in block {block.idx}")


def find_op_by_input_arg(block: Block, arg_name: str) -> int:
    """The index of the first operator that reads a variable; -1 if there is none."""
    return next((at for at, op in enumerate(block.ops) if arg_name in op.input_arg_names), -1)


def find_op_by_output_arg(block: Block, arg_name: str, reverse: bool = False) -> int:
    """The index of the first operator that writes a variable, of the last with `reverse`; -1 if there is none."""
    ops = list(enumerate(block.ops))
    return next((at for at, op in (ops[::-1] if reverse else ops) if arg_name in op.output_arg_names), -1)


def get_indent_space(indent: int, space_num: int = 4) -> str:
    """The blanks of `indent` levels of `space_num` each."""
    return " " * (indent * space_num)


def variable_to_code(var: Variable) -> str:
    """A variable on one line: persistability, name, type and shape."""
    if var.type in (VarType.SELECTED_ROWS, VarType.LOD_TENSOR):
        text = f"{var.name} : fluid.{var.type}.shape{var.shape}.astype({var.dtype})"
    else:
        text = f"{var.name} : fluid.{var.type})"
    if isinstance(var, Parameter):
        text = ("trainable parameter " if var.trainable else "parameter ") + text
    else:
        text = "var " + text
    return "persist " + text if var.persistable else text


def op_to_code(op: Operator, skip_op_callstack: bool = True) -> str:
    """An operator on one line: `{outputs} = type(inputs={...}, attributes)`."""
    outputs = ", ".join(f"{slot}={op.output(slot)}" for slot in op.output_names)
    inputs = ", ".join(f"{slot}={op.input(slot)}" for slot in op.input_names)
    attrs = [_attr(op, name) for name in op.attr_names if not (skip_op_callstack and name == "op_callstack")]
    return f"{{{outputs}}} = {op.type}({', '.join([f'inputs={{{inputs}}}', *attrs])})"


def _attr(op: Operator, name: str) -> str:
    value: Any = op.attr(name)
    if isinstance(value, Block):
        return f"{name} = block[{value.idx}]"
    if isinstance(value, list) and value and isinstance(value[0], Block):
        return f"{name} = blocks[{[block.idx for block in value]}]"
    return f"{name} = {value}"


def block_to_code(
    block: Block, block_idx: int, fout: IO[str] | None = None, skip_op_callstack: bool = False
) -> None:
    """Print variables and operators of a block, to standard output by default."""
    out = fout or sys.stdout
    print(f"{{ // block {block_idx}", file=out)
    for name in sorted(block.vars):
        print(f"    {variable_to_code(block.vars[name])}", file=out)
    if block.vars:
        print("", file=out)
    for op in block.ops:
        print(f"    {op_to_code(op, skip_op_callstack)}", file=out)
    print("}", file=out)


def program_to_code(prog: Program, fout: IO[str] | None = None, skip_op_callstack: bool = True) -> None:
    """Print the blocks of a program, to standard output by default (`fluid.transpiler.details.program_to_code`)."""
    for at, block in enumerate(prog.blocks):
        block_to_code(block, at, fout, skip_op_callstack)


class UnionFind:
    """A union-find structure (`fluid.transpiler.details.UnionFind`).

    Args:
        elementes: the initial elements, each in a set of its own.
    """

    def __init__(self, elementes: Iterable[Hashable] | None = None) -> None:
        self._index: dict[Hashable, int] = {}
        for element in elementes or ():
            self._index.setdefault(element, len(self._index))
        self._parents = list(range(len(self._index)))

    def find(self, x: Hashable) -> int:
        """The index of the set of `x`; -1 for an unknown element."""
        at = self._index.get(x)
        if at is None:
            return -1
        while self._parents[at] != at:
            self._parents[at] = self._parents[self._parents[at]]
            at = self._parents[at]
        return at

    def union(self, x: Hashable, y: Hashable) -> None:
        """Merge the sets of `x` and `y`."""
        one, other = self.find(x), self.find(y)
        if one != other:
            self._parents[one] = other

    def is_connected(self, x: Hashable, y: Hashable) -> bool:
        """True if `x` and `y` are in the same set."""
        return self.find(x) == self.find(y)


@dataclass(eq=False)
class VarStruct:
    """The description of a variable (`fluid.transpiler.details.VarStruct`)."""

    name: str
    shape: Any
    dtype: Any
    type: Any
    lod_level: int
    persistable: bool

    def _text(self) -> str:
        return f"{self.name} : fluid.{self.type}.shape{self.shape}.astype({self.dtype})"


def _struct(var: Any) -> VarStruct:
    if isinstance(var, VarStruct):
        return var
    if not isinstance(var, Variable):
        raise TypeError(f"expected a Variable, got {type(var).__name__}")
    return VarStruct(var.name, var.shape, var.dtype, var.type, var.lod_level, var.persistable)


def _equal(one: Any, other: Any) -> bool:
    fields = ("name", "type", "shape", "dtype", "lod_level", "persistable")
    return all(getattr(one, field) == getattr(other, field) for field in fields)


class VarDistributed:
    """A part of a variable on a server (`fluid.transpiler.details.VarDistributed`).

    Args:
        origin_var, slice_var: the variable and its part, Variables or `VarStruct`s.
        is_slice: True for a part; by default, if the two differ.
        block_id: the index of the part.
        offset: the number of elements of the whole before it.
        vtype: its kind, 'Param', 'Grad' etc.
        endpoint: `IP:PORT` of the server.
    """

    def __init__(
        self,
        origin_var: Any,
        slice_var: Any,
        is_slice: bool | None = None,
        block_id: int | None = None,
        offset: int | None = None,
        vtype: str | None = None,
        endpoint: str | None = None,
    ) -> None:
        self.origin, self.slice = _struct(origin_var), _struct(slice_var)
        self.is_slice = bool(is_slice) or not self.equal(self.origin, self.slice)
        self.block_id = 0 if block_id is None else block_id
        self.offset = 0 if offset is None else offset
        self.vtype, self.endpoint = vtype, endpoint

    equal = staticmethod(_equal)

    def __str__(self) -> str:
        part = f"slice({self.is_slice}).block({self.block_id}).offset({self.offset})"
        return (
            f"var owned: {self.vtype}, origin var: ( {self.origin._text()} ), "
            f"slice var: ( {self.slice._text()}.{part} ), endpoint: {self.endpoint} "
        )


class VarsDistributed:
    """The parts of all variables (`fluid.transpiler.details.VarsDistributed`)."""

    def __init__(self) -> None:
        self.distributed_vars: list[VarDistributed] = []

    equal = staticmethod(_equal)

    def add_distributed_var(
        self,
        origin_var: Any,
        slice_var: Any,
        is_slice: bool | None = None,
        block_id: int | None = None,
        offset: int | None = None,
        vtype: str | None = None,
        endpoint: str | None = None,
    ) -> None:
        """Add a `VarDistributed` of these arguments."""
        var = VarDistributed(origin_var, slice_var, is_slice, block_id, offset, vtype, endpoint)
        self.distributed_vars.append(var)

    def get_distributed_var_by_slice(self, var_name: str) -> VarDistributed | None:
        """The first whose part has this name, or None."""
        return next((var for var in self.distributed_vars if var.slice.name == var_name), None)

    def get_distributed_var_by_origin_and_ep(
        self, origin_var_name: str, endpoint: str
    ) -> VarDistributed | None:
        """The first part of a variable on a server, or None."""
        parts = self.get_distributed_vars_by_ep(endpoint)
        return next((var for var in parts if var.origin.name == origin_var_name), None)

    def get_distributed_vars_by_vtypes(self, vtypes: Sequence[str], groupby: bool = False) -> Any:
        """The parts of the kinds `vtypes`: a list, or with `groupby` lists by the names of the whole variables."""
        parts = [var for var in self.distributed_vars if var.vtype in vtypes]
        if not groupby:
            return parts
        groups: dict[str, list[VarDistributed]] = {}
        for var in parts:
            groups.setdefault(var.origin.name, []).append(var)
        return groups

    def get_distributed_vars_by_ep(self, endpoint: str, vtype: str | None = None) -> list[VarDistributed]:
        """The parts on a server, of the kind `vtype` if given."""
        return [
            var for var in self.distributed_vars if var.endpoint == endpoint and vtype in (None, var.vtype)
        ]

    def overview(self) -> str:
        """One line for each."""
        return "\n".join(str(var) for var in self.distributed_vars)


class PSDispatcher:
    """Base of assignments of variables to servers (`fluid.transpiler.ps_dispatcher.PSDispatcher`).

    `pserver_endpoints`: `IP:PORT` of each server.
    """

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        self._eps = pserver_endpoints
        self._step = 0

    @property
    def eps(self) -> Sequence[str]:
        """The endpoints of the servers."""
        return self._eps

    def reset(self) -> None:
        """Restart with the first server."""
        self._step = 0

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """The endpoint of each of `varlist`; subclasses define it."""
        raise NotImplementedError("Interface has not been implemented.")


class HashName(PSDispatcher):
    """Assignment by a hash of the variable's name (`fluid.transpiler.HashName`).

    The names of `varlist`, of variables or of objects with a method `name` as in Fluid, are hashed by CRC-32, so
    that all processes agree.
    """

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        names = [var.name() if callable(var.name) else var.name for var in varlist]
        return [self._eps[crc32(name.encode()) % len(self._eps)] for name in names]


class RoundRobin(PSDispatcher):
    """Assignment to one server after the other (`fluid.transpiler.RoundRobin`)."""

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        chosen = [self._eps[(self._step + k) % len(self._eps)] for k in range(len(varlist))]
        self._step = (self._step + len(varlist)) % len(self._eps)
        return chosen
