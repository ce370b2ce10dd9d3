"""Random numbers drawn in scans: those of the interpreter, in its order."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.seeds import reseed

from .agreement import Built, compare, data, fc, numbers, ragged, run, trained

layers = fluid.layers


def noisy(word, state):
    """Random numbers per row, per iteration, and with a fixed seed."""
    shape = [-1, 4]
    new = fc([word, state], 4, "noisy") + layers.gaussian_random_batch_size_like(state, shape, std=0.1)
    new = new * layers.uniform_random_batch_size_like(new, shape, min=0.5, max=1.0)
    new = layers.elementwise_mul(new, layers.uniform_random([1], min=0.5, max=1.5))
    return layers.elementwise_add(new, layers.gaussian_random([4], seed=7))


def steps(x, start):
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(x), rnn.memory(init=start)
        new = noisy(word, state)
        rnn.update_memory(state, new)
        rnn.step_output(new)
    return [rnn()]


def sequences(words):
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, state = rnn.step_input(words), rnn.memory(shape=[4], value=0.0)
        new = noisy(word, state)
        rnn.update_memory(state, new)
        rnn.output(new)
    return [rnn()]


def both_ways(built, feeds):
    found = []
    for engine in ("interpret", "plan"):
        reseed(11)
        try:
            found.append(run(built, feeds, engine))
        finally:
            reseed(None)
    compare(found[0][0], found[1][0])
    return found[1][1]


def batches(random, shapes):
    for trips, rows in shapes:
        yield {"x": numbers(random, trips, rows, 3), "start": numbers(random, rows, 4)}


STEPS = [data("x", [None, None, 3]), data("start", [None, 4])]
WORDS = [data("words", [None, 3], lod_level=1)]


@pytest.mark.parametrize("ranked", [False, True])
def test_scans_draw_the_numbers_of_the_interpreter(ranked):
    random = np.random.default_rng(0)
    if ranked:
        fed = [
            {"words": ragged(random, each)}
            for each in ([2, 4, 1], [3], [1, 1], [5, 5, 5], [2, 0, 3], [2, 4, 1])
        ]
        text = both_ways(trained(sequences, WORDS), fed)
    else:
        fed = [*batches(random, [(4, 2), (1, 3), (3, 1), (1, 1), (4, 2), (2, 5)])]
        text = both_ways(trained(steps, STEPS), fed)
    assert "run in segments" not in text and "body of" in text
    drawn = [line for line in text.splitlines() if "gaussian_random_batch_size_like(" in line]
    assert drawn and all(line.endswith("; reference") for line in drawn)


def test_a_step_that_may_be_replayed_draws_nothing_twice():
    """Data-dependent sizes after a scan that draws; they differ from step to step."""
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    (out,) = steps(*[make() for make in STEPS])
    rows = layers.reshape(out, [-1, 4])
    chosen = layers.gather_nd(rows, layers.where(layers.reduce_sum(rows, dim=1) > 0.0))
    fed = [*batches(np.random.default_rng(1), [(3, 4)] * 8)]
    text = both_ways(Built(main, startup, [chosen, out]), fed)
    assert "body of" in text and "where_index(" in text
