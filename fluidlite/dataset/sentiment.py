"""`paddle.dataset.sentiment`: 2,000 film reviews that pan or praise (the corpus `movie_reviews` of NLTK, which is not
needed)."""

from __future__ import annotations

import collections
import importlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from . import common, reading
from .reading import zip_members

__all__ = [
    "download_data_if_not_yet",
    "fetch",
    "get_word_dict",
    "load_sentiment_data",
    "reader_creator",
    "sort_files",
    "test",
    "train",
]

URL = "https://corpora.bj.bcebos.com/movie_reviews%2Fmovie_reviews.zip"
MD5 = "155de2b77c6834dd8eea7cbe88e93acb"
NUM_TRAINING_INSTANCES = 1600
NUM_TOTAL_INSTANCES = 2000

_TOKEN = re.compile(r"\w+|[^\w\s]+")
_KINDS = ("neg", "pos")

Sample = tuple[list[int], int]


def train() -> Iterator[Sample]:
    """The first `NUM_TRAINING_INSTANCES` reviews (`paddle.dataset.sentiment.train`): an iterator, not a reader.

    It yields `(numbers of the words, label)`: label 0 for blame and 1 for praise, in turn.

    Raises:
        DownloadError: the data is neither in `$FLUIDLITE_DATA/corpora` nor in the cache nor can be downloaded.
        FormatError: the file is damaged or has another format.
    """
    return reader_creator(load_sentiment_data()[:NUM_TRAINING_INSTANCES])


def test() -> Iterator[Sample]:
    """The reviews to test with, like `train` (`paddle.dataset.sentiment.test`)."""
    return reader_creator(load_sentiment_data()[NUM_TRAINING_INSTANCES:])


def reader_creator(data: Iterable[Sample]) -> Iterator[Sample]:
    """An iterator over samples (`paddle.dataset.sentiment.reader_creator`)."""
    yield from data


def get_word_dict() -> list[tuple[str, int]]:
    """Each word with its number, the most frequent one first (`paddle.dataset.sentiment.get_word_dict`)."""
    reviews = _reviews(download_data_if_not_yet())
    counts = collections.Counter(word for words in reviews.values() for word in words)
    return [(word, number) for number, (word, _) in enumerate(counts.most_common())]


def load_sentiment_data() -> list[Sample]:
    """All samples (`paddle.dataset.sentiment.load_sentiment_data`)."""
    reviews = _reviews(download_data_if_not_yet())
    numbers = dict(get_word_dict())
    return [
        (
            [numbers[low if (low := word.lower()) in numbers else word] for word in reviews[name]],
            _KINDS.index(name[:3]),
        )
        for name in sort_files()
    ]


def sort_files() -> list[str]:
    """Names of the reviews, one of each kind in turn (`paddle.dataset.sentiment.sort_files`)."""
    names = list(_reviews(download_data_if_not_yet()))
    kinds = [[name for name in names if name.startswith(kind)] for kind in _KINDS]
    return [name for pair in zip(*kinds, strict=False) for name in pair]


def download_data_if_not_yet() -> str:
    """The path of the data, downloaded if need be (`paddle.dataset.sentiment.download_data_if_not_yet`)."""
    return common.download(URL, "corpora", MD5, "movie_reviews.zip")


def fetch() -> None:
    """Download the data now (`paddle.dataset.sentiment.fetch`)."""
    download_data_if_not_yet()


@lru_cache(maxsize=1)
def _reviews(path: str) -> dict[str, list[str]]:
    """The words of each review by its name (`neg/cv000_29416.txt`), in the order of the names."""
    members = zip_members(path)
    found = {
        "/".join(name.split("/")[-2:]): _TOKEN.findall(text.decode("utf8", "replace"))
        for name, text in sorted(members.items())
        if name.endswith(".txt") and name.split("/")[-2:-1] in ([kind] for kind in _KINDS)
    }
    if not found:
        raise reading.damaged(path, "it has no reviews movie_reviews/neg/*.txt and movie_reviews/pos/*.txt")
    return found


class _Corpus:
    """NLTK's reader of the reviews, imported when it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            reader = importlib.import_module("nltk.corpus").movie_reviews
        except ImportError as error:
            raise ImportError(f"{__name__}.movie_reviews is a reader of NLTK: pip install nltk") from error
        return getattr(reader, name)


movie_reviews = _Corpus()
