"""The sizes of decoding works, and their batches: the same for all sides."""

WIDTH, STEPS, SEARCHES, STATE, WORDS = 4, 30, 8, 128, 2000
"""Beam search: hypotheses, steps, sentences in a batch, size of the state, vocabulary."""
PAIRS, LENGTH, HIDDEN, TOKENS = 16, 20, 64, 1000
"""Sequence to sequence: sentences in a batch, words of each, size of the states, vocabulary."""
ROWS, TURNS, LSTM, VOCABULARY = 20, 20, 200, 10000
"""Language model: rows of a batch, steps, size of both LSTMs, vocabulary."""


def starts(random, count):
    return [{"start": random.uniform(-1, 1, (SEARCHES, STATE)).astype("float32")} for _ in range(count)]


def pairs(random, count):
    return [
        {
            name: random.randint(0, TOKENS, (PAIRS, LENGTH)).astype("int64")
            for name in ("source", "target", "label")
        }
        for _ in range(count)
    ]


def texts(random, count):
    return [
        {name: random.randint(0, VOCABULARY, (ROWS, TURNS)).astype("int64") for name in ("words", "label")}
        for _ in range(count)
    ]
