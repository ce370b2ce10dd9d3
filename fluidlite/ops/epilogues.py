"""Epilogues: what native calls can do with their results on the way. They add a bias, normalise, apply an activation,
take the logarithm.

Each function gives the one call that does what two do, the second on the result of the first, or None if there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

from .registry import Call


@dataclass(frozen=True)
class Epilogue:
    """Places in a call: of the result and of the bias among the operands, of the activation's number among the
    integers; None where it cannot end so.
    """

    result: int
    bias: int | None = None
    act: int | None = None


_EPILOGUES = {
    "gemm": Epilogue(2, bias=3, act=5),
    "conv2d": Epilogue(3, bias=2),
    "conv2d_plain": Epilogue(3, bias=2, act=15),
    "conv2d_plain_norm": Epilogue(3, act=15),
    "batch_norm": Epilogue(5, act=3),
    "batch_norm_infer": Epilogue(5, act=3),
    "elementwise_add_mid": Epilogue(2, act=3),
    "softmax": Epilogue(1),
}


def epilogue_of(call: Call) -> Epilogue | None:
    """Which epilogues a call takes."""
    return _EPILOGUES.get(call.kernel.partition(".")[0])


def _plain(call: Call, end: Epilogue, other: Call) -> bool:
    """Whether `call` is of the type of `other`, without an activation and, if it is a product, added to nothing."""
    kind, _, suffix = call.kernel.partition(".")
    return (
        suffix == other.kernel.partition(".")[2]
        and (end.act is None or not any(call.ints[end.act :]))
        and (kind != "gemm" or call.floats[1] == 0)
    )


def _put(call: Call, changed: dict[int, str | None]) -> list[str | None]:
    operands = list(call.operands)
    for place, name in changed.items():
        operands[place] = name
    return operands


def with_bias(call: Call, add: Call) -> Call | None:
    """A product and the addition of a row to each row, or a convolution and that of a number to each channel."""
    end = epilogue_of(call)
    if end is None or end.bias is None or not add.kernel.startswith("elementwise_add_mid."):
        return None
    if not _plain(call, end, add) or call.operands[end.bias] is not None:
        return None
    sizes, act = list(add.ints[:3]), list(add.ints[3:]) or [0]
    operands = _put(call, {end.bias: add.operands[1], end.result: add.operands[2]})
    if call.kernel.startswith("gemm."):
        fits = sizes == [call.ints[0], call.ints[1], 1]
    else:
        fits = sizes[:2] == [call.ints[0], call.ints[4]] and (act == [0] or end.act is not None)
    ints = call.ints if end.act is None else [*call.ints[: end.act], *act]
    return Call(call.kernel, operands, ints, call.floats) if fits else None


def with_norm(call: Call, norm: Call) -> Call | None:
    """A convolution and batch normalisation by moving statistics."""
    kind, _, suffix = call.kernel.partition(".")
    end = epilogue_of(call)
    if kind not in ("conv2d", "conv2d_plain") or end is None or norm.kernel != "batch_norm_infer.f32":
        return None
    act = list(norm.ints[3:])
    if list(norm.ints[:2]) != [call.ints[0], call.ints[4]] or any(call.ints[15:] if end.act else act):
        return None
    operands = [*call.operands[:3], norm.operands[5], *norm.operands[1:5]]
    return Call(f"{kind}_norm.{suffix}", operands, [*call.ints, *(act if end.act else ())], norm.floats)


def with_activation(call: Call, activation: Call, epilogue: int) -> Call | None:
    """Whatever can end with an activation, and one, whose number is `epilogue`."""
    end = epilogue_of(call)
    if not epilogue or end is None or end.act is None or not _plain(call, end, activation):
        return None
    operands = _put(call, {end.result: activation.operands[1]})
    return Call(call.kernel, operands, [*call.ints[: end.act], epilogue], call.floats)


def with_logarithm(call: Call, log: Call) -> Call | None:
    """A softmax and the logarithm of it."""
    kind, _, suffix = call.kernel.partition(".")
    if kind != "softmax" or log.kernel != f"log.{suffix}":
        return None
    return Call(f"log_softmax.{suffix}", [call.operands[0], log.operands[1]], call.ints)
