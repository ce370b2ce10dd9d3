"""Operators that multiply matrices, and fully connected layers, on the GPU."""

import numpy as np
import pytest

from fluidlite import backend
from fluidlite.backend.cupy_.launchers import products as fully_connected

from .agreement import agree, gpu, launched, on_gpu, rand, refused, same

GRADS = ("X@GRAD", "Y@GRAD")


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    ("x", "y", "columns"),
    [
        ((4, 5), (5, 3), (1, 1)), ((2, 3, 4), (4, 5), (2, 1)), ((2, 3, 4), (2, 6, 5), (1, 2)),
        ((3, 2, 2), (4, 1, 5), (1, 1)), ((1, 1), (1, 1), (1, 1)), ((0, 4), (4, 2), (1, 1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mul(x, y, columns, dtype):
    attrs = {"x_num_col_dims": columns[0], "y_num_col_dims": columns[1]}
    a, b = rand(*x, dtype=dtype), rand(*y, dtype=dtype, seed=1)
    (out,) = agree("mul", {"X": a, "Y": b}, times=4, **attrs)
    dout = rand(*out.shape, dtype=dtype, seed=2)
    agree("mul_grad", {"X": a, "Y": b, "Out@GRAD": dout}, times=4, **attrs)


SHAPES = [
    ((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 3, 3, 4), (2, 3, 4, 5)), ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4,)),
]  # fmt: skip


FLIPS = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    ("x", "y", "transposed"),
    [
        (x, y, flip)
        for x, y in SHAPES
        for flip in FLIPS
        if not (flip[0] and len(x) == 1) and not (flip[1] and len(y) == 1)
    ],
)
def test_matmul(x, y, transposed):
    x, y = ((*s[:-2], s[-1], s[-2]) if flip else s for s, flip in zip((x, y), transposed, strict=True))
    attrs = {"transpose_X": transposed[0], "transpose_Y": transposed[1], "alpha": 0.5}
    a, b = rand(*x), rand(*y, seed=1)
    (out,) = agree("matmul", {"X": a, "Y": b}, times=4, **attrs)
    dout = rand(*out.shape, seed=2)
    given = {"X": a, "Y": b, "Out@GRAD": dout}
    agree("matmul_grad", given, times=4, **attrs)
    for slot in GRADS:
        agree("matmul_grad", given, wanted=[slot], times=4, **attrs)


@pytest.mark.usefixtures("cuda")
def test_vectors_transposed():
    x, y = rand(4), rand(5, seed=1)
    outer = {"transpose_X": True, "transpose_Y": True, "alpha": 1.0}
    (out,) = agree("matmul", {"X": x, "Y": y}, **outer)
    assert out.shape == (4, 5)
    agree("matmul_grad", {"X": x, "Y": y, "Out@GRAD": rand(4, 5)}, times=4, **outer)


@pytest.mark.usefixtures("cuda")
def test_integers_are_left_to_the_reference_kernel():
    x = np.arange(6).reshape(2, 3)
    assert refused("mul", {"X": x, "Y": x.T.copy()})
    assert refused("matmul", {"X": x, "Y": x.T.copy()})


def test_an_unwanted_gradient_costs_nothing(simulation):
    inputs = on_gpu({"X": rand(4, 5), "Y": rand(5, 3), "Out@GRAD": rand(4, 3)})
    for op_type in ("mul_grad", "matmul_grad"):
        for slot, made in zip(GRADS, ((0, None), (None, 0)), strict=True):
            launched(op_type, inputs, wanted=[slot])
            simulation.cublas.calls.clear()
            simulation.counters.reset()
            found = launched(op_type, inputs, wanted=[slot])
            assert [each is None for each in found] == [each is None for each in made]
            assert len(simulation.cublas.calls) == 1
            assert simulation.counters.syncs == 0


ACTIVATIONS = {
    None: (lambda z: z, lambda z, g: g),
    "relu": (lambda z: np.maximum(z, 0), lambda z, g: g * (z > 0)),
    "sigmoid": (lambda z: 1 / (1 + np.exp(-z)), lambda z, g: g * np.exp(-z) / (1 + np.exp(-z)) ** 2),
    "tanh": (np.tanh, lambda z, g: g / np.cosh(z) ** 2),
}
SMALL, LARGE = (
    [(4, 8, 8), (1, 1, 1), (17, 33, 31), (128, 10, 100)],
    [(300, 40, 5), (3, 130, 20), (2000, 3, 4)],
)


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sizes", SMALL + LARGE, ids=str)
def test_layer_and_its_gradients(activation, sizes):
    m, n, k = sizes
    forward, back = ACTIVATIONS[activation]
    for dtype in ("float32", "float64"):
        x, w, bias, dout = (
            rand(*shape, dtype=dtype, seed=seed, low=-0.4, high=0.4)
            for seed, shape in enumerate([(m, k), (k, n), (n,), (m, n)])
        )
        z = (x.astype("float64") @ w + bias).astype("float64")
        out = forward(z).astype(dtype)
        before = back(z, dout)
        device = gpu()
        here = [device.put(array) for array in (x, w, bias, out, dout)]
        with device.active():
            made = fully_connected.layer(device, *here[:3], activation)
            dx, dw, dbias = fully_connected.layer_grad(
                device, here[0], here[1], here[3] if activation else None, here[4], activation, True
            )
            none, dw_alone, _ = fully_connected.layer_grad(
                device, here[0], here[1], here[3] if activation else None, here[4], activation, False
            )
        assert none is None
        same(backend.to_host(made), out, "layer", 8)
        same(backend.to_host(dx), (before @ w.T).astype(dtype), "dx", 30)
        for each in (dw, dw_alone):
            same(backend.to_host(each), (x.T @ before).astype(dtype), "dw", 30)
        same(backend.to_host(dbias), before.sum(axis=0).astype(dtype), "dbias", 30)


@pytest.mark.usefixtures("cuda")
def test_layers_without_rows():
    device = gpu()
    with device.active():
        xp = device.xp
        x, w, bias = xp.zeros((0, 3), "f"), xp.ones((3, 2), "f"), xp.ones(2, "f")
        assert fully_connected.layer(device, x, w, bias, "relu").shape == (0, 2)
        dout = xp.zeros((0, 2), "f")
        dx, dw, dbias = fully_connected.layer_grad(device, x, w, None, dout, None, True)
        assert dx.shape == (0, 3)
        assert backend.to_host(dw).tolist() == [[0, 0]] * 3
        assert backend.to_host(dbias).tolist() == [0, 0]


@pytest.mark.usefixtures("cuda")
def test_nan_stays_nan():
    device = gpu()
    x = np.array([[np.nan, 1.0], [np.inf, -1.0]], "float32")
    with device.active():
        here = [device.put(array) for array in (x, np.eye(2, dtype="float32"), np.zeros(2, "float32"))]
        out = backend.to_host(fully_connected.layer(device, *here, "relu"))
    assert np.isnan(out[0]).all()
    assert np.isinf(out[1, 0])


@pytest.mark.parametrize(("sizes", "kernels", "products"), [((4, 8, 8), 2, 0), ((300, 8, 8), 2, 3)])
def test_kernels_of_a_layer(simulation, sizes, kernels, products):
    m, n, k = sizes
    device = gpu()
    x, w, bias, dout = (device.put(rand(*shape)) for shape in [(m, k), (k, n), (n,), (m, n)])
    with device.active():
        out = fully_connected.layer(device, x, w, bias, "tanh")
        fully_connected.layer_grad(device, x, w, out, dout, "tanh", True)
        simulation.counters.reset()
        simulation.cublas.calls.clear()
        out = fully_connected.layer(device, x, w, bias, "tanh")
        fully_connected.layer_grad(device, x, w, out, dout, "tanh", True)
    counters = simulation.counters
    assert len(simulation.cublas.calls) == products
    assert counters.launches <= kernels + (1 if m > 256 else 0)
    assert counters.syncs == 0
