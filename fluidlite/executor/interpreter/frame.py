"""`Frame`: the values of one run of one block; its parents are the frames of enclosing blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import VarType, to_numpy
from ...base.lod import Lod
from ...base.rank_table import RankTable
from ...base.selected_rows import SelectedRows
from ...base.tensor_array import TensorArray
from ...framework import Block, Operator
from ...ops.registry import EMPTY
from .. import failures
from ..lod_tensor import LoDTensor, LoDTensorArray
from ..scope import RowsInScope, Scope

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


class RunContext:
    """The state that all frames of a run share: the scope, the device (None: the host), the names of the feeds."""

    __slots__ = ("device", "fed", "scope", "xp")

    def __init__(self, scope: Scope, device: CudaDevice | None = None, fed: Iterable[str] = ()) -> None:
        self.scope = scope
        self.device = device
        self.xp: Any = np if device is None else device.xp
        self.fed = list(fed)


class Frame:
    """Values by name: arrays, SelectedRows, TensorArrays, rank tables, or lists of frames (step scopes).

    A lookup continues in `parent`, and ends in the scope. `block`: declares the variables of this frame; None for a
    frame of given values only; `lods`: the LoD of the values that have one.
    """

    __slots__ = ("block", "context", "lods", "parent", "values")

    def __init__(
        self, block: Block | None, parent: Frame | None = None, context: RunContext | None = None
    ) -> None:
        self.block = block
        self.parent = parent
        if parent is not None:
            context = parent.context
        assert context is not None
        self.context: RunContext = context
        self.values: dict[str, Any] = {}
        self.lods: dict[str, Lod] = {}

    def holder(self, name: str) -> Frame | None:
        """The innermost frame with a value of this name."""
        here: Frame | None = self
        while here is not None and name not in here.values:
            here = here.parent
        return here

    def find(self, name: str) -> Any:
        """The value of a variable, None if it has none."""
        here = self.holder(name)
        if here is not None:
            return here.values[name]
        found = self.context.scope.find_var(name)
        tensor = found.get() if found is not None else None
        if isinstance(tensor, RankTable):
            return tensor
        if self.context.device is None and isinstance(tensor, RowsInScope):
            return tensor.value()
        if self.context.device is None and isinstance(tensor, LoDTensorArray):
            return tensor.elements()
        if not isinstance(tensor, LoDTensor) or tensor.array is None:
            return None
        on_host = self.context.device is None and type(tensor.array) is np.ndarray
        return tensor.array if on_host else tensor.on(self.context.device)

    def get(self, name: str, op: Operator) -> Any:
        """The value of a variable that `op` reads, None for a RAW one; EnforceNotMet naming operator and variable if it
        has none."""
        value = self.find(name)
        if value is None:
            var = op.block._find_var_recursive(name)
            if var is not None and var.type == VarType.RAW:
                return None
            if var is not None and var.type == VarType.LOD_TENSOR_ARRAY:
                value = TensorArray((var.shape, to_numpy(var.dtype)))  # nothing has been written yet
                self.put(name, value)
                return value
            raise failures.missing_value(op, name, self.context.fed)
        return value

    def lod_of(self, name: str) -> Lod:
        """The LoD of a variable, () if it has none."""
        here = self.holder(name)
        if here is not None:
            return here.lods.get(name, ())
        found = self.context.scope.find_var(name)
        return found.get().offsets if found is not None and isinstance(found.get(), LoDTensor) else ()

    def put(self, name: str, value: Any, lod: Lod = ()) -> None:
        """Store a value in the frame that declares its variable, here if none does; persistable ones in the scope."""
        if name == EMPTY:
            return
        here: Frame | None = self
        while here is not None and name not in here.values:
            if here.block is not None and name in here.block.vars:
                break
            here = here.parent
        here = here or self
        if here.block is not None and name in here.block.vars and here.block.vars[name].persistable:
            self._put_in_scope(name, value, lod)
        else:
            here.keep(name, value, lod)

    def keep(self, name: str, value: Any, lod: Lod = ()) -> None:
        """Store a value in this frame, even if another one declares its variable."""
        self.values[name] = value
        if lod:
            self.lods[name] = lod
        else:
            self.lods.pop(name, None)

    def _put_in_scope(self, name: str, value: Any, lod: Lod) -> None:
        scope, device = self.context.scope, self.context.device
        held = scope.find_var(name) or scope.var(name)
        if isinstance(value, SelectedRows):
            if not isinstance(held.get(), RowsInScope):
                held.set(RowsInScope())
            held.get_selected_rows().take(
                SelectedRows(to_host(value.rows), to_host(value.values), value.height)
            )
            self.keep(name, value)
            return
        if isinstance(value, TensorArray):
            held.get_lod_tensor_array().take(value)
            self.keep(name, value)
            return
        if isinstance(value, RankTable):
            held.set(value)
            return
        holder = held.get_tensor()
        if device is None:
            holder.set(value)
        elif value is not holder.array:
            holder.set(value, device.place)
        holder.hold_lod(lod)

    def only(self, names: Collection[str]) -> Frame:
        """A frame with the values of `names` and without parents: the residuals of a run for its gradient.

        It holds no other values alive, and makes no cycle with the frame in which it is stored.
        """
        kept = Frame(self.block, None, self.context)
        values, lods = self.values, self.lods
        kept.values = {name: values[name] for name in names if name in values}
        if lods:
            kept.lods = {name: lods[name] for name in names if name in lods}
        return kept

    def under(self, parent: Frame) -> Frame:
        """A copy of this frame with another parent.

        A gradient's block writes to the copy (it decrements counters), and later gradients need the original.
        """
        moved = Frame(self.block, parent)
        moved.values, moved.lods = dict(self.values), dict(self.lods)
        return moved
