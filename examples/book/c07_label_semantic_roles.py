"""Who does what to whom: the roles of a sentence's words beside its verb, by LSTMs in both directions and a CRF.

With each word come the words around the verb and a mark where those are: so the network knows which verb is meant.

usage: python -m fluidlite examples/book/c07_label_semantic_roles.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

NOUNS, VERBS, OTHERS = range(0, 20), range(20, 28), range(28, 40)
WORDS, TAGS, HIDDEN, DEPTH = (
    40,
    6,
    20,
    4,
)  # tags: B and I of the doer, of what it is done to, of the verb (B-V, O)
AROUND = (-2, -1, 0, 1, 2)
layers = fluid.layers


def sentences(random, count):
    """What `DataFeeder` takes: for each word itself, five words around the verb, the verb, a mark, the tag."""
    made = []
    for _ in range(count):
        words, tags = [], []
        for kind, role, most in ((OTHERS, 5, 3), (NOUNS, 0, 3), (VERBS, 4, 1), (NOUNS, 2, 3), (OTHERS, 5, 4)):
            size = random.randint(role < 5, most + 1)
            words += list(random.choice(kind, size))
            tags += [role] * size if role >= 4 else [role + (place > 0) for place in range(size)]
        verb = tags.index(4)
        near = [words[verb + by] if 0 <= verb + by < len(words) else WORDS for by in AROUND]
        columns = [words] + [[word] * len(words) for word in near] + [[words[verb] - VERBS[0]] * len(words)]
        columns += [[int(abs(place - verb) <= 2) for place in range(len(words))], tags]
        made.append(tuple(np.array(column).reshape(-1, 1) for column in columns))
    return made


def scores(columns):
    """Scores of the tags of each word, from its eight features."""
    vectors = [
        layers.embedding(column, size=[WORDS + 1, 12], is_sparse=True, param_attr="word_vectors")
        for column in columns[:6]
    ]
    vectors.append(layers.embedding(columns[6], size=[len(VERBS), 12], param_attr="verb_vectors"))
    vectors.append(layers.embedding(columns[7], size=[2, 4]))
    mixed = layers.sums([layers.fc(vector, size=4 * HIDDEN, act="tanh") for vector in vectors])
    options = {
        "size": 4 * HIDDEN,
        "candidate_activation": "relu",
        "gate_activation": "sigmoid",
        "cell_activation": "sigmoid",
    }
    states, _ = layers.dynamic_lstm(mixed, **options)
    for depth in range(1, DEPTH):
        mixed = layers.sums([layers.fc(mixed, size=4 * HIDDEN), layers.fc(states, size=4 * HIDDEN)])
        states, _ = layers.dynamic_lstm(mixed, is_reverse=depth % 2 == 1, **options)
    return layers.sums([layers.fc(mixed, size=TAGS), layers.fc(states, size=TAGS)])


def main(steps):
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 90
    names = ["word", "before_2", "before_1", "at", "after_1", "after_2", "verb", "mark", "tag"]
    columns = [fluid.data(name, [None, 1], "int64", lod_level=1) for name in names]
    found = scores(columns[:8])
    moves = fluid.ParamAttr(name="moves", learning_rate=2.0)
    loss = layers.mean(layers.linear_chain_crf(input=found, label=columns[8], param_attr=moves))
    path = layers.crf_decoding(input=found, param_attr=fluid.ParamAttr(name="moves"))
    counts = layers.chunk_eval(path, columns[8], chunk_scheme="IOB", num_chunk_types=3)[3:]
    testing = fluid.default_main_program().clone(for_test=True)
    rate = layers.exponential_decay(learning_rate=0.02, decay_steps=20, decay_rate=0.9, staircase=True)
    fluid.optimizer.Adam(learning_rate=rate).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=columns, place=fluid.CPUPlace())
    random = np.random.RandomState(7)
    for step in range(steps):
        (value,) = exe.run(feed=feeder.feed(sentences(random, 16)), fetch_list=[loss])
        if step % (steps // 10) == 0:
            print(f"step {step}: loss {value.item():.6f}")
    chunks = fluid.metrics.ChunkEvaluator()
    tested = sentences(random, 200)
    *numbers, value = exe.run(testing, feed=feeder.feed(tested), fetch_list=[*counts, loss])
    chunks.update(*numbers)
    print(f"new sentences: loss {value.item():.6f}, F1 {chunks.eval()[2].item():.3f}")
    (told,) = exe.run(testing, feed=feeder.feed(tested[:1]), fetch_list=[path], return_numpy=False)
    print(f"tags {np.array(told)[:, 0].tolist()}, true ones {tested[0][-1][:, 0].tolist()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
