"""Attention by one kernel, and its gradient: heads that lie by strides, biases that are repeated, masks of dropout."""

import numpy as np
import pytest

from fluidlite._ext import kernels, threads

from .native import blank, draw, each_real, each_target, near

# outer, heads, m, n, k, d: one block and several, ends of vectors and tiles, nothing
SIZES = [
    (2, 3, 5, 7, 4, 6), (1, 1, 1, 1, 1, 1), (1, 2, 130, 33, 8, 16), (1, 1, 300, 40, 9, 5),
    (2, 2, 3, 0, 4, 4), (0, 2, 3, 3, 4, 4), (2, 2, 0, 3, 4, 4), (1, 2, 4, 3, 0, 2),
]  # fmt: skip
LARGE = (1, 2, 200, 1500, 64, 64)
ALPHA, FACTOR = 0.4, 1.25
BIASES = ["", "bhmn", "b11n", "1h1n", "11mn", "bhm1", "1111"]


def laid(array, between):
    """An array [outer, heads, rows, columns] with heads between its rows, or not; its strides, in elements."""
    stored = np.ascontiguousarray(array.transpose(0, 2, 1, 3)) if between else np.ascontiguousarray(array)
    outer, heads, rows, columns = array.shape
    return stored, (
        [rows * heads * columns, columns, heads * columns]
        if between
        else [heads * rows * columns, rows * columns, columns]
    )


def biased(form, sizes, kind):
    """A bias of the dimensions that `form` has, and its strides."""
    if not form:
        return None, [0, 0, 0, 0]
    shape = [1 if letter == "1" else n for letter, n in zip(form, sizes[:4], strict=True)]
    steps = [int(np.prod(shape[at + 1 :])) if n != 1 else 0 for at, n in enumerate(shape)]
    return draw(*shape, kind=kind, seed=4, low=-3), steps


def expected(q, k, v, bias, mask, back):
    """Result and gradients in double."""
    q, k, v, back = (each.astype(np.float64) for each in (q, k, v, back))
    scores = ALPHA * q @ k.swapaxes(2, 3) + (0 if bias is None else bias.astype(np.float64))
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    p = powers / powers.sum(-1, keepdims=True)
    kept = FACTOR * (1 if mask is None else mask)
    dp = back @ v.swapaxes(2, 3) * kept
    ds = ALPHA * p * (dp - (dp * p).sum(-1, keepdims=True))
    return p * kept @ v, ds @ k, ds.swapaxes(2, 3) @ q, (p * kept).swapaxes(2, 3) @ back


class Case:
    """Operands of one call, by the sizes, kinds of layout and form of the bias."""

    def __init__(self, sizes, kind, between=False, transposed=False, form="", dropped=False):
        outer, heads, m, n, k, d = sizes
        self.sizes, self.kind, self.between, self.transposed = sizes, kind, between, transposed
        self.q, self.k = draw(outer, heads, m, k, kind=kind), draw(outer, heads, n, k, kind=kind, seed=1)
        self.v, self.back = (
            draw(outer, heads, n, d, kind=kind, seed=2),
            draw(outer, heads, m, d, kind=kind, seed=3),
        )
        self.bias, self.bias_strides = biased(form, sizes, kind)
        self.mask = (draw(outer, heads, m, n, seed=5) > -1).astype(np.uint8) if dropped else None
        self.want = expected(self.q, self.k, self.v, self.bias, self.mask, self.back)

    def keys(self, array):
        return laid(array.swapaxes(2, 3), False) if self.transposed else laid(array, self.between)

    def forward(self, target):
        outs, strides = laid(blank(*self.back.shape, kind=self.kind), self.between)
        laid_out = [laid(self.q, self.between), self.keys(self.k), laid(self.v, self.between)]
        ints = [*self.sizes, int(self.transposed), *sum((each[1] for each in laid_out), []), *strides]
        operands = [*(each[0] for each in laid_out), self.bias, self.mask, outs]
        kernels.call(
            f"attention.{self.kind}", operands, [*ints, *self.bias_strides], [ALPHA, FACTOR], target=target
        )
        return outs.transpose(0, 2, 1, 3) if self.between else outs

    def gradients(self, target, left_out=()):
        given = [laid(self.q, self.between), self.keys(self.k), laid(self.v, self.between)]
        given.append(laid(self.back, self.between))
        made = [laid(np.full_like(self.q, 77), self.between), self.keys(np.full_like(self.k, 77))]
        made.append(laid(np.full_like(self.v, 77), self.between))
        ints = [*self.sizes, int(self.transposed), *sum((each[1] for each in (*given, *made)), [])]
        outs = [None if at in left_out else each[0] for at, each in enumerate(made)]
        operands = [*(each[0] for each in given[:3]), self.bias, self.mask, given[3][0], *outs]
        kernels.call(
            f"attention_grad.{self.kind}",
            operands,
            [*ints, *self.bias_strides],
            [ALPHA, FACTOR],
            target=target,
        )
        axes = [(0, 2, 1, 3) if self.between else (0, 1, 2, 3)] * 3
        axes[1] = (0, 1, 3, 2) if self.transposed else axes[1]
        return [None if out is None else out.transpose(axis) for out, axis in zip(outs, axes, strict=True)]

    def check(self, target):
        near(self.forward(target), self.want[0], self.kind, 20)
        for got, want in zip(self.gradients(target), self.want[1:], strict=True):
            near(got, want, self.kind, 60)


@each_target
@each_real
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("between, transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_results_and_gradients(sizes, between, transposed, kind, target):
    Case(sizes, kind, between, transposed).check(target)


@each_target
@pytest.mark.parametrize("form", BIASES)
@pytest.mark.parametrize("dropped", [False, True])
def test_biases_and_masks(form, dropped, target):
    Case((2, 3, 150, 37, 4, 6), "f64", True, False, form, dropped).check(target)
    Case((2, 3, 5, 7, 4, 6), "f32", False, False, form, dropped).check(target)


@each_target
def test_large_ones(target):
    case = Case(LARGE, "f32", True, False, "11mn", True)
    near(case.forward(target), case.want[0], "f32", 50)
    for got, want in zip(case.gradients(target), case.want[1:], strict=True):
        near(got, want, "f32", 200)


@each_target
@pytest.mark.parametrize("left_out", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_unwanted_gradients(left_out, target):
    case = Case(SIZES[0], "f64")
    for at, got in enumerate(case.gradients(target, left_out)):
        assert (got is None) == (at in left_out)
        if got is not None:
            near(got, case.want[1 + at], "f64", 60)


@each_target
def test_threads_change_nothing(target):
    case = Case((2, 4, 300, 200, 16, 16), "f32", True)
    before = threads.count()
    try:
        results = []
        for count in (1, 2, 3):
            threads.use(count)
            results.append([case.forward(target), *case.gradients(target)])
    finally:
        threads.use(before)
    for others in results[1:]:
        for one, other in zip(results[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


@each_target
def test_scores_that_are_no_numbers(target):
    case = Case((1, 1, 3, 5, 2, 2), "f32", form="11mn")
    case.bias[0, 0, 0, 2] = np.nan
    case.bias[0, 0, 1, :] = -np.inf
    case.bias[0, 0, 2, 1:] = -np.inf
    got = case.forward(target)[0, 0]
    assert np.isnan(got[:2]).all()
    near(got[2], FACTOR * case.v[0, 0, 0], "f32", 4)


def test_what_operands_must_hold():
    case = Case((2, 2, 3, 3, 4, 4), "f32")
    case.v = case.v[:1]
    with pytest.raises(ValueError, match="operand 2"):
        case.forward(kernels.targets()[0])
