"""`paddle.dataset.mq2007`: documents found for questions, and how well they fit, to learn ranking from (LETOR 4.0)."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from . import common, reading

__all__ = [
    "Query",
    "QueryList",
    "fetch",
    "gen_list",
    "gen_pair",
    "gen_plain_txt",
    "gen_point",
    "load_from_text",
    "query_filter",
    "test",
    "train",
]

URL = (
    "http://www.bigdatalab.ac.cn/benchmark/upload/download_source/"
    "7b6dbbe2-842c-11e4-a536-bcaec51b9163_MQ2007.rar"
)
MD5 = "7be1640ae95c6408dab0ae7207bdc706"

FEATURES = 46


class Query:
    """A document found for a question (`paddle.dataset.mq2007.Query`).

    `query_id` numbers the question, `relevance_score` says how well the document fits (0 to 2), `feature_vector`
    is a list of 46 numbers, `description` the comment after them.
    """

    def __init__(
        self,
        query_id: int = -1,
        relevance_score: int = -1,
        feature_vector: list[float] | None = None,
        description: str = "",
    ) -> None:
        self.query_id = query_id
        self.relevance_score = relevance_score
        self.feature_vector = [] if feature_vector is None else feature_vector
        self.description = description

    def __str__(self) -> str:
        return " ".join(map(str, [self.relevance_score, self.query_id, *self.feature_vector]))


class QueryList:
    """The documents found for one question (`paddle.dataset.mq2007.QueryList`)."""

    def __init__(self, querylist: list[Query] | None = None) -> None:
        self.querylist = [] if querylist is None else querylist
        self.query_id = self.querylist[0].query_id if self.querylist else -1

    def __iter__(self) -> Iterator[Query]:
        return iter(self.querylist)

    def __len__(self) -> int:
        return len(self.querylist)

    def __getitem__(self, i: Any) -> Any:
        return self.querylist[i]

    def _correct_ranking_(self) -> None:
        """Put the documents that fit best first."""
        self.querylist.sort(key=lambda query: query.relevance_score, reverse=True)


def load_from_text(filepath: str, shuffle: bool = False, fill_missing: float = -1) -> list[QueryList]:
    """The questions of a text file, packed or not (`paddle.dataset.mq2007.load_from_text`).

    Args:
        filepath: as for `train`.
        shuffle: in random order (of Python's `random`).
        fill_missing: replaces features that are given as NULL.

    Raises:
        FormatError: a line is not a relevance, a question and 46 features.
    """
    path, text = _text(filepath)
    lists: list[QueryList] = []
    for line in text.splitlines():
        if line.strip():
            query = _parse(path, line, fill_missing)
            if not lists or lists[-1].query_id != query.query_id:
                lists.append(QueryList([query]))
            else:
                lists[-1].querylist.append(query)
    if shuffle:
        random.shuffle(lists)
    return lists


def _parse(path: str, line: str, fill_missing: float) -> Query:
    values, _, comment = line.partition("#")
    try:
        relevance, question, *features = values.split()
        if len(features) != FEATURES:
            raise ValueError(f"expected {FEATURES} features, got {len(features)}")
        numbers = [fill_missing if text.endswith(":NULL") else float(text.split(":")[1]) for text in features]
        return Query(int(question.split(":")[1]), int(relevance), numbers, comment.strip() or line.strip())
    except (ValueError, IndexError) as error:
        raise reading.damaged(path, f"in the line {line[:40]!r}: {error}") from None


def query_filter(querylists: Iterable[QueryList]) -> list[QueryList]:
    """The questions that have a document which fits (`paddle.dataset.mq2007.query_filter`)."""
    return [each for each in querylists if sum(query.relevance_score for query in each) != 0]


def gen_plain_txt(querylist: QueryList) -> Iterator[tuple[int, int, np.ndarray]]:
    """Question, relevance and features (float64 [46]) of each document, the best first
    (`paddle.dataset.mq2007.gen_plain_txt`)."""
    for query in _ranked(querylist):
        yield querylist.query_id, query.relevance_score, np.array(query.feature_vector)


def gen_point(querylist: QueryList) -> Iterator[tuple[int, np.ndarray]]:
    """Relevance and features of each document, the best first (`paddle.dataset.mq2007.gen_point`)."""
    for query in _ranked(querylist):
        yield query.relevance_score, np.array(query.feature_vector)


def gen_pair(
    querylist: QueryList, partial_order: str = "full"
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """An array [1] and the features of two documents, for all pairs whose first document fits better
    (`paddle.dataset.mq2007.gen_pair`).

    `partial_order` has no effect, as in Fluid.
    """
    queries = _ranked(querylist)
    for i, better in enumerate(queries):
        for worse in queries[i + 1 :]:
            if better.relevance_score > worse.relevance_score:
                yield np.array([1]), np.array(better.feature_vector), np.array(worse.feature_vector)


def gen_list(querylist: QueryList) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Once: relevance [n, 1] and features [n, 46] of all documents, the best first
    (`paddle.dataset.mq2007.gen_list`)."""
    queries = _ranked(querylist)
    yield np.array([[q.relevance_score] for q in queries]), np.array([q.feature_vector for q in queries])


def _ranked(querylist: QueryList) -> list[Query]:
    querylist._correct_ranking_()
    return querylist.querylist


_FORMATS: dict[str, Callable[[QueryList], Iterator[tuple[Any, ...]]]] = {
    "plain_txt": gen_plain_txt,
    "pointwise": gen_point,
    "pairwise": gen_pair,
    "listwise": gen_list,
}


def train(
    filepath: str = "MQ2007/MQ2007/Fold1/train.txt",
    format: str = "pairwise",
    shuffle: bool = False,
    fill_missing: float = -1,
) -> Iterator[tuple[Any, ...]]:
    """Samples to train with (`paddle.dataset.mq2007.train`): an iterator, not a reader.

    Args:
        filepath: a text file; a relative name is looked for in `$FLUIDLITE_DATA/MQ2007`, in the cache and in the
            downloaded archive, which needs the package rarfile.
        format: 'pairwise' and 'listwise' as `gen_pair` and `gen_list`; 'plain_txt' and 'pointwise' give the best
            document of each question. Questions without a document that fits are left out.
        shuffle: questions in random order.
        fill_missing: replaces missing features.

    Raises:
        DownloadError: the data is nowhere and cannot be downloaded.
        FormatError: the file is damaged or has another format.
        ValueError: for another format.
    """
    if format not in _FORMATS:
        raise ValueError(f"format must be one of {', '.join(_FORMATS)}, got {format!r}")
    return _samples(filepath, format, shuffle, fill_missing)


def test(
    filepath: str = "MQ2007/MQ2007/Fold1/test.txt",
    format: str = "pairwise",
    shuffle: bool = False,
    fill_missing: float = -1,
) -> Iterator[tuple[Any, ...]]:
    """Samples to test with, like `train` (`paddle.dataset.mq2007.test`)."""
    return train(filepath, format, shuffle, fill_missing)


def _samples(filepath: str, format: str, shuffle: bool, fill_missing: float) -> Iterator[tuple[Any, ...]]:
    for querylist in query_filter(load_from_text(filepath, shuffle, fill_missing)):
        samples = _FORMATS[format](querylist)
        if format in ("plain_txt", "pointwise"):
            yield next(samples)
        else:
            yield from samples


def fetch() -> str:
    """The path of the data, downloaded now if need be (`paddle.dataset.mq2007.fetch`)."""
    return common.download(URL, "MQ2007", MD5)


def _text(filepath: str) -> tuple[str, str]:
    """A file's path and contents."""
    homes = [os.environ.get(reading.DATA_VARIABLE), common.DATA_HOME]
    for path in (filepath, *(os.path.join(home, "MQ2007", filepath) for home in homes if home)):
        if os.path.isfile(path):
            return path, reading.read(path).decode("utf8", "replace")
    archive = fetch()
    try:
        import rarfile
    except ImportError as error:
        raise ImportError(
            f"{archive} is a RAR file: unpack it, or install the package rarfile and the program unrar",
            name="rarfile",
        ) from error
    try:
        with rarfile.RarFile(archive) as rar:
            name = next((n for n in rar.namelist() if f"/{filepath}".endswith(f"/{n}")), None)
            if name is None:
                raise reading.damaged(archive, f"it has no member {filepath}")
            return archive, rar.read(name).decode("utf8", "replace")
    except rarfile.Error as error:
        raise reading.damaged(archive, str(error)) from error
