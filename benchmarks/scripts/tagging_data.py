"""What all sides of benchmarks/tagging.py are fed, and how large their networks are."""

BATCH, MOST_WARM = 32, 10
VOCABULARY, EMBEDDING, TAGS, SHORTEST, LONGEST = 5000, 64, 9, 10, 59
FRAMES, WIDTH, CLASSES, LABELS = 60, 64, 80, 10


def sentences(random, count):
    """`count` times: the lengths of BATCH sequences, their words one below the other, and the tags of these."""
    found = []
    for _ in range(count):
        lengths = random.randint(SHORTEST, LONGEST + 1, BATCH)
        words = random.randint(0, VOCABULARY, (lengths.sum(), 1)).astype("int64")
        found.append((lengths, words, random.randint(0, TAGS, words.shape).astype("int64")))
    return found


def frames(random, count):
    """`count` times: frames [BATCH * FRAMES, WIDTH] and labels [BATCH * LABELS, 1]; class 0 is the blank."""
    return [
        (
            random.rand(BATCH * FRAMES, WIDTH).astype("float32"),
            random.randint(1, CLASSES, (BATCH * LABELS, 1)).astype("int32"),
        )
        for _ in range(count)
    ]
