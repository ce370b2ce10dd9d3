"""Products, norms and distances beyond matmul; recorded numbers are those of Fluid 1.8.5."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, gradients, infer, run_kernel

A = np.linspace(-1, 1, 6).reshape(2, 3).astype("float32")
B = np.cos(3 * A).astype("float32")
A3 = np.linspace(-1, 1, 12).reshape(2, 2, 3).astype("float32")
B3 = np.cos(2 * A3).transpose(0, 2, 1).copy()

CASES = [
    ("bmm", {"X": A3, "Y": B3}, {}, A3 @ B3),
    ("dot", {"X": A, "Y": B}, {}, (A * B).sum(1, keepdims=True)),
    ("dot", {"X": A[0], "Y": B[0]}, {}, (A[0] * B[0]).sum(keepdims=True)),
    (
        "addmm",
        {"Input": A[:, :2], "X": A, "Y": B.T.copy()},
        {"Alpha": 2.0, "Beta": 0.5},
        A[:, :2] / 2 + 2 * A @ B.T,
    ),
    ("addmm", {"Input": A[:1, :2], "X": A, "Y": B.T.copy()}, {}, A[:1, :2] + A @ B.T),
    ("cross", {"X": A, "Y": B}, {}, np.cross(A, B)),
    ("cross", {"X": A.T.copy(), "Y": B.T.copy()}, {"dim": 0}, np.cross(A, B).T),
    ("kron", {"X": A, "Y": B[0]}, {}, np.kron(A, B[0])),
    ("kron", {"X": A, "Y": B3}, {}, np.kron(A, B3)),
    ("p_norm", {"X": A}, {"porder": 3.0, "axis": 1}, (np.abs(A) ** 3).sum(1) ** (1 / 3)),
    ("p_norm", {"X": A}, {"porder": 1.0, "axis": 0, "keepdim": True}, np.abs(A).sum(0, keepdims=True)),
    ("p_norm", {"X": A}, {"porder": float("inf"), "axis": 1}, np.abs(A).max(1)),
    ("p_norm", {"X": A[0]}, {}, np.sqrt((A[0] ** 2).sum(keepdims=True))),
    ("frobenius_norm", {"X": A3}, {"dim": [1, 2]}, np.sqrt((A3**2).sum((1, 2)))),
    ("frobenius_norm", {"X": A3}, {"dim": [0], "keep_dim": True}, np.sqrt((A3**2).sum(0, keepdims=True))),
    ("frobenius_norm", {"X": A3}, {"reduce_all": True}, np.sqrt((A3**2).sum(keepdims=True).reshape(1))),
    ("l1_norm", {"X": A}, {}, np.abs(A).sum().reshape(1)),
    ("minus", {"X": A, "Y": B}, {}, A - B),
]


@pytest.mark.parametrize(("op_type", "inputs", "attrs", "expected"), CASES)
def test_value_and_gradient(op_type, inputs, attrs, expected):
    check(op_type, inputs, attrs, {"Out": expected.astype("float32")}, grads=list(inputs), rtol=3e-5)


DISTANCES = [
    (2.0, 1.822428, [-0.020015, -0.745596, -2.050671]),
    (1.0, 3.6, [-7.200001, -7.200001, -7.200001]),
    (0.0, 6.0, [0, 0, 0]),
    (3.0, 1.501663, [-0.000133, -0.185099, -1.400198]),
    (float("inf"), 1.189993, [0, 0, 0]),
    (float("-inf"), 0.010008, [-0.020015, 0, 0]),
]


@pytest.mark.parametrize(("p", "length", "slope"), DISTANCES)
def test_dist_is_that_of_fluid(p, length, slope):
    # The gradient is that of the square of the distance.
    inputs = {"X": A, "Y": B[:1]}
    out = run_kernel("dist", inputs, {"p": p})["Out"][0]
    np.testing.assert_allclose(out, [length], rtol=1e-5, atol=1e-6)
    found = gradients("dist", inputs, {"p": p}, {"Out": [2 * out]})["X"][0]
    np.testing.assert_allclose(found[0], slope, rtol=1e-4, atol=1e-6)


def test_dist_gradient():
    check("dist", {"X": A, "Y": B[:1]}, {"p": 3.0}, grads=["X", "Y"])


@pytest.mark.parametrize("rows", [1, 2])
def test_cos_sim(rows):
    y = B[:rows]
    lengths = [np.sqrt((v**2).sum(1, keepdims=True)) for v in (A, y)]
    outputs = {
        "Out": (A * y).sum(1, keepdims=True) / lengths[0] / lengths[1],
        "XNorm": lengths[0],
        "YNorm": lengths[1],
    }
    check("cos_sim", {"X": A, "Y": y}, {}, outputs, grads=["X", "Y"], rtol=3e-5)


def test_what_does_not_fit():
    with pytest.raises(OperatorError, match=r"X \[batch, m, k\] and Y \[batch, k, n\] must fit"):
        infer("bmm", {"X": A3, "Y": A3})
    with pytest.raises(OperatorError, match="vectors or batches of them, of one shape"):
        infer("dot", {"X": A, "Y": B[0]})
    with pytest.raises(OperatorError, match="Input must fit a result of shape"):
        infer("addmm", {"Input": A, "X": A, "Y": B.T.copy()})
    with pytest.raises(OperatorError, match="must be of size 3"):
        infer("cross", {"X": A, "Y": B}, {"dim": 0})
    with pytest.raises(OperatorError, match="the rows of X and Y must be equally long"):
        infer("cos_sim", {"X": A, "Y": B[:, :2]})
