"""How declarations see operators (`OpView`) and what they answer (`Call`, `OpSpec`).

Graph building, planning, interpretation and eager calls each give an `OpView` another `Meta`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .._ext.operands import View
from ..base.dtypes import VarType
from ..base.errors import OperatorError
from ..base.lod import as_lod

if TYPE_CHECKING:
    from .registry import OpDef

GRAD = "@GRAD"
"""The suffix of a gradient's name."""

EMPTY = "@EMPTY@"
"""Stands in a list slot for a variable that is not wanted."""

LEVEL = "@LOD"
"""The part between the name of a variable and the number of a level in the name of its offsets."""

VERSION = "@V"
"""The part between the name of a variable and the number of a later value of it, in plans."""

Shape = tuple[int, ...]


def grad_name(name: str) -> str:
    """The name of the gradient of variable (or slot) `name`."""
    return name + GRAD


class Meta(Protocol):
    """The facts about variables that operators ask for while they are built or planned."""

    def shape(self, name: str) -> Shape: ...
    def dtype(self, name: str) -> VarType: ...
    def set(self, name: str, shape: Shape, dtype: VarType) -> None: ...
    def value(self, name: str) -> np.ndarray | None: ...


class Slot(NamedTuple):
    """An input or output of an operator: `X`, `X*` (takes a list), `X?` (may be missing), `X#` (no elements are read,
    only shape, type and sequences), and combinations such as `X*?`.
    """

    name: str
    many: bool = False
    optional: bool = False
    shape_only: bool = False

    @classmethod
    @cache
    def parse(cls, text: str) -> Slot:
        name = text.rstrip("*?#")
        return cls(name, *(mark in text[len(name) :] for mark in "*?#"))


@dataclass(frozen=True)
class Call:
    """One native instruction: a kernel of `_ext.kernels`, the variables it works on (None: left out), its numbers.

    `unchanged`: operands that it only reads, although they are results of the operator as well.
    """

    kernel: str
    operands: Sequence[str | None]
    ints: Sequence[int] = ()
    floats: Sequence[float] = ()
    unchanged: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The kernel without its element type; see `kernels/kernel_def.py`."""
        return self.kernel.partition(".")[0]

    @property
    def type(self) -> str:
        """The element type that the kernel's name ends with; "" of kernels for all types."""
        return self.kernel.partition(".")[2]


RESOLVE_SIZES = "resolve_sizes"
"""The kernel of a pseudo call that assigns the elements of an int64 array to data-dependent sizes. Operand: the array;
ints: an index, the size at that index, another index, ..."""


@dataclass
class OpSpec:
    """An operator about to be made: what a gradient rule returns."""

    type: str
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any] = field(default_factory=dict)


class LodArray:
    """A kernel's result that comes with levels of detail of its own, given as lists or arrays of offsets."""

    __slots__ = ("array", "lod")

    def __init__(self, array: Any, lod: Sequence[Any]) -> None:
        self.array = array
        self.lod = as_lod(lod)


class OpView(View):
    """One operator as its declaration sees it: names by slot, attributes, shapes and dtypes.

    The accessors that need nothing else are compiled (`_ext/operands.pyx`).
    """

    __slots__ = ()
    definition: OpDef
    meta: Any

    def rows(self, slot: str, index: int = 0) -> int | None:
        """How many rows a variable that is `SelectedRows` holds (-1: unknown); None for a dense one."""
        find = getattr(self.meta, "rows", None)  # eager tensors are always dense here
        return find(self.name(slot, index)) if find is not None else None

    def lod(self, slot: str, index: int = 0) -> tuple[str, ...]:
        """The int64 arrays of offsets that tell a variable's sequences apart, outermost level first.

        () for a variable without sequences, and as long as a program is built: only a run knows.
        """
        find = getattr(self.meta, "lod", None)
        return find(self.name(slot, index)) if find is not None and self.has(slot) else ()

    def sequences(self, slot: str, index: int = 0, level: int = -1) -> int:
        """How many sequences a variable has at a level; -1 if that is not known."""
        levels = self.lod(slot, index)
        return self.meta.shape(levels[level])[0] - 1 if levels else -1

    def carry(self, slot: str, levels: Sequence[str], index: int = 0) -> None:
        """Say which arrays of offsets belong to an output; called by `infer`. Without it `Sequences.source` does."""
        say = getattr(self.meta, "carry", None)
        names = self.outputs.get(slot)
        if say is not None and names and index < len(names):
            say(names[index], tuple(levels))

    def offsets(self, slot: str, sequences: int, level: int = 0, index: int = 0) -> str:
        """A new array of offsets, [sequences + 1], that the native kernel makes; for exact shapes only."""
        name = f"{self.name(slot, index)}{LEVEL}{level}"
        self.meta.set(name, (sequences + 1,), VarType.INT64)
        return name

    def data_dependent_sizes(
        self, slot: str, most: Sequence[int], least: Sequence[float] = (), axes: Sequence[int] = ()
    ) -> list[int] | None:
        """Symbols for sizes that the native kernel computes and a `RESOLVE_SIZES` call reads; None where plans need
        all sizes in advance.

        Args:
            slot: the output that has these sizes.
            most: for each size a guess or an upper bound.
            least: for each size the least that plans generalise to, by default 2; smaller ones are specialised.
            axes: the axes of the output with these sizes, by default the first ones.
        """
        find = getattr(self.meta, "data_dependent_sizes", None)
        return find(self.name(slot), most, least, axes) if find is not None else None

    @property
    def allows_data_dependent_sizes(self) -> bool:
        """Whether sizes of outputs may depend on data."""
        return getattr(self.meta, "allows_data_dependent_sizes", False)

    def set_max_shape(self, slot: str, shape: Sequence[int]) -> None:
        """Set the upper bound of the shape of an output with data-dependent sizes, for which memory is allocated."""
        if self.has(slot):
            self.meta.max_shapes[self.name(slot)] = tuple(shape)  # type: ignore[attr-defined]

    def scratch(self, slot: str, suffix: str, shape: Sequence[int], dtype: VarType) -> str:
        """An array that belongs to an output and that only its native kernels know; for exact shapes only."""
        name = f"{self.name(slot)}@{suffix}"
        self.meta.set(name, tuple(shape), dtype)
        return name

    def refuse(self, message: str) -> None:
        """Raise the operator's error, unless a program is being built: Fluid finds this out when the program runs, and
        so does the kernel here.
        """
        if not self.building:
            raise self.fail(message)

    def fail(self, message: str) -> OperatorError:
        """The error to raise when inputs or attributes do not fit: names the operator and its variables."""
        parts = []
        for slot, names in self.inputs.items():
            for name in names:
                try:
                    parts.append(f"{slot}={name}{list(self.meta.shape(name))}")
                except (KeyError, LookupError):
                    parts.append(f"{slot}={name}")
        return OperatorError(f"operator {self.type} ({', '.join(parts)}): {message}")


@cache
def keyword(name: str) -> str:
    """The keyword under which a kernel gets a slot or attribute: `Out@GRAD` is `Out_grad`, `lambda` is `lambda_`."""
    word = name.replace(GRAD, "_grad")
    return word + "_" if iskeyword(word) else word
