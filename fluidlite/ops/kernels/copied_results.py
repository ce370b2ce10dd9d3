"""Results of native calls that have just the values of an operand."""

from __future__ import annotations

from collections.abc import Iterable

from ..op_view import Call
from .kernel_def import KERNELS


def copies_of(call: Call) -> list[tuple[int, int]]:
    """Pairs (result, operand) of places in a call whose result has just the values of the operand."""
    kernel = KERNELS[call.kernel]
    if kernel is None or kernel.copies is None:
        return []
    count, places = len(call.operands), kernel.places
    return [(places[out] % count, places[source] % count) for out, source in kernel.copies(kernel, call)]


def without(call: Call, gone: Iterable[int]) -> Call | None:
    """The call without the results at these places, which `copies_of` has found; None if no result is left."""
    kernel, places = KERNELS[call.kernel], set(gone)
    assert kernel is not None
    left = [None if at in places else name for at, name in enumerate(call.operands)]
    if not any(left[kernel.places[name]] for name in kernel.made):
        return None
    return Call(call.kernel, left, call.ints, call.floats)
