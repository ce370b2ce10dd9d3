"""Words as vectors: a network that tells the fifth word from the four before it, all through one embedding.

The language is made up: words in a ring, each followed by one of its three next ones, by fixed odds.

usage: python -m fluidlite examples/book/c04_word2vec.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

WORDS, BEFORE, WIDTH = 50, 4, 16


def grams(random, count):
    """`count` rows of five words, [count, 5]."""
    hops = random.choice([1, 2, 3], (count, BEFORE + 1), p=[0.7, 0.2, 0.1])
    hops[:, 0] = random.randint(0, WORDS, count)
    return (np.cumsum(hops, axis=1) % WORDS).astype("int64")


def main(steps):
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 90
    given = [fluid.data(name=f"word_{place}", shape=[None, 1], dtype="int64") for place in range(BEFORE)]
    wanted = fluid.data(name="next", shape=[None, 1], dtype="int64")
    vectors = [
        fluid.embedding(word, size=[WORDS, WIDTH], is_sparse=True, param_attr="vectors") for word in given
    ]
    joined = fluid.layers.reshape(fluid.layers.concat(vectors, axis=1), [-1, BEFORE * WIDTH])
    hidden = fluid.layers.fc(joined, size=64, act="sigmoid")
    chances = fluid.layers.fc(hidden, size=WORDS, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=chances, label=wanted))
    testing = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adagrad(learning_rate=0.3).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    random = np.random.RandomState(4)

    def feed(rows):
        names = [word.name for word in given] + ["next"]
        return {name: rows[:, place : place + 1] for place, name in enumerate(names)}

    for step in range(steps):
        (value,) = exe.run(feed=feed(grams(random, 64)), fetch_list=[loss])
        if step % (steps // 10) == 0:
            print(f"step {step}: loss {value.item():.6f}")
    rows = grams(random, 1000)
    told, value = exe.run(testing, feed=feed(rows), fetch_list=[chances, loss])
    vector = np.array(fluid.global_scope().find_var("vectors").get_tensor())
    vector /= np.linalg.norm(vector, axis=1, keepdims=True)
    near = (vector * np.roll(vector, 1, axis=0)).sum(axis=1).mean()
    far = (vector * np.roll(vector, WORDS // 2, axis=0)).sum(axis=1).mean()
    print(f"new rows: loss {value.item():.6f}, right {np.mean(told.argmax(axis=1) == rows[:, -1]):.3f}")
    print(f"cosine of neighbours {near:.4f}, of words far apart {far:.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
