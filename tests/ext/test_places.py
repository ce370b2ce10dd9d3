"""Places in an arena: storages that live together are apart, little is wasted, and only the inputs matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidlite._ext.engine import Places

ALIGN = 64
FITTED = 1024
live_ranges = st.tuples(st.integers(-20, 20), st.integers(0, 20)).map(
    lambda life: (life[0], life[0] + life[1])
)
storages = st.lists(st.tuples(live_ranges, st.integers(0, 5000)), max_size=40)
each_fitted = st.sampled_from([0, 1, 5, FITTED])


def declared(live_ranges, fitted=FITTED):
    places = Places(fitted)
    for first, last in live_ranges:
        places.add(first, last)
    return places


def rounded(sizes):
    return np.maximum(-(-np.asarray(sizes, np.int64) // ALIGN) * ALIGN, ALIGN)


def busiest(live_ranges, sizes):
    """The most bytes that live at the same time."""
    live_ranges = np.asarray(live_ranges)
    steps = np.unique(live_ranges, return_inverse=True)[1].reshape(live_ranges.shape)
    changes = np.zeros(steps.max() + 2, np.int64)
    np.add.at(changes, steps[:, 0], rounded(sizes))
    np.add.at(changes, steps[:, 1] + 1, -rounded(sizes))
    return int(changes.cumsum().max())


def check(live_ranges, sizes, total, offsets):
    """No two that live together overlap."""
    (first, last), begin = np.asarray(live_ranges).T, np.asarray(offsets)
    end = begin + rounded(sizes)
    assert not (begin % ALIGN).any() and begin.min() >= 0 and end.max() <= total
    for k in range(len(sizes)):
        together = (first <= last[k]) & (last >= first[k]) & (begin < end[k]) & (end > begin[k])
        assert together.nonzero()[0].tolist() == [k]


@given(storages, each_fitted)
def test_living_storages_do_not_overlap(items, fitted):
    places = declared([life for life, _ in items], fitted)
    sizes = [size for _, size in items]
    assert len(places) == len(items)
    total, offsets = places.place(sizes)
    if not items:
        assert (total, offsets) == (0, [])
        return
    check([life for life, _ in items], sizes, total, offsets)
    assert busiest([life for life, _ in items], sizes) <= total <= rounded(sizes).sum()


@given(storages, st.lists(st.integers(0, 100), min_size=40, max_size=40), each_fitted)
def test_places_do_not_depend_on_the_sizes_before(items, others, fitted):
    live_ranges, sizes = [life for life, _ in items], [size for _, size in items]
    places = declared(live_ranges, fitted)
    places.place(others[: len(items)])
    assert places.place(sizes) == declared(live_ranges, fitted).place(sizes)


@given(storages, live_ranges)
def test_a_storage_can_be_added_later(items, late):
    live_ranges, sizes = [life for life, _ in items], [size for _, size in items]
    places = declared(live_ranges)
    places.place(sizes)
    places.add(*late)
    assert places.place([*sizes, 100]) == declared([*live_ranges, late]).place([*sizes, 100])


def of_training(count, seed):
    """Lives and sizes like those of `count` layers forward and backward."""
    draw = np.random.default_rng(seed)
    live_ranges, sizes = [], []
    for k in range(count):
        back = 4 * count - 2 * k
        live_ranges += [(2 * k, back), (2 * k, 2 * k + 1), (back, back + 2), (back, 4 * count + k)]
        sizes += draw.lognormal(9, 2, 4).astype(int).tolist()
    return live_ranges, sizes


def at_random(count, length, seed):
    draw = np.random.default_rng(seed)
    first = draw.integers(0, count, count)
    last = first + draw.exponential(length, count).astype(int)
    return list(zip(first.tolist(), last.tolist(), strict=True)), draw.lognormal(9, 2, count).astype(
        int
    ).tolist()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [10, 100, 1000])
def test_little_is_wasted_in_training(count, seed):
    live_ranges, sizes = of_training(count, seed)
    total, offsets = declared(live_ranges).place(sizes)
    check(live_ranges, sizes, total, offsets)
    assert total <= 1.1 * busiest(live_ranges, sizes)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("count", "length"), [(50, 5), (500, 50), (3000, 5), (3000, 500)])
def test_little_is_wasted_at_random(count, length, seed):
    live_ranges, sizes = at_random(count, length, seed)
    total, offsets = declared(live_ranges).place(sizes)
    check(live_ranges, sizes, total, offsets)
    assert total <= 1.1 * busiest(live_ranges, sizes)


def test_many_of_the_same_size_share_memory():
    live_ranges = [(k, k + 1) for k in range(5 * FITTED)]
    total, offsets = declared(live_ranges).place([1000] * len(live_ranges))
    assert total == 2048 and sorted(set(offsets)) == [0, 1024]


def test_many_small_storages_follow_the_large_ones_and_share_memory():
    live_ranges = [(k, k + 1) for k in range(4000)] + [(0, 5000)] * FITTED
    total, offsets = declared(live_ranges).place([64] * 4000 + [4096] * FITTED)
    assert total == 4096 * FITTED + 128
    assert min(offsets[:4000]) == 4096 * FITTED


@pytest.mark.parametrize("fitted", [0, FITTED])
def test_too_much_is_refused_and_does_no_harm(fitted):
    places = declared([(0, 0), (0, 0)], fitted)
    most = 1 << 60
    for sizes in ([most, 1], [1, most + 1], [(1 << 63) - 1, (1 << 63) - 1], [1, 1 << 70]):
        with pytest.raises(MemoryError, match="no machine"):
            places.place(sizes)
    assert places.place([most - 64, 1])[0] == most
    assert sorted(places.place([1, 65])[1]) in ([0, 64], [0, 128])


def test_live_ranges_at_the_limits_of_integers():
    least, most = -(1 << 63), (1 << 63) - 1
    places = declared([(least, most), (least, least), (most, most)])
    total, offsets = places.place([64, 64, 64])
    assert (total, offsets) == (128, [0, 64, 64])


def test_what_cannot_be_is_refused():
    places = Places()
    with pytest.raises(ValueError, match="before it begins"):
        places.add(3, 2)
    places.add(2, 2)
    with pytest.raises(ValueError, match="1 storages want as many sizes, got 2"):
        places.place([1, 2])
