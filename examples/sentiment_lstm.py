"""Tells praise from blame: a bidirectional LSTM over reviews of various lengths, saved and loaded for inference.

The reviews are made up here: words of both kinds, of which "not" turns the next one into its opposite.

usage: python -m fluidlite examples/sentiment_lstm.py [STEPS]
"""

import sys
import tempfile

import numpy as np
import paddle.fluid as fluid

WORDS = ["not", "good", "fine", "great", "bad", "poor", "awful", "the", "film", "was", "quite"]
NOT, PRAISE, BLAME, OTHERS = 0, (1, 2, 3), (4, 5, 6), (7, 8, 9, 10)


def reviews(random, count):
    """`count` pairs of the numbers of words, [words, 1], and whether it is praise that they say more often."""
    made = []
    while len(made) < count:
        words, score = [], 0
        for _ in range(random.randint(1, 8)):
            words.extend(random.choice(OTHERS, random.randint(0, 4)))
            praise, turned = random.randint(0, 2, 2)
            words.extend([NOT] * turned)
            words.append(random.choice(PRAISE if praise else BLAME))
            score += 1 if praise != turned else -1
        if score:
            made.append((np.array(words).reshape(-1, 1), int(score > 0)))
    return made


def network(words):
    """The chances of blame and praise, [reviews, 2]."""
    vectors = fluid.layers.embedding(words, size=[len(WORDS), 16])
    best = []
    for backwards in (False, True):
        gates = fluid.layers.fc(vectors, size=4 * 24)
        states, _ = fluid.layers.dynamic_lstm(gates, size=4 * 24, is_reverse=backwards)
        best.append(fluid.layers.sequence_pool(states, "average"))
    return fluid.layers.fc(best, size=2, act="softmax")


def main(steps):
    """Train, save, load, and return the share of new reviews that the loaded model tells right."""
    words = fluid.data(name="words", shape=[None, 1], dtype="int64", lod_level=1)
    answer = fluid.data(name="answer", shape=[None, 1], dtype="int64")
    chances = network(words)
    loss = fluid.layers.mean(fluid.layers.cross_entropy(chances, answer))
    fluid.optimizer.Adam(learning_rate=0.01).minimize(loss)

    fluid.default_startup_program().random_seed = 1
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    random = np.random.RandomState(0)
    loader = fluid.io.DataLoader.from_generator(feed_list=[words, answer], capacity=8)
    loader.set_sample_list_generator(lambda: (reviews(random, 32) for _ in range(steps)), places=place)
    for step, batch in enumerate(loader):
        (value,) = exe.run(feed=batch, fetch_list=[loss])
        if step % 50 == 0:
            print(f"step {step}, loss {value.item():.4f}")

    with tempfile.TemporaryDirectory() as folder:
        fluid.io.save_inference_model(folder, ["words"], [chances], exe)
        model, feeds, fetches = fluid.io.load_inference_model(folder, exe)
    tested = reviews(np.random.RandomState(5), 500)
    lengths = [len(text) for text, _ in tested]
    given = fluid.create_lod_tensor(np.concatenate([text for text, _ in tested]), [lengths], place)
    (told,) = exe.run(model, feed={feeds[0]: given}, fetch_list=fetches)
    return np.mean(told.argmax(axis=1) == [praise for _, praise in tested])


if __name__ == "__main__":
    print(f"accuracy on new reviews {main(int(sys.argv[1]) if len(sys.argv) > 1 else 300):.3f}")
