"""The placement of variables' parts on servers (`fluid.transpiler.details.vars_distributed`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...base import missing
from ...framework import Variable


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


__getattr__ = missing.reporter(__name__)
