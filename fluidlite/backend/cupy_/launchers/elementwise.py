"""Launchers of arithmetic and functions element by element, of reductions, and of chains as one generated kernel.

A chain consists of the functions of `unary.cu`, `functions.cu` and `binary.cu`, which become functions of the
device; it is compiled on first use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.sizes import collapse, middle, reduced_axes
from .. import launch, library
from ..device import CudaDevice

if TYPE_CHECKING:
    from ..device import CudaDevice


_FEW = 512
"""Fewer rows or tiles than this do not fill a GPU, so long ones are split."""

_LONG, _HIGH = 4096, 512
"""The least elements of a row, and rows of a tile of 32 columns, for a block of their own."""

_WARP_ROW = 1024
"""Rows up to this length are reduced by a warp, longer ones by a block."""


def team(count: int, n: int) -> tuple[str, int, int]:
    """The launch of a kernel over `count` rows of `n` elements: the suffix of its name, blocks, threads."""
    if n <= _WARP_ROW:
        return "_warp", launch.blocks_for(count, 4), 128
    return "_block", launch.blocks_for(count, 1), launch.THREADS


def reduced(device: CudaDevice, x: Any, how: str, layout: tuple[int, int, int], scale: float = 1.0) -> Any:
    """`scale` times the `how` (sum, prod, max or min) of `x`, seen as (pre, n, post), over n: [pre, post].

    `x` must be dense and float32 or float64; the sum of nothing is 0.
    """
    pre, n, post = layout
    if post == 1:
        splits = parts(pre, n, _LONG)
        out = device.xp.empty((pre, splits), x.dtype)
        if pre:
            name, blocks, threads = team(pre * splits, -(-n // splits))
            factor = 1.0 if splits > 1 else scale
            launch.grid(
                "reduce", f"{how}_rows{name}", x.dtype, blocks, threads, x, out, pre, n, splits, float(factor)
            )
    else:
        splits = parts(pre * -(-post // 32), n)
        out = device.xp.empty((pre, splits, post), x.dtype)
        if pre and post:
            blocks = launch.blocks_for(pre * splits * -(-post // 32), 1)
            factor = 1.0 if splits > 1 else scale
            args = (x, out, pre, n, post, splits, float(factor))
            launch.grid("reduce", f"{how}_columns", x.dtype, blocks, launch.THREADS, *args)
    if splits > 1:
        return reduced(device, out, how, (pre, splits, post), scale)
    return out.reshape(pre, post)


def parts(units: int, n: int, worth: int = _HIGH) -> int:
    """How many parts to cut each of `units` tiles of `n` rows (or rows of `n` elements) into; `worth` of these are
    worth a block."""
    if units >= _FEW or n < 2 * worth:
        return 1
    return min(-(-n // worth), max(_FEW // max(units, 1), 1))


def summed_to_middle(device: CudaDevice, x: Any, layout: tuple[int, int, int], scale: float = 1.0) -> Any:
    """`scale` times the sum of `x`, seen as (pre, n, post), over pre and post: n elements."""
    pre, n, post = layout
    if post > 1:
        x, scale = reduced(device, x, "sum", (pre * n, post, 1), scale), 1.0 if pre > 1 else scale
        if pre == 1:
            return x.reshape(n)
    return reduced(device, x, "sum", (1, pre, n), scale).reshape(n)


def spread(device: CudaDevice, g: Any, like: Any, layout: tuple[int, int, int], scale: float = 1.0) -> Any:
    """`scale` times `g` [pre, post] repeated along n, in the shape of `like`, which is seen as (pre, n, post)."""
    dx = device.xp.empty(like.shape, like.dtype)
    pre, n, post = layout
    launch.each(
        "reduce", "spread", dx.dtype, dx.size, launch.dense(device, g), dx, dx.size, n, post, float(scale)
    )
    return dx


def mean(device: CudaDevice, X: Any) -> Any:
    """Launcher of `mean`."""
    if not launch.real(X) or not X.size:
        return NotImplemented
    return reduced(device, launch.dense(device, X), "sum", (1, X.size, 1), 1.0 / X.size).reshape(1)


def mean_grad(device: CudaDevice, X: Any, Out_grad: Any) -> Any:
    """Launcher of `mean_grad`."""
    if not launch.real(X, Out_grad) or not X.size:
        return NotImplemented
    return spread(device, Out_grad, X, (1, X.size, 1), 1.0 / X.size)


def _layout(X: Any, dim: Any, reduce_all: bool) -> tuple[tuple[int, int, int] | None, tuple[int, ...]]:
    """`X` as (pre, n, post) around the reduced axes, if kernels can take it; and its shape with these as ones."""
    axes = reduced_axes(X.ndim, dim, reduce_all)
    layout = collapse(X.shape, axes)
    kept = tuple(1 if axis in axes else n for axis, n in enumerate(X.shape))
    return (None if layout is None or 0 in layout else layout), kept


def reduction(how: str) -> Callable[..., Any]:
    """The launcher of `reduce_<how>`."""

    def launcher(device: CudaDevice, X: Any, dim: Any, keep_dim: bool, reduce_all: bool) -> Any:
        layout, kept = _layout(X, dim, reduce_all)
        if layout is None or not launch.real(X):
            return NotImplemented
        scale = 1.0 / layout[1] if how == "mean" else 1.0
        out = reduced(device, launch.dense(device, X), "sum" if how == "mean" else how, layout, scale)
        if keep_dim:
            return out.reshape(kept)
        axes = reduced_axes(X.ndim, dim, reduce_all)
        return out.reshape(tuple(n for axis, n in enumerate(X.shape) if axis not in axes) or (1,))

    return launcher


def reduction_grad(how: str) -> Callable[..., Any]:
    """The launcher of `reduce_<how>_grad`."""

    def spreading(device: CudaDevice, X: Any, Out_grad: Any, dim: Any, reduce_all: bool) -> Any:
        layout, _ = _layout(X, dim, reduce_all)
        if layout is None or not launch.real(X, Out_grad):
            return NotImplemented
        return spread(device, Out_grad, X, layout, 1.0 / layout[1] if how == "mean" else 1.0)

    def choosing(device: CudaDevice, X: Any, Out: Any, Out_grad: Any, dim: Any, reduce_all: bool) -> Any:
        layout, _ = _layout(X, dim, reduce_all)
        if layout is None or not launch.real(X, Out, Out_grad):
            return NotImplemented
        dx = device.xp.empty(X.shape, X.dtype)
        x, out, g = (launch.dense(device, array) for array in (X, Out, Out_grad))
        launch.each("reduce", "spread_to_equal", X.dtype, X.size, x, out, g, dx, X.size, *layout[1:])
        return dx

    return choosing if how in ("max", "min") else spreading


_middle = functools.lru_cache(maxsize=4096)(middle)

_MANY = 8
"""The number of arrays that one launch of the sum kernel takes."""


def forward(name: str) -> Callable[..., Any]:
    """The launcher of `elementwise_<name>`; see `infer.middle` for the shapes it takes."""

    def launcher(device: CudaDevice, X: Any, Y: Any, axis: int) -> Any:
        layout = _middle(X.shape, Y.shape, axis)
        if layout is None or not launch.real(X, Y):
            return NotImplemented
        out = device.xp.empty(X.shape, X.dtype)
        args = (launch.dense(device, X), launch.dense(device, Y), out, X.size, *layout[1:])
        launch.each("binary", f"{name}_value", X.dtype, X.size, *args)
        return out

    return launcher


def grad(name: str) -> Callable[..., Any]:
    """The launcher of `elementwise_<name>_grad`."""

    def launcher(
        device: CudaDevice, X: Any, Y: Any, Out_grad: Any, axis: int, wanted: Collection[str] | None = None
    ) -> Any:
        layout = _middle(X.shape, Y.shape, axis)
        if layout is None or not launch.real(X, Y, Out_grad):
            return NotImplemented
        g = launch.dense(device, Out_grad)
        for_x = wanted is None or "X@GRAD" in wanted
        for_y = wanted is None or "Y@GRAD" in wanted
        if name == "add":
            return (g if for_x else None), (_summed(device, g, Y.shape, layout) if for_y else None)
        if name == "sub" and X.size != Y.size:
            return (g if for_x else None), (_summed(device, g, Y.shape, layout, -1.0) if for_y else None)
        dx = device.xp.empty(X.shape, X.dtype) if for_x else None
        dy = device.xp.empty(X.shape, X.dtype) if for_y else None
        args = (launch.dense(device, X), launch.dense(device, Y), g, dx, dy, X.size, *layout[1:])
        launch.each("binary", f"{name}_grad", X.dtype, X.size, *args)
        return dx, None if dy is None else _summed(device, dy, Y.shape, layout)

    return launcher


def _summed(
    device: CudaDevice, g: Any, shape: tuple[int, ...], layout: tuple[int, int, int], scale: float = 1.0
) -> Any:
    """The gradient for Y, of `shape`: the sum over the positions that Y was broadcast to."""
    if layout[1] == g.size:
        return g.reshape(shape)
    return summed_to_middle(device, g, layout, scale).reshape(shape)


def add_many(device: CudaDevice, X: list[Any]) -> Any:
    """Launcher of `sum`."""
    if not launch.real(*X):
        return NotImplemented
    out = device.xp.empty(X[0].shape, X[0].dtype)
    rest = [launch.dense(device, x) for x in X]
    while rest:
        now, rest = rest[:_MANY], rest[_MANY:]
        given = now + [None] * (_MANY - len(now))
        launch.each("binary", "add_many", out.dtype, out.size, *given, out, out.size)
        if rest:
            rest.insert(0, out)
    return out


def scale(
    device: CudaDevice, X: Any, ScaleTensor: Any, scale: float, bias: float, bias_after_scale: bool
) -> Any:
    """Launcher of `scale`."""
    if not launch.real(X, ScaleTensor):
        return NotImplemented
    out = device.xp.empty(X.shape, X.dtype)
    numbers = (X.size, float(scale), float(bias), bias_after_scale)
    launch.each("binary", "scale", X.dtype, X.size, launch.dense(device, X), ScaleTensor, out, *numbers)
    return out


_RARE = frozenset(
    "acos asin atan ceil cos cosh erf expm1 floor log1p log2 log10 pow reciprocal round rsqrt sign sin sinh tan".split()
)
"""The functions of `functions.cu`, which is compiled only for programs that have one of them; others: `unary.cu`."""


def _file(name: str) -> str:
    return "functions" if name in _RARE else "unary"


def _three(numbers: tuple[float, ...]) -> tuple[float, ...]:
    """All kernels here take three numbers."""
    return (*numbers, *(0.0,) * (3 - len(numbers)))


def value(device: CudaDevice, name: str, x: Any, *numbers: float) -> Any:
    """Function `name` applied to `x`, which must be float32 or float64."""
    out = device.xp.empty(x.shape, x.dtype)
    args = (launch.dense(device, x), out, x.size, *_three(numbers))
    launch.each(_file(name), f"{name}_value", x.dtype, x.size, *args)
    return out


def slope(device: CudaDevice, name: str, kept: Any, g: Any, *numbers: float) -> Any:
    """The gradient of function `name` from that of its result; `kept`: its argument or result, as the kernel has it."""
    dx = device.xp.empty(g.shape, g.dtype)
    args = (launch.dense(device, kept), launch.dense(device, g), dx, g.size, *_three(numbers))
    launch.each(_file(name), f"{name}_grad", g.dtype, g.size, *args)
    return dx


def function(name: str) -> Callable[..., Any]:
    """The launcher of the operator whose kernel is `name`."""

    def launcher(device: CudaDevice, X: Any, **attrs: Any) -> Any:
        return value(device, name, X, *map(float, attrs.values())) if launch.real(X) else NotImplemented

    return launcher


def function_grad(name: str) -> Callable[..., Any]:
    """The launcher of its gradient operator, which keeps X, Out or neither."""

    def launcher(device: CudaDevice, Out_grad: Any, X: Any = None, Out: Any = None, **attrs: Any) -> Any:
        kept = Out if X is None else X
        if not launch.real(Out_grad, kept):
            return NotImplemented
        return slope(device, name, kept, Out_grad, *map(float, attrs.values()))

    return launcher


def clip(device: CudaDevice, X: Any, Min: Any, Max: Any, min: float, max: float) -> Any:
    """Launcher of `clip`."""
    if Min is not None or Max is not None or not launch.real(X):
        return NotImplemented
    return value(device, "brelu", X, float(min), float(max))


def clip_grad(device: CudaDevice, X: Any, Min: Any, Max: Any, Out_grad: Any, min: float, max: float) -> Any:
    """Launcher of `clip_grad`."""
    if Min is not None or Max is not None or not launch.real(X, Out_grad):
        return NotImplemented
    return slope(device, "brelu", X, Out_grad, float(min), float(max))


def power(device: CudaDevice, X: Any, FactorTensor: Any, factor: float) -> Any:
    """Launcher of `pow`."""
    if FactorTensor is not None or not launch.real(X):
        return NotImplemented
    return value(device, "pow", X, float(factor))


def power_grad(device: CudaDevice, X: Any, FactorTensor: Any, Out_grad: Any, factor: float) -> Any:
    """Launcher of `pow_grad`."""
    if FactorTensor is not None or not launch.real(X, Out_grad):
        return NotImplemented
    return slope(device, "pow", X, Out_grad, float(factor))


_UNARY = """
#define UNARY(NAME, VALUE, GRADIENT) \\
    __device__ inline real NAME##_of(real x, real a, real b, real c) { return VALUE; } \\
    __device__ inline real NAME##_slope(real k, real g, real a, real b, real c) { return GRADIENT; }
"""
_BINARY = """
#define BINARY(NAME, VALUE, DX, DY) \\
    __device__ inline real NAME##_of_both(real x, real y) { return VALUE; } \\
    __device__ inline real NAME##_slope_x(real x, real y, real g) { return DX; } \\
    __device__ inline real NAME##_slope_y(real x, real y, real g) { return DY; }
"""
_OTHERS = """
__device__ inline real scaled(real x, real factor, real bias, real after) {
    return after != real(0) ? x * factor + bias : (x + bias) * factor;
}
"""

MOST_ARRAYS, MOST_STEPS = 24, 32
"""Limits on the arrays that a kernel reads and writes, and on the functions that it applies."""


@dataclass(frozen=True)
class Step:
    """One function of a chain: its operands are indices of values (None: zero), followed by `count` numbers."""

    function: str
    operands: tuple[int | None, ...]
    count: int = 0


@dataclass(frozen=True)
class Chain:
    """The expression of a kernel: values are numbered inputs first, then the results of the steps.

    `spread`: for each input whether it is smaller than the results and repeats. `stored`: the values to write.
    """

    spread: tuple[bool, ...]
    steps: tuple[Step, ...]
    stored: tuple[int, ...]


def run(
    device: CudaDevice,
    chain: Chain,
    inputs: Sequence[Any],
    layouts: Sequence[tuple[int, int] | None],
    numbers: Sequence[float],
    shape: tuple[int, ...],
) -> list[Any]:
    """The stored values, of `shape`, for `inputs` of one type of `launch.REAL`, contiguous.

    `layouts`: (n, post) for an input that repeats: element i meets number i / post % n of it. `numbers`: those of all
    steps in order.
    """
    dtype = inputs[0].dtype
    outs = [device.xp.empty(shape, dtype) for _ in chain.stored]
    size = outs[0].size
    if size:
        arguments: list[Any] = [np.int64(size), *inputs, *outs]
        arguments += [np.int64(n) for layout in layouts if layout is not None for n in layout]
        arguments += [dtype.type(number) for number in numbers]
        kernel = _kernel(chain, launch.typed(dtype))
        with library.errors("launching a kernel for a chain of operators"):
            kernel((launch.blocks_for(size),), (launch.THREADS,), tuple(arguments))
    return outs


@functools.lru_cache(maxsize=1024)
def _kernel(chain: Chain, macros: tuple[tuple[str, str], ...]) -> Any:
    with library.errors("compiling a kernel for a chain of operators"):
        return launch.compiled(source(chain), macros).get_function("chain")


def source(chain: Chain) -> str:
    """The CUDA C of a chain."""
    count = len(chain.spread)
    parameters = ["i64 size"]
    parameters += [f"const real *in{k}" for k in range(count)] + [
        f"real *out{k}" for k in range(len(chain.stored))
    ]
    parameters += [f"i64 n{k}, i64 post{k}" for k, small in enumerate(chain.spread) if small]
    parameters += [f"real number{k}" for k in range(sum(step.count for step in chain.steps))]
    lines = [
        f"const real v{k} = in{k}[{f'partner(i, size, n{k}, post{k})' if small else 'i'}];"
        for k, small in enumerate(chain.spread)
    ]
    taken = 0
    for k, step in enumerate(chain.steps):
        words = ["real(0)" if operand is None else f"v{operand}" for operand in step.operands]
        words += [f"number{taken + j}" for j in range(step.count)]
        taken += step.count
        lines.append(f"const real v{count + k} = {step.function}({', '.join(words)});")
    lines += [f"out{k}[i] = v{value};" for k, value in enumerate(chain.stored)]
    body = "\n        ".join(lines)
    return (
        f"{_functions()}\n"
        f'extern "C" __global__ void chain({", ".join(parameters)}) {{\n'
        f"    EACH(i, size) {{\n        {body}\n    }}\n}}\n"
    )


@functools.cache
def _functions() -> str:
    """The CUDA C of all functions that chains may apply."""
    return "".join(
        (
            launch.text("common.cuh"),
            _UNARY,
            launch.text("unary.cu"),
            launch.text("functions.cu"),
            _BINARY,
            launch.text("binary.cu"),
            _OTHERS,
        )
    )


@library.on_forget
def _forget() -> None:
    _kernel.cache_clear()
