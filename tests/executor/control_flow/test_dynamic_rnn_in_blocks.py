"""`DynamicRNN` in loops and branches: a scan in the plan of the program if the sequences are fed."""

import numpy as np
import pytest

import fluidlite as fluid

from .test_loops_in_scans import DYNAMIC, looped, ragged_batches
from .test_recurrent_in_blocks import mean
from .test_scans import check, fc, number, numbers

layers = fluid.layers


def network(words, start, name="inner", still=None):
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, state = rnn.step_input(words), rnn.memory(init=start, need_reorder=True)
        new = fc([word, state], 4, name)
        if still is not None:
            new = new * rnn.static_input(still)
        rnn.update_memory(state, new)
        rnn.output(new)
    return rnn()


def last(words, start, name="inner", still=None):
    return layers.sequence_last_step(network(words, start, name, still))


def in_a_loop(words, start, still, trips):
    return [looped(trips, start, lambda value: last(words, value))]


def with_what_stays(words, start, still, trips):
    return [looped(trips, start, lambda value: last(words, value, still=still) + value * 0.1)]


def in_a_branch(words, start, still, trips):
    few = layers.less_than(trips, number(2))
    return [
        layers.cond(
            few,
            lambda: last(words, start),
            lambda: layers.sequence_pool(network(words, still, "other"), "sum"),
        )
    ]


def in_a_switch(words, start, still, trips):
    out = layers.scale(start, 0.5)
    with layers.Switch() as switch:
        with switch.case(layers.less_than(trips, number(1))):
            layers.assign(last(words, start), out)
        with switch.case(layers.less_than(trips, number(2))):
            layers.assign(last(words, still, "other"), out)
    return [out]


def in_a_branch_of_a_loop(words, start, still, trips):
    def iteration(value):
        more = layers.reduce_sum(value) > layers.fill_constant([1], "float32", 0.0)
        return layers.cond(more, lambda: last(words, value), lambda: value * 0.5 + still)

    return [looped(trips, start, iteration)]


def in_loops_in_each_other(words, start, still, trips):
    return [
        looped(trips, start, lambda value: looped(number(2), value, lambda each: last(words, each) + still))
    ]


def in_sequence(words, start, still, trips):
    def iteration(value):
        return last(network(words, value), last(words, still, "second"), "third")

    return [looped(trips, start, iteration), last(words, start, "outside")]


def next_to_steps(words, start, still, trips):
    def iteration(value):
        return mean(
            layers.slice(layers.stack([value, value * 2.0]), [2], [0], [3]), last(words, value), "steps"
        )

    return [looped(trips, start, iteration)]


def with_a_loop_inside(words, start, still, trips):
    def iteration(value):
        rnn = layers.DynamicRNN()
        with rnn.block():
            word, state = rnn.step_input(words), rnn.memory(init=value, need_reorder=True)
            new = looped(number(2), state, lambda each: fc([word, each], 4, "inside"))
            rnn.update_memory(state, new)
            rnn.output(new)
        return layers.sequence_last_step(rnn())

    return [looped(trips, start, iteration)]


BUILDS = [
    in_a_loop, with_what_stays, in_a_branch, in_a_switch, in_a_branch_of_a_loop, in_loops_in_each_other,
    in_sequence, next_to_steps, with_a_loop_inside,
]  # fmt: skip


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_as_operator_by_operator(build):
    batches = [*ragged_batches(np.random.default_rng(0))]
    text = check(build, DYNAMIC, [*batches, *batches[:2]])
    assert "run in segments" not in text and "body of" in text


def test_sequences_computed_in_an_iteration_are_run_by_python():
    def build(words, start, still, trips):
        return [
            looped(trips, start, lambda value: last(layers.sequence_concat([words, words]), value) + still)
        ]

    assert "run in segments" in check(build, DYNAMIC, [*ragged_batches(np.random.default_rng(0))])


def test_other_sequences_from_step_to_step():
    """Also where they are as long, and where one has no rows."""
    random, feeds = np.random.default_rng(4), []
    for lengths in ([2, 4, 1], [4, 1, 2], [7], [1, 1, 1, 1, 1, 1, 1], [3, 0, 4], [2, 4, 1]):
        words = fluid.create_lod_tensor(numbers(random, sum(lengths), 3), [lengths], fluid.CPUPlace())
        made = {name: numbers(random, len(lengths), 4) for name in ("start", "still")}
        feeds.append(made | {"words": words, "last": np.array([2])})
    check(in_a_loop, DYNAMIC, feeds)
    check(in_a_branch, DYNAMIC, feeds)
