"""LSTM, GRU and RNN over padded batches, as loops of one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import layers
from ...framework import Variable, program_guard
from .values import Node, imports

_ACTIVATIONS: dict[str, Callable[[Variable], Variable]] = {
    "Sigmoid": layers.sigmoid,
    "Tanh": layers.tanh,
    "Relu": layers.relu,
    "Softsign": layers.softsign,
    "Softplus": layers.softplus,
}
_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@imports("LSTM", "GRU", "RNN")
def _recurrent(n: Node) -> None:
    """X is [T, B, I], W [directions, gates * H, I], R [directions, gates * H, H]; Y is [T, directions, B, H]."""
    for name, least in (("clip", 0), ("input_forget", 0), ("layout", 0)):
        if n.attr(name, 0) != least:
            raise n.fail(f"has {name}")
    if n.has(4):
        raise n.fail("has lengths of sequences")
    directions = _DIRECTIONS[n.attr("direction", "forward")]
    names = [one.decode() for one in n.attr("activations") or []] or _DEFAULTS[n.kind] * len(directions)
    if any(name not in _ACTIVATIONS for name in names):
        raise n.fail(f"has activations {names}")
    step, count = _STEPS[n.kind], len(_DEFAULTS[n.kind])
    with program_guard(n.maker.program):
        made = [
            _direction(
                n, step, place, turned, [_ACTIVATIONS[name] for name in names[place * count :][:count]]
            )
            for place, turned in enumerate(directions)
        ]
        whole = [
            layers.concat([layers.unsqueeze(results[0], [1]) for results, _ in made], axis=1),
            *(layers.concat(list(last), axis=0) for last in zip(*(lasts for _, lasts in made), strict=True)),
        ]
    for index, var in enumerate(whole):
        n.out(var, index)


def _direction(
    n: Node, step: Callable[..., list[Variable]], place: int, turned: bool, activations: list[Any]
) -> tuple[list[Variable], list[Variable]]:
    """The states of all steps [T, B, H] in one direction, and those at its end [1, B, H]."""
    weight, recurrent = n.array(1)[place], n.array(2)[place]
    size = recurrent.shape[1]
    bias = n.array(3)[place] if n.has(3) else np.zeros(2 * len(weight), weight.dtype)
    held = {
        "weight": weight.T,
        "recurrent": recurrent.T,
        "bias": bias[: len(weight)],
        "more": bias[len(weight) :],
    }
    if n.has(7):
        held["peepholes"] = n.array(7)[place].reshape(3, size)
    w = {
        kind: n.maker.parameter(f"{n.node.output[0] or n.node.output[1]}.{place}.{kind}", array)
        for kind, array in held.items()
    }
    x = layers.elementwise_add(n.op("mul", {"X": n.var(), "Y": w["weight"]}, x_num_col_dims=2), w["bias"])
    x = layers.reverse(x, [0]) if turned else x
    first = [
        layers.squeeze(layers.slice(n.var(index), [0], [place], [place + 1]), [0]) if n.has(index) else None
        for index in ([5, 6] if n.kind == "LSTM" else [5])
    ]
    zeros: dict[str, Any] = {"shape": [-1, size], "batch_ref": x, "init_value": 0.0, "ref_batch_dim_idx": 1}
    loop = layers.StaticRNN()
    with loop.step():
        now = loop.step_input(x)
        states = [loop.memory(**zeros) if start is None else loop.memory(init=start) for start in first]
        after = step(n, now, states, w, activations)
        for state, value in zip(states, after, strict=True):
            loop.update_memory(state, value)
            loop.step_output(value)
    made = loop()
    found = list(made) if isinstance(made, (list, tuple)) else [made]
    lasts = [layers.slice(var, [0], [-1], [2**31 - 1]) for var in found]
    return [layers.reverse(var, [0]) if turned else var for var in found], lasts


def _parts(x: Variable, count: int) -> list[Variable]:
    return list(layers.split(x, count, dim=-1))


def _lstm(
    n: Node, x: Variable, states: list[Variable], w: dict[str, Variable], kinds: list[Any]
) -> list[Variable]:
    """Gates are input, output, forget and candidate; peepholes input, output, forget."""
    (hidden, cell), (f, g, h) = states, kinds
    total = layers.elementwise_add(x, layers.elementwise_add(layers.mul(hidden, w["recurrent"]), w["more"]))
    into, out, forget, candidate = _parts(total, 4)
    if "peepholes" in w:
        looks = [layers.squeeze(layers.slice(w["peepholes"], [0], [k], [k + 1]), [0]) for k in range(3)]
        into = into + layers.elementwise_mul(cell, looks[0])
        forget = forget + layers.elementwise_mul(cell, looks[2])
    after = f(forget) * cell + f(into) * g(candidate)
    if "peepholes" in w:
        out = out + layers.elementwise_mul(after, looks[1])
    return [f(out) * h(after), after]


def _gru(
    n: Node, x: Variable, states: list[Variable], w: dict[str, Variable], kinds: list[Any]
) -> list[Variable]:
    """Gates are update, reset and candidate, which is reset before or behind its product."""
    (hidden,), (f, g), size = states, kinds, states[0].shape[1]
    gates, candidate = layers.split(w["recurrent"], [2 * size, size], dim=1)
    more, last = layers.split(w["more"], [2 * size, size], dim=0)
    inputs, own = layers.split(x, [2 * size, size], dim=1)
    both = f(layers.elementwise_add(inputs, layers.elementwise_add(layers.mul(hidden, gates), more)))
    update, reset = _parts(both, 2)
    if n.attr("linear_before_reset", 0):
        told = reset * layers.elementwise_add(layers.mul(hidden, candidate), last)
    else:
        told = layers.elementwise_add(layers.mul(reset * hidden, candidate), last)
    new = g(own + told)
    return [new + update * (hidden - new)]


def _rnn(
    n: Node, x: Variable, states: list[Variable], w: dict[str, Variable], kinds: list[Any]
) -> list[Variable]:
    (hidden,), (f,) = states, kinds
    return [
        f(layers.elementwise_add(x, layers.elementwise_add(layers.mul(hidden, w["recurrent"]), w["more"])))
    ]


_STEPS: dict[str, Callable[..., list[Variable]]] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}
