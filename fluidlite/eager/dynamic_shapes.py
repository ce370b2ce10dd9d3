"""Dynamic-shape specialisations of eager operators (`core.Variant` with `is_open`).

A call signature that has seen inputs of the same types and ranks but several sizes gets one: shapes are inferred and
kernels selected with a `SymInt` (`base/sizes.py`) for every axis that differed. It then takes other sizes in C as
long as its guards hold. Gradient operators of a dynamic-shape specialisation are dynamic from the start; their sizes
follow from those of the forward operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import backend
from .._ext import eager as core
from .._ext import engine
from .._ext.operands import Types
from ..base.sizes import (
    Registers,
    ShapeEnv,
    SymFloat,
    SymInt,
    Terms,
    current_shape,
    free_symbols,
    substituted,
)
from ..ops.registry import GRAD, OpDef, OpSpec, OpView


class EagerMeta(Types):
    """The metadata of one call; `asked` becomes True when an operator reads values.

    `sizes`: the environment of symbolic sizes in the shapes, None if all are numbers.
    """

    def __init__(self, known: EagerMeta | None = None, sizes: ShapeEnv | None = None) -> None:
        super().__init__(known.shapes if known else (), known.dtypes if known else ())
        self.sizes: ShapeEnv | None = known.sizes if known else sizes
        self.values: dict[str, Any] = {}
        self.asked = False

    def value(self, name: str) -> np.ndarray | None:
        self.asked = True
        return backend.to_host(self.values.get(name))


Array = Any
Axes = set[tuple[int, int]]
"""(index of an input, axis)."""

EXACT_FIRST = 2
"""The number of sizes with static specialisations before a dynamic one is made."""
MOST = 8
"""At most this many dynamic-shape specialisations are made for inputs of the same types and ranks: if few sizes satisfy
the same guards, static ones are as good."""


class ShapeHistory:
    """The shapes that a call signature has seen, for inputs of given types and ranks.

    `first`: the first shapes; `axes`: those that differed later; `met`: the number of specialisations asked for;
    `left`: how many more of them may be dynamic.
    """

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.first = [array.shape for array in arrays]
        self.axes: Axes = set()
        self.met = 0
        self.left = MOST

    def meet(self, arrays: Sequence[np.ndarray]) -> None:
        self.met += 1
        self.axes.update(
            (k, axis)
            for k, array in enumerate(arrays)
            for axis, n in enumerate(array.shape)
            if n != self.first[k][axis]
        )


def history_of(form: core.Form, arrays: Sequence[Array]) -> ShapeHistory | None:
    """Note the shapes of these inputs; the history if a dynamic-shape specialisation is due for them, else None."""
    known: EagerMeta | None = form.known
    if known is not None and known.sizes is None:
        return None  # a gradient operator of a static specialisation: always called with the same sizes
    if not arrays or any(type(array) is not np.ndarray for array in arrays):
        return None
    key = tuple([(array.dtype, array.ndim) for array in arrays])
    history: ShapeHistory | None = form.kinds.get(key)
    if history is None:
        history = form.kinds[key] = ShapeHistory(arrays)
    history.meet(arrays)
    if history.left == 0 or (known is None and (history.met <= EXACT_FIRST or not history.axes)):
        return None
    return history


def symbolic_meta(form: core.Form, arrays: Sequence[np.ndarray], axes: Axes) -> EagerMeta | None:
    """Shapes of the inputs with symbolic sizes for the dynamic axes; None if there are none."""
    if form.known is not None:
        meta = solved(form, arrays, ShapeEnv())
    else:
        meta = EagerMeta(sizes=ShapeEnv())
    sizes = meta.sizes
    assert sizes is not None
    for k, (name, array) in enumerate(zip(form.names_in, arrays, strict=True)):
        if name not in meta.shapes:
            every = form.known is not None  # a result of another gradient operator
            shape: list[Any] = list(array.shape)
            for axis, n in enumerate(shape):
                if every or (k, axis) in axes:
                    shape[axis] = sizes.input_symbol(n, f"{name}.{axis}")
            meta.shapes[name] = tuple(shape)
        elif current_shape(meta.shapes[name]) != array.shape:
            return None
    return meta if sizes.symbols else None


def solved(form: core.Form, arrays: Sequence[Array], sizes: ShapeEnv | None) -> EagerMeta:
    """The shapes of the forward operator's variables, solved from the inputs of the gradient operator `form`.

    Sizes are numbers or, with `sizes`, new input symbols of it. Shapes that the inputs do not determine are left out.
    """
    known: EagerMeta = form.known
    values: dict[int, Any] = {}
    # Saved arrays of the forward pass take precedence over gradients, which users may have changed.
    for name, array in sorted(zip(form.names_in, arrays, strict=True), key=lambda item: GRAD in item[0]):
        for symbol, axis in input_axes(known.shapes.get(name, ())):
            if symbol not in values and axis < len(array.shape):
                n = array.shape[axis]
                values[symbol] = n if sizes is None else sizes.input_symbol(n, f"{name}.{axis}")
    meta = EagerMeta(sizes=sizes)
    meta.dtypes = dict(known.dtypes)
    for name, shape in known.shapes.items():
        if all(free_symbols(n) <= values.keys() for n in shape):
            meta.shapes[name] = tuple([substituted(n, values) for n in shape])
    return meta


def input_axes(shape: Sequence[Any]) -> list[tuple[int, int]]:
    """(input symbol, axis) for each axis whose size is an input symbol; of equal ones the oldest."""
    found = [
        (input_of(n.env, n.env.canonical(n.terms)), axis)
        for axis, n in enumerate(shape)
        if isinstance(n, SymInt)
    ]
    return [(symbol, axis) for symbol, axis in found if symbol is not None]


def input_of(env: ShapeEnv, terms: Terms) -> int | None:
    """The input symbol that a formula consists of, or None if it is no single symbol."""
    if len(terms) == 1:
        ((symbols, times),) = terms.items()
        if times == 1 and len(symbols) == 1 and env.symbols[symbols[0]].kind == "input":
            return symbols[0]
    return None


def gradients_are_valid(
    meta: EagerMeta, known: EagerMeta, steps: Sequence[tuple[OpSpec, dict[str, list[str]], Any]], guards: int
) -> bool:
    """True if the gradient operators of a dynamic-shape specialisation are valid for all its sizes.

    Their inputs must determine the shapes of the gradients. `guards`: the number of guards before the gradient rule.
    """
    assert meta.sizes is not None
    if len(meta.sizes.guards) > guards:
        return False
    for spec, outputs, _ in steps:
        if any(_holds_sizes(value) for value in spec.attrs.values()):
            return False
        given = [name for names in spec.inputs.values() for name in names]
        inputs = {symbol for name in given for symbol, _ in input_axes(known.shapes.get(name, ()))}
        for name in (name for names in outputs.values() for name in names):
            shape = known.shapes.get(name.replace("grad/", "").split(GRAD)[0], ())
            if not all(free_symbols(n) <= inputs for n in shape):
                return False
    return True


def note_gradient(view: OpView) -> None:
    """Run the gradient rule, so that its guards are added in time."""
    definition: OpDef = view.definition
    if definition.grad is not None:
        try:
            definition.grad(view)
        except Exception:  # raised when the gradient is asked for
            return


def _holds_sizes(value: Any) -> bool:
    """True if an attribute contains symbolic sizes."""
    if isinstance(value, (list, tuple)):
        return any(_holds_sizes(item) for item in value)
    return isinstance(value, (SymInt, SymFloat))


def dynamic_arguments(
    form: core.Form, arrays: Sequence[np.ndarray], meta: EagerMeta, calls: Sequence[Any], sized: bool
) -> tuple[Any, ...] | None:
    """The last argument of `core.Variant`, which makes it dynamic; None if its guards admit a single size.

    `calls`: (address, operands, ints, floats) each, with symbolic sizes among the numbers. `sized`: the specialisation
    allocates its outputs.
    """
    sizes = meta.sizes
    assert sizes is not None
    shapes: list[tuple[Any, ...]] = [meta.shapes[name] for name in form.names_in]
    if all(sizes.is_constant(n) for shape in shapes for n in shape if isinstance(n, SymInt)):
        return None
    registers = Registers(sizes)
    ins: list[tuple[int, int, int]] = []
    taken: set[int] = set()
    for k, shape in enumerate(shapes):
        for axis, n in enumerate(shape):
            if not isinstance(n, SymInt):
                continue
            register = registers.integer(n)
            symbol = input_of(sizes, n.terms)
            if symbol is None or symbol in taken:
                computed, register = register, registers.values.add(engine.Sizes.ROOT, arrays[k].shape[axis])
                registers.values.guard(engine.Sizes.EQ, register, computed)
            else:
                taken.add(symbol)
            ins.append((k, axis, register))
    outs: list[tuple[int, int, int]] = []
    for k, name in enumerate(form.names_out if sized else ()):
        for axis, n in enumerate(meta.shapes[name]):
            if isinstance(n, SymInt):
                outs.append((k, axis, registers.integer(n)))
    ints, reals = [], []
    for call, (_, _, integers, floats) in enumerate(calls):
        for at, n in enumerate(integers):
            if isinstance(n, SymInt):
                ints.append((call, at, registers.integer(n)))
        for at, x in enumerate(floats):
            if isinstance(x, (SymInt, SymFloat)):
                reals.append((call, at, registers.real(x)))
    registers.add_guards()
    return registers.values, ins, outs, ints, reals
