"""`StaticRNN` and `DynamicRNN` in other blocks: outer variables, Python kernels, sequences of all kinds."""

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import agree, check, fc, looped, run, trained
from .parts import dynamic_rnn, last, mean
from .programs import batch, batches, declared, in_a_branch, in_a_loop, program

layers = fluid.layers


def test_a_copy_of_a_loop_invariant_output():
    """An output of all steps that is a copy of a loop-invariant variable."""

    def build(x, words, start, still, trips):
        rnn = layers.StaticRNN()
        with rnn.step():
            word, state = rnn.step_input(x), rnn.memory(init=start)
            copy = layers.scale(still, 1.0)
            new = layers.tanh(fc(word, 4, "word") * copy + state)
            rnn.update_memory(state, new)
            rnn.step_output(new)
            rnn.step_output(copy)
        return rnn()

    text = check(build, declared(), batches())
    assert "body of" in text


def test_outer_variables_that_steps_write():
    """As in real Paddle 1.8.5, the value that the last step wrote."""

    def build(x, words, start, still, trips):
        left, rnn = layers.scale(start, 1.0), layers.StaticRNN()
        with rnn.step():
            word, state = rnn.step_input(x), rnn.memory(init=start)
            new = fc([word, state], 4, "one")
            layers.assign(new, left)
            rnn.update_memory(state, new)
            rnn.step_output(new)
        return [rnn(), left * still]

    check(build, declared(), batches())
    feeds = [{**feed, "still": np.ones_like(feed["still"])} for feed in batches()]
    for _, out, left, *_ in run(trained(build, declared()), feeds, "plan")[0][:-1]:
        np.testing.assert_array_equal(np.array(left), np.array(out)[-1])
        assert np.array(left).any()


def test_python_in_steps_of_steps():
    """An operator without native kernel in an inner scan: each iteration calls the reference kernel."""

    def build(x, words, start, still, trips):
        rnn = layers.StaticRNN()
        with rnn.step():
            word, state = rnn.step_input(x), rnn.memory(init=start)
            inner = layers.stack([word, word * 0.5])
            new = mean(inner, state, also=lambda new, word: layers.cumsum(new, axis=1))
            rnn.update_memory(state, new)
            rnn.step_output(new)
        return [rnn()]

    text = check(build, declared(), batches())
    assert "run in segments" not in text and "reference" in text


def test_sequences_computed_in_an_iteration():
    def build(x, words, start, still, trips):
        def iteration(value):
            return last(layers.sequence_concat([words, words]), value) + still

        return [looped(trips, start, iteration)]

    check(build, declared(), batches())


@pytest.mark.parametrize("around", [in_a_loop, in_a_branch])
def test_other_sequences_from_step_to_step(around):
    """Also where they are as long, and where one has no rows."""
    random = np.random.default_rng(4)
    lengths = ([2, 4, 1], [4, 1, 2], [7], [1, 1, 1, 1, 1, 1, 1], [3, 0, 4], [2, 4, 1])
    agree(program(around, dynamic_rnn), [batch(random, 2, each, 2) for each in lengths])
