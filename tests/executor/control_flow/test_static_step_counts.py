"""Scans with a declared number of steps: values and gradients, compiled against interpreted."""

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import WIDTH, check, data, fc, numbers
from .test_scans import STATIC, one_memory

layers = fluid.layers
STEPS = 4


def fed(batches, steps=STEPS):
    random = np.random.default_rng(0)
    sizes = {"x": (steps, -1, WIDTH), "start": (-1, 4), "still": (-1, 4)}
    return [
        {name: numbers(random, *(rows if n < 0 else n for n in shape)) for name, shape in sizes.items()}
        for rows in batches
    ]


def sources(steps=STEPS):
    return [data("x", [steps, None, WIDTH]), data("start", [None, 4]), data("still", [None, 4])]


@pytest.mark.parametrize("build", STATIC)
def test_networks_of_steps(build):
    text = check(build, sources(), fed([2, 1, 5]))
    assert "run in segments" not in text
    assert "body of" in text


def all_states_are_wanted(x, start, still):
    """An output that is fetched besides the gradient, and a state of which only the final value is used."""
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state, passed = rnn.step_input(x), rnn.memory(init=start), rnn.memory(init=still)
        new = fc([word, state], 4, "new")
        rnn.update_memory(state, new)
        rnn.update_memory(passed, new)
        rnn.output(passed, state)
    outs = rnn()
    return [*outs, layers.slice(outs[1], [0], [STEPS - 1], [STEPS])]


def one_after_another(x, start, still):
    """The results of one are the inputs of the next one, which begins with its last state."""
    (first,) = one_memory(x, start, still)
    last = layers.reshape(layers.slice(first, [0], [STEPS - 1], [STEPS]), [-1, 4])
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(first), rnn.memory(init=last)
        new = fc([word, state], 4, "next", "sigmoid")
        rnn.update_memory(state, new)
        rnn.step_output(new)
    return [rnn(), first]


def overwritten(x, start, still):
    """The initial state is overwritten before the gradient runs."""
    begin = layers.scale(start, 1.0)
    outs = one_memory(x, begin, still)
    layers.assign(layers.scale(still, 2.0), begin)
    return [*outs, begin]


@pytest.mark.parametrize("build", [all_states_are_wanted, one_after_another, overwritten])
def test_values_outside_of_the_steps(build):
    text = check(build, sources(), fed([2, 1, 3]))
    assert "run in segments" not in text
    assert "body of" in text
