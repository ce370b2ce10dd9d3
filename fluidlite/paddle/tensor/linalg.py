"""Products of matrices and vectors, norms, sums of products by the names of axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...eager import Tensor, placing
from ..modes import axes_of, eager_array, run
from .creation import diagonal_of
from .manipulation import moveaxis, reshape, transpose
from .stat import sum as total

__all__ = [
    "addmm",
    "bincount",
    "bmm",
    "cholesky",
    "cross",
    "diagonal",
    "dist",
    "dot",
    "einsum",
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


_SPARE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def einsum(equation: str, *operands: Any) -> Any:
    """Einstein's summation (`paddle.einsum`): products of tensors, summed over the axes that the result lacks.

    Args:
        equation: the axes of each operand as letters, then those of the result: 'bij,bjk->bik'. `...` stands for axes
            without letters, the same for all operands. Without '->' the result has the letters that come once, sorted.
        operands: tensors of one dtype.

    Raises:
        ValueError: letters and axes do not fit, a letter comes twice in one operand, or axes of one letter differ.
    """
    tensors = (
        list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    )
    terms, result = _parsed(equation, tensors)
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        for letter, size in zip(term, tensor.shape, strict=True):
            if sizes.setdefault(letter, size) != size and -1 not in (size, sizes[letter]):
                raise ValueError(
                    f"einsum {equation!r}: axis {letter!r} has size {sizes[letter]} in one operand and {size} in "
                    "another"
                )
    made, labels = tensors[0], terms[0]
    for k in range(1, len(tensors)):
        wanted = set(result).union(*terms[k + 1 :])
        made, labels = _product(made, labels, tensors[k], terms[k], wanted, sizes)
    made, labels = _summed(made, labels, set(result))
    return _ordered(made, labels, result)


def _parsed(equation: str, tensors: list[Any]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, with spare letters in place of `...`."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    given = left.split(",")
    if len(given) != len(tensors):
        raise ValueError(f"einsum {equation!r} has {len(given)} operands, got {len(tensors)} tensors")
    spare = [letter for letter in _SPARE if letter not in equation]
    terms, most = [], 0
    for term, tensor in zip(given, tensors, strict=True):
        rank, bare = len(tensor.shape), term.replace("...", "")
        hidden = rank - len(bare) if "..." in term else 0
        if len(bare) + hidden != rank or hidden < 0:
            raise ValueError(
                f"einsum {equation!r}: {term!r} does not fit an operand of shape {list(tensor.shape)}"
            )
        if len(set(bare)) != len(bare) or not (bare.isalpha() or not bare):
            raise ValueError(f"einsum {equation!r}: {term!r} must be letters that come once each")
        most = max(most, hidden)
        terms.append(term.replace("...", "".join(spare[:hidden][::-1])))
    dots = "".join(spare[:most][::-1])
    letters = "".join(given).replace(".", "")
    if not arrow:
        right = dots + "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    right = right.replace("...", dots)
    if len(set(right)) != len(right) or not set(right) <= set("".join(terms)):
        raise ValueError(f"einsum {equation!r}: the result must have letters of the operands, once each")
    return terms, right


def _summed(x: Any, labels: str, wanted: set[str]) -> tuple[Any, str]:
    """`x` summed over the axes that are not in `wanted`."""
    axes = [axis for axis, letter in enumerate(labels) if letter not in wanted]
    if not axes:
        return x, labels
    return total(x, axis=axes), "".join(letter for letter in labels if letter in wanted)


def _ordered(x: Any, labels: str, order: str) -> Any:
    """`x` with its axes in the order of the letters."""
    return x if labels == order else transpose(x, [labels.index(letter) for letter in order])


def _product(
    x: Any, of_x: str, y: Any, of_y: str, wanted: set[str], sizes: Mapping[str, int]
) -> tuple[Any, str]:
    """The product of two tensors, summed over shared axes that are not in `wanted`, as one batched matmul."""
    x, of_x = _summed(x, of_x, wanted | set(of_y))
    y, of_y = _summed(y, of_y, wanted | set(of_x))
    shared = [letter for letter in of_x if letter in of_y]
    batch = "".join(letter for letter in shared if letter in wanted)
    inner = "".join(letter for letter in shared if letter not in wanted)
    rows = "".join(letter for letter in of_x if letter not in of_y)
    columns = "".join(letter for letter in of_y if letter not in of_x)

    def lengths(letters: str) -> list[int]:
        return [sizes[letter] for letter in letters]

    def length(letters: str) -> int:
        known = 1
        for size in lengths(letters):
            known = -1 if -1 in (size, known) else known * size
        return known

    left = reshape(_ordered(x, of_x, batch + rows + inner), [*lengths(batch), length(rows), length(inner)])
    right = reshape(
        _ordered(y, of_y, batch + inner + columns), [*lengths(batch), length(inner), length(columns)]
    )
    labels = batch + rows + columns
    return reshape(matmul(left, right), lengths(labels) or [1]), labels
