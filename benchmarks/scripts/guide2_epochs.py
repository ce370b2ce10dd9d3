"""The course of the measurement for guide 2's models, whatever the framework. Runs under Python 3.8 too."""

import time

from guide2_sources import BATCH_SIZES, batched, heavy, images, sentences, turn
from timing import result

THREAD, PROCESS, KEPT = "thread", "process", "process kept"
BALANCED = "as much Python"
ROUNDS = 200000  # of Python, to find out how long one takes


def milliseconds(run):
    """How long `run()` takes."""
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) * 1e3


def source(model, count):
    """The reader of an epoch of about `count` images, and the number of its batches."""
    batches = max(2, count // BATCH_SIZES[model])
    if model == "PTB":
        return sentences(batches), batches
    return images(model, batches * BATCH_SIZES[model]), batches


def as_long(reader, model, batches, loader, wanted):
    """The reader with so much Python that reading an epoch takes `wanted` milliseconds."""
    light = min(milliseconds(lambda: list(loader(reader, model, False)())) for _ in range(3))
    rate = ROUNDS / min(milliseconds(lambda: turn(ROUNDS)) for _ in range(3))
    return heavy(reader, max(1, int((wanted - light) * rate / batches / BATCH_SIZES[model])))


def measure(names, count, epochs, trainer, loader):
    """Time epochs of about `count` images of each model in `names` and print the line of results.

    `trainer(model)` makes the network and returns a function that trains it with a batch; `loader(reader, model,
    process)` returns a function that begins an epoch of batches, read by a thread or by a process (or, where `loader`
    has the attribute `keeps`, by one for all epochs). Epochs of all kinds take turns; a first one of each goes before
    them.

    The name BALANCED stands for MNIST with as much Python for a batch as its training step takes: reading alone,
    training alone, and both together.
    """
    metrics = {}
    for name in names:
        model = "MNIST" if name == BALANCED else name
        label = name if name == BALANCED else "%s (%d)" % (name, BATCH_SIZES[model])
        reader, batches = source(model, count)
        train = trainer(model)

        def epoch(begin):
            for batch in begin():
                train(batch)

        alone = {}
        if name == BALANCED:
            ready = list(loader(reader, model, False)())
            training = min(milliseconds(lambda: epoch(lambda: ready)) for _ in range(3))
            reader = as_long(reader, model, batches, loader, training)
            alone["reading alone"] = lambda: sum(1 for _ in begin[THREAD]())
            alone["training alone"] = lambda: epoch(lambda: ready)
        begin = {where: loader(reader, model, where == PROCESS) for where in (THREAD, PROCESS)}
        if getattr(loader, "keeps", False):
            begin[KEPT] = loader(reader, model, True, kept=True)
        runs = {where: (lambda where=where: epoch(begin[where])) for where in begin}
        for number in range(epochs + 1):
            for what, run in list(runs.items()) + list(alone.items()):
                took = milliseconds(run)
                if number:
                    metrics.setdefault("%s, %s" % (label, what), []).append(took)
    result(metrics)


def lists(reader, model):
    """The reader of lists of samples behind a reader of samples."""
    return batched(reader, BATCH_SIZES[model])
