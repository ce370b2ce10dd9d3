"""Readers from readers without threads: what real Paddle gives, clear errors, and where users find them."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import reader
from fluidlite import reader as r
from fluidlite.base.errors import NotSupportedError
from fluidlite.paddle import batch
from fluidlite.paddle import reader as paddle_reader
from fluidlite.reader.decorators import describe

from ..refusals import refuses
from .helpers import Watched, endless, failing, numbers


def test_batch() -> None:
    assert list(r.batch(numbers(7), 3)()) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(r.batch(numbers(7), 3, drop_last=True)()) == [[0, 1, 2], [3, 4, 5]]
    assert list(r.batch(numbers(6), 3.0)()) == [[0, 1, 2], [3, 4, 5]]
    assert list(r.batch(lambda: [1, 2, 3], 2)()) == [[1, 2], [3]]

    assert list(r.batch(numbers(6), 3.7)()) == list(r.batch(numbers(6), "3")()) == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("size", [0, -1, 0.5])
def test_batch_size_must_be_positive(size: object) -> None:
    refuses(lambda: r.batch(numbers(3), size), ValueError, "batch_size should be a positive integer")


@pytest.mark.parametrize(("size", "error"), [(None, TypeError), ("x", ValueError)])
def test_batch_size_must_be_a_number(size: object, error: type[Exception]) -> None:
    refuses(lambda: r.batch(numbers(3), size), error, r"int\(\)")


def test_chain_map_firstn() -> None:
    assert list(r.chain(numbers(3), numbers(2, 10))()) == [0, 1, 2, 10, 11]
    assert list(r.map_readers(lambda a, b: (a, b), numbers(3), numbers(2))()) == [(0, 0), (1, 1)]
    assert list(r.firstn(numbers(9), 4)()) == [0, 1, 2, 3]
    assert list(r.firstn(numbers(3), 9)()) == [0, 1, 2]
    assert list(r.firstn(numbers(3), 0)()) == []


def test_firstn_takes_no_more_than_it_gives() -> None:
    assert list(r.firstn(failing(5), 5)()) == [0, 1, 2, 3, 4]


def test_compose_splices_tuples_but_not_lists() -> None:
    mixed = r.compose(numbers(2), lambda: iter([(1, 2), (3, 4)]), lambda: iter([[1, 2], [3, 4]]))
    assert list(mixed()) == [(0, 1, 2, [1, 2]), (1, 3, 4, [3, 4])]


def test_compose_alignment() -> None:
    with pytest.raises(r.ComposeNotAligned, match=r"reader\(s\) \[1\] ended after 2 samples") as caught:
        list(r.compose(numbers(3), numbers(2))())
    assert isinstance(caught.value, ValueError)
    assert list(r.compose(numbers(3), numbers(2), check_alignment=False)()) == [(0, 0), (1, 1)]
    with pytest.warns(RuntimeWarning, match="compose takes check_alignment, and ignores check"):
        assert list(r.compose(numbers(2), numbers(2), check=True)()) == [(0, 0), (1, 1)]


def test_compose_does_not_compare_arrays() -> None:
    rows = list(r.compose(lambda: iter(np.eye(2)), numbers(2))())
    assert rows[1][0].tolist() == [0.0, 1.0] and rows[1][1] == 1


def test_cache_reads_once_and_at_once() -> None:
    watched = Watched(numbers(3))
    cached = r.cache(watched)
    assert watched.opened == 1
    assert list(cached()) == list(cached()) == [0, 1, 2] and watched.opened == 1
    refuses(lambda: r.cache(failing(1)), OSError, "on fire")


def test_shuffle_draws_as_fluid_does() -> None:
    random.seed(5)
    assert list(r.shuffle(numbers(10), 4)()) == [0, 1, 3, 2, 6, 7, 5, 4, 9, 8]
    assert list(r.shuffle(numbers(3), 0)()) == [0, 1, 2]
    assert list(r.shuffle(numbers(3), -1)()) == [0, 1, 2]
    random.seed(5)
    assert list(r.shuffle(numbers(10), 3.5)()) == [0, 1, 3, 2, 6, 7, 5, 4, 9, 8]


@pytest.mark.parametrize("size", [4, 4.0, 4.5, 0, -1, np.float32(2), float("inf"), True])
def test_sizes_of_buffers(size: object) -> None:
    assert sorted(r.shuffle(numbers(9), size)()) == list(range(9))
    assert list(r.buffered(numbers(9), size)()) == list(range(9))
    assert sorted(r.xmap_readers(lambda x: x, numbers(9), 2, size)()) == list(range(9))


@pytest.mark.parametrize("size", ["3", None, 1j])
def test_what_is_no_size_of_a_buffer(size: object) -> None:
    for decorate in (r.shuffle, r.buffered):
        with pytest.raises(TypeError, match="size must be a number, got"):
            decorate(numbers(3), size)


def test_firstn() -> None:
    counts = (0, 2, 2.0, 9, None, -1)
    assert [len(list(r.firstn(numbers(4), n)())) for n in counts] == [0, 2, 2, 4, 4, 4]
    refuses(lambda: r.firstn(numbers(4), 2.5), TypeError, r"n must be an integer, got 2.5")


@pytest.mark.parametrize(
    "decorate",
    [
        lambda reader: r.batch(reader, 2),
        lambda reader: r.shuffle(reader, 2),
        lambda reader: r.chain(reader, reader),
        lambda reader: r.compose(reader, numbers(10**6)),
        lambda reader: r.map_readers(str, reader),
        lambda reader: r.firstn(reader, 5),
    ],
)
def test_leaving_a_reader_closes_what_is_below(decorate) -> None:
    watched = Watched(endless)
    iterator = decorate(watched)()
    next(iterator)
    iterator.close()
    assert (watched.opened, watched.closed) == (1, 1)


@pytest.mark.parametrize(
    "decorate",
    [
        r.cache,
        r.chain,
        r.compose,
        lambda reader: r.map_readers(str, reader),
        lambda reader: r.batch(reader, 2),
        lambda reader: r.shuffle(reader, 2),
        lambda reader: r.firstn(reader, 2),
        lambda reader: r.buffered(reader, 2),
        lambda reader: r.xmap_readers(str, reader, 1, 1),
        lambda reader: r.multiprocess_reader([reader]),
    ],
)
def test_a_list_is_no_reader(decorate) -> None:
    refuses(lambda: decorate([1, 2, 3]), TypeError, r"takes a reader, a callable .* got list")


def test_messages_name_the_reader_of_the_user() -> None:
    decorated = r.shuffle(r.batch(numbers(3), 2), 4)
    assert "numbers.<locals>.reader() (" in describe(decorated) and "helpers.py:" in describe(decorated)
    assert "Watched" in describe(Watched(endless))


def test_creators(tmp_path: Path) -> None:
    assert [row.tolist() for row in r.np_array(np.arange(4).reshape(2, 2))()] == [[0, 1], [2, 3]]
    assert list(r.np_array(np.array(3))()) == [3]
    (tmp_path / "lines.txt").write_text("a b \n\nc\n", encoding="utf-8")
    assert list(r.text_file(tmp_path / "lines.txt")()) == ["a b ", "", "c"]
    refuses(lambda: r.recordio("x.recordio"), NotSupportedError, "recordio")


DECORATORS = [
    "ComposeNotAligned", "buffered", "cache", "chain", "compose", "firstn", "map_readers",
    "multiprocess_reader", "shuffle", "xmap_readers",
]  # fmt: skip


@pytest.mark.parametrize("name", DECORATORS)
def test_decorators(name: str) -> None:
    assert getattr(fluid.io, name) is getattr(paddle_reader, name) is getattr(reader, name)
    assert getattr(paddle_reader.decorator, name) is getattr(reader, name)


def test_the_rest() -> None:
    assert fluid.io.batch is batch is reader.batch
    assert fluid.io.DataLoader is reader.DataLoader and fluid.io.PyReader is reader.PyReader
    assert fluid.DataFeeder is fluid.data_feeder.DataFeeder is reader.DataFeeder
    assert list(paddle_reader.creator.np_array([1, 2])()) == [1, 2]
    for name in ("py_reader", "create_py_reader_by_data", "read_file", "double_buffer"):
        assert callable(getattr(fluid.layers, name))
