"""GPU fusion of fully connected layers: a product with bias and activation as one launch, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.dtypes import FLOATS, VarType
from ...ops.registry import OpView, grad_name
from ..ir.instructions import Instruction, Uses
from ..passes.rewriting import Replacement
from .launch import Get

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
