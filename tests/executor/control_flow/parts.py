"""Parts of programs: functions that make a state [rows, 4] of another one and of what is given."""

from __future__ import annotations

from typing import Any, NamedTuple

from fluidlite import layers

from .agreement import fc, looped, number


def positive(value):
    """True if the elements of `value` sum up to more than 0."""
    return layers.greater_than(layers.reduce_sum(value), number(0.0, value.dtype))


class Given(NamedTuple):
    """Variables that programs read."""

    x: Any  # [steps, rows, 3]
    words: Any  # sequences, one for each row, of rows of 3
    start: Any  # [rows, 4]
    still: Any  # [rows, 4]
    trips: Any  # [1]


PARTS, NEEDS = [], {}


def part(needs=None):
    """Register a part, which needs the input `needs` to have the rows of the whole batch."""

    def register(function):
        PARTS.append(function)
        NEEDS[function] = needs
        return function

    return register


def steps(words, start, name="inner", also=None):
    """The outputs of a StaticRNN: [steps, rows, 4]."""
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(words), rnn.memory(init=start)
        new = fc([word, state], 4, name)
        rnn.update_memory(state, new if also is None else also(new, word))
        rnn.step_output(layers.sin(new))
    return rnn()


def mean(words, start, name="inner", also=None):
    return layers.reduce_mean(steps(words, start, name, also), dim=0)


@part("x")
def static_rnn(state, given):
    return mean(given.x, state)


@part("x")
def two_static_rnns(state, given):
    return mean(layers.reverse(given.x, 0), mean(given.x, state), "second") * given.still


@part("x")
def static_rnn_with_a_loop(state, given):
    def also(new, word):
        return looped(given.trips, new, lambda value: layers.tanh(value + fc(word, 4, "word", None)))

    return mean(given.x, state, also=also)


@part("x")
def random_static_rnn(state, given):
    return mean(layers.dropout(given.x, 0.3, seed=5), state)


@part()
def static_rnn_of_states(state, given):
    """Its inputs are made in the iteration."""
    return mean(layers.stack([state, layers.sin(state), state * state]), state)


def network(words, start, name="inner", still=None, also=None):
    """The outputs of a DynamicRNN."""
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, state = rnn.step_input(words), rnn.memory(init=start, need_reorder=True)
        new = fc([word, state], 4, name)
        new = new if still is None else new * rnn.static_input(still)
        new = new if also is None else also(new, word)
        rnn.update_memory(state, new)
        rnn.output(new)
    return rnn()


def last(words, start, name="inner", still=None, also=None):
    return layers.sequence_last_step(network(words, start, name, still, also))


@part()
def nested_static_rnn(state, given):
    """Steps of steps."""
    rnn, words = layers.StaticRNN(), layers.stack([state, layers.cos(state)])
    with rnn.step():
        each, before = rnn.step_input(words), rnn.memory(init=state)
        new = mean(layers.stack([each, each * 2.0]), before) * given.still
        rnn.update_memory(before, new)
        rnn.step_output(new)
    return layers.reduce_sum(rnn(), dim=0)


@part("words")
def dynamic_rnn(state, given):
    return last(given.words, state)


@part("words")
def dynamic_rnn_with_what_stays(state, given):
    return last(given.words, state, still=given.still) + state * 0.1


@part("words")
def several_dynamic_rnns(state, given):
    return last(network(given.words, state), last(given.words, given.still, "second"), "third")


@part("words")
def dynamic_rnn_with_a_loop(state, given):
    return last(
        given.words,
        state,
        also=lambda new, word: looped(number(2), new, lambda each: fc([word, each], 4, "inside")),
    )


@part("words")
def rnns_of_both_kinds(state, given):
    words = layers.slice(layers.stack([state, state * 2.0]), [2], [0], [3])
    return mean(words, last(given.words, state), "steps")


def mask_of(x, bound=0.1):
    """The rows with larger sums."""
    key = layers.reduce_sum(x, dim=1, keep_dim=True)
    return key > layers.fill_constant_batch_size_like(key, [-1, 1], key.dtype, bound)


def two_ways(mask, yes, no, *inputs):
    """An IfElse: the result of `yes(*rows)` or `no(*rows)` for each row; of the first result if there are several."""
    choice = layers.IfElse(mask)
    for block, function in ((choice.true_block, yes), (choice.false_block, no)):
        with block():
            outs = function(*(choice.input(each) for each in inputs))
            choice.output(*outs if isinstance(outs, tuple) else (outs,))
    outs = choice()
    return outs[0] if len(outs) == 1 else outs


@part()
def rows_of_two_kinds(state, given):
    def yes(rows, others):
        return fc(rows * others, 4, "yes"), rows

    def no(rows, others):
        return layers.scale(rows, 0.5, 0.1), fc(rows, 4, "no", "sigmoid")

    one, other = two_ways(mask_of(state), yes, no, state, given.still)
    return layers.tanh(one + other)


@part()
def logarithms_of_rows(state, given):
    """A block that would compute NaN for the rows of the other side."""
    first = layers.slice(state, [1], [0], [1])
    made = two_ways(
        mask_of(first, 0.0),
        lambda rows: layers.sqrt(rows + 0.01) + layers.log(rows + 0.5),
        lambda rows: layers.sqrt(layers.scale(rows, -1.0, 0.01)),
        first,
    )
    return layers.tanh(made) * state


@part()
def classes_of_rows(state, given):
    """Softmax, cross entropy, reductions along a row."""
    labels = layers.reshape(layers.argmax(state, axis=1), [-1, 1])

    def yes(rows, label):
        return fc(rows, 4, "yes", "softmax") * rows, layers.reduce_max(rows, dim=1, keep_dim=True)

    def no(rows, label):
        loss = layers.softmax_with_cross_entropy(fc(rows, 4, "no"), label)
        return rows - loss, layers.reduce_mean(layers.square(rows), dim=1, keep_dim=True)

    one, other = two_ways(mask_of(state), yes, no, state, labels)
    return layers.elementwise_mul(layers.tanh(one), other)


@part()
def rows_in_sequence(state, given):
    return rows_of_two_kinds(rows_of_two_kinds(state, given), given)


@part()
def rows_that_replace_others(state, given):
    """A block that assigns to an outer variable, which is unchanged if no row is on that side."""
    seen = number(1.0, state.dtype)

    def yes(rows):
        layers.assign(seen * 2.0, seen)
        return rows * 0.5

    return layers.elementwise_mul(two_ways(mask_of(state), yes, lambda rows: rows * -0.7, state), seen)


@part()
def branches_of_rows(state, given):
    """A branch on a condition of one element in a side of an IfElse."""
    few = layers.less_than(given.trips, number(2))

    def yes(rows):
        return layers.cond(few, lambda: fc(rows, 4, "few"), lambda: layers.tanh(rows * 0.5))

    return two_ways(mask_of(state), yes, layers.sin, state)


@part()
def rows_reduced_together(state, given):
    """A block whose results depend on all of its rows."""
    return two_ways(mask_of(state), lambda rows: rows * layers.reduce_mean(rows), layers.tanh, state)


@part()
def rows_of_one_side(state, given):
    choice = layers.IfElse(mask_of(state))
    with choice.true_block():
        choice.output(layers.tanh(choice.input(state)))
    return layers.reduce_sum(choice()[0]) * 0.1 + layers.tanh(state)


@part()
def rows_of_rows(state, given):
    def yes(rows):
        return two_ways(mask_of(rows, 0.5), layers.tanh, lambda few: fc(few, 4, "few"), rows)

    return two_ways(mask_of(state), yes, layers.sin, state)


@part()
def loops_of_rows(state, given):
    def yes(rows):
        return looped(given.trips, rows, lambda value: fc(value, 4, "iteration"))

    return two_ways(mask_of(state), yes, layers.sin, state)


@part()
def loop(state, given):
    """A state that the loop replaces, and a weight that each iteration reads."""
    return looped(number(2), state, lambda value: fc([state, value], 4, "twice"))


@part()
def loop_as_often_as_given(state, given):
    start, bound = fc(state, 4, "first"), layers.tanh(state)
    return looped(given.trips, start, lambda value: layers.sin(value) * given.still + bound)


@part()
def loop_of_two_variables(state, given):
    """The variables are swapped, and one is multiplied by the counter."""

    def body(i, one, other):
        made = layers.elementwise_mul(layers.tanh(one), layers.cast(i, one.dtype), axis=0)
        return [layers.increment(i), other * 0.9, made + one * 0.5]

    variables = [number(0), layers.scale(state, 1.0), state * given.still]
    return layers.while_loop(lambda i, *_: layers.less_than(i, given.trips), body, variables)[1]


@part()
def loop_until_it_is_small(state, given):
    """The trip count of each loop depends on its values."""
    value, most = layers.scale(fc(state, 4, "small", None), 3.0), number(0.5, state.dtype)
    going = layers.reduce_mean(layers.abs(value)) > most
    with layers.While(going).block():
        layers.assign(layers.tanh(value) * 0.6, value)
        layers.assign(layers.reduce_mean(layers.abs(value)) > most, going)
    return value


@part()
def loops_in_each_other(state, given):
    def outer(value):
        inner = looped(number(2), value, lambda each: layers.tanh(each * 0.9 + fc(state, 4, "word")))
        return layers.elementwise_mul(inner, fc(inner, 4, "outer", "sigmoid"))

    return looped(given.trips, state, outer)


@part()
def loop_in_a_branch(state, given):
    def iteration(value):
        return layers.sin(value) + state * 0.1

    return layers.cond(
        positive(state), lambda: looped(given.trips, state, iteration), lambda: layers.tanh(state)
    )


@part()
def loop_with_a_branch(state, given):
    def iteration(value):
        return layers.cond(
            positive(value), lambda: fc(value, 4, "yes"), lambda: layers.tanh(value - fc(state, 4, "no"))
        )

    return looped(number(3), state, iteration)


@part()
def two_loops(state, given):
    """Two loops in sequence; the gradient of one variable comes from both."""
    new = fc(state, 4, "two")
    one = looped(number(2), new, lambda value: layers.tanh(value + new))
    return looped(given.trips, one, lambda value: layers.sin(value) * new)


@part()
def loop_through_an_array(state, given):
    i, trips = number(0), given.trips + 1
    array = layers.array_write(fc(state, 4, "array"), i)
    going = layers.less_than(i, trips)
    with layers.While(going).block():
        value = layers.array_read(array, i)
        layers.increment(i)
        layers.array_write(layers.tanh(fc(value, 4, "iteration", None) + given.still), i, array)
        layers.less_than(i, trips, cond=going)
    return layers.array_read(array, i) * layers.array_read(array, number(1))


@part()
def array(state, given):
    made = layers.array_write(layers.tanh(state), number(0))
    layers.array_write(fc(state, 4, "alone"), number(1), made)
    return layers.array_read(made, number(1)) + layers.array_read(made, number(0)) * given.still


def written(value, i, into):
    """Write to the next element."""
    layers.increment(i)
    layers.array_write(value, i, into)


@part()
def array_written_in_branches(state, given):
    """One element or two, at an index that the branch counts to."""
    i = number(0)
    made = layers.array_write(layers.scale(state, 0.5), i)

    def more():
        written(layers.tanh(state), i, made)
        written(layers.square(state), i, made)

    layers.cond(positive(state), more, lambda: written(layers.sin(state) * state, i, made))
    ends = [layers.array_read(made, each) for each in (i, number(1), number(0))]
    return layers.tanh(ends[0] + ends[1] * ends[2])


@part()
def array_read_in_branches(state, given):
    """A variable that only the branch reads has a gradient only where the branch is taken."""
    made = layers.array_write(layers.tanh(state), number(0))
    layers.array_write(layers.sin(state), number(1), made)
    return layers.cond(
        positive(state),
        lambda: layers.array_read(made, number(0)) * layers.array_read(made, number(1)),
        lambda: layers.array_read(made, number(1)) + state,
    )


@part()
def array_read_and_written_in_a_branch(state, given):
    i = number(0)
    made = layers.array_write(layers.tanh(state), i)

    def twice():
        value = layers.array_read(made, i)
        written(value * state, i, made)
        return layers.scale(value, 1.0)

    return layers.cond(positive(state), twice, lambda: layers.sin(state)) * layers.array_read(made, i)


@part()
def array_written_in_a_switch(state, given):
    i = number(0)
    made = layers.array_write(layers.scale(state, 0.5), i)
    with layers.Switch() as switch:
        with switch.case(positive(state - 0.2)):
            written(layers.tanh(state), i, made)
        with switch.case(positive(state)):
            written(layers.array_read(made, number(0)) * state, i, made)
        with switch.default():
            layers.array_write(layers.sin(state), i, made)
    return layers.array_read(made, i)


@part()
def loop_of_branches_through_an_array(state, given):
    """Per iteration one of two branches writes the element that the next iteration reads."""
    i = number(0)
    made = layers.array_write(layers.scale(state, 1.0), i)
    going = layers.less_than(i, given.trips)
    with layers.While(going).block():
        value = layers.array_read(made, i)
        layers.cond(
            positive(value),
            lambda: written(layers.tanh(value * 1.5) - 0.2, i, made),
            lambda: written(layers.sin(value) + state * 0.3, i, made),
        )
        layers.less_than(i, given.trips, cond=going)
    return layers.array_read(made, given.trips)


@part()
def variable_of_a_switch(state, given):
    """A variable that only the cases of a Switch define."""
    out = layers.create_tensor(state.dtype)
    with layers.Switch() as switch:
        with switch.case(layers.less_than(given.trips, number(1))):
            layers.assign(fc(state, 4, "one"), out)
        with switch.case(layers.less_than(given.trips, number(2))):
            layers.assign(layers.sin(state), out)
        with switch.default():
            layers.assign(state * 0.5, out)
    return layers.reshape(out, [-1, 4])


@part()
def variables_of_two_switches(state, given):
    return variable_of_a_switch(variable_of_a_switch(state, given), given._replace(trips=given.trips + 1))


@part()
def variable_of_branches_in_each_other(state, given):
    out = layers.create_tensor(state.dtype)

    def inner(value, bound):
        few = layers.less_than(given.trips, number(bound))
        layers.cond(
            few, lambda: layers.assign(layers.tanh(value), out), lambda: layers.assign(value * 0.3, out)
        )

    few = layers.less_than(given.trips, number(2))
    layers.cond(few, lambda: inner(state, 1), lambda: inner(given.still, 3))
    return layers.reshape(out, [-1, 4])


@part()
def variable_of_two_branches(state, given):
    """Two branches on one condition; the second reads a result of the first."""
    few = layers.less_than(given.trips, number(2))
    made, out = layers.create_tensor(state.dtype), layers.scale(given.still, 1.0)
    layers.cond(few, lambda: layers.assign(layers.tanh(state), made) and None)
    layers.cond(few, lambda: layers.assign(layers.reshape(made, [-1, 4]) * 2.0, out) and None)
    return out


@part()
def branches_of_branches(state, given):
    """Some are never taken, and some have several results."""

    def inner():
        small = layers.less_than(given.trips, number(-1))
        return layers.cond(
            small, lambda: (fc(state, 4, "a"), state), lambda: (state * 0.5, fc(state, 4, "b"))
        )

    few = layers.less_than(given.trips, number(2))
    one, other = layers.cond(few, inner, lambda: (state * given.still, fc(state, 4, "c")))
    return layers.sin(one) + other


@part()
def cases_by_number(state, given):
    cases = {0: lambda: fc(state, 4, "a"), 2: lambda: state * 0.5}
    return layers.switch_case(layers.cast(given.trips, "int32"), cases, default=lambda: layers.sin(state))
