"""Sums of products by the names of their axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .linalg import matmul
from .manipulation import reshape, transpose
from .stat import sum as total

__all__ = ["einsum"]

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
