"""`paddle.dataset.movielens`: a million ratings of films, with attributes of the films and the users."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from . import common, reading
from .reading import zip_member

__all__ = [
    "MovieInfo",
    "UserInfo",
    "age_table",
    "fetch",
    "get_movie_title_dict",
    "max_job_id",
    "max_movie_id",
    "max_user_id",
    "movie_categories",
    "movie_info",
    "test",
    "train",
    "unittest",
    "user_info",
]

URL = "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip"
MD5 = "c4d9eecfca2ab87c1945afe126590906"

age_table = [1, 18, 25, 35, 45, 50, 56]
"""The ages, in years, at which the groups begin that `UserInfo.age` numbers."""

MOVIE_INFO: dict[int, MovieInfo] | None = None
"""Films by number, once they were read; so are the others."""
USER_INFO: dict[int, UserInfo] | None = None
MOVIE_TITLE_DICT: dict[str, int] | None = None
CATEGORIES_DICT: dict[str, int] | None = None

_TITLE = re.compile(r"^(.*)\(\d+\)$")

Reader = Callable[[], Iterator[list[Any]]]


class MovieInfo:
    """A film (`paddle.dataset.movielens.MovieInfo`): number, categories (texts) and title, without the year."""

    def __init__(self, index: Any, categories: list[str], title: str) -> None:
        self.index = int(index)
        self.categories = categories
        self.title = title

    def value(self) -> list[Any]:
        """Number of the film, numbers of its categories, numbers of the words of its title."""
        categories, words = movie_categories(), get_movie_title_dict()
        return [
            self.index,
            [categories[each] for each in self.categories],
            [words[each.lower()] for each in self.title.split()],
        ]

    def __repr__(self) -> str:
        return f"<MovieInfo id({self.index}), title({self.title}), categories({self.categories})>"


class UserInfo:
    """Who rates (`paddle.dataset.movielens.UserInfo`): number, sex, age as a place in `age_table`, number of the
    job."""

    def __init__(self, index: Any, gender: str, age: Any, job_id: Any) -> None:
        self.index = int(index)
        self.is_male = gender == "M"
        self.age = age_table.index(int(age))
        self.job_id = int(job_id)

    def value(self) -> list[int]:
        """Number, 0 for men and 1 for women, number of the age group, number of the job."""
        return [self.index, 0 if self.is_male else 1, self.age, self.job_id]

    def __repr__(self) -> str:
        sex = "M" if self.is_male else "F"
        return f"<UserInfo id({self.index}), gender({sex}), age({age_table[self.age]}), job({self.job_id})>"


def train(rand_seed: int = 0, test_ratio: float = 0.1) -> Reader:
    """A reader of nine tenths of the ratings (`paddle.dataset.movielens.train`).

    It yields lists `[user, sex, age group, job, film, [categories], [words of the title], [rating]]`: integers, and
    the rating from -3 to 5.

    Args:
        rand_seed: of the numbers that tell which ratings are left to test with.
        test_ratio: what part these are.

    Raises:
        DownloadError: the data is neither in `$FLUIDLITE_DATA/movielens` nor in the cache nor can be downloaded.
        FormatError: the file is damaged or has another format.
    """
    return partial(_ratings, False, rand_seed, test_ratio)


def test(rand_seed: int = 0, test_ratio: float = 0.1) -> Reader:
    """A reader of the ratings to test with, like `train` (`paddle.dataset.movielens.test`)."""
    return partial(_ratings, True, rand_seed, test_ratio)


def get_movie_title_dict() -> dict[str, int]:
    """Numbers of the words, in lower case, that titles are made of
    (`paddle.dataset.movielens.get_movie_title_dict`)."""
    _load()
    assert MOVIE_TITLE_DICT is not None
    return MOVIE_TITLE_DICT


def movie_categories() -> dict[str, int]:
    """Numbers of the categories of films (`paddle.dataset.movielens.movie_categories`)."""
    _load()
    assert CATEGORIES_DICT is not None
    return CATEGORIES_DICT


def movie_info() -> dict[int, MovieInfo]:
    """All films by number (`paddle.dataset.movielens.movie_info`)."""
    _load()
    assert MOVIE_INFO is not None
    return MOVIE_INFO


def user_info() -> dict[int, UserInfo]:
    """All users by number (`paddle.dataset.movielens.user_info`)."""
    _load()
    assert USER_INFO is not None
    return USER_INFO


def max_movie_id() -> int:
    """The largest number of a film (`paddle.dataset.movielens.max_movie_id`)."""
    return max(movie_info())


def max_user_id() -> int:
    """The largest number of a user (`paddle.dataset.movielens.max_user_id`)."""
    return max(user_info())


def max_job_id() -> int:
    """The largest number of a job (`paddle.dataset.movielens.max_job_id`)."""
    return max(user.job_id for user in user_info().values())


def unittest() -> None:
    """Read all ratings and print how many there are to train and to test with (`paddle.dataset.movielens.unittest`)."""
    train_count, test_count = (sum(1 for _ in reader()) for reader in (train(), test()))
    print(train_count, test_count)


def fetch() -> None:
    """Download the data now (`paddle.dataset.movielens.fetch`)."""
    common.download(URL, "movielens", MD5)


def _load() -> None:
    """Read films and users, once."""
    global MOVIE_INFO, USER_INFO, MOVIE_TITLE_DICT, CATEGORIES_DICT
    if USER_INFO is not None:
        return
    path = common.download(URL, "movielens", MD5)
    movies, words, categories = {}, {}, {}
    for number, title, kinds in _rows(path, "movies.dat", 3):
        found = _TITLE.match(title)
        if found is None:
            raise reading.damaged(path, f"movies.dat has a title without a year: {title}")
        movie = MovieInfo(number, kinds.split("|"), found[1])
        movies[movie.index] = movie
        words.update(dict.fromkeys(movie.title.lower().split()))
        categories.update(dict.fromkeys(movie.categories))
    try:
        users = [UserInfo(*row[:4]) for row in _rows(path, "users.dat", 5)]
    except ValueError as error:
        raise reading.damaged(path, f"users.dat: {error}") from error
    MOVIE_INFO = movies
    MOVIE_TITLE_DICT = {word: number for number, word in enumerate(words)}
    CATEGORIES_DICT = {name: number for number, name in enumerate(categories)}
    USER_INFO = {user.index: user for user in users}


def _ratings(is_test: bool, rand_seed: int, test_ratio: float) -> Iterator[list[Any]]:
    users, movies = user_info(), movie_info()
    path = common.download(URL, "movielens", MD5)
    draw = np.random.RandomState(rand_seed)
    for user, movie, rating, _ in _rows(path, "ratings.dat", 4):
        if (draw.random_sample() < test_ratio) == is_test:
            yield [*users[int(user)].value(), *movies[int(movie)].value(), [float(rating) * 2 - 5.0]]


def _rows(path: str, name: str, columns: int) -> Iterator[list[str]]:
    """The rows of a table; raises FormatError if one has another number of columns."""
    for line in zip_member(path, f"ml-1m/{name}").decode("latin1").splitlines():
        row = line.strip().split("::")
        if len(row) != columns:
            raise reading.damaged(path, f"{name} has a line with {len(row)} columns, expected {columns}")
        yield row
