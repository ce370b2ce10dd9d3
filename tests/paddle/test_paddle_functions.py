"""Functions of tensors against NumPy, each computed at once and as a program."""

import numpy as np
import pytest
from scipy import special

import fluidlite.paddle as paddle

R = np.random.RandomState(5)
X, Y = (R.uniform(-1, 1, (3, 4)).astype("float32") for _ in range(2))
P = np.abs(Y) + np.float32(0.1)
ROW, COL = R.uniform(-1, 1, 4).astype("float32"), R.uniform(-1, 1, (3, 1)).astype("float32")
CUBE = R.uniform(-1, 1, (2, 3, 4)).astype("float32")
WHOLE = np.array([[7, 3], [3, 8]], "int64")
ODD = np.array([1, np.nan, np.inf, -np.inf], "float32")
SQUARE = R.uniform(-1, 1, (3, 3)).astype("float32")


def one(value):
    """A scalar as Paddle 2.0 has it: of shape [1]."""
    return np.asarray(value).reshape(1)


ELEMENTWISE = {
    "abs": np.abs, "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "ceil": np.ceil, "cos": np.cos,
    "cosh": np.cosh, "erf": special.erf, "exp": np.exp, "expm1": np.expm1, "floor": np.floor,
    "neg": np.negative, "reciprocal": np.reciprocal, "round": np.round, "sigmoid": special.expit,
    "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "square": np.square, "tan": np.tan, "tanh": np.tanh,
    "trunc": np.trunc,
}  # fmt: skip
POSITIVE = {
    "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ELEMENTWISE | POSITIVE))
def test_elementwise(compute, name):
    x = P if name in POSITIVE else X
    got = compute(getattr(paddle, name), x)[0]
    np.testing.assert_allclose(got, (ELEMENTWISE | POSITIVE)[name](x), rtol=1e-5, atol=1e-6)
    assert got.dtype == np.float32


def extremes(array):
    return array > 0


CASES = {
    # arithmetic
    "add row": (lambda x, y: paddle.add(x, y), (X, ROW), X + ROW),
    "add column to row": (lambda x, y: paddle.add(x, y), (COL, ROW), COL + ROW),
    "subtract": (paddle.subtract, (ROW, COL), ROW - COL),
    "multiply": (paddle.multiply, (X, Y), X * Y),
    "divide": (paddle.divide, (X, P), X / P),
    "floor_divide": (lambda x: paddle.floor_divide(x, paddle.full_like(x, 2)), (WHOLE,), WHOLE // 2),
    "remainder": (lambda x: paddle.mod(x, paddle.full_like(x, 3)), (WHOLE,), WHOLE % 3),
    "pow number": (lambda x: paddle.pow(x, 2.5), (P,), P**2.5),
    "pow tensor": (paddle.pow, (P, X), P**X),
    "maximum": (paddle.maximum, (X, ROW), np.maximum(X, ROW)),
    "minimum number": (lambda x: paddle.minimum(x, 0.25), (X,), np.minimum(X, 0.25)),
    "lerp": (lambda x, y: paddle.lerp(x, y, 0.3), (X, Y), X + 0.3 * (Y - X)),
    "add_n": (lambda x, y: paddle.add_n([x, y, x]), (X, Y), 2 * X + Y),
    "scale": (lambda x: paddle.scale(x, 2.0, 1.0, bias_after_scale=False), (X,), 2 * (X + 1)),
    "stanh": (paddle.stanh, (X,), 1.7159 * np.tanh(0.67 * X)),
    "clip": (lambda x: paddle.clip(x, -0.5, 0.5), (X,), np.clip(X, -0.5, 0.5)),
    "clip above": (lambda x: paddle.clip(x, max=0.1), (X,), np.minimum(X, 0.1)),
    "clip whole": (lambda x: paddle.clip(x, 4), (WHOLE,), np.maximum(WHOLE, 4)),
    "cumsum flat": (paddle.cumsum, (X,), np.cumsum(X)),
    "cumsum": (lambda x: paddle.cumsum(x, 1), (X,), np.cumsum(X, 1)),
    "isnan": (paddle.isnan, (ODD,), np.isnan(ODD)),
    "isinf": (paddle.isinf, (ODD,), np.isinf(ODD)),
    "isfinite": (paddle.isfinite, (ODD,), np.isfinite(ODD)),
    "isfinite whole": (paddle.isfinite, (WHOLE,), np.isfinite(WHOLE)),
    "increment": (lambda x: paddle.increment(x, 2.0), (one(np.float32(1)),), one(3.0)),
    # of many one
    "sum": (paddle.sum, (X,), one(X.sum())),
    "sum axis": (lambda x: paddle.sum(x, 0), (X,), X.sum(0)),
    "sum axes": (lambda x: paddle.sum(x, [0, -1], keepdim=True), (CUBE,), CUBE.sum((0, 2), keepdims=True)),
    "sum bool": (lambda x: paddle.sum(x > 0), (X,), one((X > 0).sum())),
    "sum as": (lambda x: paddle.sum(x, dtype="float64"), (X,), one(X.astype("float64").sum())),
    "mean": (paddle.mean, (X,), one(X.mean())),
    "mean keepdim": (lambda x: paddle.mean(x, keepdim=True), (X,), X.mean(keepdims=True)),
    "mean axis": (lambda x: paddle.mean(x, axis=-1, keepdim=True), (X,), X.mean(-1, keepdims=True)),
    "max": (lambda x: paddle.max(x, 0), (X,), X.max(0)),
    "min": (paddle.min, (X,), one(X.min())),
    "prod": (lambda x: paddle.prod(x, 1), (X,), X.prod(1)),
    "all": (lambda x: paddle.all(x > 0, 0), (X,), (X > 0).all(0)),
    "any": (lambda x: paddle.any(x > 0.9), (X,), one((X > 0.9).any())),
    "count_nonzero": (lambda x: paddle.count_nonzero(x, 1), (np.round(X),), np.count_nonzero(np.round(X), 1)),
    "logsumexp large": (lambda x: paddle.logsumexp(x * 1000, 1), (X,), special.logsumexp(X * 1000, 1)),
    "logsumexp": (paddle.logsumexp, (X,), one(special.logsumexp(X))),
    "std": (paddle.std, (X,), one(X.std(ddof=1))),
    "var": (lambda x: paddle.var(x, 0, unbiased=False), (X,), X.var(0)),
    "median even": (paddle.median, (X,), one(np.median(X))),
    "median odd": (lambda x: paddle.median(x, 0, keepdim=True), (X,), np.median(X, 0, keepdims=True)),
    "numel": (paddle.numel, (X,), one(12)),
    # what is true
    "equal": (paddle.equal, (WHOLE, WHOLE.T), WHOLE == WHOLE.T),
    "not_equal number": (lambda x: paddle.not_equal(x, 3), (WHOLE,), WHOLE != 3),
    "less_than": (paddle.less_than, (X, Y), X < Y),
    "less_equal": (paddle.less_equal, (X, X), X <= X),
    "greater_than": (paddle.greater_than, (X, ROW), X > ROW),
    "greater_equal": (paddle.greater_equal, (X, Y), X >= Y),
    "logical_and": (lambda x, y: paddle.logical_and(x > 0, y > 0), (X, Y), (X > 0) & (Y > 0)),
    "logical_or": (lambda x, y: paddle.logical_or(x > 0, y > 0), (X, Y), (X > 0) | (Y > 0)),
    "logical_xor": (lambda x, y: paddle.logical_xor(x > 0, y > 0), (X, Y), (X > 0) ^ (Y > 0)),
    "logical_not whole": (paddle.logical_not, (np.array([0, 2]),), np.array([True, False])),
    "equal_all": (paddle.equal_all, (X, X), one(True)),
    "equal_all shapes": (paddle.equal_all, (X, ROW), one(False)),
    "isclose": (lambda x: paddle.isclose(x, x + 1e-7), (X,), np.full((3, 4), True)),
    "isclose nan": (lambda x: paddle.isclose(x, x, equal_nan=True), (ODD,), np.full(4, True)),
    "allclose": (paddle.allclose, (X, Y), one(False)),
    "is_empty": (paddle.is_empty, (X,), one(False)),
    # other shapes
    "reshape": (lambda x: paddle.reshape(x, [0, 2, -1]), (X,), X.reshape(3, 2, 2)),
    "flatten": (lambda x: paddle.flatten(x, 1), (CUBE,), CUBE.reshape(2, 12)),
    "flatten first": (lambda x: paddle.flatten(x, 0, 1), (CUBE,), CUBE.reshape(6, 4)),
    "transpose": (lambda x: paddle.transpose(x, [2, 0, -2]), (CUBE,), CUBE.transpose(2, 0, 1)),
    "moveaxis": (lambda x: paddle.moveaxis(x, 0, -1), (CUBE,), np.moveaxis(CUBE, 0, -1)),
    "t": (paddle.t, (X,), X.T),
    "squeeze": (paddle.squeeze, (COL,), COL.squeeze()),
    "squeeze nothing": (lambda x: paddle.squeeze(x, 0), (X,), X),
    "unsqueeze": (lambda x: paddle.unsqueeze(x, [0, -1]), (X,), X[None, ..., None]),
    "concat": (lambda x, y: paddle.concat([x, y], axis=-1), (X, Y), np.concatenate([X, Y], -1)),
    "stack": (lambda x, y: paddle.stack([x, y], axis=1), (X, Y), np.stack([X, Y], 1)),
    "expand": (lambda x: paddle.expand(x, [2, -1, 4]), (COL,), np.broadcast_to(COL, (2, 3, 4))),
    "expand_as": (paddle.expand_as, (ROW, X), np.broadcast_to(ROW, (3, 4))),
    "tile": (lambda x: paddle.tile(x, [2, 1, 3]), (X,), np.tile(X, (2, 1, 3))),
    "tile fewer": (lambda x: paddle.tile(x, [2]), (X,), np.tile(X, 2)),
    "repeat_interleave": (lambda x: paddle.repeat_interleave(x, 2, 1), (X,), X.repeat(2, 1)),
    "flip": (lambda x: paddle.flip(x, [0, 1]), (X,), X[::-1, ::-1]),
    "roll flat": (lambda x: paddle.roll(x, 5), (X,), np.roll(X, 5)),
    "roll": (lambda x: paddle.roll(x, [1, -1], [0, 1]), (X,), np.roll(X, (1, -1), (0, 1))),
    "slice": (lambda x: paddle.slice(x, [0, 1], [1, -2], [3, 4]), (X,), X[1:3, -2:]),
    "strided_slice": (lambda x: paddle.strided_slice(x, [1], [0], [4], [2]), (X,), X[:, ::2]),
    "crop": (lambda x: paddle.crop(x, [2, 2], [1, 1]), (X,), X[1:3, 1:3]),
    "cast": (lambda x: paddle.cast(x * 5, "int32"), (X,), (X * 5).astype("int32")),
    "shape": (paddle.shape, (CUBE,), np.array([2, 3, 4], "int32")),
    # picking
    "gather": (paddle.gather, (X, np.array([2, 0, 2])), X[[2, 0, 2]]),
    "gather axis": (lambda x, i: paddle.gather(x, i, axis=1), (X, np.array([3, 1])), X[:, [3, 1]]),
    "gather_nd": (paddle.gather_nd, (X, np.array([[0, 1], [2, 3]])), X[[0, 2], [1, 3]]),
    "scatter": (paddle.scatter, (X, np.array([2, 1]), Y[:2]), np.stack([X[0], Y[1], Y[0]])),
    "scatter add": (
        lambda x, i, u: paddle.scatter(x, i, u, overwrite=False),
        (X, np.array([1, 1]), Y[:2]),
        np.stack([X[0], Y[0] + Y[1], X[2]]),
    ),
    "scatter_nd": (
        lambda i, u: paddle.scatter_nd(i, u, [3, 4]),
        (np.array([[1], [1]]), Y[:2]),
        np.stack([0 * X[0], Y[0] + Y[1], 0 * X[0]]),
    ),
    "index_select": (lambda x, i: paddle.index_select(x, i, 1), (X, np.array([0, 0])), X[:, [0, 0]]),
    "index_sample": (
        paddle.index_sample,
        (X[:2], np.array([[0, 3], [1, 1]])),
        X[[[0], [1]], [[0, 3], [1, 1]]],
    ),
    "masked_select": (lambda x: paddle.masked_select(x, x > 0), (X,), X[X > 0]),
    "nonzero": (lambda x: paddle.nonzero(x > 0), (X,), np.argwhere(X > 0)),
    "where": (lambda x, y: paddle.where(x > 0, x, y), (X, Y), np.where(X > 0, X, Y)),
    "where row": (lambda x, y: paddle.where(x > 0, x, y), (X, ROW), np.where(X > 0, X, ROW)),
    "where numbers": (lambda x: paddle.where(x > 0, 1.0, -1.0), (X,), np.where(X > 0, 1.0, -1.0)),
    "argmax": (paddle.argmax, (X,), one(X.argmax())),
    "argmin axis": (lambda x: paddle.argmin(x, 1, keepdim=True), (X,), X.argmin(1)[:, None]),
    "argsort": (lambda x: paddle.argsort(x, 0, descending=True), (X,), np.argsort(-X, 0)),
    "sort": (lambda x: paddle.sort(x, 1), (X,), np.sort(X, 1)),
    # linear algebra
    "matmul": (lambda x, y: paddle.matmul(x, y, transpose_y=True), (X, Y), X @ Y.T),
    "matmul broadcasts": (paddle.matmul, (CUBE[:, None], X.T), CUBE[:, None] @ X.T),
    "matmul batches": (
        lambda x, y: paddle.matmul(paddle.reshape(x, [2, 1, 3, 4]), y),
        (CUBE, np.stack([X.T] * 5)),
        CUBE[:, None] @ np.stack([X.T] * 5),
    ),
    "bmm": (lambda x, y: paddle.bmm(x, y), (CUBE, CUBE.transpose(0, 2, 1)), CUBE @ CUBE.transpose(0, 2, 1)),
    "mv": (paddle.mv, (X, ROW), X @ ROW),
    "dot": (paddle.dot, (ROW, ROW), one(ROW @ ROW)),
    "inner": (paddle.inner, (X, Y), np.inner(X, Y)),
    "inner with a vector": (paddle.inner, (CUBE, ROW), np.inner(CUBE, ROW)),
    "inner of batches": (paddle.inner, (CUBE, CUBE), np.inner(CUBE, CUBE)),
    "outer": (paddle.outer, (ROW, COL), np.outer(ROW, COL)),
    "kron": (paddle.kron, (X, SQUARE), np.kron(X, SQUARE)),
    "addmm": (lambda a: paddle.addmm(a, a, a, 0.5, 2.0), (SQUARE,), 0.5 * SQUARE + 2 * SQUARE @ SQUARE),
    "cross": (paddle.cross, (SQUARE, SQUARE + 1), np.cross(SQUARE, SQUARE + 1, axis=0)),
    "norm": (paddle.norm, (X,), one(np.linalg.norm(X))),
    "norm 3": (lambda x: paddle.norm(x, 3, 1, True), (X,), (np.abs(X) ** 3).sum(1, keepdims=True) ** (1 / 3)),
    "norm inf": (lambda x: paddle.norm(x, float("inf"), 0), (X,), np.abs(X).max(0)),
    "norm 0": (lambda x: paddle.norm(x, 0, 1), (np.round(X),), np.count_nonzero(np.round(X), 1)),
    "dist": (lambda x, y: paddle.dist(x, y, 1), (X, Y), one(np.abs(X - Y).sum())),
    "diagonal": (lambda x: paddle.diagonal(x, 1, 1, 2), (CUBE,), CUBE.diagonal(1, 1, 2)),
    "inverse": (
        paddle.inverse,
        (SQUARE + 2 * np.eye(3, dtype="float32"),),
        np.linalg.inv(SQUARE + 2 * np.eye(3)),
    ),
    "cholesky": (
        lambda x: paddle.cholesky(paddle.matmul(x, x, transpose_y=True)),
        (SQUARE,),
        np.linalg.cholesky(SQUARE @ SQUARE.T),
    ),
    "trace": (paddle.trace, (X,), one(np.trace(X))),
    "tril": (lambda x: paddle.tril(x, -1), (CUBE,), np.tril(CUBE, -1)),
    "triu": (paddle.triu, (X,), np.triu(X)),
    "diag of vector": (
        lambda x: paddle.diag(x, -2, 6.0),
        (ROW,),
        np.where(np.eye(6, k=-2), np.diag(ROW, -2), 6),
    ),
    "diag of matrix": (lambda x: paddle.diag(x, 1), (X,), np.diag(X, 1)),
    # from nothing
    "zeros": (lambda: paddle.zeros([2, 3]), (), np.zeros((2, 3), "float32")),
    "ones": (lambda: paddle.ones([2], "int64"), (), np.ones(2, "int64")),
    "full": (lambda: paddle.full([2, 2], 3.5), (), np.full((2, 2), 3.5, "float32")),
    "full_like": (lambda x: paddle.full_like(x, 2, "int32"), (X,), np.full((3, 4), 2, "int32")),
    "arange": (lambda: paddle.arange(5), (), np.arange(5)),
    "arange step": (lambda: paddle.arange(1, 2, 0.3), (), np.arange(1, 2, 0.3, "float32")),
    "linspace": (lambda: paddle.linspace(0, 1, 7), (), np.linspace(0, 1, 7, dtype="float32")),
    "eye": (lambda: paddle.eye(2, 3), (), np.eye(2, 3, dtype="float32")),
    "to_tensor": (lambda: paddle.to_tensor([[1, 2], [3, 4]]), (), np.array([[1, 2], [3, 4]])),
    "assign": (lambda: paddle.assign(np.array([1.5, 2], "float32")), (), np.array([1.5, 2], "float32")),
}


@pytest.mark.parametrize("case", CASES)
def test_case(compute, case):
    function, arrays, expected = CASES[case]
    got = compute(function, *arrays)[0]
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)


def test_parts(compute):
    for got, expected in zip(
        compute(lambda x: paddle.split(x, [1, -1], axis=1), X), (X[:, :1], X[:, 1:]), strict=True
    ):
        np.testing.assert_array_equal(got, expected)
    for got, expected in zip(compute(lambda x: paddle.chunk(x, 3), X), X[:, None], strict=True):
        np.testing.assert_array_equal(got, expected)
    for got, expected in zip(compute(lambda x: paddle.unbind(x, 1), X), X.T, strict=True):
        np.testing.assert_array_equal(got, expected)
    for got, expected in zip(
        compute(paddle.meshgrid, ROW, COL[:, 0]), np.meshgrid(ROW, COL, indexing="ij"), strict=True
    ):
        np.testing.assert_array_equal(got, expected)
    values, numbers = compute(lambda x: paddle.topk(x, 2, axis=0, largest=False), X)
    np.testing.assert_array_equal(values, np.sort(X, 0)[:2])
    np.testing.assert_array_equal(numbers, np.argsort(X, 0)[:2])
    places = compute(lambda x: paddle.nonzero(x > 0, as_tuple=True), X)
    assert [list(part[:, 0]) for part in places] == [list(part) for part in np.nonzero(X > 0)]


def test_logic_into_a_tensor():
    x, out = paddle.to_tensor([True, False]), paddle.to_tensor([False, False])
    assert paddle.logical_not(x, out=out) is out and out.tolist() == [False, True]
    paddle.logical_or(x, x, out)
    assert out.tolist() == [True, False]


def test_what_depends_on_elements_is_eager_only():
    x = paddle.to_tensor([3, 1, 1, 7])
    first, counts = paddle.unique(x, return_counts=True)
    assert (first.tolist(), counts.tolist()) == ([1, 3, 7], [2, 1, 1])
    assert paddle.unique(x).tolist() == [1, 3, 7]
    assert paddle.histogram(paddle.to_tensor([1.0, 2.0, 1.0]), 4, 0, 3).tolist() == [0, 2, 1, 0]
    assert paddle.bincount(x, minlength=9).tolist() == [0, 2, 0, 1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: paddle.expand(x, [2, 3, 5]), ValueError, r"shape \[3, 4\] to \[2, 3, 5\]"),
        (lambda x: paddle.t(paddle.unsqueeze(x, 0)), ValueError, r"got shape \[1, 3, 4\]"),
        (lambda x: paddle.flatten(x, 1, 0), ValueError, "start_axis 1"),
        (lambda x: paddle.cross(x, x, axis=1), ValueError, "axis of size 3"),
        (lambda x: paddle.bmm(x, x), ValueError, "three axes"),
        (lambda x: paddle.where(x > 0, x), ValueError, "both x and y"),
        (lambda x: paddle.multinomial(paddle.abs(x), 9), ValueError, "9 different numbers"),
        (lambda x: paddle.to_tensor("text"), TypeError, "numbers"),
        (lambda x: paddle.abs([1.0]), TypeError, "Variable"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(paddle.to_tensor(X))


def test_to_tensor():
    assert paddle.to_tensor(3.5).shape == [1] and paddle.to_tensor(3.5).dtype == paddle.float32
    assert paddle.to_tensor([1, 2]).dtype == paddle.int64
    assert paddle.to_tensor(np.zeros(2)).dtype == paddle.float64
    assert paddle.to_tensor([True]).dtype == paddle.bool
    tensor = paddle.to_tensor([[1, 2]], dtype="float64", stop_gradient=False)
    assert tensor.dtype == paddle.float64 and not tensor.stop_gradient
    array = np.zeros(2, "float32")
    copy = paddle.to_tensor(array)
    array[:] = 1
    assert copy.tolist() == [0, 0]
    assert paddle.to_tensor([tensor, tensor]).shape == [2, 1, 2]


def test_sizes_that_are_not_known_yet():
    with paddle.static.program_guard(paddle.static.Program()):
        x = paddle.static.data("x", [None, 3, 4])
        assert list(paddle.flatten(x, 1).shape) == [-1, 12]
        assert list(paddle.expand(paddle.unsqueeze(x, 1), [-1, 5, 3, 4]).shape) == [-1, 5, 3, 4]
        assert list(paddle.sum(x, -1, keepdim=True).shape) == [-1, 3, 1]
        assert list(paddle.transpose(x, [1, 0, 2]).shape) == [3, -1, 4]


@pytest.mark.parametrize(
    "function, arrays",
    [
        (lambda x: paddle.logsumexp(x, 1), (X,)),
        (lambda x: paddle.std(x), (X,)),
        (lambda x: paddle.norm(x, 3, 1), (X,)),
        (lambda x: paddle.topk(x, 2)[0], (X,)),
        (lambda x: paddle.median(x, 1), (X,)),
        (lambda x: paddle.gather(x, paddle.to_tensor([0, 2, 2])), (X,)),
        (lambda x: paddle.index_select(x, paddle.to_tensor([0, 2, 2]), 1), (X,)),
        (lambda x, u: paddle.scatter(x, paddle.to_tensor([2, 0]), u), (X, Y[:2])),
        (lambda x, u: paddle.scatter(x, paddle.to_tensor([2, 2]), u, overwrite=False), (X, Y[:2])),
        (lambda x, y: paddle.where(x > 0, x * y, y), (X, Y)),
        (lambda x: paddle.kron(x, x), (SQUARE[:2],)),
        (lambda x, y: paddle.cross(x, y), (SQUARE, SQUARE + 1)),
        (lambda x: paddle.diag(x, 1), (ROW,)),
        (lambda x: paddle.diagonal(x, 0, 1, 2), (CUBE,)),
        (lambda x, y: paddle.matmul(paddle.reshape(x, [2, 1, 3, 4]), y), (CUBE, np.stack([X.T] * 2))),
        (lambda x: paddle.sort(x, 0), (X,)),
        (lambda x: paddle.tile(paddle.roll(x, 1, 1), [2, 1]), (X,)),
    ],
)
def test_gradients(slope, function, arrays):
    slope(function, *arrays)
