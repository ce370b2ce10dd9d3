"""Statistics of loaders: counts, times, the bottleneck, the summary and progress bars."""

from __future__ import annotations

import gc
import io
import re
import time
import weakref

import numpy as np
import pytest
from tqdm import tqdm

from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.paddle.io import DataLoader as PaddleLoader
from fluidlite.reader import DataLoader, Dataset, IterableDataset, PyReader, batch, leaks
from fluidlite.reader.loader.stats import bottleneck, summarize

PLACE = CPUPlace()
PAUSE = 0.004


class Slow(Dataset):
    """Samples of 8 + 4 bytes that take a while."""

    def __init__(self, count: int, pause: float = 0.0) -> None:
        self.count, self.pause = count, pause

    def __getitem__(self, idx: int):
        if self.pause:
            time.sleep(self.pause)
        return np.zeros(2, "float32"), np.int32(idx)

    def __len__(self) -> int:
        return self.count


@pytest.fixture
def variable(programs):
    return data("n", [None, 2], "float32")


def rows():
    for _ in range(12):
        yield (np.zeros(2, "float32"),)


def slow_rows():
    for row in rows():
        time.sleep(PAUSE)
        yield row


@pytest.mark.parametrize("workers", [0, 1])
def test_counts_of_a_dataset(workers: int) -> None:
    loader = PaddleLoader(Slow(10), batch_size=4, num_workers=workers)
    assert loader.stats()["state"] == "idle" and "nothing was read yet" in loader.summary()
    for _ in range(2):
        for _ in loader:
            pass
    next(iter(loader))
    stats = loader.stats()
    assert (stats["epochs"], stats["batches"], stats["samples"], stats["bytes"]) == (3, 7, 24, 24 * 12)
    assert stats["workers"] == workers and stats["capacity"] == 2 and stats["queued"] == 0
    text = loader.summary()
    assert text.startswith("3 epochs, 7 batches, 24 samples, 288 bytes\n") and "bottleneck:" in text
    assert ("1 worker process" in text) is bool(workers)


@pytest.mark.parametrize("workers", [0, 1])
def test_slow_reading(workers: int) -> None:
    loader = PaddleLoader(Slow(10, PAUSE), batch_size=2, num_workers=workers)
    for _ in loader:
        pass
    stats = loader.stats()
    assert stats["bottleneck"] == "reading"
    assert stats["reading"] >= 10 * PAUSE > 5 * stats["collating"]
    assert stats["consumer_waited"] > 8 * PAUSE > stats["computing"]
    assert "bottleneck: reading" in loader.summary() and "num_workers" in loader.summary()


@pytest.mark.parametrize("workers", [0, 1])
def test_slow_computing(workers: int) -> None:
    loader = PaddleLoader(Slow(40), batch_size=2, num_workers=workers)
    for _ in loader:
        time.sleep(PAUSE)
    stats = loader.stats()
    assert stats["bottleneck"] == "computing"
    assert stats["computing"] >= 20 * PAUSE and stats["producer_waited"] > 10 * PAUSE
    assert stats["reading"] < 5 * PAUSE
    assert "bottleneck: computing" in loader.summary()


@pytest.mark.parametrize("kind", ["samples", "lists", "ready"])
def test_generators(variable, kind: str) -> None:
    loader = DataLoader.from_generator([variable], 2)
    if kind == "samples":
        loader.set_sample_generator(slow_rows, 4, True, PLACE)
    elif kind == "lists":
        loader.set_sample_list_generator(batch(slow_rows, 4), PLACE)
    else:
        loader.set_batch_generator(
            lambda: ((np.stack([r[0] for r in b]),) for b in batch(slow_rows, 4)()), PLACE
        )
    for _ in loader:
        pass
    stats = loader.stats()
    assert (stats["epochs"], stats["batches"], stats["samples"], stats["bytes"]) == (1, 3, 12, 96)
    assert stats["bottleneck"] == "reading" and stats["consumer_waited"] >= 10 * PAUSE
    if kind == "samples":
        assert 0 <= stats["reading"] and stats["reading"] + stats["collating"] >= 10 * PAUSE
    else:
        assert stats["reading"] >= 12 * PAUSE > 5 * stats["collating"]
    for _ in loader:
        time.sleep(8 * PAUSE)
    assert loader.stats()["computing"] >= 24 * PAUSE
    assert "epochs, 6 batches, 24 samples" in loader.summary()


def test_reading_of_samples_is_estimated(variable) -> None:
    def many():
        for _ in range(400):
            time.sleep(0.0002)
            yield (np.zeros(2, "float32"),)

    loader = DataLoader.from_generator([variable], 2).set_sample_generator(many, 100, True, PLACE)
    for _ in loader:
        pass
    # One sample in sixteen is timed. A busy machine can only make them take longer.
    assert loader.stats()["reading"] > 0.8 * 400 * 0.0002


def test_a_generator_in_a_process(variable) -> None:
    loader = PyReader([variable], capacity=2)
    loader.decorate_sample_generator(rows, 4, places=PLACE)
    for _ in loader:
        pass
    assert loader.stats()["samples"] == 12 and loader.summary().startswith("1 epoch, 3 batches")
    loader = DataLoader.from_generator([variable], 2, use_multiprocess=True)
    loader.set_sample_generator(slow_rows, 4, True, PLACE)
    for _ in loader:
        pass
    stats = loader.stats()
    assert stats["workers"] == 1 and stats["reading"] >= 12 * PAUSE and stats["bytes"] == 96


def test_summaries_give_advice() -> None:
    stats = {
        "epochs": 1, "batches": 1, "samples": 1000, "bytes": 2_500_000, "reading": 1.0, "collating": 3.0,
        "producer_waited": 0.0, "consumer_waited": 3.0, "computing": 1.0, "workers": 0,
    }  # fmt: skip
    text = summarize(stats)
    assert text.startswith("1 epoch, 1 batch, 1000 samples, 2.5 MB\n")
    assert "consumer waits for data        3.000    3000.000     75%" in text
    assert "Waiting is 75%: a perfect reader would make the loop at most 4.0 times faster" in text
    assert "collate_fn" in text
    assert "more than 2 workers" in summarize({**stats, "workers": 2, "reading": 5.0})
    assert "worker processes" in summarize({**stats, "reading": 5.0})
    ready = {**stats, "producer_waited": 4.0}
    assert "bottleneck: computing. Waiting is 75%: a perfect reader" in summarize(ready)
    rarely = {**stats, "computing": 60.0, "producer_waited": 4.0}
    assert "bottleneck: computing. The consumer waited for data 5% of its time" in summarize(rarely)
    # The readers never waited for room, but there is nothing to gain by a faster one.
    assert bottleneck({**rarely, "producer_waited": 0.0}) == "computing"
    assert bottleneck({**rarely, "producer_waited": 0.0, "computing": 50.0}) == "reading"
    copied = {**stats, "copied": 10**9, "staging": 0.1, "copying": 9.0}
    assert bottleneck(copied) == "copying" and "bottleneck: copying to the GPU" in summarize(copied)
    assert bottleneck({**copied, "computing": 10.0}) == bottleneck({**stats, "computing": 10.0})
    assert "copying" not in summarize(stats) and "to page-locked memory" in summarize(copied)


def test_progress_bars(variable) -> None:
    screen = io.StringIO()
    loader = PaddleLoader(Slow(10), batch_size=4)
    got = [n.numpy().tolist() for _, n in loader.progress(file=screen, desc="reading")]
    assert got == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert "reading" in screen.getvalue() and "3/3" in screen.getvalue()
    state = {**loader.state_dict(), "batches": 2}
    loader.set_state_dict(state)
    screen = io.StringIO()
    assert len(list(loader.progress(file=screen))) == 1 and "3/3" in screen.getvalue()
    generator = DataLoader.from_generator([variable], 2).set_sample_generator(rows, 4, True, PLACE)
    screen = io.StringIO()
    assert len(list(generator.progress(file=screen, total=3))) == 3 and "3/3" in screen.getvalue()
    screen = io.StringIO()
    assert len(list(generator.progress(file=screen, mininterval=0))) == 3
    assert re.search(r"3batch \[\d\d:\d\d, +[\d.]+batch/s\]", screen.getvalue())

    class Endless(IterableDataset):
        def __iter__(self):
            while True:
                yield 1.0

    screen = io.StringIO()
    for _ in PaddleLoader(Endless(), batch_size=4).progress(file=screen):
        break
    assert "0batch" in screen.getvalue()


def test_progress_as_an_option(capsys) -> None:
    assert len(list(PaddleLoader(Slow(10), batch_size=4, progress=True))) == 3
    assert "3/3" in capsys.readouterr().err


@pytest.mark.parametrize("workers", [0, 1])
def test_nothing_leaks_through_tqdm(workers: int) -> None:
    loader = PaddleLoader(Slow(100), batch_size=2, num_workers=workers)
    bar = tqdm(loader, file=io.StringIO())
    for i, _ in enumerate(bar):
        if i == 2:
            break
    del _
    # The bar is still there, and must not keep the epoch.
    assert {k: v for k, v in leaks().items() if v} == {}
    for i, _ in enumerate(loader.progress(file=io.StringIO())):
        if i == 2:
            break
    del _
    assert {k: v for k, v in leaks().items() if v} == {}
    gone = weakref.ref(loader)
    bar.close()
    del loader, bar
    gc.collect()
    assert gone() is None
