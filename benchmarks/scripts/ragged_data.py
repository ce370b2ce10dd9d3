"""The samples that all sides of benchmarks/ragged.py put together, and how they are measured."""

import itertools
import time

import numpy as np
from timing import blocks

BATCH, SHORTEST, LONGEST, VOCABULARY, WIDTH, SENTENCE = 128, 10, 59, 5000, 32, 7
LOADED = 40  # batches of an epoch of a loader


def _words(random):
    return random.randint(0, VOCABULARY, random.randint(SHORTEST, LONGEST + 1)).astype("int64")


def _sentences(random):
    words = _words(random).tolist()
    return [words[k : k + SENTENCE] for k in range(0, len(words), SENTENCE)]


MAKE = {
    "words in lists": lambda random: _words(random).tolist(),
    "words in arrays": _words,
    "numbers in lists": lambda random: random.rand(len(_words(random))).tolist(),
    "vectors": lambda random: random.rand(len(_words(random)), WIDTH).astype("float32"),
    "sentences": _sentences,
}


def batches(work, count=LOADED):
    """`count` batches: lists of samples, each a tuple of the ragged value and a label."""
    random = np.random.RandomState(5)
    return [[(MAKE[work](random), k % 2) for k in range(BATCH)] for _ in range(count)]


def _flat(value):
    """What NumPy strings together: an array of the words, and the lengths of all sentences."""
    if isinstance(value[0], list):
        return np.array(list(itertools.chain.from_iterable(value))), [len(part) for part in value]
    return np.asarray(value), [len(value)]


def by_numpy(samples):
    """Rows end to end and offsets, with NumPy alone."""
    parts = [_flat(value) for value, _ in samples]
    rows = np.concatenate([rows for rows, _ in parts])
    offsets = np.cumsum([0] + [n for _, lengths in parts for n in lengths])
    return rows, offsets, np.array([label for _, label in samples]).reshape(-1, 1)


def measured(works, seconds, put_together, epoch):
    """Microseconds a batch: `put_together(work)` gives a function of a list of samples, `epoch(work, batches)` a
    function that gives an iterator over the batches of an epoch. One of them may be None.
    """
    found = {}
    for work in works:
        given = batches(work)
        turns = itertools.cycle(given)
        for name, function in (("", put_together(work)), (": NumPy", by_numpy)):
            found[work + name] = blocks(lambda f=function: f(next(turns)), seconds / 4)
        begin = epoch(work, given)
        if begin is None:
            continue
        until = time.perf_counter() + seconds / 2
        values = found[work + ": loader"] = []
        while len(values) < 3 or time.perf_counter() < until:
            start = time.perf_counter()
            count = sum(1 for _ in begin())
            values.append((time.perf_counter() - start) / count * 1e6)
            if count != LOADED:
                raise AssertionError("%d batches came, not %d" % (count, LOADED))
    return found
