"""Rules for `Planning.identity`, outputs with just the values of an input; and native calls that are copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..base.sizes import Real, Size
from ..base.sizes.shapes import same_shape
from .registry import Call, OpView, grad_name

Copied = tuple[str, str]
_DX, _DOUT = grad_name("X"), grad_name("Out")


def always(out: str = "Out", source: str = "X") -> Callable[[OpView], Copied]:
    """Output `out` always has the values of input `source`."""
    return lambda op: (out, source)


def scaled_by_one(op: OpView) -> Copied | None:
    """Out has the values of X if the factor is 1 and the summand 0."""
    if op.has("ScaleTensor") or op.attr("scale") != 1 or op.attr("bias") != 0:
        return None
    return "Out", "X"


def of_a_sum(op: OpView) -> Copied | None:
    """The gradient of X has the values of Out@GRAD if the other summand is broadcast along leading axes."""
    if not op.name_or_none(_DX):
        return None
    x = op.shape("X")
    smaller = len(op.shape("Y")) < len(x) and op.attr("axis") != 0
    return (_DX, _DOUT) if smaller and same_shape(x, op.shape(_DOUT)) and -1 not in x[1:] else None


_GRADS_OF_SUMS = ("elementwise_add", "elementwise_sub")
_FORMS = ("_grad", "_mid_grad", "_dims_grad")


def of_call(call: Call) -> list[tuple[int, int]]:
    """Of a native call, which operands become just the values of which others, by their places."""
    kind = call.kernel.partition(".")[0]
    if kind == "scale" and list(call.floats) == [1, 0] and not isinstance(call.floats[0], Real | Size):
        return [(1, 0)]
    if kind == "sum" and len(call.operands) == 2:
        return [(1, 0)]
    for name in _GRADS_OF_SUMS:
        if kind in [name + form for form in _FORMS]:
            places = [4, 5] if kind == "elementwise_add_grad" else [4]
            return [(place, 3) for place in places if call.operands[place] is not None]
    return []


def without(call: Call, places: Iterable[int]) -> Call | None:
    """The call without some of the results that `of_call` has found; None if nothing is left to be done."""
    gone = set(places)
    left = [None if at in gone else name for at, name in enumerate(call.operands)]
    results = (4, 5) if call.kernel.partition(".")[0].endswith("_grad") else (1,)
    return Call(call.kernel, left, call.ints, call.floats) if any(left[at] for at in results) else None
