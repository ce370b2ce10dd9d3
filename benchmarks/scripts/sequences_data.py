"""What all sides of benchmarks/sequences.py are fed, and how large their networks are."""

BATCH, VOCABULARY, EMBEDDING, HIDDEN = 32, 5000, 64, 128
SHORTEST, LONGEST = 10, 59
FIXED = 20  # steps of the sequences that all have one length
TURNS = 1000
MOST_WARM = 10  # steps before those that count


def batches(random, count, shortest=SHORTEST, longest=LONGEST):
    """`count` times: the lengths of BATCH sequences, their words one below the other, and their labels."""
    found = []
    for _ in range(count):
        lengths = random.randint(shortest, longest + 1, BATCH)
        words = random.randint(0, VOCABULARY, (lengths.sum(), 1)).astype("int64")
        found.append((lengths, words, random.randint(0, 2, (BATCH, 1)).astype("int64")))
    return found
