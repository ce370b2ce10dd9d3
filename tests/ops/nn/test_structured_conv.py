"""row_conv, tree_conv and spectral_norm; expected numbers are those of Fluid 1.8.5."""

import numpy as np
import pytest

from fluidlite import dygraph, layers
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

ROWS = np.linspace(-1, 2, 18).reshape(6, 3).astype("float32")
STEPS = np.linspace(-0.5, 0.7, 9).reshape(3, 3).astype("float32")


def test_row_conv_over_sequences():
    out = np.zeros_like(ROWS)
    for start, end in ((0, 2), (2, 2), (2, 6)):
        for t in range(start, end):
            out[t] = sum(STEPS[k] * ROWS[t + k] for k in range(3) if t + k < end)
    lods = {"X": [[[0, 2, 2, 6]]], "Filter": [None]}
    check("row_conv", {"X": ROWS, "Filter": STEPS}, {}, {"Out": out}, grads=["X", "Filter"], lods=lods)


def test_row_conv_over_padded_batches():
    x = ROWS.reshape(2, 3, 3)
    out = np.zeros_like(x)
    for t in range(3):
        out[:, t] = sum(STEPS[k] * x[:, t + k] for k in range(3 - t))
    check("row_conv", {"X": x, "Filter": STEPS}, {}, {"Out": out}, grads=["X", "Filter"])


def test_row_conv_says_what_does_not_fit():
    with pytest.raises(OperatorError, match=r"Filter \[steps, width\], got \[6, 3\] and \[3, 2\]"):
        infer("row_conv", {"X": ROWS, "Filter": STEPS[:, :2]})
    with pytest.raises(OperatorError, match="X has no LoD information"):
        run_kernel("row_conv", {"X": ROWS, "Filter": STEPS})


TREES = np.array(
    [[[1, 2], [1, 3], [2, 4], [2, 5], [2, 6], [0, 0]], [[1, 2], [2, 3], [0, 0], [0, 0], [0, 0], [0, 0]]]
)
NODES = np.linspace(-1, 1, 28).reshape(2, 7, 2).astype("float32")
FILTER = np.linspace(-0.5, 0.7, 12).reshape(2, 3, 2, 1).astype("float32")


@pytest.mark.parametrize(
    ("depth", "first"),
    [
        (2, [-0.7565656, -1.3262626, -0.5873737, -1.029798, -0.3272727, -0.4727273, -0.2491582, -0.3622895]),
        (3, [-0.9833146, -1.8111486, -0.6977928, -1.1377479, -0.3272727, -0.4727273, -0.2491582, -0.3622895]),
    ],
)
def test_tree_conv(depth, first):
    inputs = {"NodesVector": NODES, "EdgeSet": TREES.astype("int32"), "Filter": FILTER}
    out = run_kernel("tree_conv", inputs, {"max_depth": depth})["Out"][0]
    np.testing.assert_allclose(out[0].ravel()[:8], first, rtol=1e-5)
    assert not out[0, 6].any() and not out[1, 3:].any(), "what is in no tree gives nothing"
    check("tree_conv", inputs, {"max_depth": depth}, grads=["Filter"])


@pytest.mark.parametrize(
    ("depth", "first"),
    [
        (2, [-0.2363636, 1.0727272, -0.5818182, 2.0363636, -0.8045454, 2.1409092]),
        (3, [-0.2363636, 1.0727272, -0.5454546, 2.0727272, -0.719192, 2.189899]),
    ],
)
def test_tree_conv_gradient_of_the_nodes_is_that_of_fluid(depth, first):
    with dygraph.guard():
        layer = dygraph.TreeConv(2, 2, num_filters=1, max_depth=depth, act=None, bias_attr=False)
        layer.weight.set_value(FILTER)
        nodes = dygraph.to_variable(NODES)
        nodes.stop_gradient = False
        out = layer(nodes, dygraph.to_variable(TREES.astype("int32")))
        layers.reduce_sum(out[:, 0:3]).backward()
        np.testing.assert_allclose(nodes.gradient()[0].ravel()[:6], first, rtol=1e-5)


def test_tree_conv_says_what_does_not_fit():
    inputs = {"NodesVector": NODES, "EdgeSet": TREES.astype("int32") + 5, "Filter": FILTER}
    with pytest.raises(OperatorError, match="EdgeSet must name nodes from 1 to 7, got an edge 7, 8|6, 8"):
        run_kernel("tree_conv", {**inputs, "EdgeSet": np.array([[[6, 8]], [[1, 2]]], "int32")})
    with pytest.raises(OperatorError, match=r"Filter must be \[2, 3, output_size, num_filters\]"):
        infer("tree_conv", {**inputs, "Filter": FILTER[:, :2]})


WEIGHT = np.linspace(-1, 2, 24).reshape(4, 3, 2).astype("float32")
U = np.array([-0.66629976, -0.74822372, -0.69524091], "float32")
V = np.array(
    [-0.66629976, -0.74822372, -0.69524091, 1.11325502, 1.32174134, 0.484373, -0.42253149, 0.48679572],
    "float32",
)
SPECTRAL = {"Weight": WEIGHT, "U": U, "V": V}


def test_spectral_norm_is_that_of_fluid():
    attrs = {"dim": 1, "power_iters": 2}
    out = run_kernel("spectral_norm", SPECTRAL, attrs)["Out"][0]
    np.testing.assert_allclose(out[0].ravel()[:3], [-0.2009977, -0.1747806, -0.1485635], rtol=1e-5)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_spectral_norm_divides_by_the_largest_singular_value(dim):
    matrix = np.moveaxis(WEIGHT, dim, 0).reshape(WEIGHT.shape[dim], -1)
    inputs = {
        "Weight": WEIGHT,
        "U": np.ones(matrix.shape[0], "float32"),
        "V": np.ones(matrix.shape[1], "float32"),
    }
    expected = WEIGHT / np.linalg.svd(matrix)[1][0]
    check("spectral_norm", inputs, {"dim": dim, "power_iters": 6}, {"Out": expected.astype("float32")})


def test_spectral_norm_gradient_is_that_of_fluid():
    with dygraph.guard():
        layer = dygraph.SpectralNorm([4, 3, 2], dim=1, power_iters=2)
        layer.weight_u.set_value(U)
        layer.weight_v.set_value(V)
        weight = dygraph.to_variable(WEIGHT)
        weight.stop_gradient = False
        out = layer(weight)
        layers.reduce_sum(out * out).backward()
        np.testing.assert_allclose(
            weight.gradient().ravel()[:4], [-0.1048934, -0.0873991, -0.080242, -0.0630064], rtol=1e-5
        )


def test_spectral_norm_says_what_does_not_fit():
    with pytest.raises(OperatorError, match=r"U must have 4 elements, got \[3\]"):
        infer("spectral_norm", SPECTRAL, {"dim": 0})
