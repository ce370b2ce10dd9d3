"""Attention fusion: one call, and another one for all gradients, without a matrix of queries x keys in memory.

The gradients recompute the scores and their softmax, if there are many keys. Transposes and factors whose results have
no other use are fused too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

from ...base.sizes import SymFloat, SymInt, always_equal, current
from ...base.sizes.shapes import aligned, product
from ...ops.registry import Call
from .patterns import Match, Node, NoMatch, Pattern, require
from .rewriting import Replacement, fuse_matches

_LEAST_KEYS = 128
"""With fewer keys, keeping the probabilities for the gradients is faster than recomputing them."""

_SIZES = {"q": ("m", "k"), "keys": ("n", "k"), "v": ("n", "d"), "out": ("m", "d")}
"""The rows and columns of each head, of variables and their gradients ("dq")."""


def _equal(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(always_equal, one, other))


def _is_number(real: Any) -> bool:
    return not isinstance(real, (SymFloat, SymInt))


def _product(call: Call) -> Node | None:
    """A product of contiguous matrices. Numbers: m, n, k, which factors are transposed, matrices, a factor."""
    if call.name not in ("gemm", "gemm_batched") or call.floats[1] != 0 or any(call.operands[3:]):
        return None
    m, n, k, *trans = call.ints[:5]
    batch = 1 if call.name == "gemm" else call.ints[5]
    strides = [0] if call.name == "gemm" else [batch, m * k, k * n, m * n]
    if not _equal(call.ints[5:], strides) or not _is_number(call.floats[0]):
        return None
    return Node(call.operands[:2], call.operands[2:3], [m, n, k, *trans, batch, call.floats[0]])


def _scale(call: Call) -> Node | None:
    """A multiplication by a number."""
    if call.name != "scale" or call.floats[1] != 0 or not _is_number(call.floats[0]):
        return None
    return Node(call.operands[:1], call.operands[1:], call.floats[:1])


def _add(call: Call) -> Node | None:
    """An addition with any broadcasting."""
    if call.name not in ("elementwise_add", "elementwise_add_mid", "elementwise_add_dims"):
        return None
    return Node(call.operands[:2], call.operands[2:])


def _add_grad(call: Call) -> Node | None:
    """The gradient for the first operand of an addition, and only for that."""
    if call.name not in ("elementwise_add_grad", "elementwise_add_mid_grad", "elementwise_add_dims_grad"):
        return None
    return Node(call.operands[3:4], call.operands[4:5]) if call.operands[5] is None else None


def _dropout(call: Call) -> Node | None:
    """A dropout. Number: the factor of what stays."""
    if call.name != "dropout" or not _is_number(call.floats[0]):
        return None
    left = 1 - call.floats[0]
    factor = 1.0 if not call.ints[1] else 1 / left if left > 0 else 0.0
    return Node(call.operands[:1], call.operands[1:], [factor])


def _transpose(*perm: int, back: bool = False) -> Callable[[Call], Node | None]:
    """A transpose of [N, L, H, D] to a matrix for each head, or back. Numbers: the shape with heads in front."""

    def read(call: Call) -> Node | None:
        if call.name != "transpose" or call.ints[1] != 4 or tuple(call.ints[6:]) != perm:
            return None
        shape = call.ints[2:6]
        return Node(call.operands[:1], call.operands[1:], shape if back else [shape[at] for at in perm])

    return read


_READERS = {
    "product": _product,
    "scale": _scale,
    "add": _add,
    "add_grad": _add_grad,
    "dropout": _dropout,
    "split": _transpose(0, 2, 1, 3),
    "join": _transpose(0, 2, 1, 3, back=True),
    "split_across": _transpose(0, 2, 3, 1),
    "join_across": _transpose(0, 3, 1, 2, back=True),
}

_FORWARD = Pattern(
    """
    scores = product(scaled_q, keys | m n k 0 straight batch alpha)
    scaled = scale(scores | scale)?
    biased = add(scaled, bias)?
    p = softmax(biased | _ n)
    kept, mask = dropout(p | kept_factor)?
    weights = scale(kept | factor)?
    out = product(weights, v | m d n 0 0 batch after)
    """,
    _READERS,
)

_GRADIENTS = """
    dweights = product(dout, v | m n d 0 1 batch 1)
    dkept = dropout_grad(dweights, mask)?
    dbiased = softmax_grad(p, dkept)
    dscaled = add_grad(dbiased)?
    dscores = scale(dscaled | scale)?
    dv = product(weights, dout | n d m 1 0 batch 1)?
"""
_STRAIGHT = Pattern(
    f"""{_GRADIENTS}
    dscaled_q = product(dscores, keys | m k n 0 0 batch alpha)?
    dkeys = product(dscores, scaled_q | n k m 1 0 batch alpha)?
    """,
    _READERS,
)
_ACROSS = Pattern(
    f"""{_GRADIENTS}
    dscaled_q = product(dscores, keys | m k n 0 1 batch alpha)?
    dkeys = product(scaled_q, dscores | k n m 1 0 batch alpha)?
    """,
    _READERS,
)
"""The gradients for keys of [n, k], and for keys that are transposed in memory, of [k, n]."""

_FACTOR = Pattern("scaled_q = scale(q | q_factor)", _READERS)
_FACTOR_AND_GRADIENT = Pattern("scaled_q = scale(q | q_factor)\n dq = scale(dscaled_q | q_factor)", _READERS)


@cache
def _transposes(*names: str, across: bool = False) -> Pattern:
    """The transposes that split rows of all heads into these variables (or join these, if they are results)."""
    lines = []
    for name in names:
        rows, columns = _sizes(name)
        sizes, kind = (f"{columns} {rows}", "_across") if across else (f"{rows} {columns}", "")
        if name in ("q", "keys", "v", "dout"):
            lines.append(f"{name} = split{kind}({name}_rows | outer heads {sizes})")
        else:
            lines.append(f"{name}_rows = join{kind}({name} | outer heads {sizes})")
    return Pattern("\n".join(lines), _READERS)


def _sizes(name: str) -> tuple[str, str]:
    return _SIZES[name.removeprefix("d")]


def _attention(match: Match) -> list[Replacement]:
    """The calls for a match, which is extended by all that they can do; the names of gradients begin with "d"."""
    numbers = match.numbers
    numbers["outer"], numbers["heads"] = _lead(match)
    bias_strides = _bias_strides(match)
    across = not numbers["straight"]
    if match.extend(_ACROSS if across else _STRAIGHT):
        require(current(numbers["n"]) >= _LEAST_KEYS and numbers["after"] == 1)
        require(("kept" in match) == ("dkept" in match) and ("scaled" in match) == ("dscores" in match))
    lines = {"dq": "dscaled_q", "dkeys": "dkeys", "dv": "dv"}
    gradients = {name[1:]: name for name, line in lines.items() if line in match}
    if not match.extend(_FACTOR_AND_GRADIENT if "q" in gradients else _FACTOR, private=True):
        match.names.update(q=match.names["scaled_q"], dq=match.names.get("dscaled_q", ""))
    across = _extend_by_transposes(match, gradients, across)

    def variable(name: str) -> str:
        return match.names.get(f"{name}_rows", match.names[name])

    def strides(name: str) -> list[Any]:
        """The strides of batch, head and row."""
        heads, rows, columns = numbers["heads"], *(numbers[size] for size in _sizes(name))
        if f"{name}_rows" in match.names:
            return [rows * heads * columns, columns, heads * columns]
        width = rows if across and name.endswith("keys") else columns
        return [heads * rows * columns, rows * columns, width]

    def call(kernel: str, operands: Sequence[str | None], *sides: str) -> Call:
        sizes = [*map(numbers.__getitem__, ("outer", "heads", "m", "n", "k", "d")), int(across)]
        alpha, factor = (
            prod(float(numbers.get(name, 1)) for name in names)
            for names in (("alpha", "scale", "q_factor"), ("kept_factor", "factor", "after"))
        )
        ints = [*sizes, *(n for side in sides for n in strides(side)), *bias_strides]
        return Call(f"{kernel}.{match.type}", operands, ints, [alpha, factor])

    inputs = ["q", "keys", "v"]
    bias, mask = (
        match.names[name] if line in match else None for line, name in (("biased", "bias"), ("kept", "mask"))
    )
    reads = [*map(variable, inputs), bias, mask]
    found = [
        [each for line, each in match.found.items() if line.startswith("d") == back] for back in (False, True)
    ]
    action = call("attention", [*reads, variable("out")], *inputs, "out")
    replacements = [Replacement(found[0], action, reads, [variable("out")])]
    if mask is not None:
        dropout = match.call("kept")
        draw = Call("dropout_mask", [mask], [dropout.ints[0], dropout.ints[2]], dropout.floats)
        replacements.insert(0, Replacement([match.found["kept"]], draw, [], [mask]))
    if found[1]:
        reads = [*reads, variable("dout")]
        made = [variable(gradients[name]) if name in gradients else None for name in inputs]
        like = [gradients.get(name, name) for name in inputs]
        action = call("attention_grad", [*reads, *made], *inputs, "dout", *like)
        replacements.append(Replacement(found[1], action, reads, made, at_first=True))
    return replacements


def _lead(match: Match) -> tuple[Any, Any]:
    """Batch and heads, by which the scores are a matrix each; raises NoMatch if they are not."""
    view, numbers = match.found["scores"].view, match.numbers
    if view is None or view.type != "matmul":
        raise NoMatch
    x, y = view.shape("X"), view.shape("Y")
    require(2 <= len(x) <= 4 and _equal(x[:-2], y[:-2]))
    lead = (*x[:-2], *(1,) * (4 - len(x)))
    require(_equal([x[-2], lead[0] * lead[1]], [numbers["m"], numbers["batch"]]))
    return lead[0], lead[1]


def _bias_strides(match: Match) -> list[Any]:
    """The strides of batch, head, query and key in the bias, 0 where it is repeated."""
    if "biased" not in match:
        return [0] * 4
    view, scores = match.found["biased"].view, match.found["scores"].view
    if view is None or scores is None:
        raise NoMatch
    x, y = view.shape("X"), view.shape("Y")
    require(_equal(x, scores.shape("Out")) and len(y) <= len(x))
    y = aligned(x, y, view.attr("axis"))[1]
    require(len(y) == len(x))  # and each of its dimensions is 1 or as in X, as kernels of additions want it
    strides = [0 if always_equal(n, 1) else product(tuple(y[at + 1 :])) for at, n in enumerate(y)]
    return [*strides[:-2], *[0] * (4 - len(x)), *strides[-2:]]


def _extend_by_transposes(match: Match, gradients: Mapping[str, str], across: bool) -> bool:
    """Match the transposes that have no other use; returns whether keys are still transposed in memory."""
    others = [gradients[name] for name in ("q", "v") if name in gradients]
    for name in ("q", "v", "out", *(["dout"] if "dout" in match.names else []), *others):
        match.extend(_transposes(name), private=True)
    if "keys" not in gradients:
        groups: list[tuple[str, ...]] = [("keys",)]
    else:  # keys that are transposed in memory and their gradient need one layout
        groups = [("keys", "dkeys")] if across else [("keys",), ("dkeys",)]
    taken = [match.extend(_transposes(*names, across=across), private=True) for names in groups]
    return across and not taken[0]


fuse_attention = fuse_matches(_FORWARD, _attention)
"""The pass."""
