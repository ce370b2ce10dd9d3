"""Joins launches of a program on a GPU that one kernel, or a few, can do together."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.dtypes import FLOATS, VarType
from ...ops.registry import OpView, grad_name
from .batch_norm import join_batch_norms
from .chains import join_chains
from .joining import Joining
from .launch import Get, Launch
from .lookups import join_lookups
from .losses import join_losses
from .norms import join_norms
from .updates import join_updates

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_ACTIVATIONS = ("relu", "sigmoid", "tanh")
"""Activations that a fully connected layer can end with; their gradients are computed from their results."""

_OUT_GRAD, _X_GRAD, _Y_GRAD = grad_name("Out"), grad_name("X"), grad_name("Y")


def fuse(launches: Sequence[Launch], needed: Collection[str]) -> list[Launch]:
    """The launches with layers, normalisations, gradients of both, updates and elementwise operators joined.

    `needed`: variables that must have their values in the end. What nobody else looks at is not made any more.
    """
    joined = join_lookups(join_norms(join_losses(launches, needed), needed), needed)
    joined = _Layers(joined, needed).gradients()
    joined = join_batch_norms(_Layers(joined, needed).forward(), needed)
    return join_chains(join_updates(joined, needed), needed)


@dataclass(frozen=True)
class _Sizes:
    """A product as [m, k] times [k, n]."""

    m: int
    n: int
    k: int


def _sizes(view: OpView) -> _Sizes | None:
    """The sizes of a `mul` or `matmul` (or of its gradient) that is one product of matrices as they lie in memory."""
    x, y = view.shape("X"), view.shape("Y")
    if view.type.startswith("mul"):
        rows, inner = view.attr("x_num_col_dims"), view.attr("y_num_col_dims")
        return _Sizes(math.prod(x[:rows]), math.prod(y[inner:]), math.prod(x[rows:]))
    if (
        len(x) < 2
        or len(y) != 2
        or view.attr("transpose_X")
        or view.attr("transpose_Y")
        or view.attr("alpha") != 1
    ):
        return None
    return _Sizes(math.prod(x[:-1]), y[1], x[-1])


def _is_bias(view: OpView, n: int) -> bool:
    """Whether `elementwise_add` (or its gradient) adds Y to each row of n elements."""
    x, y, axis = view.shape("X"), view.shape("Y"), view.attr("axis")
    fits = 0 < len(y) < len(x) and tuple(x[len(x) - len(y) :]) == tuple(y) and math.prod(y) == n
    return fits and axis in (-1, len(x) - len(y))


def _type(*views_and_slots: tuple[OpView, str]) -> VarType | None:
    """The float type that variables have in common; None if there is none."""
    found = {view.dtype(slot) for view, slot in views_and_slots}
    kind = found.pop()
    return kind if not found and kind in FLOATS and kind != VarType.FP16 else None


class _Layers(Joining):
    """Finds runs of neighbouring launches that make up a fully connected layer."""

    def forward(self) -> list[Launch]:
        """With product, bias and activation joined."""
        return self._joined(self._layer)

    def gradients(self) -> list[Launch]:
        """With the gradients of activation, bias and product joined."""
        return self._joined(self._layer_grad)

    def _layer(self, position: int) -> tuple[Launch, int] | None:
        product = self._view(position, ("mul", "matmul"))
        add = self._view(position + 1, ("elementwise_add",))
        if product is None or add is None or add.name("X") != product.name("Out"):
            return None
        sizes, made = _sizes(product), product.name("Out")
        if (
            sizes is None
            or not _is_bias(add, sizes.n)
            or _type((product, "X"), (product, "Y"), (add, "Y")) is None
        ):
            return None
        private, shape_wanted = self._between(made, self.launches[position + 1])
        if not private or add.name("Y") == made:
            return None
        shapes = [made] if shape_wanted else []
        result, activation, count = add.name("Out"), None, 2
        end = self._view(position + 2, _ACTIVATIONS)
        if end is not None and end.name("X") == result:
            private, shape_wanted = self._between(result, self.launches[position + 2])
            if private:
                shapes += [result] if shape_wanted else []
                result, activation, count = end.name("Out"), end.type, 3
        run = _Forward(
            (product.name("X"), product.name("Y"), add.name("Y")),
            (result, *shapes),
            sizes,
            tuple(add.shape("Out")),
            activation,
        )
        return self._launch(position, count, run.reads, run.writes, run), count

    def _layer_grad(self, position: int) -> tuple[Launch, int] | None:
        start = position
        first = self._view(position, [kind + "_grad" for kind in _ACTIVATIONS])
        if first is not None:
            if not self._only_next(position, first.name_or_none(_X_GRAD)):
                return None
            position += 1
        add = self._view(position, ("elementwise_add_grad",))
        product = self._view(position + 1, ("mul_grad", "matmul_grad"))
        if add is None or product is None or not (add.has(_X_GRAD) and add.has(_Y_GRAD)):
            return None
        if add.name(_X_GRAD) != product.name(_OUT_GRAD) or not product.has(_Y_GRAD):
            return None
        if first is not None and first.name(_X_GRAD) != add.name(_OUT_GRAD):
            return None
        sizes = _sizes(product)
        if sizes is None or not _is_bias(add, sizes.n) or not self._only_next(position, add.name(_X_GRAD)):
            return None
        if _type((product, "X"), (product, "Y"), (product, _OUT_GRAD), (add, _OUT_GRAD)) is None:
            return None
        source = first if first is not None else add
        run = _Backward(
            product.name("X"),
            product.name("Y"),
            first.name("Out") if first is not None else None,
            source.name(_OUT_GRAD),
            product.name_or_none(_X_GRAD),
            product.name(_Y_GRAD),
            add.name(_Y_GRAD),
            sizes,
            (tuple(product.shape("X")), tuple(product.shape("Y")), tuple(add.shape("Y"))),
            first.type.removesuffix("_grad") if first is not None else None,
        )
        count = position + 2 - start
        return self._launch(start, count, run.reads, run.writes, run), count


def _matrix(device: CudaDevice, array: Any, *shape: int) -> Any:
    from ...backend.cupy_.launch import dense

    return dense(device, array).reshape(shape)


@dataclass(frozen=True)
class _Forward:
    """Runs a layer. The arrays of `writes` after the first are for their shapes only."""

    reads: tuple[str, str, str]
    writes: tuple[str, ...]
    sizes: _Sizes
    shape: tuple[int, ...]
    activation: str | None

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.fully_connected import layer

        x, w, bias = map(get, self.reads)
        m, n, k = self.sizes.m, self.sizes.n, self.sizes.k
        out = layer(
            device,
            _matrix(device, x, m, k),
            _matrix(device, w, k, n),
            _matrix(device, bias, n),
            self.activation,
        ).reshape(self.shape)
        return dict.fromkeys(self.writes, out)


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
        from ...backend.cupy_.fully_connected import layer_grad

        m, n, k = self.sizes.m, self.sizes.n, self.sizes.k
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
            name: made.reshape(shape)
            for name, made, shape in zip(names, results, self.shapes, strict=True)
            if name is not None
        }
