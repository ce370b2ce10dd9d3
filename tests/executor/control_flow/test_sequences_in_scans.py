"""Scans whose steps read a prefix of loop-invariant sequences, as decoders with attention do."""

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import WIDTH, Built, check, compare, data, fc, numbers, ragged, run

layers = fluid.layers
pytestmark = pytest.mark.filterwarnings("ignore")


def decoder(step):
    """A DynamicRNN whose block is `step(state, word, keys, values, notes)`: what comes of it is the next state.

    keys and values have the same sequences, notes others.
    """

    def build(words, source, notes, boot):
        keys, values = fc(source, 4, "keys"), layers.scale(source, 0.5)
        rnn = layers.DynamicRNN()
        with rnn.block():
            word = rnn.step_input(words)
            still = [rnn.static_input(each) for each in (keys, values, notes)]
            state = rnn.memory(init=boot, need_reorder=True)
            new = step(state, word, *still)
            rnn.update_memory(state, new)
            rnn.output(new, fc(new, 5, "scores", "softmax"))
        return rnn()

    build.__name__ = step.__name__
    return build


@decoder
def additive_attention(state, word, keys, values, notes):
    spread = layers.sequence_expand(fc(state, 4, "ask", None), keys)
    mixed = layers.tanh(layers.elementwise_add(keys, spread))
    weights = layers.sequence_softmax(fc(mixed, 1, "weigh", None))
    scaled = layers.elementwise_mul(values, layers.reshape(weights, [-1]), axis=0)
    return fc([word, state, layers.sequence_pool(scaled, "sum")], 4, "new")


@decoder
def products(state, word, keys, values, notes):
    spread = layers.sequence_expand_as(state, keys)
    weights = layers.sequence_softmax(layers.reduce_sum(layers.elementwise_mul(keys, spread), 1, True))
    context = layers.sequence_pool(layers.elementwise_mul(values, weights), "sum")
    return fc([context, word], 4, "new") + state


@decoder
def two_attentions(state, word, keys, values, notes):
    found = [word]
    for k, each in enumerate((values, notes)):
        spread = layers.sequence_expand(fc(state, WIDTH, f"ask{k}", None), each)
        weights = layers.sequence_softmax(fc(layers.tanh(each + spread), 1, f"weigh{k}", None))
        found.append(layers.sequence_pool(layers.elementwise_mul(each, weights), "average"))
    return fc(found, 4, "new")


@decoder
def projected_inside(state, word, keys, values, notes):
    """Loop-invariant inputs are transformed in each iteration."""
    spread = layers.sequence_expand(state, values)
    mixed = fc(values, 4, "inside") + spread
    return fc([layers.sequence_pool(mixed, "max"), word], 4, "new")


def pools(kind):
    def step(state, word, keys, values, notes):
        return fc(
            [state, word, layers.sequence_pool(notes, kind), layers.sequence_pool(values, kind)], 4, "new"
        )

    step.__name__ = f"pools_{kind}"
    return decoder(step)


@decoder
def rearranged(state, word, keys, values, notes):
    """Results that have the sequences of an input, by kernels of all kinds."""
    found = layers.sequence_conv(
        layers.sequence_reverse(values), 4, 3, param_attr="conv.w", bias_attr="conv.b"
    )
    found = layers.row_conv(found + layers.sequence_expand(state, found), 1, param_attr="row.w")
    return fc([word, layers.sequence_last_step(found), layers.sequence_first_step(found)], 4, "new")


@decoder
def given_sequences(state, word, keys, values, notes):
    """A variable without sequences gets those of another one."""
    spread = layers.lod_reset(layers.sequence_expand(state, keys), keys)
    return fc(
        [word, layers.sequence_pool(layers.sequence_softmax(fc(spread, 1, "weigh", None)), "max"), state],
        4,
        "new",
    )


STEPS = [additive_attention, products, two_attentions, projected_inside, rearranged, given_sequences]
STEPS += [pools(kind) for kind in ("sum", "average", "sqrt", "max", "first", "last")]
SOURCES = [
    data("words", [None, WIDTH], lod_level=1), data("source", [None, WIDTH], lod_level=1),
    data("notes", [None, WIDTH], lod_level=1), data("boot", [None, 4]),
]  # fmt: skip


def batch(random, *lengths):
    """The feed of words, source and notes of these lengths."""
    made = {}
    for name, each in zip(("words", "source", "notes"), lengths, strict=True):
        made[name] = ragged(random, each)
    return made | {"boot": numbers(random, len(lengths[0]), 4)}


BATCHES = [
    ([2, 4, 1], [3, 1, 2], [1, 1, 1]), ([3], [2], [5]), ([1, 1], [1, 1], [2, 7]), ([5, 5, 5], [4, 4, 4], [1, 2, 3]),
    ([1, 7, 2, 2, 6], [2, 1, 9, 3, 1], [1, 1, 4, 1, 3]), ([1], [1], [1]), ([4], [1], [1]), ([2, 3], [1, 1], [1, 1]),
    ([1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [1, 2, 1, 2, 1, 2]), ([3, 2], [40, 50], [30, 1]),
]  # fmt: skip


@pytest.mark.parametrize("build", STEPS)
def test_sequences_that_stay(build):
    random = np.random.default_rng(3)
    text = check(build, SOURCES, [batch(random, *each) for each in BATCHES])
    assert "iteration by iteration" not in text
    assert "run in segments" not in text
    assert text.count("CPU for words[") < len(BATCHES)


@pytest.mark.parametrize("build", [additive_attention, two_attentions, pools("sum")])
def test_sequences_without_rows(build):
    random = np.random.default_rng(4)
    empty = [
        ([2, 4, 1], [3, 0, 2], [1, 1, 1]), ([3, 1], [0, 2], [5, 0]), ([3, 3], [0, 0], [1, 2]), ([4], [0], [0]),
        ([2, 0, 4], [2, 2, 2], [1, 3, 2]),
    ]  # fmt: skip
    check(build, SOURCES, [batch(random, *each) for each in empty])


def test_other_sequences_than_are_ranked():
    random = np.random.default_rng(5)
    with pytest.raises(Exception, match="sequences"):
        check(products, SOURCES, [batch(random, [2, 1], [1, 2, 3], [1, 1])])


def test_decoders_read_the_results_of_another_loop():
    """An encoder, and two decoders that read all of its steps; one starts from the final state of the other."""

    def build(words, source, notes, boot):
        encoder = layers.DynamicRNN()
        with encoder.block():
            word, state = encoder.step_input(source), encoder.memory(shape=[4], value=0.0)
            new = fc([word, state], 4, "encode")
            encoder.update_memory(state, new)
            encoder.output(new)
        encoded = encoder()
        outs = []
        for name in ("first", "second"):
            decoder = layers.DynamicRNN()
            with decoder.block():
                word, keys = decoder.step_input(words), decoder.static_input(encoded)
                state = decoder.memory(init=boot, need_reorder=True)
                spread = layers.sequence_expand(state, keys)
                weights = layers.sequence_softmax(fc(layers.tanh(keys + spread), 1, f"{name}.weigh", None))
                new = fc([word, layers.sequence_pool(keys * weights, "sum"), state], 4, name)
                decoder.update_memory(state, new)
                decoder.output(new)
            outs.append(decoder())
            boot = layers.sequence_last_step(outs[-1])
        return outs

    random = np.random.default_rng(6)
    text = check(build, SOURCES, [batch(random, *each) for each in BATCHES])
    assert "run in segments" not in text


def test_a_network_that_only_predicts():
    random = np.random.default_rng(7)
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        outs = two_attentions(*[make() for make in SOURCES])
    feeds = [batch(random, *each) for each in BATCHES]
    found, text = run(Built(main.clone(for_test=True), startup, outs), feeds, "plan")
    compare(run(Built(main, startup, outs), feeds, "interpret")[0], found)
    assert "run in segments" not in text


def test_batches_without_steps_keep_no_plan_from_the_others():
    words = fluid.data("words", [None, 2], "float32", lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(words)
        state = rnn.memory(shape=[2], value=0.0)
        rnn.update_memory(state, word + state)
        rnn.output(word + state)
    last, exe = layers.sequence_last_step(rnn()), fluid.Executor()
    for lens in [[0, 0]] * 4 + [[2, 3]] * 2:
        batch = fluid.create_lod_tensor(np.ones((sum(lens), 2), "float32"), [lens], fluid.CPUPlace())
        (found,) = exe.run(feed={"words": batch}, fetch_list=[last])
        np.testing.assert_array_equal(found, np.repeat(lens, 2).reshape(2, 2))
    assert " scan(" in exe.describe().partition("run in segments")[0]
