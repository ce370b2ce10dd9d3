"""Scans of arrays (`StaticRNN`): values and gradients, compiled against interpreted; declared numbers of steps."""

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import WIDTH, check, data, fc, number, numbers

layers = fluid.layers
STEPS = 4

pytestmark = pytest.mark.filterwarnings("ignore")

# Networks of steps: x [steps, batch, 3], start [batch, 4], still [batch, 4].


def static(step):
    """A StaticRNN whose block is `step(rnn, x, start, still)`."""

    def build(x, start, still):
        rnn = layers.StaticRNN()
        also = layers.scale(x, 2.0)
        with rnn.step():
            step(rnn, x, start, still, also)
        outs = rnn()
        return outs if isinstance(outs, list) else [outs]

    build.__name__ = step.__name__
    return build


@static
def one_memory(rnn, x, start, still, also):
    word, state = rnn.step_input(x), rnn.memory(init=start)
    new = fc([word, state], 4, "one")
    rnn.update_memory(state, new)
    rnn.step_output(new)


@static
def swapped_memories(rnn, x, start, still, also):
    word = rnn.step_input(x)
    left, right = rnn.memory(init=start), rnn.memory(init=still)
    rnn.update_memory(left, right)
    rnn.update_memory(right, fc([word, left], 4, "two"))
    rnn.output(left, right)


@static
def gates(rnn, x, start, still, also):
    """A handwritten LSTM, and an output that no iteration reads."""
    word = rnn.step_input(x)
    state, cell = rnn.memory(init=start), rnn.memory(shape=[-1, 4], batch_ref=word)
    parts = layers.split(fc([word, state], 16, "gates", None), 4, dim=1)
    new = layers.sigmoid(parts[0]) * cell + layers.sigmoid(parts[1]) * layers.tanh(parts[2])
    hidden = layers.sigmoid(parts[3]) * layers.tanh(new)
    rnn.update_memory(state, hidden)
    rnn.update_memory(cell, new)
    rnn.step_output(fc(hidden, 5, "out", "softmax"))
    rnn.step_output(hidden)


@static
def joined(rnn, x, start, still, also):
    """Of the two gradients of one operator, only one is loop-carried."""
    word, state = rnn.step_input(x), rnn.memory(init=start)
    gate = fc(layers.concat([word, state], axis=1), 4, "gate", "sigmoid")
    new = gate * fc(layers.concat([word, state * gate], axis=1), 4, "new")
    rnn.update_memory(state, new)
    rnn.step_output(new)


@static
def a_weight_double_grad(rnn, x, start, still, also):
    word, state = rnn.step_input(x), rnn.memory(init=start)
    other_word = rnn.step_input(also)
    new = layers.tanh(
        fc(word, 4, "same", None) + fc(other_word, 4, "same", None) + fc(state, 4, "other", None)
    )
    rnn.update_memory(state, fc(new, 4, "other"))
    rnn.step_output(new)


@static
def still_inputs(rnn, x, start, still, also):
    """Loop-invariant inputs: with the rows of the batch, a vector, one element."""
    word, state = rnn.step_input(x), rnn.memory(init=start)
    scale = layers.create_parameter([4], "float32", "scale")
    shift = layers.create_parameter([1], "float32", "shift")
    new = layers.tanh(fc(word, 4, "word", None) + state * scale + still)
    rnn.update_memory(state, layers.elementwise_add(new, shift) * still)
    rnn.step_output(new)


@static
def halved(rnn, x, start, still, also):
    """The gradient of a loop-invariant input is computed before the loop, for all iterations."""
    word, state = rnn.step_input(x), rnn.memory(init=start)
    new = fc([word, state], 4, "new")
    rnn.update_memory(state, new)
    rnn.step_output(new)
    rnn.step_output(layers.elementwise_add(fc(word, 4, "word"), layers.scale(still, 0.5)))


@static
def sums_of_rows(rnn, x, start, still, also):
    """Reductions and normalisation of rows before, in and after the loop."""
    word, state = rnn.step_input(x), rnn.memory(init=start)
    size = layers.reduce_sum(layers.square(word), dim=1)
    middle = layers.reduce_mean(word, dim=1, keep_dim=True)
    new = layers.elementwise_mul(
        layers.tanh(fc([word, state], 4, "sums") - middle), layers.tanh(size), axis=0
    )
    rnn.update_memory(state, layers.softmax(new) - layers.reduce_max(state, dim=1, keep_dim=True))
    rnn.step_output(layers.softmax(new) * layers.reduce_sum(new, dim=-1, keep_dim=True))
    rnn.step_output(layers.reduce_sum(new, dim=1))


@static
def no_memory(rnn, x, start, still, also):
    word = rnn.step_input(x)
    rnn.step_output(fc(word, 4, "alone"))
    rnn.step_output(layers.elementwise_mul(fc(word, 4, "alone", None), still))


@static
def without_gradient(rnn, x, start, still, also):
    word, state = rnn.step_input(x), rnn.memory(init=start)
    new = fc([word, state], 4, "stop")
    new.stop_gradient = True
    rnn.update_memory(state, new)
    rnn.step_output(layers.concat([new, fc(word, 4, "go")], axis=1))


@static
def across_rows(rnn, x, start, still, also):
    """Operators that must not work on the rows of several iterations at once."""
    word, state = rnn.step_input(x), rnn.memory(init=start)
    mean = layers.reduce_mean(fc(word, 4, "mean"), dim=0, keep_dim=True)
    new = layers.elementwise_add(fc([state], 4, "state"), layers.reshape(mean, [4]))
    gram = layers.matmul(new, new, transpose_x=True)
    rnn.update_memory(state, layers.matmul(new, layers.softmax(gram)))
    rnn.step_output(layers.softmax(new, axis=0))


@static
def branches(rnn, x, start, still, also):
    """Steps that decide, one of them within a branch."""
    word, state = rnn.step_input(x), rnn.memory(init=start)
    flat = layers.reshape(layers.reduce_sum(word), [1])

    def shrunk():
        small = layers.less_than(flat, layers.fill_constant([1], "float32", -1.0))
        return layers.cond(small, lambda: state * 0.5, lambda: fc([state], 4, "shrunk"))

    less = layers.less_than(flat, layers.fill_constant([1], "float32", 0.0))
    new = layers.cond(less, shrunk, lambda: fc([word, state], 4, "grown"))
    rnn.update_memory(state, new)
    rnn.step_output(layers.scale(new, 2.0))


@static
def a_loop_inside(rnn, x, start, still, also):
    """Without a gradient, in each iteration."""
    word, state = rnn.step_input(x), rnn.memory(init=start)
    size = layers.reduce_mean(layers.abs(word))
    size.stop_gradient = True
    _, size = layers.while_loop(
        lambda i, _: layers.less_than(i, number(3)),
        lambda i, s: [layers.increment(i), s * 0.7 + 0.1],
        [number(0), size],
    )
    size.stop_gradient = True
    new = fc([word, state], 4, "loop") * size
    rnn.update_memory(state, new)
    rnn.step_output(new)


def deeper(x, start, still):
    """Steps of more dimensions."""
    words, begin = layers.stack([x, x * 0.5], axis=2), layers.stack([start, still], axis=1)
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(words), rnn.memory(init=begin)
        parts = [
            layers.fc(each, 4, num_flatten_dims=2, param_attr=f"deep.w{k}", bias_attr=False)
            for k, each in enumerate([word, state])
        ]
        new = layers.tanh(parts[0] + parts[1])
        rnn.update_memory(state, new)
        rnn.step_output(new)
    return [rnn()]


@static
def units(rnn, x, start, still, also):
    word, state = rnn.step_input(x), rnn.memory(init=start)
    gate = layers.fc(word, 12, param_attr="gate.w", bias_attr=False)
    new, _, _ = layers.gru_unit(gate, state, 12, param_attr="gru.w", bias_attr="gru.b")
    rnn.update_memory(state, new)
    rnn.step_output(new)


def backwards(x, start, still):
    """The steps in reverse: an attribute that only programs of Fluid's own helpers set."""
    outs = one_memory(x, start, still)
    for op in fluid.default_main_program().global_block().ops:
        if op.type == "recurrent":
            op.attrs["reverse"] = True
    return outs


def by_python(x, start, still):
    """A step with an operator that has no native kernel."""
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(x), rnn.memory(init=start)
        new = fc([word, state], 4, "python", None)
        rnn.update_memory(state, layers.cumsum(layers.tanh(new), axis=1))
        rnn.step_output(new)
    return [rnn()]


def two_layers(x, start, still):
    return [one_memory(x, start, still)[0], gates(x, still, start)[1]]


STATIC = [branches, a_loop_inside, one_memory, swapped_memories, gates, joined, halved, a_weight_double_grad,
          still_inputs, no_memory, sums_of_rows, without_gradient, across_rows, deeper, units, backwards, by_python,
          two_layers]  # fmt: skip


@pytest.mark.parametrize("build", STATIC)
def test_steps_of_an_array(build):
    random = np.random.default_rng(0)
    feeds = [
        {
            "x": numbers(random, steps, batch, WIDTH),
            "start": numbers(random, batch, 4),
            "still": numbers(random, batch, 4),
        }
        for steps, batch in [(4, 2), (1, 3), (6, 1), (3, 5)]
    ]
    sources = [data("x", [None, None, WIDTH]), data("start", [None, 4]), data("still", [None, 4])]
    text = check(build, sources, feeds)
    assert "body of" in text or build is no_memory
    assert "run in segments" not in text and "iteration by iteration" not in text


@pytest.mark.parametrize("build", [gates, branches, halved])
@pytest.mark.parametrize("batch", [1, 3])
def test_declared_batch_sizes(build, batch):
    random = np.random.default_rng(4)
    feeds = [
        {"x": numbers(random, steps, batch, WIDTH), "start": numbers(random, batch, 4),
         "still": numbers(random, batch, 4)}
        for steps in (3, 1, 5)
    ]  # fmt: skip
    sources = [data("x", [None, batch, WIDTH]), data("start", [batch, 4]), data("still", [batch, 4])]
    text = check(build, sources, feeds)
    assert "body of" in text and "run in segments" not in text


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
