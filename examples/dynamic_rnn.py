"""A recurrent network over sentences of various lengths: does the letter a come more often than the letter b?

usage: python -m fluidlite examples/dynamic_rnn.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

LETTERS = "abcd"


def sentences(random, count):
    """`count` pairs of the numbers of letters, 1 to 20 of them, and whether there are more a than b."""
    made = []
    for _ in range(count):
        letters = random.randint(0, len(LETTERS), random.randint(1, 21))
        made.append((letters.reshape(-1, 1), int((letters == 0).sum() > (letters == 1).sum())))
    return made


def network(letters):
    """The chances of no and yes, [sentences, 2]."""
    vectors = fluid.layers.embedding(letters, size=[len(LETTERS), 8])
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        letter = rnn.step_input(vectors)
        state = rnn.memory(shape=[16], value=0.0)
        new = fluid.layers.fc([letter, state], size=16, act="tanh")
        rnn.update_memory(state, new)
        rnn.output(new)
    last = fluid.layers.sequence_last_step(rnn())
    return fluid.layers.fc(last, size=2, act="softmax")


def main(steps):
    """Train, and return the share of new sentences that are told right."""
    letters = fluid.data(name="letters", shape=[None, 1], dtype="int64", lod_level=1)
    answer = fluid.data(name="answer", shape=[None, 1], dtype="int64")
    chances = network(letters)
    loss = fluid.layers.mean(fluid.layers.cross_entropy(chances, answer))
    right = fluid.layers.accuracy(chances, answer)
    testing = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(learning_rate=0.01).minimize(loss)

    fluid.default_startup_program().random_seed = 1
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=[letters, answer], place=fluid.CPUPlace())
    random = np.random.RandomState(0)
    for step in range(steps):
        (value,) = exe.run(feed=feeder.feed(sentences(random, 32)), fetch_list=[loss])
        if step % 100 == 0:
            print(f"step {step}, loss {value.item():.4f}")
    (share,) = exe.run(testing, feed=feeder.feed(sentences(random, 1000)), fetch_list=[right])
    return share.item()


if __name__ == "__main__":
    print(f"accuracy on new sentences {main(int(sys.argv[1]) if len(sys.argv) > 1 else 500):.3f}")
