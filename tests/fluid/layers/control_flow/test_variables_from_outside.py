"""Slices that are taken inside of a block, for what the operator around it reads; numbers of real Paddle 1.8.5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers

Network = Callable[..., Any]


def static(memory: Network, steps: Network = lambda x: x) -> Network:
    def build(x: Any, h: Any, words: Any, states: Any) -> Any:
        rnn = layers.StaticRNN()
        with rnn.step():
            step = rnn.step_input(steps(x))
            before = memory(rnn, x, h)
            after = layers.tanh(before * 0.5 + step * 0.3)
            rnn.update_memory(before, after)
            rnn.step_output(after)
        return rnn()

    return build


def static_used_in_steps_too(x: Any, h: Any, words: Any, states: Any) -> Any:
    rnn = layers.StaticRNN()
    with rnn.step():
        step, first = rnn.step_input(x), h[0]
        before, other = rnn.memory(init=first), rnn.memory(init=h[1])
        after = layers.tanh(before * 0.5 + step * 0.3 + first + h[0:1][0] + other)
        rnn.update_memory(before, after)
        rnn.update_memory(other, other * 0.5)
        rnn.step_output(after)
    return rnn()


def dynamic(kind: str) -> Network:
    def build(x: Any, h: Any, words: Any, states: Any) -> Any:
        rnn = layers.DynamicRNN()
        with rnn.block():
            step = rnn.step_input(words[:, 0:2] if kind == "step_input" else words)
            if kind == "step_input":
                before = rnn.memory(shape=[2], value=0.1)
            elif kind == "static_input":
                before = rnn.memory(init=h[0], need_reorder=True)
                step = step + rnn.static_input(states[1])
            else:
                before = rnn.memory(init=states[0], need_reorder=True)
            after = layers.tanh(before * 0.5 + step * 0.3)
            rnn.update_memory(before, after)
            rnn.output(after)
        return rnn()

    return build


CASES: list[tuple[Network, dict[str, tuple[float, float]]]] = [
    # sum of the result and of the gradients of the sum of its squares; the same weighted by the number of the element
    (
        static(lambda rnn, x, h: rnn.memory(init=h[1])),
        {"out": (9.1968, 102.855), "x": (6.0872, 62.347), "h": (4.1201, 47.637)},
    ),
    (
        static(lambda rnn, x, h: rnn.memory(init=x[1])),  # the step input has the name of x, too
        {"out": (8.9479, 96.149), "x": (9.673, 101.725)},
    ),
    (
        static(lambda rnn, x, h: rnn.memory(init=h[0]), lambda x: x[1:]),
        {"out": (5.9694, 44.696), "x": (3.5757, 53.029), "h": (3.499, 12.125)},
    ),
    (
        static(
            lambda rnn, x, h: rnn.memory(shape=[-1, 4], batch_ref=h[0], ref_batch_dim_idx=0, init_value=0.5)
        ),
        {"out": (8.896, 98.736), "x": (6.0288, 60.866)},
    ),
    (static_used_in_steps_too, {"out": (21.3581, 249.26), "x": (2.2813, 23.172), "h": (21.0269, 84.452)}),
    (dynamic("step_input"), {"out": (1.9468, 9.909), "words": (1.5074, 13.986)}),
    (
        dynamic("static_input"),
        {
            "out": (8.6628, 82.837),
            "h": (3.9629, 14.395),
            "words": (4.9525, 45.063),
            "states": (4.9525, 59.305),
        },
    ),
    (dynamic("memory"), {"out": (5.8439, 55.966), "words": (3.9424, 36.808), "states": (3.1302, 10.882)}),
]


@pytest.mark.parametrize(("network", "expected"), CASES)
def test_slices_inside_of_steps(network: Network, expected: dict[str, tuple[float, float]]) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        variables = {
            "x": fluid.data("x", [3, 2, 4]),
            "h": fluid.data("h", [2, 2, 4]),
            "words": fluid.data("words", [None, 4], lod_level=1),
            "states": fluid.data("states", [2, None, 4]),
        }
        for var in variables.values():
            var.stop_gradient = False
        out = network(*variables.values())
        gradients = fluid.gradients([layers.reduce_sum(out * out)], list(variables.values()))
    draw = np.random.RandomState(0)
    x, h, states, words = (
        draw.rand(*shape).astype("float32") for shape in ([3, 2, 4], [2, 2, 4], [2, 2, 4], [5, 4])
    )
    feed = {"x": x, "h": h, "states": states}
    feed["words"] = fluid.create_lod_tensor(words, [[2, 3]], fluid.CPUPlace())
    fetches = {"out": out, **dict(zip(variables, gradients, strict=True))}
    fetches = {name: var for name, var in fetches.items() if var is not None}
    assert list(fetches) == list(expected)
    results = fluid.Executor(fluid.CPUPlace()).run(
        main, feed=feed, fetch_list=list(fetches.values()), return_numpy=False
    )
    for name, result in zip(fetches, results, strict=True):
        values = np.array(result, dtype="float64").ravel()
        assert np.allclose((values.sum(), values @ np.arange(values.size)), expected[name], atol=6e-4), name


def test_slices_inside_of_both_sides_of_a_choice(programs) -> None:
    x, mask = fluid.data("x", [2, 3, 1]), fluid.data("mask", [3, 1], "bool")
    choice = layers.IfElse(mask)
    with choice.true_block():
        choice.output(choice.input(x[0]) * 2.0)
    with choice.false_block():
        choice.output(choice.input(x[1]) * 3.0)
    feed = {"x": np.arange(6, dtype="float32").reshape(2, 3, 1), "mask": np.array([[1], [0], [1]], "bool")}
    [out] = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[choice()[0]])
    assert out.ravel().tolist() == [0, 12, 4]


def test_slices_in_a_loop_are_taken_in_each_iteration(programs) -> None:
    """Fluid slices before the loop, by the index that it begins with."""
    x = fluid.data("x", [4, 2])
    index = layers.fill_constant([1], "int32", 0)
    total = layers.fill_constant([2], "float32", 0)
    more = layers.less_than(index, layers.fill_constant([1], "int32", 3))
    loop = layers.While(more)
    with loop.block():
        layers.assign(total + x[index], total)
        layers.increment(index)
        layers.less_than(index, layers.fill_constant([1], "int32", 3), cond=more)
    feed = {"x": np.arange(8, dtype="float32").reshape(4, 2)}
    assert fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[total])[0].tolist() == [6, 9]


def test_what_the_steps_make_stays_inside() -> None:
    """Operators that depend on a step, or are random, are not moved out of the block."""
    for inner in (lambda step, h: step * 2.0, lambda step, h: layers.uniform_random([2, 4])):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            x, h = fluid.data("x", [3, 2, 4]), fluid.data("h", [2, 2, 4])
            rnn = layers.StaticRNN()
            with pytest.raises(fluid.core.EnforceNotMet, match="initial_states names variable"), rnn.step():
                step = rnn.step_input(x)
                before = rnn.memory(init=inner(step, h))
                rnn.update_memory(before, before + step)
                rnn.step_output(before)
