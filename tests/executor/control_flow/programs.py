"""Programs with control flow: a container applies a part to a state, once or several times, somewhere inside."""

from __future__ import annotations

import numpy as np

from fluidlite import layers

from .agreement import WIDTH, data, fc, looped, number, numbers, ragged, repeated, trained
from .parts import (
    NEEDS,
    PARTS,
    Given,
    dynamic_rnn,
    loop,
    loop_as_often_as_given,
    mask_of,
    positive,
    rows_of_two_kinds,
    static_rnn,
    static_rnn_of_states,
    two_ways,
)  # fmt: skip

CONTAINERS = []


def container(function):
    CONTAINERS.append(function)
    return function


@container
def alone(apply, given):
    return apply(given.start, given)


@container
def in_a_loop(apply, given):
    return looped(given.trips, given.start, lambda value: apply(value, given) + given.still)


@container
def in_a_loop_that_replaces_all(apply, given):
    state, x = layers.scale(given.start, 1.0), layers.scale(given.x, 1.0)

    def body(i):
        layers.assign(apply(state, given._replace(x=x)), state)
        layers.assign(layers.sin(x), x)

    repeated(given.trips, body)
    return state * given.still


@container
def in_a_loop_through_an_array(apply, given):
    """Each iteration reads the element that the previous one wrote."""
    i = number(0)
    states = layers.array_write(layers.scale(given.start, 1.0), i)
    going = layers.less_than(i, given.trips)
    with layers.While(going).block():
        state = layers.array_read(states, i)
        layers.increment(i)
        layers.array_write(apply(state, given), i, states)
        layers.less_than(i, given.trips, cond=going)
    return layers.array_read(states, given.trips) + layers.array_read(states, number(0))


@container
def in_a_branch(apply, given):
    few = layers.less_than(given.trips, number(2))
    return layers.cond(few, lambda: apply(given.start, given), lambda: layers.sin(given.still))


@container
def in_a_switch(apply, given):
    out = layers.scale(given.start, 0.5)
    with layers.Switch() as switch:
        with switch.case(layers.less_than(given.trips, number(1))):
            layers.assign(apply(given.start, given), out)
        with switch.case(layers.less_than(given.trips, number(2))):
            layers.assign(apply(given.still, given), out)
    return out


@container
def in_a_branch_of_a_loop(apply, given):
    def iteration(value):
        return layers.cond(positive(value), lambda: apply(value, given), lambda: value * 0.5 + given.still)

    return looped(given.trips, given.start, iteration)


@container
def in_loops_in_each_other(apply, given):
    def outer(value):
        return looped(number(2), value, lambda each: apply(each, given) + given.still)

    return looped(given.trips, given.start, outer)


@container
def in_steps(apply, given):
    rnn, inner = layers.StaticRNN(), given._replace(x=layers.scale(given.x, 0.7))
    with rnn.step():
        word, state = rnn.step_input(given.x), rnn.memory(init=given.start)
        new = apply(fc([word, state], 4, "step"), inner)
        rnn.update_memory(state, new)
        rnn.step_output(new)
    return rnn()


@container
def in_steps_of_sequences(apply, given):
    """Later steps have fewer rows."""
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, state = rnn.step_input(given.words), rnn.memory(init=given.start)
        new = apply(fc([word, state], 4, "step"), given._replace(still=rnn.static_input(given.still)))
        rnn.update_memory(state, new)
        rnn.output(new)
    return rnn()


@container
def in_rows_of_one_side(apply, given):
    def yes(rows, still):
        return apply(rows, given._replace(still=still))

    return two_ways(mask_of(given.start), yes, layers.sin, given.start, given.still)


SHRINKING = (in_steps_of_sequences, in_rows_of_one_side)
EVERYWHERE = (static_rnn, dynamic_rnn, rows_of_two_kinds, loop_as_often_as_given)
ALSO = [
    *((in_rows_of_one_side, inside) for inside in (static_rnn_of_states, loop)),
    *((in_steps, inside) for inside in PARTS if inside.__name__.startswith(("loop", "two_loops", "nested"))),
    *(
        (in_steps_of_sequences, inside)
        for inside in PARTS
        if inside.__name__.startswith(("loop", "two_loops"))
    ),
    *((alone, inside) for inside in PARTS if inside.__name__.startswith(("array", "variable"))),
    *((in_a_loop, inside) for inside in PARTS if inside.__name__.startswith(("variable", "rows"))),
]


def containers_for(inside):
    """All containers for some parts, two or more for each of the others."""
    possible = [each for each in CONTAINERS if not (NEEDS[inside] and each in SHRINKING)]
    first = PARTS.index(inside)
    some = [possible[(first + k) % len(possible)] for k in (0, 5)]
    return [each for each in possible if inside in EVERYWHERE or each in some or (each, inside) in ALSO]


PROGRAMS = [(around, inside) for inside in PARTS for around in containers_for(inside)]


def declared(dtype="float32"):
    """Functions that declare what is given."""
    rows = {"start": [None, 4], "still": [None, 4]}
    return [
        data("x", [None, None, WIDTH], dtype),
        data("words", [None, WIDTH], dtype, lod_level=1),
        *(data(name, shape, dtype) for name, shape in rows.items()),
        data("trips", [1], "int64"),
    ]


def batch(random, steps, lengths, trips, dtype="float32"):
    """A feed of what is given, with a row for each of `lengths`."""
    shapes = {"x": (steps, len(lengths), WIDTH), "start": (len(lengths), 4), "still": (len(lengths), 4)}
    made = {name: numbers(random, *shape).astype(dtype) for name, shape in shapes.items()}
    return made | {"words": ragged(random, lengths, dtype=dtype), "trips": np.array([trips])}


def batches(dtype="float32"):
    random = np.random.default_rng(0)
    shapes = [
        (4, [2, 4], 1), (1, [3, 1, 1], 2), (3, [3], 0), (1, [1], 1), (5, [1, 7, 2, 5], 3),
    ]  # fmt: skip
    return [batch(random, *shape, dtype) for shape in shapes]


def program(around, inside, dtype="float32"):
    """The program of a container and a part, that trains."""
    return trained(lambda *given: [around(inside, Given(*given))], declared(dtype))
