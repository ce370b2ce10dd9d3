"""Elementwise fusion: native calls as steps, and the call that does several steps (`_ext/kernels/chain.cc`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..op_view import Call
from .kernel_def import KERNELS

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
