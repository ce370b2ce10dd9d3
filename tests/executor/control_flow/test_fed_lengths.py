"""Cells over batches with fed lengths: guards relate the sizes of both."""

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import agree, default

layers = fluid.layers
WIDTH = 3


def feeds(random, count):
    for _ in range(count):
        rows, steps = random.randint(2, 6), random.randint(2, 9)
        x = random.uniform(-1, 1, (rows, steps, WIDTH)).astype("float32")
        yield {"x": x, "lengths": random.randint(1, steps + 1, rows)}


@pytest.mark.parametrize("cell", [layers.GRUCell, layers.LSTMCell])
@pytest.mark.parametrize("reverse", [False, True])
def test_they_are_one_plan(cell, reverse):
    x, lengths = fluid.data("x", [None, None, WIDTH]), fluid.data("lengths", [None], "int64")
    out, _ = layers.rnn(cell(hidden_size=WIDTH), x, sequence_length=lengths, is_reverse=reverse)
    loss = layers.reduce_sum(layers.fc(out, 2, num_flatten_dims=2))
    fluid.optimizer.SGD(0.01).minimize(loss)
    fed = [*feeds(np.random.RandomState(2), 8)]
    text = agree(default([out, loss]), fed, 1e-5, 1e-6)
    assert "run in segments" not in text
    assert "scan(" in text
