"""The declaration of a native kernel, `KernelDef`, and that of the kernel of a call, `KERNELS`.

A kernel is declared once, in the file of its family beside this one: what its calls hold, by name, and what passes may
do with them. No pass knows kernels by parts of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..op_view import Call

if TYPE_CHECKING:
    from .fusion import Epilogue, Steps
    from .layouts import ImageRule

REAL = "f32 f64"
NUMERIC = "f32 f64 i32 i64"
INTEGER = "i32 i64"
BYTES = ""
"""Element types, as names of kernels end with them; none: the kernel moves bytes, or has one type of each operand."""


@dataclass(frozen=True, eq=False)
class KernelDef:
    """The one declaration of a native kernel of every element type; docs/kernels.md says what the kernels compute."""

    name: str
    """The name without the element type."""

    operands: str
    """The operands in order, results among them. `Bias?` may be left out, `X*` may repeat; words in brackets,
    `(Param Grad)*`, repeat together."""

    results: str = ""
    """The operands that the kernel writes; by default the last one."""

    ints: str = ""
    """The integers in order, with the same marks. `n*`: one for each repetition of operands, or as many as another
    integer says."""

    floats: str = ""
    """The reals in order."""

    types: str = REAL
    """The element types that there are."""

    alias: str = ""
    """Pairs `result=operand` that may be the same memory; no others may overlap."""

    elementwise: Callable[[KernelDef, Call], Steps | None] | None = None
    """The steps of a call in a chain of elementwise kernels (`fusion.py`); None: the kernel is not elementwise."""

    activation: int = 0
    """The number under which other kernels end with this function of each element; 0: none does."""

    epilogue: Epilogue | None = None
    """The epilogues that a call can take (`fusion.py`)."""

    images: ImageRule | None = None
    """The operands that are images, and the call for images in blocks of channels (`layouts.py`)."""

    copies: Callable[[KernelDef, Call], Sequence[tuple[str, str]]] | None = None
    """Pairs (result, operand) of a call where the result has just the values of the operand."""

    multi_tensor: bool = False
    """One call may do what several do that differ in the repeated operands alone: optimizers' updates."""

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each operand among those of a call; from the end behind one that repeats."""
        return _places(self.operands)

    @cached_property
    def made(self) -> tuple[str, ...]:
        """The results by name."""
        return tuple(self.results.split()) or (next(reversed(self.places)),)

    @cached_property
    def int_places(self) -> dict[str, int]:
        """The place of each integer among those of a call."""
        return _places(self.ints)

    @cached_property
    def float_places(self) -> dict[str, int]:
        """The place of each real among those of a call."""
        return _places(self.floats)

    @cached_property
    def aliases(self) -> tuple[tuple[str, str], ...]:
        """Pairs (result, operand) that may be the same memory."""
        return tuple((out, source) for out, _, source in (pair.partition("=") for pair in self.alias.split()))

    def operand(self, call: Call, name: str) -> str | None:
        """The variable that a call has as operand `name`."""
        return call.operands[self.places[name]]


def _places(text: str) -> dict[str, int]:
    words = [word.strip("()") for word in text.split()]
    names = [word.rstrip("*?)") for word in words]
    repeated = [at for at, word in enumerate(words) if word.endswith("*")]
    last_repeated = repeated[-1] if repeated else len(words)
    return {name: at if at <= last_repeated else at - len(words) for at, name in enumerate(names)}


DECLARED: dict[tuple[str, bool], KernelDef] = {}
"""All declarations, by name and whether there are element types."""


def declare(
    names: str, operands: str, results: str = "", ints: str = "", floats: str = "", **facts: Any
) -> None:
    """Make kernels known that differ in their names alone; see `KernelDef`."""
    for name in names.split():
        kernel = KernelDef(name, operands, results, ints, floats, **facts)
        key = name, bool(kernel.types)
        if key in DECLARED:
            raise ValueError(f"kernel {name!r} is declared twice")
        DECLARED[key] = kernel


class _Kernels(dict[str, KernelDef | None]):
    def __missing__(self, kernel: str) -> KernelDef | None:
        name, dot, _ = kernel.partition(".")
        found = self[kernel] = DECLARED.get((name, bool(dot)))
        return found


KERNELS = _Kernels()
"""The declaration of the kernel of a call, by `Call.kernel`; None of marks for the engine, which are no kernels."""


def copies_of(call: Call) -> list[tuple[int, int]]:
    """Pairs (result, operand) of places in a call whose result has just the values of the operand."""
    kernel = KERNELS[call.kernel]
    if kernel is None or kernel.copies is None:
        return []
    count, places = len(call.operands), kernel.places
    return [(places[out] % count, places[source] % count) for out, source in kernel.copies(kernel, call)]


def without(call: Call, gone: Iterable[int]) -> Call | None:
    """The call without the results at these places, which `copies_of` has found; None if no result is left."""
    kernel, places = KERNELS[call.kernel], set(gone)
    assert kernel is not None
    left = [None if at in places else name for at, name in enumerate(call.operands)]
    if not any(left[kernel.places[name]] for name in kernel.made):
        return None
    return Call(call.kernel, left, call.ints, call.floats)
