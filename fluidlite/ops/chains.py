"""Which native calls work element by element, and as which steps of a chain (`_ext/kernels/chain.cc`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .registry import Call

MOST_OPERANDS, MOST_TEMPORARIES, MOST_STEPS, MOST_OF_A_STEP = 24, 16, 64, 10
"""How many a chain, or a step of one, may have; temporaries and operands that are repeated count together."""

ALONE = frozenset(
    "relu sigmoid tanh exp log sqrt rsqrt reciprocal relu6 square abs sign softsign softplus logsigmoid tanh_shrink "
    "leaky_relu elu swish stanh hard_sigmoid clip brelu gelu erf silu mish selu softshrink hard_shrink hard_swish "
    "thresholded_relu pow floor ceil round sin cos".split()
)
BOTH = frozenset(f"elementwise_{name}" for name in "add sub mul div max min pow".split())
_ACTIVATIONS = (None, "relu", "sigmoid", "tanh")


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
    """What a call does element by element: how many elements there are, and the steps."""

    elements: int
    steps: tuple[Step, ...]


def steps_of(call: Call) -> Steps | None:
    """The steps of a call, if it works element by element on float32 or float64."""
    stem, _, suffix = call.kernel.partition(".")
    if suffix not in ("f32", "f64") or len(call.operands) > MOST_OF_A_STEP:
        return None
    base = stem.removesuffix("_grad").removesuffix("_mid")
    form = stem.removeprefix(base)
    if base in ALONE:
        return _plain(call, slice(-1, None))
    if base in BOTH:
        if form in ("", "_grad"):
            return _plain(call, slice(2, None) if form == "" else slice(4, None))
        return _beside_middle(call, base, form, suffix)
    return _OTHERS[stem](call) if stem in _OTHERS else None


def _plain(call: Call, made: slice) -> Steps:
    names = tuple(name for name in call.operands[made] if name is not None)
    step = Step(call.kernel, tuple(call.operands), names, tuple(call.ints[1:]), tuple(call.floats))
    return Steps(call.ints[0], (step,))


def _beside_middle(call: Call, base: str, form: str, suffix: str) -> Steps | None:
    pre, n, post, *act = call.ints
    x, y, *others = call.operands
    if form == "_mid_grad" and others[-1] is not None:
        return None  # the gradient of Y is a sum
    operands: list[Operand] = [x, None if y is None else Repeated(y, n, post), *others]
    out = others[-2] if form == "_mid_grad" else others[0]
    assert out is not None
    steps = [Step(base + form.removeprefix("_mid") + f".{suffix}", tuple(operands), (out,))]
    if act and _ACTIVATIONS[act[0]] is not None:
        steps.append(Step(f"{_ACTIVATIONS[act[0]]}.{suffix}", (out, out), (out,)))
    return Steps(pre * n * post, tuple(steps))


def _costs(call: Call) -> Steps | None:
    """Costs of each element, unless they are divided by how many count."""
    return None if call.ints[2] else _plain(call, slice(-1, None))


def _filled(call: Call) -> Steps | None:
    """The gradient of a sum over all that is before, or behind, what stays."""
    source, out = call.operands
    pre, n, post = call.ints
    assert source is not None and out is not None
    if isinstance(post, int) and post == 1:
        layout = Repeated(source, pre, n)
    elif isinstance(pre, int) and pre == 1:
        layout = Repeated(source, post, 1)
    else:
        return None
    suffix = call.kernel.partition(".")[2]
    step = Step(f"scale.{suffix}", (layout, out), (out,), (1,), (call.floats[0], 0.0))
    return Steps(pre * n * post, (step,))


_OTHERS: dict[str, Callable[[Call], Steps | None]] = {
    "scale": lambda call: _plain(call, slice(-1, None)),
    "sum": lambda call: _plain(call, slice(-1, None)),
    "sigmoid_cross_entropy_with_logits": _costs,
    "sigmoid_cross_entropy_with_logits_grad": _costs,
    "reduce_fill": _filled,
}


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
