"""Attention fusion: one call, and another one for all gradients, without a matrix of queries x keys in memory.

The gradients recompute the scores and their softmax, if there are many keys. Transposes and factors whose results have
no other use are fused too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.sizes import SymFloat, SymInt, aligned, always_equal, current, product
from ...ops.registry import Call
from ..ir.instructions import Instruction, Need
from .patterns import Match, Node, NoMatch, Pattern, Reader, require
from .rewriting import Replacement, fuse_matches

_LEAST_KEYS = 128
"""With fewer keys, keeping the probabilities for the gradients is faster than recomputing them."""


def _equal(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(always_equal, one, other))


def _product(each: Instruction) -> Node | None:
    """A product of contiguous matrices. Numbers: m, n, k, which factors are transposed, how many matrices, a factor."""
    call = each.action
    if call.name not in ("gemm", "gemm_batched") or call.floats[1] != 0 or any(call.operands[3:]):
        return None
    m, n, k, *trans = call.ints[:5]
    batch, strides = (1, [0]) if call.name == "gemm" else (call.ints[5], [call.ints[5], m * k, k * n, m * n])
    numbers = [m, n, k, *trans, batch, call.floats[0]]
    return Node(call.operands[:2], call.operands[2:3], numbers) if _equal(call.ints[5:], strides) else None


def _add_grad(each: Instruction) -> Node | None:
    """The gradient for the first operand of an addition, and only for that."""
    call = each.action
    kernels = "elementwise_add_grad", "elementwise_add_mid_grad", "elementwise_add_dims_grad"
    if call.name not in kernels or call.operands[5] is not None:
        return None
    return Node(call.operands[3:4], call.operands[4:5])


_READERS: dict[str, str | Reader] = {
    "product": _product,
    "add": "elementwise_add elementwise_add_mid elementwise_add_dims",
    "add_grad": _add_grad,
}

_FORWARD = Pattern(
    """
    scores = product(scaled_q, keys | m n k 0 straight batch alpha)
    scaled = scale(scores | _ _ scale 0)?
    biased = add(scaled, bias)?
    p = softmax(biased | _ n)
    kept, mask = dropout(p | elements upscale seed dropped)?
    weights = scale(kept | _ _ factor 0)?
    out = product(weights, v | m d n 0 0 batch after)
    """,
    _READERS,
    start="p",
)

_GRADIENTS = """
    dweights = product(dout, v | m n d 0 1 batch 1)
    dkept = dropout_grad(dweights, mask)?
    dbiased = softmax_grad(p, dkept)
    dscaled = add_grad(dbiased)?
    dscores = scale(dscaled | _ _ scale 0)?
    dv = product(weights, dout | n d m 1 0 batch 1)?
"""
_STRAIGHT, _ACROSS = (
    Pattern(
        f"""{_GRADIENTS}
        dscaled_q = product(dscores, keys | m k n 0 {across} batch alpha)?
        dkeys = product({factors} m 1 0 batch alpha)?
        """,
        _READERS,
    )
    for across, factors in enumerate(("dscores, scaled_q | n k", "scaled_q, dscores | k n"))
)
"""The gradients for keys of [n, k], and for keys that are transposed in memory, of [k, n]."""

_Q = "scaled_q = scale(q | _ _ q_factor 0)"
_FACTOR, _FACTOR_AND_GRADIENT = map(Pattern, (_Q, f"{_Q}\n dq = scale(dscaled_q | _ _ q_factor 0)"))

_SIZES = dict(q="mk", keys="nk", v="nd", out="md", dout="md", dq="mk", dkeys="nk", dv="nd")
"""The rows and columns of each head."""

_TRANSPOSES = {
    name: Pattern(
        f"{name} = transpose({name}_rows | _ 4 outer {sizes[0]} heads {sizes[1]} 0 2 1 3)"
        if name in ("q", "keys", "v", "dout")
        else f"{name}_rows = transpose({name} | _ 4 outer heads {sizes[0]} {sizes[1]} 0 2 1 3)"
    )
    for name, sizes in _SIZES.items()
}
_KEYS = "keys = transpose(keys_rows | _ 4 outer n heads k 0 2 3 1)"
_KEYS_GRADIENT = "dkeys_rows = transpose(dkeys | _ 4 outer heads k n 0 3 1 2)"
_KEYS_ACROSS, _KEYS_AND_GRADIENT_ACROSS = map(Pattern, (_KEYS, f"{_KEYS}\n{_KEYS_GRADIENT}"))
"""The transposes from, and to, rows of all heads. Keys transposed in memory and their gradient need one layout."""


def _attention(match: Match) -> list[Replacement]:
    """The calls for a match, extended by all that they can do; the names of gradients begin with "d"."""
    numbers, names = match.numbers, match.names
    numbers["outer"], numbers["heads"], bias_strides = _layout(match)
    across = not numbers["straight"]
    if match.extend(_ACROSS if across else _STRAIGHT):
        require(current(numbers["n"]) >= _LEAST_KEYS and numbers["after"] == 1)
        require(("kept" in match) == ("dkept" in match) and ("scaled" in match) == ("dscores" in match))
    lines = {"dq": "dscaled_q", "dkeys": "dkeys", "dv": "dv"}
    gradients = [name if line in match else None for name, line in lines.items()]
    if not match.extend(_FACTOR_AND_GRADIENT if gradients[0] else _FACTOR, others=Need.NOTHING):
        names.update(q=names["scaled_q"], dq=names.get("dscaled_q", ""))
    for name in ("q", "v", "out", *(["dout"] if "dout" in names else []), *filter(None, gradients)):
        if not (across and name == "dkeys"):
            match.extend(_TRANSPOSES[name], others=Need.NOTHING)
    if not across:
        match.extend(_TRANSPOSES["keys"], others=Need.NOTHING)
    elif match.extend(_KEYS_AND_GRADIENT_ACROSS if gradients[1] else _KEYS_ACROSS, others=Need.NOTHING):
        across = False

    def variable(name: str | None) -> str | None:
        return None if name is None else names.get(f"{name}_rows", names[name])

    def strides(name: str) -> list[Any]:
        """The strides of batch, head and row."""
        heads, rows, columns = (numbers[size] for size in ("heads", *_SIZES[name]))
        if f"{name}_rows" in names:
            return [rows * heads * columns, columns, heads * columns]
        return [heads * rows * columns, rows * columns, rows if across and name.endswith("keys") else columns]

    def call(kernel: str, operands: Sequence[str | None], *sides: str) -> Call:
        sizes = [numbers[name] for name in ("outer", "heads", "m", "n", "k", "d")]
        ints = [*sizes, int(across), *(n for side in sides for n in strides(side)), *bias_strides]
        return Call(f"{kernel}.{match.type}", operands, ints, _factors(match))

    inputs = ["q", "keys", "v"]
    bias, mask = names.get("bias"), names.get("mask")
    reads, out = [*map(variable, inputs), bias, mask], variable("out")
    forward, backward = (
        [each for line, each in match.found.items() if line.startswith("d") == back] for back in (False, True)
    )
    replacements = [Replacement(forward, call("attention", [*reads, out], *inputs, "out"), reads, [out])]
    if mask is not None:
        draw = Call("dropout_mask", [mask], [numbers["elements"], numbers["seed"]], [numbers["dropped"]])
        replacements.insert(0, Replacement([match.found["kept"]], draw, [], [mask]))
    if backward:
        reads = [*reads, variable("dout")]
        made = [*map(variable, gradients)]
        like = [gradient or name for gradient, name in zip(gradients, inputs, strict=True)]
        action = call("attention_grad", [*reads, *made], *inputs, "dout", *like)
        replacements.append(Replacement(backward, action, reads, made, at_first=True))
    return replacements


def _factors(match: Match) -> list[float]:
    """The factor of the scores, and that of the weights."""

    def number(name: str, default: float = 1.0) -> float:
        found = match.numbers.get(name, default)
        require(not isinstance(found, (SymFloat, SymInt)))
        return float(found)

    weights, left = number("factor") * number("after"), 1 - number("dropped", 0.0)
    if match.numbers.get("upscale"):
        weights = weights / left if left > 0 else 0.0
    return [number("alpha") * number("scale") * number("q_factor"), weights]


def _layout(match: Match) -> tuple[Any, Any, list[Any]]:
    """Batch, heads, and the strides of batch, head, query and key in the bias (0 where it is repeated)."""
    scores, added = (match.found[line].view if line in match else None for line in ("scores", "biased"))
    if scores is None or scores.type != "matmul":
        raise NoMatch
    x, y = scores.shape("X"), scores.shape("Y")
    require(2 <= len(x) <= 4 and _equal(x[:-2], y[:-2]))
    outer, heads = (*x[:-2], *(1,) * (4 - len(x)))
    require(_equal([x[-2], outer * heads], [match.numbers["m"], match.numbers["batch"]]))
    if "biased" not in match:
        return outer, heads, [0] * 4
    if added is None:
        raise NoMatch
    x, y = added.shape("X"), added.shape("Y")
    require(_equal(x, scores.shape("Out")) and len(y) <= len(x))
    y = aligned(x, y, added.attr("axis"))[1]
    require(len(y) == len(x))  # and each of its dimensions is 1 or as in X, as kernels of additions want it
    strides = [0 if always_equal(n, 1) else product(tuple(y[at + 1 :])) for at, n in enumerate(y)]
    return outer, heads, [*strides[:-2], *[0] * (4 - len(x)), *strides[-2:]]


fuse_attention = fuse_matches(_FORWARD, _attention)
"""The pass."""
