"""`paddle.dataset.wmt14`: sentences in French and English."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from . import common
from .reading import Pair, marked, tar_member, two_columns

__all__ = ["fetch", "gen", "get_dict", "reader_creator", "test", "train"]

URL_TRAIN = "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz"
MD5_TRAIN = "0791583d57d5beb693b9414c5b36798c"
URL_MODEL = "http://paddlemodels.bj.bcebos.com/wmt%2Fwmt14.tgz"
MD5_MODEL = "0cb4a5366189b6acba876491c8724fa3"
URL_DEV_TEST = "http://www-lium.univ-lemans.fr/~schwenk/cslm_joint_paper/data/dev+test.tgz"
MD5_DEV_TEST = "7d7897317ddd8ba0ae5c5fa7248d3ff5"

START, END, UNK = "<s>", "<e>", "<unk>"
UNK_IDX = 2

LONGEST = 80
"""Pairs with a longer sentence are left out; the marks around the first one count."""

Reader = Callable[[], Iterator[Pair]]


def train(dict_size: int) -> Reader:
    """A reader of the pairs to train with (`paddle.dataset.wmt14.train`).

    It yields `(French with <s> and <e>, English with <s> before, English with <e> after)`: lists of numbers.

    Args:
        dict_size: how many words have numbers of their own, the marks among them; others are 2.

    Raises:
        DownloadError: the data is neither in `$FLUIDLITE_DATA/wmt14` nor in the cache nor can be downloaded.
        FormatError: when read, if the file is damaged or has another format.
    """
    return reader_creator(_download(), "train/train", dict_size)


def test(dict_size: int) -> Reader:
    """A reader of the pairs to test with, like `train` (`paddle.dataset.wmt14.test`)."""
    return reader_creator(_download(), "test/test", dict_size)


def gen(dict_size: int) -> Reader:
    """A reader of the pairs to translate, like `train` (`paddle.dataset.wmt14.gen`)."""
    return reader_creator(_download(), "gen/gen", dict_size)


def reader_creator(tar_file: str, file_name: str, dict_size: int) -> Reader:
    """A reader of one member of a tar file with the data set, like `train`
    (`paddle.dataset.wmt14.reader_creator`)."""
    return partial(_pairs, tar_file, file_name, dict_size)


def get_dict(dict_size: int, reverse: bool = True) -> tuple[dict[int, str], dict[int, str]]:
    """French and English words by number (`paddle.dataset.wmt14.get_dict`); numbers by word unless `reverse`."""
    source, target = _dictionaries(_download(), dict_size)
    if reverse:
        return {i: word for word, i in source.items()}, {i: word for word, i in target.items()}
    return source, target  # type: ignore[return-value]


def fetch() -> None:
    """Download the data now (`paddle.dataset.wmt14.fetch`)."""
    _download()
    common.download(URL_MODEL, "wmt14", MD5_MODEL)


def _download() -> str:
    return common.download(URL_TRAIN, "wmt14", MD5_TRAIN)


def _pairs(tar_file: str, file_name: str, dict_size: int) -> Iterator[Pair]:
    dictionaries = _dictionaries(tar_file, dict_size)
    for texts in two_columns(tar_member(tar_file, file_name)):
        source, target = (
            [words.get(word, UNK_IDX) for word in text.split()]
            for words, text in zip(dictionaries, texts, strict=True)
        )
        if len(source) + 2 <= LONGEST and len(target) <= LONGEST:
            yield marked(source, target, begin=dictionaries[1][START], end=dictionaries[1][END])


def _dictionaries(tar_file: str, dict_size: int) -> list[dict[str, int]]:
    """Numbers of the first `dict_size` words of either language."""
    texts = [tar_member(tar_file, name).decode("utf8", "replace") for name in ("src.dict", "trg.dict")]
    lines = (text.removesuffix("\n").split("\n")[:dict_size] for text in texts)
    return [{line.strip(): i for i, line in enumerate(words)} for words in lines]
