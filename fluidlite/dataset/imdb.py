"""`paddle.dataset.imdb`: 50,000 film reviews, half of them to train with, that praise or pan."""

from __future__ import annotations

import collections
import re
import string
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from . import common
from .reading import tar_members

__all__ = ["build_dict", "fetch", "reader_creator", "test", "tokenize", "train", "word_dict"]

URL = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"

Reader = Callable[[], Iterator[tuple[list[int], int]]]

_PUNCTUATION = string.punctuation.encode()
_LABELLED = re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$")


def tokenize(pattern: re.Pattern[str]) -> Iterator[list[bytes]]:
    """The words of each review whose file name matches `pattern`: bytes in lower case, without punctuation
    (`paddle.dataset.imdb.tokenize`).

    Raises:
        DownloadError: the data is neither in `$FLUIDLITE_DATA/imdb` nor in the cache nor can be downloaded.
        FormatError: the file is damaged or has another format.
    """
    for _, text in tar_members(common.download(URL, "imdb", MD5), pattern.match):
        yield text.translate(None, _PUNCTUATION).lower().split()


def build_dict(pattern: re.Pattern[str], cutoff: int) -> dict[Any, int]:
    """Numbers for the words (bytes) that reviews matching `pattern` have more than `cutoff` times
    (`paddle.dataset.imdb.build_dict`).

    The most frequent word is 0, those of the same frequency are in the order of their bytes; `'<unk>'`, a text, is
    last.
    """
    counts = collections.Counter(word for words in tokenize(pattern) for word in words)
    kept = sorted((-count, word) for word, count in counts.items() if count > cutoff)
    return {**{word: number for number, (_, word) in enumerate(kept)}, "<unk>": len(kept)}


def word_dict() -> dict[Any, int]:
    """Numbers for the words that occur more than 150 times (`paddle.dataset.imdb.word_dict`)."""
    return build_dict(_LABELLED, 150)


def train(word_idx: Mapping[Any, int]) -> Reader:
    """A reader of the 25,000 reviews to train with (`paddle.dataset.imdb.train`).

    It yields `(numbers of the words, label)`: label 0 for praise, which comes first, and 1 for the others.

    Args:
        word_idx: numbers by word, such as `word_dict` gives; words that it has not get that of `'<unk>'`.
    """
    return _reader("train", word_idx)


def test(word_idx: Mapping[Any, int]) -> Reader:
    """A reader of the 25,000 reviews to test with, like `train` (`paddle.dataset.imdb.test`)."""
    return _reader("test", word_idx)


def _reader(part: str, word_idx: Mapping[Any, int]) -> Reader:
    praise, blame = (re.compile(rf"aclImdb/{part}/{kind}/.*\.txt$") for kind in ("pos", "neg"))
    return reader_creator(praise, blame, word_idx)


def reader_creator(
    pos_pattern: re.Pattern[str], neg_pattern: re.Pattern[str], word_idx: Mapping[Any, int]
) -> Reader:
    """A reader of the reviews whose file names match one of two patterns; it reads them now
    (`paddle.dataset.imdb.reader_creator`)."""
    unknown = word_idx["<unk>"]
    samples = [
        ([word_idx.get(word, unknown) for word in words], label)
        for label, pattern in enumerate((pos_pattern, neg_pattern))
        for words in tokenize(pattern)
    ]
    return partial(iter, samples)


def fetch() -> None:
    """Download the data now (`paddle.dataset.imdb.fetch`)."""
    common.download(URL, "imdb", MD5)
