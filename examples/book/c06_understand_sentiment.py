"""Praise or blame in reviews of various lengths, by three networks: convolutions, a DynamicRNN, stacked LSTMs.

usage: python -m fluidlite examples/book/c06_understand_sentiment.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

WORDS, WIDTH, HIDDEN = 60, 16, 12
layers = fluid.layers


def reviews(random, count):
    """`count` reviews of 3 to 20 words. Words below 20 praise, those from 40 on blame; the answer is what is more."""
    made = []
    while len(made) < count:
        words = random.randint(0, WORDS, random.randint(3, 21))
        praise, blame = np.sum(words < 20), np.sum(words >= 40)
        if praise != blame:
            made.append((words.reshape(-1, 1), int(praise > blame)))
    return made


def convolutions(vectors):
    pooled = [
        fluid.nets.sequence_conv_pool(
            vectors, num_filters=HIDDEN, filter_size=size, act="tanh", pool_type="sqrt"
        )
        for size in (3, 4)
    ]
    return layers.fc(pooled, size=2, act="softmax")


def dynamic_rnn(vectors):
    inputs = layers.fc(vectors, size=HIDDEN, act="tanh")
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(inputs)
        hidden, cell = (rnn.memory(shape=[HIDDEN], value=0.0) for _ in range(2))
        new_hidden, new_cell = layers.lstm_unit(word, hidden, cell)
        rnn.update_memory(hidden, new_hidden)
        rnn.update_memory(cell, new_cell)
        rnn.output(new_hidden)
    return layers.fc(layers.sequence_last_step(rnn()), size=2, act="softmax")


def stacked_lstm(vectors):
    gates = layers.fc(vectors, size=4 * HIDDEN)
    states, _ = layers.dynamic_lstm(gates, size=4 * HIDDEN)
    for depth in range(2):
        both = [gates, states]
        gates = layers.fc(both, size=4 * HIDDEN)
        states, _ = layers.dynamic_lstm(gates, size=4 * HIDDEN, is_reverse=depth % 2 == 0)
    pooled = [layers.sequence_pool(each, "max") for each in (gates, states)]
    return layers.fc(pooled, size=2, act="softmax")


def learn(network, steps):
    """Train `network` from new programs, and print what it says of new reviews."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 90
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        words = fluid.data("words", [None, 1], "int64", lod_level=1)
        answer = fluid.data("answer", [None, 1], "int64")
        chances = network(layers.embedding(words, size=[WORDS, WIDTH], is_sparse=True))
        loss = layers.mean(layers.cross_entropy(input=chances, label=answer))
        right = layers.accuracy(input=chances, label=answer)
        testing = main.clone(for_test=True)
        fluid.optimizer.Adam(learning_rate=0.01).minimize(loss)

    random = np.random.RandomState(6)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feeder = fluid.DataFeeder(feed_list=[words, answer], place=fluid.CPUPlace())
        for step in range(steps):
            (value,) = exe.run(main, feed=feeder.feed(reviews(random, 32)), fetch_list=[loss])
            if step % (steps // 5) == 0:
                print(f"{network.__name__}, step {step}: loss {value.item():.6f}")
        told = exe.run(testing, feed=feeder.feed(reviews(random, 300)), fetch_list=[loss, right])
    print(f"{network.__name__}, new reviews: loss {told[0].item():.6f}, accuracy {told[1].item():.3f}")


if __name__ == "__main__":
    for network in (convolutions, dynamic_rnn, stacked_lstm):
        learn(network, int(sys.argv[1]) if len(sys.argv) > 1 else 40)
