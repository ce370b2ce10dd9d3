"""Beam search, and training for it. usage: decoding_fluid.py STEPS WORK..."""

import sys

import numpy as np
import paddle.fluid as fluid
from decoding_data import (
    HIDDEN,
    LENGTH,
    LSTM,
    ROWS,
    SEARCHES,
    STATE,
    STEPS,
    TOKENS,
    TURNS,
    VOCABULARY,
    WIDTH,
    WORDS,
    pairs,
    starts,
    texts,
)
from timing import each
from work import Work

layers = fluid.layers
place = fluid.CPUPlace()
END = 1


def never_ends():
    bias = np.zeros(WORDS, "float32")
    bias[END] = -100.0
    return fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(bias))


def beam_search():
    start = fluid.data("start", [None, STATE], "float32")
    decoder = layers.BeamSearchDecoder(
        layers.GRUCell(STATE),
        start_token=0,
        end_token=END,
        beam_size=WIDTH,
        embedding_fn=lambda ids: fluid.embedding(ids, [WORDS, STATE], param_attr="embedding"),
        output_fn=lambda x: layers.fc(x, WORDS, num_flatten_dims=2, bias_attr=never_ends()),
    )
    return layers.dynamic_decode(decoder, start, max_step_num=STEPS - 1, is_test=True)[0]


def beam_search_arrays():
    start = fluid.data("start", [None, STATE], "float32")
    ids = fluid.data("ids", [None, 1], "int64", lod_level=2)
    scores = fluid.data("scores", [None, 1], "float32", lod_level=2)
    limit = layers.fill_constant([1], "int64", STEPS)
    counter = layers.zeros([1], "int64", force_cpu=True)
    all_ids, all_scores = layers.array_write(ids, counter), layers.array_write(scores, counter)
    states = layers.array_write(start, counter)
    cond = layers.less_than(counter, limit)
    loop = layers.While(cond)
    with loop.block():
        before, sums = layers.array_read(all_ids, counter), layers.array_read(all_scores, counter)
        state = layers.sequence_expand(layers.array_read(states, counter), sums)
        word = layers.embedding(before, [WORDS, STATE], param_attr="embedding")
        hidden, _, _ = layers.gru_unit(layers.fc(word, 3 * STATE, bias_attr=False), state, 3 * STATE)
        likely = layers.fc(layers.lod_reset(hidden, sums), WORDS, act="softmax", bias_attr=never_ends())
        best, tokens = layers.topk(likely, k=WIDTH)
        total = layers.elementwise_add(layers.log(best), layers.reshape(sums, [-1]), axis=0)
        chosen, values = layers.beam_search(before, sums, tokens, total, WIDTH, END)
        layers.increment(counter, 1, in_place=True)
        layers.array_write(hidden, counter, states)
        layers.array_write(chosen, counter, all_ids)
        layers.array_write(values, counter, all_scores)
        going = layers.logical_not(layers.is_empty(chosen))
        layers.logical_and(layers.less_than(counter, limit), going, out=cond)
    return layers.beam_search_decode(all_ids, all_scores, WIDTH, END)[0]


def in_sequences(random, count):
    lengths = [[1] * SEARCHES] * 2
    zeros = np.zeros((SEARCHES, 1))
    more = {
        "ids": fluid.create_lod_tensor(zeros.astype("int64"), lengths, place),
        "scores": fluid.create_lod_tensor(zeros.astype("float32"), lengths, place),
    }
    return [{**feed, **more} for feed in starts(random, count)]


class Attending(layers.RNNCell):
    """A GRU that reads the encoder's states, weighed by how well they fit its own."""

    def __init__(self):
        self.unit = layers.GRUCell(HIDDEN)

    def call(self, inputs, states, encoded):
        query = layers.unsqueeze(layers.fc(states, HIDDEN, bias_attr=False), [1])
        weights = layers.softmax(layers.matmul(query, encoded, transpose_y=True))
        context = layers.squeeze(layers.matmul(weights, encoded), [1])
        output, states = self.unit(layers.concat([inputs, context], 1), states)
        return output, states


def attention():
    source, target, label = (
        fluid.data(name, [None, LENGTH], "int64") for name in ("source", "target", "label")
    )
    encoded, last = layers.rnn(layers.GRUCell(HIDDEN), fluid.embedding(source, [TOKENS, HIDDEN]))
    decoded, _ = layers.rnn(Attending(), fluid.embedding(target, [TOKENS, HIDDEN]), last, encoded=encoded)
    logits = layers.fc(decoded, TOKENS, num_flatten_dims=2)
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, layers.unsqueeze(label, [2])))
    fluid.optimizer.Adam(0.001).minimize(loss)
    return loss


class TwoLSTMs(layers.RNNCell):
    def __init__(self):
        self.cells = [layers.LSTMCell(LSTM), layers.LSTMCell(LSTM)]

    def call(self, inputs, states):
        hidden, first = self.cells[0](inputs, states[:2])
        hidden, second = self.cells[1](hidden, states[2:])
        return hidden, [*first, *second]

    @property
    def state_shape(self):
        return [[LSTM]] * 4


def language_model():
    words, label = (fluid.data(name, [ROWS, TURNS], "int64") for name in ("words", "label"))
    hidden, _ = layers.rnn(TwoLSTMs(), fluid.embedding(words, [VOCABULARY, LSTM]))
    logits = layers.fc(hidden, VOCABULARY, num_flatten_dims=2)
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, layers.unsqueeze(label, [2])))
    fluid.optimizer.Adam(0.001).minimize(loss)
    return loss


WORKS = {
    "beam search": (beam_search, starts),
    "beam search, arrays": (beam_search_arrays, in_sequences),
    "attention": (attention, pairs),
    "language model": (language_model, texts),
}
count = int(sys.argv[1])
warm = min(3, count)
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
        metrics[name] = each(
            lambda feed: exe.run(main, feed=feed, fetch_list=[fetched], return_numpy=False), fed, warm
        )
        work.count(name, main, fed[-3:])
work.result(metrics)
