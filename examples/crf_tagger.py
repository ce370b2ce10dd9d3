"""Who does what to whom: a tagger with a conditional random field, over made-up sentences.

A sentence is an actor, a verb and what the verb is done to, each of one or more words. The words of actors and of what
is done to are the same, so that only their place beside the verb tells them apart, and chunks are marked with IOB tags.

usage: python -m fluidlite examples/crf_tagger.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

NAMES = "cat dog bird fish old small red".split()
VERBS = "sees chases likes".split()
FILLERS = "today often well".split()
WORDS = NAMES + VERBS + FILLERS
TAGS = ["B-who", "I-who", "B-whom", "I-whom", "B-verb", "I-verb", "O"]
TYPES = 3
MOST = 3  # words of a chunk


def sentences(random, count):
    """`count` pairs of the numbers of words and of their tags."""
    made = []
    for _ in range(count):
        words, tags = [], []
        for kind, choices, most in ((0, NAMES, MOST), (2, VERBS, 1), (1, NAMES, MOST), (3, FILLERS, 2)):
            size = random.randint(kind < 3, most + 1)
            words += [WORDS.index(choices[k]) for k in random.randint(0, len(choices), size)]
            tags += [6] * size if kind == 3 else [2 * kind + (k > 0) for k in range(size)]
        made.append((np.array(words).reshape(-1, 1), np.array(tags).reshape(-1, 1)))
    return made


def network(words):
    """Scores of the tags of each word, from the words around it."""
    vectors = fluid.layers.embedding(words, size=[len(WORDS), 16])
    around = fluid.layers.sequence_conv(vectors, num_filters=32, filter_size=3, act="tanh")
    return fluid.layers.fc(around, size=len(TAGS))


def main(steps):
    """Train, and return the F1 of the chunks of new sentences."""
    fluid.default_startup_program().random_seed = 1
    words, tags = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("words", "tags"))
    scores = network(words)
    between = fluid.ParamAttr(name="between_tags")
    cost = fluid.layers.mean(fluid.layers.linear_chain_crf(scores, tags, param_attr=between))
    found = fluid.layers.crf_decoding(scores, param_attr=between)
    counts = fluid.layers.chunk_eval(found, tags, chunk_scheme="IOB", num_chunk_types=TYPES)[3:]
    testing = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(learning_rate=0.02).minimize(cost)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=[words, tags], place=fluid.CPUPlace())
    random = np.random.RandomState(0)
    for step in range(steps):
        (value,) = exe.run(feed=feeder.feed(sentences(random, 32)), fetch_list=[cost])
        if step % 50 == 0:
            print(f"step {step}, cost {value.item():.3f}")
    chunks = fluid.metrics.ChunkEvaluator()
    for _ in range(10):
        chunks.update(*exe.run(testing, feed=feeder.feed(sentences(random, 100)), fetch_list=list(counts)))
    one = sentences(random, 1)
    (path,) = exe.run(testing, feed=feeder.feed(one), fetch_list=[found], return_numpy=False)
    told = zip(one[0][0][:, 0], np.array(path)[:, 0])  # noqa: B905 - Python 3.8 runs it, too
    print(" ".join(f"{WORDS[word]}/{TAGS[tag]}" for word, tag in told))
    return chunks.eval()[2].item()


if __name__ == "__main__":
    print(f"F1 of chunks {main(int(sys.argv[1]) if len(sys.argv) > 1 else 200):.3f}")
