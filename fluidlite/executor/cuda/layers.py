"""GPU fusion of layers and of their gradients: a launch for a product with bias and activation, one for batch
normalisation with the sum and the relu that follow it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.dtypes import FLOATS, VarType
from ...ops.registry import OpView, grad_name
from ..ir.instructions import Instruction, Uses
from ..passes.rewriting import Replacement
from .launch import Get, one_by_one

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_OUT_GRAD, _X_GRAD, _Y_GRAD = grad_name("Out"), grad_name("X"), grad_name("Y")


class _Sizes(NamedTuple):
    """A product as [m, k] times [k, n]."""

    m: int
    n: int
    k: int


def _sizes(view: OpView) -> _Sizes | None:
    """The sizes of a `mul` or `matmul` (or of its gradient); None if it is not one product of contiguous matrices."""
    x, y = view.shape("X"), view.shape("Y")
    if "x_num_col_dims" in view.definition.attrs:
        rows, inner = view.attr("x_num_col_dims"), view.attr("y_num_col_dims")
        return _Sizes(math.prod(x[:rows]), math.prod(y[inner:]), math.prod(x[rows:]))
    flipped = view.attr("transpose_X") or view.attr("transpose_Y")
    if len(x) < 2 or len(y) != 2 or flipped or view.attr("alpha") != 1:
        return None
    return _Sizes(math.prod(x[:-1]), y[1], x[-1])


def _is_bias(view: OpView, n: int) -> bool:
    """True if `elementwise_add` (or its gradient) adds Y to each row of n elements."""
    x, y, axis = view.shape("X"), view.shape("Y"), view.attr("axis")
    fits = 0 < len(y) < len(x) and tuple(x[len(x) - len(y) :]) == tuple(y) and math.prod(y) == n
    return fits and axis in (-1, len(x) - len(y))


def _same_dtype(*views_and_slots: tuple[OpView, str]) -> bool:
    """True if the variables have the same dtype, for which there are kernels."""
    dtypes = {view.dtype(slot) for view, slot in views_and_slots}
    return len(dtypes) == 1 and dtypes <= FLOATS and VarType.FP16 not in dtypes


def layer(before: Instruction, after: Instruction, uses: Uses) -> Replacement | None:
    """Fuse a product with its bias, and these with an activation."""
    view, run = after.view, before.action
    if view is None:
        return None
    if isinstance(run, _Forward):
        if after.kind != "activation" or run.activation is not None or view.name("X") != run.writes[0]:
            return None
        fused = replace(run, writes=(view.name("Out"), *run.writes[1:]), activation=view.type)
        return Replacement((before, after), fused, fused.reads, fused.writes)
    product = before.view
    if product is None or before.kind != "product" or view.type != "elementwise_add":
        return None
    sizes, result = _sizes(product), product.name("Out")
    if view.name("X") != result or view.name("Y") == result or sizes is None or not _is_bias(view, sizes.n):
        return None
    if not _same_dtype((product, "X"), (product, "Y"), (view, "Y")):
        return None
    reads = (product.name("X"), product.name("Y"), view.name("Y"))
    fused = _Forward(reads, (view.name("Out"),), sizes, tuple(view.shape("Out")))
    return Replacement((before, after), fused, reads, fused.writes)


def layer_grad(before: Instruction, after: Instruction, uses: Uses) -> Replacement | None:
    """Fuse the gradients of bias and product, and of the activation if there is one."""
    first, run = before.view, after.action
    if before.kind == "activation_grad" and isinstance(run, _Backward):
        if first is None or run.activation is not None or first.name_or_none(_X_GRAD) != run.dout:
            return None
        activation = first.type.removesuffix("_grad")
        run = replace(run, out=first.name("Out"), dout=first.name(_OUT_GRAD), activation=activation)
        return Replacement((before, after), run, run.reads, run.writes)
    add, view = first, after.view
    if after.kind != "product_grad" or view is None or add is None or add.type != "elementwise_add_grad":
        return None
    if not (add.has(_X_GRAD) and add.has(_Y_GRAD) and view.has(_Y_GRAD)):
        return None
    if add.name(_X_GRAD) != view.name(_OUT_GRAD):
        return None
    sizes = _sizes(view)
    if sizes is None or not _is_bias(add, sizes.n):
        return None
    if not _same_dtype((view, "X"), (view, "Y"), (view, _OUT_GRAD), (add, _OUT_GRAD)):
        return None
    run = _Backward(
        view.name("X"),
        view.name("Y"),
        None,
        add.name(_OUT_GRAD),
        view.name_or_none(_X_GRAD),
        view.name(_Y_GRAD),
        add.name(_Y_GRAD),
        sizes,
        (tuple(view.shape("X")), tuple(view.shape("Y")), tuple(add.shape("Y"))),
        None,
    )
    return Replacement((before, after), run, run.reads, run.writes)


def _matrix(device: CudaDevice, array: Any, *shape: int) -> Any:
    from ...backend.cupy_.launch import dense

    return dense(device, array).reshape(shape)


@dataclass(frozen=True)
class _Forward:
    """Runs a layer. Of the `writes` after the first only the shapes are read."""

    reads: tuple[str, str, str]
    writes: tuple[str, ...]
    sizes: _Sizes
    shape: tuple[int, ...]
    activation: str | None = None

    def with_shapes(self, names: Sequence[str]) -> _Forward:
        return replace(self, writes=(*self.writes, *names))

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.launchers.products import layer

        x, w, bias = map(get, self.reads)
        m, n, k = self.sizes
        factors = _matrix(device, x, m, k), _matrix(device, w, k, n), _matrix(device, bias, n)
        return dict.fromkeys(self.writes, layer(device, *factors, self.activation).reshape(self.shape))


@dataclass(frozen=True)
class _Backward:
    """Runs the gradients of a layer. `shapes`: of x, w and the bias."""

    x: str
    w: str
    out: str | None
    dout: str
    dx: str | None
    dw: str
    dbias: str
    sizes: _Sizes
    shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    activation: str | None

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for name in (self.x, self.w, self.out, self.dout) if name is not None)

    @property
    def writes(self) -> tuple[str, ...]:
        return tuple(name for name in (self.dx, self.dw, self.dbias) if name is not None)

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.launchers.products import layer_grad

        m, n, k = self.sizes
        results = layer_grad(
            device,
            _matrix(device, get(self.x), m, k),
            _matrix(device, get(self.w), k, n),
            _matrix(device, get(self.out), m, n) if self.out is not None else None,
            _matrix(device, get(self.dout), m, n),
            self.activation,
            self.dx is not None,
        )
        names = (self.dx, self.dw, self.dbias)
        return {
            name: array.reshape(shape)
            for name, array, shape in zip(names, results, self.shapes, strict=True)
            if name is not None
        }


_OUT_GRAD, _X_GRAD, _Y_GRAD = grad_name("Out"), grad_name("X"), grad_name("Y")
_RUNNING = (("MeanOut", "Mean"), ("VarianceOut", "Variance"))
_INPUTS = ("X", "Scale", "Mean", "Variance")
_ATTRS = ("is_test", "epsilon", "data_layout", "use_global_stats", "trainable_statistics")


def normalized(before: Instruction, after: Instruction, uses: Uses) -> Replacement | None:
    """Fuse a normalisation with an addition of a tensor of the same shape, and either with a relu."""
    view, run = after.view, before.action
    if view is None:
        return None
    if not isinstance(run, _Normalized):
        norm = before.view
        if norm is None or norm.type != "batch_norm":
            return None
        if any(norm.name(out) != norm.name(source) for out, source in _RUNNING):
            return None
        run = _Normalized((before,), norm, None, False, (norm.name("Y"),))
    if run.relu:
        return None
    result, parts = run.results[0], (*run.parts, after)
    if view.type == "relu" and view.name("X") == result:
        run = replace(run, parts=parts, relu=True, results=(view.name("Out"), *run.results[1:]))
        return Replacement(
            (before, after), run, before.reads, _replaced(before.writes, result, run.results[0])
        )
    names = view.names("X") + view.names("Y")
    if view.type != "elementwise_add" or run.other is not None or names.count(result) != 1:
        return None
    if view.shape("X") != view.shape("Y") or view.dtype("X") != view.dtype("Y"):
        return None
    other = names[1 - names.index(result)]
    run = replace(run, parts=parts, other=other, results=(view.name("Out"), *run.results[1:]))
    return Replacement(
        (before, after), run, (*before.reads, other), _replaced(before.writes, result, run.results[0])
    )


def _replaced(names: Sequence[str], old: str, new: str) -> tuple[str, ...]:
    return tuple(new if name == old else name for name in names)


def normalized_grad(before: Instruction, after: Instruction, uses: Uses) -> Replacement | None:
    """Fuse the gradient of a normalisation with that of the relu that follows it."""
    relu, view = before.view, after.view
    if relu is None or view is None or relu.type != "relu_grad" or view.type != "batch_norm_grad":
        return None
    slope = view.name(_Y_GRAD)
    if relu.name_or_none(_X_GRAD) != slope:
        return None
    run = _Gradient((before, after), view, relu.name("Out"), relu.name(_OUT_GRAD))
    return Replacement(
        (before, after), run, (*before.reads, *(n for n in after.reads if n != slope)), after.writes
    )


def _arguments(view: OpView, get: Get, slots: Sequence[str], attrs: Sequence[str]) -> dict[str, Any]:
    """The arguments of a launcher: inputs (None for an absent one) and attributes."""
    names = ((slot, view.name_or_none(slot)) for slot in slots)
    arrays = {slot: None if name is None else get(name) for slot, name in names}
    return arrays | {attr: view.attr(attr) for attr in attrs}


@dataclass(frozen=True)
class _Normalized:
    """Runs a normalisation and its epilogue. Of the `results` after the first only the shapes are read."""

    parts: tuple[Instruction, ...]
    view: OpView
    other: str | None
    relu: bool
    results: tuple[str, ...]

    def with_shapes(self, names: Sequence[str]) -> _Normalized:
        return replace(self, results=(*self.results, *names))

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.launchers.normalization import forward

        other = None if self.other is None else get(self.other)
        arguments = _arguments(self.view, get, (*_INPUTS, "MomentumTensor", "Bias"), (*_ATTRS, "momentum"))
        results = forward(device, **arguments, other=other, relu=self.relu)
        if results is NotImplemented:
            return one_by_one(self.parts, device, get)
        outputs = zip(self.view.definition.output_slots[1:], results[1:], strict=True)
        kept = {self.view.name(slot.name): array for slot, array in outputs if self.view.has(slot.name)}
        return {**dict.fromkeys(self.results, results[0]), **kept}


@dataclass(frozen=True)
class _Gradient:
    """Runs the gradients of a relu and of the normalisation before it."""

    parts: tuple[Instruction, ...]
    view: OpView
    out: str
    dout: str

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.launchers.normalization import gradient

        arguments = _arguments(self.view, get, (*_INPUTS, "SavedMean", "SavedVariance"), _ATTRS)
        wanted = [slot for slot, names in self.view.outputs.items() if names]
        results = gradient(device, **arguments, Y_grad=get(self.dout), wanted=wanted, relu_out=get(self.out))
        if results is NotImplemented:
            return one_by_one(self.parts, device, get)
        slots = zip(self.view.definition.output_slots, results, strict=True)
        return {self.view.name(slot.name): array for slot, array in slots if array is not None}
