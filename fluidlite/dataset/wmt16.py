"""`paddle.dataset.wmt16`: descriptions of pictures in English and German (Multi30K)."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from functools import lru_cache, partial

from . import common
from .reading import Pair, marked, tar_member, two_columns

__all__ = ["fetch", "get_dict", "reader_creator", "test", "train", "validation"]

DATA_URL = "http://paddlemodels.bj.bcebos.com/wmt/wmt16.tar.gz"
DATA_MD5 = "0c38be43600334966403524a40dcd81e"

TOTAL_EN_WORDS, TOTAL_DE_WORDS = 11250, 19220
"""How many words the dictionaries have at most."""

START_MARK, END_MARK, UNK_MARK = "<s>", "<e>", "<unk>"

_LANGUAGES = {"en": (0, TOTAL_EN_WORDS), "de": (1, TOTAL_DE_WORDS)}

Reader = Callable[[], Iterator[Pair]]


def train(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """A reader of 29,000 pairs to train with (`paddle.dataset.wmt16.train`).

    It yields `(source with <s> and <e>, target with <s> before, target with <e> after)`: lists of numbers.

    Args:
        src_dict_size: how many words of the source have numbers of their own, three marks among them: the most frequent
            ones to train with; others are 2.
        trg_dict_size: the same for the target.
        src_lang: 'en' to translate from English to German, 'de' for the other way.

    Raises:
        DownloadError: the data is neither in `$FLUIDLITE_DATA/wmt16` nor in the cache nor can be downloaded.
        FormatError: when read, if the file is damaged or has another format.
        ValueError: for another language.
    """
    return _reader("wmt16/train", src_dict_size, trg_dict_size, src_lang)


def test(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """A reader of 1,000 pairs to test with, like `train` (`paddle.dataset.wmt16.test`)."""
    return _reader("wmt16/test", src_dict_size, trg_dict_size, src_lang)


def validation(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """A reader of 1,014 pairs to validate with, like `train` (`paddle.dataset.wmt16.validation`)."""
    return _reader("wmt16/val", src_dict_size, trg_dict_size, src_lang)


def _reader(name: str, src_dict_size: int, trg_dict_size: int, src_lang: str) -> Reader:
    _check(src_lang)
    return reader_creator(_download(), name, src_dict_size, trg_dict_size, src_lang)


def reader_creator(
    tar_file: str, file_name: str, src_dict_size: int, trg_dict_size: int, src_lang: str
) -> Reader:
    """A reader of one member of a tar file with the data set, like `train`
    (`paddle.dataset.wmt16.reader_creator`)."""
    return partial(_pairs, tar_file, file_name, src_dict_size, trg_dict_size, src_lang)


def get_dict(lang: str, dict_size: int, reverse: bool = False) -> dict[str, int] | dict[int, str]:
    """Numbers of the words of 'en' or 'de' (`paddle.dataset.wmt16.get_dict`); words by number with `reverse`."""
    _check(lang)
    words = _dictionary(_download(), lang, min(dict_size, _LANGUAGES[lang][1]))
    return dict(enumerate(words)) if reverse else {word: i for i, word in enumerate(words)}


def fetch() -> None:
    """Download the data now (`paddle.dataset.wmt16.fetch`)."""
    _download()


def _check(lang: str) -> None:
    if lang not in _LANGUAGES:
        raise ValueError(f"the language must be 'en' (English) or 'de' (German), got {lang!r}")


def _download() -> str:
    return common.download(DATA_URL, "wmt16", DATA_MD5, "wmt16.tar.gz")


@lru_cache(maxsize=4)
def _dictionary(tar_file: str, lang: str, size: int) -> list[str]:
    """The marks and the most frequent words to train with, `size` together."""
    column = _LANGUAGES[lang][0]
    counts = collections.Counter(
        word for texts in two_columns(tar_member(tar_file, "wmt16/train")) for word in texts[column].split()
    )
    marks = [START_MARK, END_MARK, UNK_MARK]
    return [*marks, *(word for word, _ in counts.most_common(max(size - len(marks), 0)))]


def _pairs(
    tar_file: str, file_name: str, src_dict_size: int, trg_dict_size: int, src_lang: str
) -> Iterator[Pair]:
    languages = ("en", "de") if src_lang == "en" else ("de", "en")
    numbers = [
        {word: i for i, word in enumerate(_dictionary(tar_file, lang, min(size, _LANGUAGES[lang][1])))}
        for lang, size in zip(languages, (src_dict_size, trg_dict_size), strict=True)
    ]
    for texts in two_columns(tar_member(tar_file, file_name)):
        source, target = (
            [words.get(word, 2) for word in texts[_LANGUAGES[lang][0]].split()]
            for lang, words in zip(languages, numbers, strict=True)
        )
        yield marked(source, target, begin=0, end=1)
