"""Operators that are batched over the iterations of a loop (`Planning.batchable`), in the steps of a network."""

import numpy as np
import pytest

import fluidlite as fluid

from ..executor.control_flow.agreement import check, data, fc, numbers

layers = fluid.layers


def looked_up(word, state, ids):
    return fc([layers.embedding(ids, [7, 4], param_attr="table", padding_idx=3), state], 4, "of")


def looked_up_flat(word, state, ids):
    flat = layers.reshape(ids, [-1])
    return fc([fluid.embedding(flat, [7, 4], param_attr="table"), state], 4, "of")


def normalized(word, state, ids):
    return fc([layers.layer_norm(fc(word, 4, "w"), epsilon=0.1), state], 4, "of") * layers.layer_norm(
        state, scale=False, shift=False, epsilon=0.5
    )


def of_entropies(word, state, ids):
    likely = fc([word, state], 7, "likely", "softmax")
    loss = layers.cross_entropy(likely, ids)
    soft = layers.cross_entropy(likely, fc(word, 7, "soft", "softmax"), soft_label=True)
    return fc([word, state], 4, "of") * layers.sigmoid(loss * 0.2) + layers.tanh(soft * 0.1)


def of_parts(word, state, ids):
    """Gates of one product, as cells have them."""
    gates = fc([word, state], 8, "gates", "sigmoid")
    one, other = layers.slice(gates, [1], [0], [4]), layers.slice(gates, [1], [4], [8])
    first = layers.slice(word, [1], [0], [1])
    return one * state + layers.tanh(other) * layers.slice(word, [1], [1], [3])[:, 0:1] * first


def of_comparisons(word, state, ids):
    best = layers.topk(word, 1)[1]
    hot = layers.one_hot(best, 3) + layers.one_hot(layers.unsqueeze(layers.argmax(word, 1), [1]), 3)
    more = layers.cast(layers.logical_or(hot > word, layers.logical_not(word < hot)), "float32")
    loss = layers.sigmoid_cross_entropy_with_logits(word, hot * 0.5)
    weight = layers.reduce_sum(loss * more, dim=1)
    ones = layers.fill_constant_batch_size_like(word, [-1, 4], "float32", 1.0)
    return fc([loss, state], 4, "of") + layers.elementwise_mul(ones, weight, axis=0) * 0.1


STEPS = [looked_up, looked_up_flat, normalized, of_entropies, of_parts, of_comparisons]


def stepped(step):
    def build(x, start, ids):
        rnn = layers.StaticRNN()
        with rnn.step():
            word, state, each = rnn.step_input(x), rnn.memory(init=start), rnn.step_input(ids)
            new = step(word, state, each)
            rnn.update_memory(state, new)
            rnn.step_output(new)
            rnn.step_output(layers.tanh(new) * 0.5)
        return rnn()

    return build


def labels():
    return fluid.data("ids", [None, None, 1], "int64")


SOURCES = [data("x", [None, None, 3]), data("start", [None, 4]), labels]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_all_iterations_at_once(step):
    random = np.random.default_rng(1)
    feeds = []
    for steps, rows in [(4, 2), (1, 3), (3, 1), (1, 1), (5, 4), (4, 2)]:
        feed = {"x": numbers(random, steps, rows, 3), "start": numbers(random, rows, 4)}
        feeds.append(feed | {"ids": random.integers(0, 7, (steps, rows, 1))})
    text = check(stepped(step), SOURCES, feeds)
    assert "run in segments" not in text and "body of" in text


def test_operators_hoisted_out_of_the_loop():
    """Lookups and their gradients are one call each for all steps."""
    random = np.random.default_rng(1)
    feed = {"x": numbers(random, 5, 2, 3), "start": numbers(random, 2, 4)}
    text = check(stepped(looked_up), SOURCES, [feed | {"ids": random.integers(0, 7, (5, 2, 1))}] * 4)
    lines = [line for line in text.splitlines() if "lookup_table" in line]
    assert len(lines) == 2 and all(line.startswith("  lookup_table") for line in lines), text
