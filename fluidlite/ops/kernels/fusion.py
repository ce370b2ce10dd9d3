"""Native calls that do what several do.

chain           elementwise calls as steps of one call (`_ext/kernels/chain.cc`)
with_epilogue   a call that adds a bias to its result, normalises it, applies an activation, or takes the logarithm
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..op_view import Call
from .kernel_def import KERNELS, KernelDef

REAL = ("f32", "f64")
MOST_OPERANDS, MOST_TEMPORARIES, MOST_STEPS, MOST_OF_A_STEP = 24, 16, 64, 10
"""How many a chain, or a step of one, may have; temporaries and operands that are repeated count together."""


@dataclass(frozen=True, eq=False)
class Repeated:
    """An operand with fewer elements than the results: element k of these meets its element (k / stretch) % count.

    In a chain it is one object wherever it is alike (sizes are not compared by looking at them).
    """

    name: str
    count: int
    stretch: int


Operand = str | Repeated | None


@dataclass(frozen=True)
class Step:
    """A kernel on variables, all of as many elements but for those that are `Repeated`; `made`: which it writes."""

    kernel: str
    operands: tuple[Operand, ...]
    made: tuple[str, ...]
    ints: tuple[int, ...] = ()
    floats: tuple[float, ...] = ()


@dataclass(frozen=True)
class Steps:
    """The steps of an elementwise call, and the number of elements."""

    elements: int
    steps: tuple[Step, ...]


def steps_of(call: Call) -> Steps | None:
    """The steps of a call, if it works element by element on float32 or float64."""
    kernel = KERNELS[call.kernel]
    if kernel is None or kernel.elementwise is None:
        return None
    if call.type not in REAL or len(call.operands) > MOST_OF_A_STEP:
        return None
    return kernel.elementwise(kernel, call)


@dataclass(frozen=True)
class Chain(Call):
    """A call of a chain; `replaceable`: operands that are read for the last time before a result is made, or as it is
    made alone, and that result, which may have their memory.
    """

    replaceable: Sequence[tuple[str, str]] = ()


def chain(
    elements: int, steps: Sequence[Step], results: Sequence[str], number: Callable[[str], int]
) -> Chain | None:
    """The call that does steps; None if they need more than there is room for.

    Args:
        elements: how many each result has.
        steps: in order.
        results: which of the variables that they write are wanted.
        number: the number of a kernel.
    """
    made = {name for step in steps for name in step.made}
    read = [each for step in steps for each in step.operands if each is not None]
    given = [each for each in dict.fromkeys(read) if isinstance(each, Repeated) or each not in made]
    operands: list[str | Repeated] = [*given, *results]
    last = {each: at for at, step in enumerate(steps) for each in step.operands}
    places: dict[Operand, int] = {each: k for k, each in enumerate(operands)} | {None: -1}
    free: list[int] = []
    most = 0
    program: list[int] = []
    floats: list[float] = []
    for at, step in enumerate(steps):
        for each in step.operands:
            if each not in places:
                if not free:
                    most += 1
                    free.append(-1 - most)
                places[each] = free.pop()
        program += [number(step.kernel), len(step.operands), *(places[each] for each in step.operands)]
        program += [len(step.floats), len(step.ints), *step.ints]
        floats += step.floats
        for each in dict.fromkeys(step.operands):
            if last[each] == at and places[each] < -1:
                free.append(places[each])
    repeats = sum(isinstance(each, Repeated) for each in given)
    if (
        len(operands) > MOST_OPERANDS
        or len(steps) > MOST_STEPS
        or most + repeats > MOST_TEMPORARIES
        or max(len(step.operands) for step in steps) > MOST_OF_A_STEP
    ):
        return None
    layouts = [
        n for each in operands for n in ((each.count, each.stretch) if isinstance(each, Repeated) else (0, 0))
    ]
    names = [each.name if isinstance(each, Repeated) else each for each in operands]
    first = {name: (at, len(step.made)) for at, step in reversed([*enumerate(steps)]) for name in step.made}
    replaceable = [
        (source, result)
        for result in results
        for source in given
        if not isinstance(source, Repeated)
        and names.count(source) == 1
        and last[source] < first[result][0] + (first[result][1] == 1)
    ]
    ints = [elements, len(operands), most, len(steps), *layouts, *program]
    kernel = "chain." + steps[0].kernel.rpartition(".")[2]
    return Chain(kernel, names, ints, floats, replaceable=replaceable)


@dataclass(frozen=True)
class Epilogue:
    """The epilogues of a kernel, by the names in its declaration; "" for those that it has not."""

    bias: str = ""
    """The operand for a bias."""

    channels: tuple[str, str] = ("", "")
    """The integers that the first two of the addition of a bias, and of a normalisation, have to be."""

    last_axis: bool = False
    """The bias belongs to the last axis of the result, so that the third of these integers is 1."""

    activation: str = ""
    """The integer for the number of an activation, which is the last one."""

    accumulates: str = ""
    """The real that has to be 0: a factor of what the result holds before."""

    normalized: str = ""
    """The kernel that also normalises by moving statistics."""

    logarithm: str = ""
    """The kernel that also takes the logarithm."""


def may_be_epilogue(kernel: KernelDef) -> bool:
    """Whether calls of this kernel may become the epilogue of another call."""
    return bool(kernel.activation) or kernel.name in ("elementwise_add_mid", "batch_norm_infer", "log")


def with_epilogue(call: Call, kernel: KernelDef, last: Call) -> Call | None:
    """The call of `kernel` that does what `call` of it does and `last`, which works on its result."""
    end = kernel.epilogue
    if end is None:
        return None
    return (
        (_with_bias(call, kernel, end, last) if end.bias else None)
        or (_with_norm(call, kernel, end, last) if end.normalized else None)
        or (_with_activation(call, kernel, end, last) if end.activation else None)
        or (_with_logarithm(call, end, last) if end.logarithm else None)
    )


def _activation_at(kernel: KernelDef, end: Epilogue) -> int | None:
    return kernel.int_places[end.activation] if end.activation else None


def _is_plain(call: Call, kernel: KernelDef, end: Epilogue, other: Call) -> bool:
    """Whether `call` is of the type of `other`, without an activation, and adds to nothing."""
    act = _activation_at(kernel, end)
    return (
        call.type == other.type
        and (act is None or not any(call.ints[act:]))
        and (not end.accumulates or call.floats[kernel.float_places[end.accumulates]] == 0)
    )


def _put(call: Call, changed: dict[int, str | None]) -> list[str | None]:
    operands = list(call.operands)
    for place, name in changed.items():
        operands[place] = name
    return operands


def _has_channels(call: Call, kernel: KernelDef, end: Epilogue, other: Call) -> bool:
    """Whether `other` is about the rows and channels of the result of `call`."""
    return list(other.ints[:2]) == [call.ints[kernel.int_places[name]] for name in end.channels]


def _with_bias(call: Call, kernel: KernelDef, end: Epilogue, add: Call) -> Call | None:
    """The call for a product and a bias for each column, or a convolution and a bias for each channel."""
    if add.name != "elementwise_add_mid":
        return None
    bias, act_at = kernel.places[end.bias], _activation_at(kernel, end)
    if not _is_plain(call, kernel, end, add) or call.operands[bias] is not None:
        return None
    post, *act = add.ints[2:]
    act = act or [0]
    if not _has_channels(call, kernel, end, add) or (end.last_axis and post != 1):
        return None
    if act_at is None and act != [0]:
        return None
    operands = _put(call, {bias: add.operands[1], kernel.places[kernel.made[0]]: add.operands[2]})
    ints = call.ints if act_at is None else [*call.ints[:act_at], *act]
    return Call(call.kernel, operands, ints, call.floats)


def _with_norm(call: Call, kernel: KernelDef, end: Epilogue, norm: Call) -> Call | None:
    """The call for a convolution and batch normalisation by moving statistics."""
    if norm.kernel != "batch_norm_infer.f32":
        return None
    act, act_at = list(norm.ints[3:]), _activation_at(kernel, end)
    if not _has_channels(call, kernel, end, norm) or any(act if act_at is None else call.ints[act_at:]):
        return None
    operands = [*call.operands[:3], norm.operands[5], *norm.operands[1:5]]
    ints = [*call.ints, *(() if act_at is None else act)]
    return Call(f"{end.normalized}.{call.type}", operands, ints, norm.floats)


def _with_activation(call: Call, kernel: KernelDef, end: Epilogue, activation: Call) -> Call | None:
    """The call for a kernel with an activation as its epilogue, and that activation."""
    function = KERNELS[activation.kernel]
    if function is None or not function.activation or not _is_plain(call, kernel, end, activation):
        return None
    operands = _put(call, {kernel.places[kernel.made[0]]: activation.operands[1]})
    ints = [*call.ints[: _activation_at(kernel, end)], function.activation]
    return Call(call.kernel, operands, ints, call.floats)


def _with_logarithm(call: Call, end: Epilogue, log: Call) -> Call | None:
    """The call for a softmax and its logarithm."""
    if log.kernel != f"log.{call.type}":
        return None
    return Call(f"{end.logarithm}.{call.type}", [call.operands[0], log.operands[1]], call.ints)
