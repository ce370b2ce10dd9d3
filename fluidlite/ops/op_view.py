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

from ..base.dtypes import VarType
from ..base.errors import OperatorError
from ..base.lod import as_lod
from ..base.sizes import SymInt

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
_SIZES = (int, SymInt)


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


class OpView:
    """One operator as its declaration sees it: names by slot, attributes, shapes and dtypes."""

    __slots__ = ("attrs", "definition", "inputs", "meta", "outputs", "type")

    def __init__(
        self,
        definition: OpDef,
        inputs: dict[str, list[str]],
        outputs: dict[str, list[str]],
        attrs: dict[str, Any],
        meta: Meta,
    ) -> None:
        self.type = definition.type
        self.definition = definition
        self.inputs = inputs
        self.outputs = outputs
        self.attrs = attrs
        self.meta = meta

    def names(self, slot: str) -> list[str]:
        """The variables of an input or output slot."""
        return self.inputs.get(slot) or self.outputs.get(slot) or []

    def name(self, slot: str, index: int = 0) -> str:
        return (self.inputs.get(slot) or self.outputs.get(slot) or ())[index]

    def name_or_none(self, slot: str) -> str | None:
        names = self.names(slot)
        return names[0] if names else None

    def has(self, slot: str) -> bool:
        return bool(self.inputs.get(slot) or self.outputs.get(slot))

    def count(self, slot: str) -> int:
        return len(self.names(slot))

    def shape(self, slot: str, index: int = 0) -> Shape:
        return self.meta.shape((self.inputs.get(slot) or self.outputs.get(slot) or ())[index])

    def dtype(self, slot: str, index: int = 0) -> VarType:
        return self.meta.dtype((self.inputs.get(slot) or self.outputs.get(slot) or ())[index])

    def has_meta(self, name: str) -> bool:
        """Whether shape and dtype of variable `name` can be asked for; in a run not all values are kept."""
        has = getattr(self.meta, "has", None)
        return has is None or has(name)

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

    def value(self, slot: str, index: int = 0) -> np.ndarray | None:
        """The elements of an input when they are known without running, else None."""
        return self.meta.value(self.name(slot, index))

    @property
    def exact(self) -> bool:
        """Whether shapes are those of a run, which a plan relies on, and not what a program declares."""
        return getattr(self.meta, "exact", False)

    @property
    def building(self) -> bool:
        """Whether a program is being built, and shapes are what it declares."""
        return getattr(self.meta, "building", False)

    def attr(self, name: str) -> Any:
        """An attribute, or its declared default."""
        if name in self.attrs:
            return self.attrs[name]
        try:
            return self.definition.attrs[name]
        except KeyError:
            raise self.fail(f"has no attribute {name!r}") from None

    def set(self, slot: str, shape: Sequence[int], dtype: VarType, index: int = 0) -> None:
        """Say shape and dtype of an output; nothing happens if it is not wanted."""
        names = self.outputs.get(slot)
        if names and index < len(names) and names[index]:
            self.meta.set(names[index], tuple([n if type(n) in _SIZES else int(n) for n in shape]), dtype)

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
