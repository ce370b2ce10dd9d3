"""`paddle.dataset.conll05`: semantic role labelling (the public test part of CoNLL 2005)."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from io import BytesIO
from typing import Any

from . import common, reading
from .reading import tar_member

__all__ = [
    "corpus_reader",
    "fetch",
    "get_dict",
    "get_embedding",
    "load_dict",
    "load_label_dict",
    "reader_creator",
    "test",
]

_PREFIX = "http://paddlemodels.bj.bcebos.com/conll05st"
DATA_URL = f"{_PREFIX}/conll05st-tests.tar.gz"
DATA_MD5 = "387719152ae52d60422c016e92a742fc"
WORDDICT_URL = f"{_PREFIX}%2FwordDict.txt"
WORDDICT_MD5 = "ea7fb7d4c75cc6254716f0177a506baa"
VERBDICT_URL = f"{_PREFIX}%2FverbDict.txt"
VERBDICT_MD5 = "0d2977293bbb6cbefab5b0f97db1e77c"
TRGDICT_URL = f"{_PREFIX}%2FtargetDict.txt"
TRGDICT_MD5 = "d8c7f03ceb5fc2e5a0fa7503a4353751"
EMB_URL = f"{_PREFIX}%2Femb"
EMB_MD5 = "bf436eb0faa1f6f9103017f8be57cdb7"

UNK_IDX = 0
"""The number of words that the dictionary has not."""

_WORDS = "conll05st-release/test.wsj/words/test.wsj.words.gz"
_PROPS = "conll05st-release/test.wsj/props/test.wsj.props.gz"

Sentence = tuple[list[str], str, list[str]]
Corpus = Callable[[], Iterator[Sentence]]


def load_dict(filename: str) -> dict[str, int]:
    """The lines of a file, by which one finds their numbers (`paddle.dataset.conll05.load_dict`)."""
    return {line.strip(): number for number, line in enumerate(_text(filename).splitlines())}


def load_label_dict(filename: str) -> dict[str, int]:
    """Numbers for the labels whose kinds a file has (`paddle.dataset.conll05.load_label_dict`).

    `B-` and `I-` of each kind, in the order of the file, and last `O`.
    """
    lines = (line.strip() for line in _text(filename).splitlines())
    kinds = dict.fromkeys(line[2:] for line in lines if line.startswith(("B-", "I-")))
    return {label: i for i, label in enumerate([*(f"{mark}-{kind}" for kind in kinds for mark in "BI"), "O"])}


def _text(filename: str) -> str:
    return reading.read(filename).decode("utf8", "replace")


def corpus_reader(data_path: str, words_name: str, props_name: str) -> Corpus:
    """A reader of sentences, one for each of their verbs (`paddle.dataset.conll05.corpus_reader`).

    It yields `(words, verb, labels)`: texts, and labels such as `B-A0`, `I-A0` and `O`.

    Args:
        data_path: a tar file.
        words_name: its member, packed by gzip, with a word a line and empty lines after sentences.
        props_name: likewise, with the verb of the sentence that stands there (or -) and a column of brackets for each
            of its verbs.

    Raises:
        FormatError: when read, if the contents are not sound.
    """
    return partial(_sentences, data_path, words_name, props_name)


def _sentences(data_path: str, words_name: str, props_name: str) -> Iterator[Sentence]:
    words: list[str] = []
    rows: list[list[str]] = []
    for word, row in zip(_lines(data_path, words_name), _lines(data_path, props_name), strict=False):
        if row:
            words.append(word[0] if word else "")
            rows.append(row)
            continue
        verbs = [row[0] for row in rows if row[0] != "-"]
        for number, verb in enumerate(verbs, 1):
            if any(len(row) <= number for row in rows):
                raise reading.damaged(
                    data_path, f"{props_name} has fewer columns than verbs at {' '.join(words)}"
                )
            yield words, verb, _labels(data_path, [row[number] for row in rows])
        words, rows = [], []


def _lines(path: str, name: str) -> list[list[str]]:
    packed = tar_member(path, name)
    text = reading.read_packed(
        gzip.GzipFile(fileobj=BytesIO(packed)), f"{name} in {path}", reading.room(len(packed))
    )
    return [line.split() for line in text.decode("utf8", "replace").split("\n")[:-1]]


def _labels(path: str, column: list[str]) -> list[str]:
    """Labels for brackets: `(A0*`, `*`, `*)`, `(V*)`."""
    labels, kind = [], ""
    for text in column:
        if text.startswith("(") and "*" in text:
            kind = text[1 : text.index("*")]
            labels.append(f"B-{kind}")
        elif text in ("*", "*)"):
            labels.append(f"I-{kind}" if kind else "O")
        else:
            raise reading.damaged(path, f"expected a bracket such as (A0*), got {text}")
        if text.endswith(")"):
            kind = ""
    return labels


def reader_creator(
    corpus_reader: Corpus,
    word_dict: Mapping[str, int] | None = None,
    predicate_dict: Mapping[str, int] | None = None,
    label_dict: Mapping[str, int] | None = None,
) -> Callable[[], Iterator[tuple[list[Any], ...]]]:
    """A reader of the inputs of networks (`paddle.dataset.conll05.reader_creator`).

    It yields nine lists as long as the sentence: numbers of its words; five times the number of a word, from two before
    the verb to two behind it (`bos` and `eos` where there is none); the number of the verb; 1 for these five words and
    0 for the others; numbers of the labels. The dictionaries give the numbers; the first has `bos` and `eos`.
    """
    return partial(_features, corpus_reader, word_dict or {}, predicate_dict or {}, label_dict or {})


def _features(
    corpus: Corpus,
    word_dict: Mapping[str, int],
    predicate_dict: Mapping[str, int],
    label_dict: Mapping[str, int],
) -> Iterator[tuple[list[Any], ...]]:
    for words, verb, labels in corpus():
        size, place = len(words), labels.index("B-V")
        near = range(place - 2, place + 3)
        numbers = [word_dict.get(word, UNK_IDX) for word in words]
        begin, end = word_dict.get("bos"), word_dict.get("eos")
        yield (
            numbers,
            *([begin if i < 0 else end if i >= size else numbers[i]] * size for i in near),
            [predicate_dict.get(verb)] * size,
            [int(i in near) for i in range(size)],
            [label_dict.get(label) for label in labels],
        )


def get_dict() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Numbers of words, verbs and labels (`paddle.dataset.conll05.get_dict`).

    Raises:
        DownloadError: the data is neither in `$FLUIDLITE_DATA/conll05st` nor in the cache nor can be downloaded.
    """
    return (
        load_dict(_download(WORDDICT_URL, WORDDICT_MD5)),
        load_dict(_download(VERBDICT_URL, VERBDICT_MD5)),
        load_label_dict(_download(TRGDICT_URL, TRGDICT_MD5)),
    )


def get_embedding() -> str:
    """The path of a file with a vector for each word (`paddle.dataset.conll05.get_embedding`): 16 bytes of heading,
    then float32 of shape [44068, 32]."""
    return _download(EMB_URL, EMB_MD5)


def test() -> Callable[[], Iterator[tuple[list[Any], ...]]]:
    """A reader of the sentences, like `reader_creator` (`paddle.dataset.conll05.test`)."""
    return reader_creator(corpus_reader(_download(DATA_URL, DATA_MD5), _WORDS, _PROPS), *get_dict())


def fetch() -> None:
    """Download everything now (`paddle.dataset.conll05.fetch`)."""
    get_dict()
    get_embedding()
    _download(DATA_URL, DATA_MD5)


def _download(url: str, md5sum: str) -> str:
    return common.download(url, "conll05st", md5sum)
