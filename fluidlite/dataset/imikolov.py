"""`paddle.dataset.imikolov`: sentences of the Penn Treebank, for language models."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from functools import partial
from typing import Any

from . import common
from .reading import tar_member

__all__ = ["DataType", "build_dict", "fetch", "reader_creator", "test", "train", "word_count"]

URL = "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz"
MD5 = "30177ea32e27c525793142b6bf2c8e2d"

Reader = Callable[[], Iterator[tuple[Any, ...]]]

_TRAIN, _VALID = (f"simple-examples/data/ptb.{name}.txt" for name in ("train", "valid"))


class DataType:
    """The kinds of samples (`paddle.dataset.imikolov.DataType`): windows of words, or whole sentences."""

    NGRAM = 1
    SEQ = 2


def word_count(
    f: Iterable[bytes], word_freq: MutableMapping[Any, int] | None = None
) -> MutableMapping[Any, int]:
    """How often each word (bytes) occurs in the lines `f`, added to `word_freq` if that is given
    (`paddle.dataset.imikolov.word_count`); `'<s>'` and `'<e>'`, texts, count the lines."""
    found = collections.defaultdict(int) if word_freq is None else word_freq
    for line in f:
        for word in (*line.strip().split(), "<s>", "<e>"):
            found[word] = found.get(word, 0) + 1
    return found


def build_dict(min_word_freq: int = 50) -> dict[Any, int]:
    """Numbers for the words that occur more than `min_word_freq` times (`paddle.dataset.imikolov.build_dict`).

    The most frequent word is 0, those of the same frequency are in the order of their letters; words are bytes, but
    `'<s>'`, `'<e>'` and `'<unk>'`, which is last, are texts.

    Raises:
        DownloadError: the data is neither in `$FLUIDLITE_DATA/imikolov` nor in the cache nor can be downloaded.
        FormatError: the file is damaged or has another format.
    """
    path = common.download(URL, "imikolov", MD5)
    counts = word_count(_lines(path, _VALID), word_count(_lines(path, _TRAIN)))
    kept = sorted(
        (-count, word if isinstance(word, bytes) else word.encode(), word)
        for word, count in counts.items()
        if count > min_word_freq
    )
    return {**{word: number for number, (*_, word) in enumerate(kept)}, "<unk>": len(kept)}


def train(word_idx: Mapping[Any, int], n: int, data_type: int = DataType.NGRAM) -> Reader:
    """A reader of the sentences to train with (`paddle.dataset.imikolov.train`).

    Args:
        word_idx: numbers by word, such as `build_dict` gives; words that it has not get that of `'<unk>'`.
        n: for NGRAM the number of words in a window; for SEQ the longest sentence, with its `'<s>'`, that is not left
            out (0: none is).
        data_type: NGRAM yields tuples of `n` numbers, SEQ `(sentence with <s> before, sentence with <e> after)`.

    Raises:
        AssertionError: when read, for a negative `n` with NGRAM and for another `data_type`.
    """
    return reader_creator(_TRAIN, word_idx, n, data_type)


def test(word_idx: Mapping[Any, int], n: int, data_type: int = DataType.NGRAM) -> Reader:
    """A reader of the sentences to validate with, like `train` (`paddle.dataset.imikolov.test`)."""
    return reader_creator(_VALID, word_idx, n, data_type)


def reader_creator(filename: str, word_idx: Mapping[Any, int], n: int, data_type: int) -> Reader:
    """A reader of the member `filename` of the data set, like `train`
    (`paddle.dataset.imikolov.reader_creator`)."""
    path = common.download(URL, "imikolov", MD5)
    return partial(_samples, path, filename.removeprefix("./"), word_idx, n, data_type)


def _samples(
    path: str, filename: str, word_idx: Mapping[Any, int], n: int, data_type: int
) -> Iterator[tuple[Any, ...]]:
    if data_type not in (DataType.NGRAM, DataType.SEQ):
        raise AssertionError(f"data_type must be DataType.NGRAM or DataType.SEQ, got {data_type!r}")
    if data_type == DataType.NGRAM and n < 0:
        raise AssertionError(f"n must not be negative, got {n}")
    unknown = word_idx["<unk>"]
    begin, end = word_idx.get("<s>", unknown), word_idx.get("<e>", unknown)
    for line in _lines(path, filename):
        words = [word_idx.get(word, unknown) for word in line.split()]
        if data_type == DataType.SEQ:
            if not 0 < n < len(words) + 1:
                yield [begin, *words], [*words, end]
            continue
        words = [begin, *words, end]
        for i in range(n, len(words) + 1):
            yield tuple(words[i - n : i])


def _lines(path: str, filename: str) -> list[bytes]:
    return tar_member(path, filename).splitlines()


def fetch() -> None:
    """Download the data now (`paddle.dataset.imikolov.fetch`)."""
    common.download(URL, "imikolov", MD5)
