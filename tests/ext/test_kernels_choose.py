"""Kernels that choose: beam search, whole hypotheses, elements at points."""

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite._ext.engine import KernelFailure

from .native import blank, draw, each_real, each_target


@each_target
@each_real
@pytest.mark.parametrize("places", [True, False])
def test_beam_search_takes_the_best(target, kind, places):
    sources, per, candidates, width = 3, 4, 5, 6
    rows = sources * per
    scores = draw(rows, candidates, kind=kind)
    tokens = np.random.default_rng(1).integers(2, 50, scores.shape)
    before, totals = np.full(rows, 7), draw(rows, kind=kind, seed=2)
    before[5] = 1  # has ended: only its own score counts
    ids, best = blank(sources * width, kind="i64"), blank(sources * width, kind=kind)
    parents, offsets = blank(sources * width, kind="i32"), blank(rows + 1, kind="i64")
    begins = np.arange(0, rows + 1, per)
    given = None if places else tokens
    kernels.call(
        f"beam_search.{kind}",
        [before, totals, given, scores, begins, ids, best, parents, offsets],
        [sources, rows, candidates, width, 1, 1],
        target=target,
    )
    found = {
        (int(row), int(token), float(score)) for row, token, score in zip(parents, ids, best, strict=True)
    }
    wanted = set()
    for source in range(sources):
        all_of_it = []
        for row in range(source * per, source * per + per):
            if before[row] == 1:
                all_of_it.append((row, 1, float(totals[row])))
                continue
            named = range(candidates) if places else tokens[row]
            all_of_it += [(row, int(t), float(s)) for t, s in zip(named, scores[row], strict=True)]
        wanted |= set(sorted(all_of_it, key=lambda one: -one[2])[:width])
    assert found == wanted
    assert (np.diff(parents) >= 0).all()
    np.testing.assert_array_equal(np.diff(offsets), np.bincount(parents, minlength=rows))


@each_target
@pytest.mark.parametrize("kind", ["i32", "i64"])
@pytest.mark.parametrize("shape", [(0, 2, 3), (1, 1, 1), (5, 3, 4), (17, 1, 3)])
def test_gather_tree_follows_the_parents(target, kind, shape):
    random = np.random.default_rng(3)
    ids = random.integers(0, 99, shape).astype(f"int{kind[1:]}")
    parents = random.integers(0, shape[2], shape).astype(ids.dtype)
    out = blank(*shape, kind=kind)
    kernels.call(f"gather_tree.{kind}", [ids, parents, out], list(shape), target=target)
    for row in range(shape[1] if shape[0] else 0):
        for last in range(shape[2]):
            at = last
            for step in reversed(range(shape[0])):
                assert out[step, row, last] == ids[step, row, at]
                at = parents[step, row, at]
    if out.size:
        parents[0, 0, 0] = shape[2]
        with pytest.raises(KernelFailure):
            kernels.call(f"gather_tree.{kind}", [ids, parents, out], list(shape), target=target)


@each_target
@pytest.mark.parametrize("kind", ["i32", "i64"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_gather_nd_takes_elements(target, kind, depth):
    x = draw(4, 3, 5)
    random = np.random.default_rng(4)
    index = np.stack([random.integers(0, n, 17) for n in x.shape[:depth]], -1).astype(f"int{kind[1:]}")
    wanted = x[tuple(index.T)]
    out = blank(*wanted.shape)
    ints = [17, 4 * int(np.prod(x.shape[depth:])), *x.shape[:depth]]
    kernels.call(f"gather_nd.{kind}", [x, index, out], ints, target=target)
    np.testing.assert_array_equal(out, wanted)
    for wrong in (-1, x.shape[depth - 1]):
        index[3, -1] = wrong
        with pytest.raises(KernelFailure):
            kernels.call(f"gather_nd.{kind}", [x, index, out], ints, target=target)


@each_target
@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "i64"])
@pytest.mark.parametrize("item", ["i32", "i64"])
def test_scatter_nd_brings_updates_to_points(kind, item, target):
    sizes, width, points = (3, 4), 5, 9  # more points than places: some come twice
    random = np.random.default_rng(2)
    index = np.stack([random.integers(0, n, points) for n in sizes], 1).astype(f"int{item[1:]}")
    base, updates = draw(*sizes, width, kind=kind), draw(points, width, kind=kind, seed=1)
    places = tuple(index.T)
    overwritten, added, replaced = base.copy(), base.copy(), base.copy()
    for k in range(points):
        overwritten[tuple(index[k])] = updates[k]
    np.add.at(added, places, updates)
    replaced[places] = 0
    np.add.at(replaced, places, updates)
    for mode, want in enumerate((overwritten, added, replaced)):
        ints, out = [points, width, index.itemsize, mode, *sizes], blank(*sizes, width, kind=kind)
        kernels.call(f"scatter_nd.{kind}", [base, index, updates, out], ints, target=target)
        np.testing.assert_allclose(out, want, rtol=1e-6)
        changed = base.copy()
        kernels.call(f"scatter_nd.{kind}", [changed, index, updates, changed], ints, target=target)
        np.testing.assert_array_equal(changed, out)
    kernels.call(f"scatter_nd.{kind}", [None, index, updates, out], ints, target=target)
    np.testing.assert_allclose(
        out, np.where(np.isin(np.arange(12), index @ [4, 1]).reshape(3, 4, 1), want, 0), 1e-6
    )


def test_scatter_nd_changes_nothing_when_an_index_is_wrong():
    base, index, updates = np.ones((3, 2), "float32"), np.array([[1], [3]]), np.zeros((2, 2), "float32")
    with pytest.raises(KernelFailure):
        kernels.call("scatter_nd.f32", [base, index, updates, base], [2, 2, 8, 0, 3])
    assert (base == 1).all()
