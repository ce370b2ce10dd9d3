"""LSTM, GRU and RNN over padded batches, as loops of one step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...fluid import layers
from ...framework import Variable, program_guard
from .values import Node, imports

Activation = Callable[[Variable], Variable]
_ACTIVATIONS: dict[str, Callable[..., Variable]] = {
    "Sigmoid": layers.sigmoid,
    "Tanh": layers.tanh,
    "Relu": layers.relu,
    "Softsign": layers.softsign,
    "Softplus": layers.softplus,
    "Affine": layers.scale,
    "Elu": layers.elu,
    "HardSigmoid": layers.hard_sigmoid,
    "LeakyRelu": layers.leaky_relu,
    "ScaledTanh": lambda x, a, b: layers.scale(layers.tanh(layers.scale(x, b)), a),
    "ThresholdedRelu": layers.thresholded_relu,
}
_NUMBERS: dict[str, tuple[float | None, ...]] = {
    "Affine": (None, None),
    "Elu": (1.0,),
    "HardSigmoid": (0.2, 0.5),
    "LeakyRelu": (0.01,),
    "ScaledTanh": (None, None),
    "ThresholdedRelu": (1.0,),
}
"""Default alpha and beta of the activations that have them; None: the model has to give it."""

_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@imports("LSTM", "GRU", "RNN")
def _recurrent(n: Node) -> None:
    """X is [T, B, I], W [directions, gates * H, I], R [directions, gates * H, H]; Y is [T, directions, B, H].

    With `layout` 1 X is [B, T, I], Y [B, T, directions, H], and states [B, directions, H].
    """
    directions, batches_first = _DIRECTIONS[n.attr("direction", "forward")], n.attr("layout", 0) == 1
    step, count = _STEPS[n.kind], len(_DEFAULTS[n.kind])
    kinds = _activations(n, count * len(directions))
    with program_guard(n.maker.program):
        x = n.transposed(n.var(), [1, 0, 2] if batches_first else [0, 1, 2])
        held = [
            n.transposed(n.var(index), [1, 0, 2] if batches_first else [0, 1, 2]) if n.has(index) else None
            for index in ([5, 6] if n.kind == "LSTM" else [5])
        ]
        made = [
            _direction(n, step, place, backward, kinds[place * count :][:count], x, held)
            for place, backward in enumerate(directions)
        ]
        whole = [
            layers.concat([layers.unsqueeze(steps, [1]) for steps, _ in made], axis=1),
            *(layers.concat(list(last), axis=0) for last in zip(*(lasts for _, lasts in made), strict=True)),
        ]
        if batches_first:
            whole = [
                n.transposed(whole[0], [2, 0, 1, 3]),
                *(n.transposed(last, [1, 0, 2]) for last in whole[1:]),
            ]
    for index, var in enumerate(whole):
        n.out(var, index)


def _activations(n: Node, count: int) -> list[Activation]:
    """The activations of all directions, each after `clip`; alphas and betas are consumed in order.

    The output activation of an LSTM is not clipped, as in onnxruntime.
    """
    names = [one.decode() for one in n.attr("activations") or []]
    names = names or _DEFAULTS[n.kind] * (count // len(_DEFAULTS[n.kind]))
    if len(names) != count or any(name not in _ACTIVATIONS for name in names):
        raise n.fail(f"has activations {names}")
    alphas, betas = (iter(n.attr(name) or []) for name in ("activation_alpha", "activation_beta"))
    made: list[Activation] = []
    for place, name in enumerate(names):
        defaults = _NUMBERS.get(name, ())
        numbers = [next(given, least) for given, least in zip((alphas, betas), defaults, strict=False)]
        if None in numbers:
            raise n.fail(f"has activation {name} without its alpha and beta")
        most = 0.0 if n.kind == "LSTM" and place % 3 == 2 else n.attr("clip", 0.0)
        made.append(partial(_activated, _ACTIVATIONS[name], most, numbers))
    return made


def _activated(kind: Callable[..., Variable], most: float, numbers: list[Any], x: Variable) -> Variable:
    return kind(layers.clip(x, -most, most) if most else x, *numbers)


def _step_mask(n: Node, x: Variable, size: int, backward: bool) -> Variable:
    """The mask of the steps within each sequence, repeated for each element of a state: bools [T, B, H]."""
    count = layers.cast(layers.slice(layers.shape(x), [0], [0], [1]), "int64")
    steps = layers.range(0, count, 1, "int64")
    steps = layers.unsqueeze(layers.reverse(steps, [0]) if backward else steps, [1, 2])
    state = layers.fill_constant([size], "int64", 0)
    lengths = n.pair("add", layers.unsqueeze(n.cast(n.var(4), VarType.INT64), [1]), state)
    whole = [
        n.pair("add", steps, layers.zeros_like(lengths)),
        n.pair("add", layers.zeros_like(steps), lengths),
    ]
    return n.pair("less_than", *whole)


def _direction(
    n: Node,
    step: Callable[..., list[Variable]],
    place: int,
    backward: bool,
    activations: list[Activation],
    x: Variable,
    held: list[Variable | None],
) -> tuple[Variable, list[Variable]]:
    """The hidden states of all steps [T, B, H] in one direction, and the final states [1, B, H].

    In padded steps states are kept and outputs are zero; outputs and states of empty sequences are zero.
    """
    weight, recurrent = n.array(1)[place], n.array(2)[place]
    size = recurrent.shape[1]
    bias = n.array(3)[place] if n.has(3) else np.zeros(2 * len(weight), weight.dtype)
    parts = {
        "weight": weight.T,
        "recurrent": recurrent.T,
        "bias": bias[: len(weight)],
        "more": bias[len(weight) :],
    }
    if n.has(7):
        parts["peepholes"] = n.array(7)[place].reshape(3, size)
    w = {
        kind: n.maker.parameter(f"{n.node.output[0] or n.node.output[1]}.{place}.{kind}", array)
        for kind, array in parts.items()
    }
    x = layers.elementwise_add(n.op("mul", {"X": x, "Y": w["weight"]}, x_num_col_dims=2), w["bias"])
    x = layers.reverse(x, [0]) if backward else x
    mask = _step_mask(n, x, size, backward) if n.has(4) else None
    first = [
        None if start is None else layers.squeeze(layers.slice(start, [0], [place], [place + 1]), [0])
        for start in held
    ]
    zeros: dict[str, Any] = {"shape": [-1, size], "batch_ref": x, "init_value": 0.0, "ref_batch_dim_idx": 1}
    loop = layers.StaticRNN()
    with loop.step():
        now = loop.step_input(x)
        goes_on = None if mask is None else loop.step_input(mask)
        states = [loop.memory(**zeros) if start is None else loop.memory(init=start) for start in first]
        after = step(n, now, states, w, activations)
        if goes_on is not None:
            after = [n.choose(goes_on, value, state) for value, state in zip(after, states, strict=True)]
        for state, value in zip(states, after, strict=True):
            loop.update_memory(state, value)
            loop.step_output(value)
    made = loop()
    found = list(made) if isinstance(made, (list, tuple)) else [made]
    steps, lasts = found[0], [_end_step(var, -1) for var in found]
    if mask is not None:
        steps = n.choose(mask, steps, layers.zeros_like(steps))
        begun = _end_step(mask, -1 if backward else 0)
        lasts = [n.choose(begun, last, layers.zeros_like(last)) for last in lasts]
    return layers.reverse(steps, [0]) if backward else steps, lasts


def _end_step(x: Variable, place: int) -> Variable:
    """The first (0) or last (-1) step alone."""
    return layers.slice(x, [0], [place], [place + 1 or 2**31 - 1])


def _parts(x: Variable, count: int) -> list[Variable]:
    return list(layers.split(x, count, dim=-1))


def _lstm(
    n: Node, x: Variable, states: list[Variable], w: dict[str, Variable], kinds: list[Activation]
) -> list[Variable]:
    """Gates are input, output, forget and candidate; peepholes input, output, forget.

    With `input_forget` the forget gate is 1 minus the input gate.
    """
    (hidden, cell), (f, g, h) = states, kinds
    total = layers.elementwise_add(x, layers.elementwise_add(layers.mul(hidden, w["recurrent"]), w["more"]))
    into, out, forget, candidate = _parts(total, 4)
    if "peepholes" in w:
        looks = [layers.squeeze(layers.slice(w["peepholes"], [0], [k], [k + 1]), [0]) for k in range(3)]
        into = into + layers.elementwise_mul(cell, looks[0])
        forget = forget + layers.elementwise_mul(cell, looks[2])
    into = f(into)
    kept = layers.scale(into, -1.0, 1.0) if n.attr("input_forget", 0) else f(forget)
    after = kept * cell + into * g(candidate)
    if "peepholes" in w:
        out = out + layers.elementwise_mul(after, looks[1])
    return [f(out) * h(after), after]


def _gru(
    n: Node, x: Variable, states: list[Variable], w: dict[str, Variable], kinds: list[Activation]
) -> list[Variable]:
    """Gates are update, reset and candidate, which is reset before or after its product."""
    (hidden,), (f, g), size = states, kinds, states[0].shape[1]
    gates, candidate = layers.split(w["recurrent"], [2 * size, size], dim=1)
    more, last = layers.split(w["more"], [2 * size, size], dim=0)
    inputs, own = layers.split(x, [2 * size, size], dim=1)
    both = f(layers.elementwise_add(inputs, layers.elementwise_add(layers.mul(hidden, gates), more)))
    update, reset = _parts(both, 2)
    if n.attr("linear_before_reset", 0):
        recurrent = reset * layers.elementwise_add(layers.mul(hidden, candidate), last)
    else:
        recurrent = layers.elementwise_add(layers.mul(reset * hidden, candidate), last)
    new = g(own + recurrent)
    return [new + update * (hidden - new)]


def _rnn(
    n: Node, x: Variable, states: list[Variable], w: dict[str, Variable], kinds: list[Activation]
) -> list[Variable]:
    (hidden,), (f,) = states, kinds
    return [
        f(layers.elementwise_add(x, layers.elementwise_add(layers.mul(hidden, w["recurrent"]), w["more"])))
    ]


_STEPS: dict[str, Callable[..., list[Variable]]] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}
