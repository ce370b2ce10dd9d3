"""Training steps on sequences and loops. usage: sequences_fluid.py STEPS WORK..."""

import sys

import numpy as np
import paddle.fluid as fluid
from sequences_data import BATCH, EMBEDDING, FIXED, HIDDEN, MOST_WARM, TURNS, VOCABULARY, batches
from timing import each
from work import Work

layers = fluid.layers
place = fluid.CPUPlace()


def embedded(words):
    return layers.embedding(words, [VOCABULARY, EMBEDDING])


def conv_pool():
    rows = embedded(fluid.data("words", [None, 1], "int64", lod_level=1))
    return [
        fluid.nets.sequence_conv_pool(rows, HIDDEN, size, act="tanh", pool_type="sqrt") for size in (3, 4)
    ]


def dynamic_rnn():
    rows = embedded(fluid.data("words", [None, 1], "int64", lod_level=1))
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(rows)
        before = rnn.memory(shape=[HIDDEN], value=0.0)
        hidden = layers.fc([word, before], HIDDEN, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return layers.sequence_last_step(rnn())


def attention():
    """Each step looks at all words of its sentence."""
    rows = embedded(fluid.data("words", [None, 1], "int64", lod_level=1))
    keys = layers.fc(rows, HIDDEN, bias_attr=False)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, values, asked = rnn.step_input(rows), rnn.static_input(rows), rnn.static_input(keys)
        before = rnn.memory(shape=[HIDDEN], value=0.0)
        asks = layers.sequence_expand(layers.fc(before, HIDDEN, bias_attr=False), asked)
        mixed = layers.tanh(layers.elementwise_add(asked, asks))
        weights = layers.sequence_softmax(layers.fc(mixed, 1, bias_attr=False))
        found = layers.sequence_pool(layers.elementwise_mul(values, weights), "sum")
        hidden = layers.fc([word, found, before], HIDDEN, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return layers.sequence_last_step(rnn())


def dynamic_lstm():
    rows = layers.fc(embedded(fluid.data("words", [None, 1], "int64", lod_level=1)), 4 * HIDDEN)
    return layers.sequence_pool(layers.dynamic_lstm(rows, 4 * HIDDEN)[0], "max")


def dynamic_gru():
    rows = layers.fc(embedded(fluid.data("words", [None, 1], "int64", lod_level=1)), 3 * HIDDEN)
    return layers.sequence_last_step(layers.dynamic_gru(rows, HIDDEN))


def static_rnn():
    words = fluid.data("words", [None, FIXED, 1], "int64")
    rows = layers.transpose(embedded(words), [1, 0, 2])
    rnn = layers.StaticRNN()
    with rnn.step():
        word = rnn.step_input(rows)
        before = rnn.memory(shape=[-1, HIDDEN], batch_ref=word)
        hidden = layers.fc([word, before], HIDDEN, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.step_output(hidden)
    last = layers.slice(rnn(), axes=[0], starts=[FIXED - 1], ends=[FIXED])
    return layers.reshape(last, [-1, HIDDEN])


def trained(network):
    """The loss of the network, which is minimized."""
    label = fluid.data("label", [None, 1], "int64")
    loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(network(), 2), label))
    fluid.optimizer.Adam(0.001).minimize(loss)
    return loss


def ragged(random, count):
    return [
        {"words": fluid.create_lod_tensor(words, [list(lengths)], place), "label": label}
        for lengths, words, label in batches(random, count)
    ]


def fixed(random, count):
    return [
        {"words": words.reshape(BATCH, FIXED, 1), "label": label}
        for _, words, label in batches(random, count, FIXED, FIXED)
    ]


def matrices(random, count):
    return [{name: (random.rand(8, 8) / 8).astype("float32") for name in ("x", "weight")}] * count


def loop():
    """TURNS turns over an 8 x 8 matrix."""
    x, weight = fluid.data("x", [8, 8], "float32"), fluid.data("weight", [8, 8], "float32")
    turn = layers.fill_constant([1], "int64", 0)
    end = layers.fill_constant([1], "int64", TURNS)

    def body(turn, x):
        x = layers.relu(layers.elementwise_add(layers.matmul(x, weight), weight))
        return [layers.increment(turn, in_place=True), x]

    return layers.while_loop(lambda turn, x: layers.less_than(turn, end), body, [turn, x])[1]


WORKS = {
    "sequence_conv_pool": (lambda: trained(conv_pool), ragged),
    "DynamicRNN": (lambda: trained(dynamic_rnn), ragged),
    "attention": (lambda: trained(attention), ragged),
    "dynamic_lstm": (lambda: trained(dynamic_lstm), ragged),
    "dynamic_gru": (lambda: trained(dynamic_gru), ragged),
    "StaticRNN": (lambda: trained(static_rnn), fixed),
    "while_loop": (loop, matrices),
}
count = int(sys.argv[1])
warm = min(MOST_WARM, count)
metrics, work = {}, Work()
for name in sys.argv[2:]:
    build, feeds = WORKS[name]
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetched = build()
    exe = fluid.Executor(place)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fed = feeds(np.random.RandomState(0), warm + count)
        metrics[name] = each(lambda feed: exe.run(main, feed=feed, fetch_list=[fetched]), fed, warm)
        work.count(name, main, fed[-3:])
work.result(metrics)
