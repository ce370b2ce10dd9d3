"""Products of matrices and vectors, norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...eager import Tensor, placing
from ..run_mode import axes_of, eager_array, run
from .creation import diagonal_of
from .manipulation import moveaxis, reshape

__all__ = [
    "addmm",
    "bincount",
    "bmm",
    "cholesky",
    "cross",
    "diagonal",
    "dist",
    "dot",
    "histogram",
    "inner",
    "inverse",
    "kron",
    "matmul",
    "mm",
    "mv",
    "norm",
    "outer",
    "trace",
]


def matmul(
    x: Any, y: Any, transpose_x: bool = False, transpose_y: bool = False, name: str | None = None
) -> Any:
    """x @ y for matrices, batches of them and vectors (`paddle.matmul`). Batch axes broadcast.

    `transpose_x`, `transpose_y`: swap the last two axes first.
    """
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": 1.0}
    rank_x, rank_y = len(x.shape), len(y.shape)
    batch_x, batch_y = list(x.shape[:-2]), list(y.shape[:-2])
    if batch_x and batch_y and batch_x != batch_y and min(rank_x, rank_y) > 2:
        batch = list(np.broadcast_shapes(tuple(batch_x), tuple(batch_y)))
        x, y = (_repeated(value, batch) for value in (x, y))
    return run("matmul", {"X": x, "Y": y}, attrs=attrs, name=name)


def _repeated(x: Any, batch: list[int]) -> Any:
    """The matrices `x` repeated to the batch axes `batch`."""
    lead = [1] * (len(batch) + 2 - len(x.shape)) + list(x.shape)
    times = [want // have for have, want in zip(lead, batch, strict=False)] + [1, 1]
    return run("expand", {"X": reshape(x, lead)}, attrs={"expand_times": times})


def mm(input: Any, mat2: Any, name: str | None = None) -> Any:
    """The same as `matmul` (`paddle.mm`)."""
    return matmul(input, mat2, name=name)


def bmm(x: Any, y: Any, name: str | None = None) -> Any:
    """x @ y for batches [n, m, k] and [n, k, l] (`paddle.bmm`). Raises ValueError for other ranks."""
    if len(x.shape) != 3 or len(y.shape) != 3:
        raise ValueError(
            f"paddle.bmm takes tensors of three axes, got shapes {list(x.shape)} and {list(y.shape)}"
        )
    return run("bmm", {"X": x, "Y": y}, name=name)


def mv(x: Any, vec: Any, name: str | None = None) -> Any:
    """The matrix `x` times the vector `vec` (`paddle.mv`)."""
    return matmul(x, vec, name=name)


def dot(x: Any, y: Any, name: str | None = None) -> Any:
    """The inner product of vectors, of shape [1], or of each pair of rows, [n, 1] (`paddle.dot`)."""
    return run("reduce_sum", {"X": x * y}, attrs={"dim": [-1], "keep_dim": True}, name=name)


def inner(x: Any, y: Any, name: str | None = None) -> Any:
    """Inner products over the last axes of both (`paddle.inner`)."""
    if len(y.shape) < 3:
        return matmul(x, y, transpose_y=len(y.shape) == 2, name=name)
    found = matmul(x, reshape(y, [-1, y.shape[-1]]), transpose_y=True)
    return reshape(found, [*x.shape[:-1], *y.shape[:-1]], name=name)


def outer(x: Any, y: Any, name: str | None = None) -> Any:
    """Each element of `x` times each of `y`, both flattened (`paddle.outer`)."""
    return reshape(x, [-1, 1]) * reshape(y, [1, -1])


def kron(x: Any, y: Any, name: str | None = None) -> Any:
    """The Kronecker product of matrices (`paddle.kron`)."""
    return run("kron", {"X": x, "Y": y}, name=name)


def addmm(input: Any, x: Any, y: Any, beta: float = 1.0, alpha: float = 1.0, name: str | None = None) -> Any:
    """beta * input + alpha * x @ y (`paddle.addmm`)."""
    attrs = {"Alpha": float(alpha), "Beta": float(beta)}
    return run("addmm", {"Input": input, "X": x, "Y": y}, attrs=attrs, name=name)


def cross(x: Any, y: Any, axis: int | None = None, name: str | None = None) -> Any:
    """The vector product along an axis of size 3, by default the first such (`paddle.cross`)."""
    if axis is None:
        axis = next((place for place, size in enumerate(x.shape) if size == 3), None)
    if axis is None or x.shape[axis] != 3:
        raise ValueError(f"paddle.cross needs an axis of size 3, got shape {list(x.shape)} and axis {axis}")
    return run("cross", {"X": x, "Y": y}, attrs={"dim": axis % len(x.shape)}, name=name)


def norm(x: Any, p: Any = "fro", axis: Any = None, keepdim: bool = False, name: str | None = None) -> Any:
    """The p-norm along `axis`, None for all elements (`paddle.norm`).

    `p`: 'fro' (the same as 2), a number, or plus or minus infinity for the largest or smallest magnitude; 0 counts
    what is not zero.
    """
    axes = axes_of(axis)
    attrs = {"dim": axes or [0], "keep_dim": keepdim, "reduce_all": not axes}
    power = 2.0 if p == "fro" else float(p)
    size = run("abs", {"X": x})
    if power in (float("inf"), float("-inf")):
        return run("reduce_max" if power > 0 else "reduce_min", {"X": size}, attrs=attrs, name=name)
    if power == 0:
        return run("reduce_sum", {"X": (x != 0).astype(x.dtype)}, attrs=attrs, name=name)
    if power == 2:
        return run("sqrt", {"X": run("reduce_sum", {"X": run("square", {"X": x})}, attrs=attrs)}, name=name)
    if power == 1:
        return run("reduce_sum", {"X": size}, attrs=attrs, name=name)
    total = run("reduce_sum", {"X": run("pow", {"X": size}, attrs={"factor": power})}, attrs=attrs)
    return run("pow", {"X": total}, attrs={"factor": 1 / power}, name=name)


def dist(x: Any, y: Any, p: float = 2) -> Any:
    """The p-norm of x - y, of shape [1] (`paddle.dist`)."""
    return run("dist", {"X": x, "Y": y}, attrs={"p": float(p)})


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Any:
    """The diagonals of the matrices that `axis1` and `axis2` make, along a new last axis (`paddle.diagonal`)."""
    x = moveaxis(x, [axis1, axis2], [0, 1])
    return moveaxis(diagonal_of(x, offset), 0, -1)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Any:
    """The sums of the diagonals (`paddle.trace`); arguments as in `diagonal`."""
    return run("trace", {"Input": x}, attrs={"offset": offset, "dim1": axis1, "dim2": axis2}, name=name)


def inverse(x: Any, name: str | None = None) -> Any:
    """The inverses of square matrices (`paddle.inverse`)."""
    return run("inverse", {"Input": x}, ("Output",), name=name)


def cholesky(x: Any, upper: bool = False, name: str | None = None) -> Any:
    """The triangular factors of symmetric positive matrices, lower unless `upper` (`paddle.cholesky`)."""
    return run("cholesky", {"X": x}, attrs={"upper": upper}, name=name)


def histogram(input: Any, bins: int = 100, min: float = 0, max: float = 0, name: str | None = None) -> Any:
    """How many elements of an eager tensor fall into each of `bins` equal parts of [min, max], int64
    (`paddle.histogram`). With min = max = 0 that is the range of the elements."""
    array = eager_array(input, "histogram")
    limits = (float(array.min()), float(array.max())) if min == max == 0 and array.size else (min, max)
    counts = np.histogram(array, bins, limits)[0].astype(np.int64)
    return Tensor(placing.to_device_of(counts, input.array))


def bincount(x: Any, weights: Any = None, minlength: int = 0, name: str | None = None) -> Any:
    """How often each number comes in the eager vector `x`, or the sums of its weights (`paddle.bincount`)."""
    heavy = None if weights is None else eager_array(weights, "bincount")
    found = np.bincount(eager_array(x, "bincount"), heavy, minlength)
    return Tensor(placing.to_device_of(found if heavy is None else found.astype(heavy.dtype), x.array))
