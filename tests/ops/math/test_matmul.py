"""mul, matmul, bilinear_tensor_product."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

RNG = np.random.default_rng(5)


def _uniform(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


@pytest.mark.parametrize(
    ("x", "y", "split_x", "split_y"),
    [
        ((3, 4), (4, 5), 1, 1),
        ((2, 3, 4), (12, 5), 1, 1),
        ((2, 3, 4), (4, 5), 2, 1),
        ((4, 6), (2, 3, 5), 1, 2),
    ],
)
def test_mul(x, y, split_x, split_y):
    x, y = _uniform(*x), _uniform(*y)
    rows, columns = x.shape[:split_x], y.shape[split_y:]
    flat = x.reshape(int(np.prod(rows)), -1) @ y.reshape(-1, int(np.prod(columns)))
    attrs = {"x_num_col_dims": split_x, "y_num_col_dims": split_y}
    check("mul", {"X": x, "Y": y}, attrs, {"Out": flat.reshape(*rows, *columns)}, grads=["X", "Y"])


@pytest.mark.parametrize(
    ("x", "y", "attrs", "words"),
    [
        ((3, 4), (5, 4), {}, "4 wide .* 5 high"),
        ((3, 4), (4,), {}, "y_num_col_dims must be between"),
        ((3, 4), (4, 5), {"x_num_col_dims": 2}, "x_num_col_dims must be between"),
    ],
)
def test_mul_of_what_does_not_fit(x, y, attrs, words):
    with pytest.raises(OperatorError, match=words):
        infer("mul", {"X": np.zeros(x), "Y": np.zeros(y)}, attrs)


SHAPES = {
    "plain": ((3, 4), (4, 5), False, False),
    "left": ((4, 3), (4, 5), True, False),
    "right": ((3, 4), (5, 4), False, True),
    "both": ((4, 3), (5, 4), True, True),
    "batch": ((2, 3, 4), (2, 4, 5), False, False),
    "batch_left": ((2, 4, 3), (2, 4, 5), True, False),
    "batch_right": ((2, 3, 4), (2, 5, 4), False, True),
    "batch_both": ((2, 4, 3), (2, 5, 4), True, True),
    "four": ((2, 2, 3, 4), (2, 2, 4, 3), False, False),
    "wide": ((2, 3, 4), (4, 5), False, False),
    "wide_right": ((2, 3, 4), (5, 4), False, True),
    "wide_left": ((2, 4, 3), (4, 5), True, False),
    "y_batch": ((3, 4), (2, 4, 5), False, False),
}


@pytest.mark.parametrize("alpha", [1.0, 0.5])
@pytest.mark.parametrize("case", sorted(SHAPES))
def test_matmul(case, alpha):
    x_shape, y_shape, tx, ty = SHAPES[case]
    x, y = _uniform(*x_shape), _uniform(*y_shape)
    expected = (x.swapaxes(-1, -2) if tx else x) @ (y.swapaxes(-1, -2) if ty else y) * np.float32(alpha)
    attrs = {"transpose_X": tx, "transpose_Y": ty, "alpha": alpha}
    check("matmul", {"X": x, "Y": y}, attrs, {"Out": expected}, grads=["X", "Y"])


@pytest.mark.parametrize(
    ("x", "y", "shape"),
    [
        ((4,), (4,), (1,)),
        ((3, 4), (4,), (3,)),
        ((4,), (4, 5), (5,)),
        ((4,), (2, 4, 5), (2, 5)),
        ((2, 3, 4), (4,), (2, 3)),
    ],
)
def test_matmul_with_vectors(x, y, shape):
    x, y = _uniform(*x), _uniform(*y)
    check("matmul", {"X": x, "Y": y}, {}, {"Out": np.matmul(x, y).reshape(shape)}, grads=["X", "Y"])


def test_matmul_of_transposed_vectors_is_their_outer_product():
    x, y = _uniform(3), _uniform(4)
    attrs = {"transpose_X": True, "transpose_Y": True}
    check("matmul", {"X": x, "Y": y}, attrs, {"Out": np.outer(x, y)}, grads=["X", "Y"])


@pytest.mark.parametrize(
    ("x", "y", "shape"), [((1,), (1,), (1,)), ((1,), (1, 3), (3,)), ((1, 1), (1,), (1,))]
)
def test_matmul_of_transposed_vectors_of_one_element(x, y, shape):
    x, y = _uniform(*x), _uniform(*y)
    attrs = {"transpose_X": x.ndim == 1, "transpose_Y": y.ndim == 1}
    check("matmul", {"X": x, "Y": y}, attrs, {"Out": (x * y).reshape(shape)}, grads=["X", "Y"])


@pytest.mark.parametrize(
    ("x", "y", "attrs", "words"),
    [
        ((3, 4), (5, 6), {}, "got 4 and 5"),
        ((2, 3, 4), (3, 4, 5), {}, "as many matrices"),
        ((2, 3, 4), (4,), {"transpose_Y": True}, "got 4 and 1"),
    ],
)
def test_matmul_of_what_does_not_fit(x, y, attrs, words):
    with pytest.raises(OperatorError, match=words):
        infer("matmul", {"X": np.zeros(x), "Y": np.zeros(y)}, attrs)


@pytest.mark.parametrize("op_type", ["mul", "matmul"])
def test_second_derivatives(op_type):
    inputs = {"X": _uniform(2, 3), "Y": _uniform(3, 2), "Out@GRAD": _uniform(2, 2)}
    check(f"{op_type}_grad", inputs, {}, grads=["X", "Y", "Out@GRAD"], programs=False)


@pytest.mark.parametrize("bias", [True, False])
def test_bilinear_tensor_product(bias):
    x, y, weight, b = _uniform(4, 3), _uniform(4, 2), _uniform(5, 3, 2), _uniform(1, 5)
    expected = np.einsum("ni,kij,nj->nk", x, weight, y) + (b if bias else 0)
    inputs = {"X": x, "Y": y, "Weight": weight, **({"Bias": b} if bias else {})}
    check("bilinear_tensor_product", inputs, {}, {"Out": expected.astype("float32")}, grads=list(inputs))


def test_heads_are_refused():
    with pytest.raises(OperatorError, match="head_number must be 1"):
        infer(
            "matmul", {"X": np.ones((3, 8), "float32"), "Y": np.ones((8, 16), "float32")}, {"head_number": 4}
        )


def test_bilinear_weight_must_fit():
    with pytest.raises(OperatorError, match=r"Weight must be \[size, 3, 2\]"):
        infer(
            "bilinear_tensor_product",
            {"X": np.zeros((4, 3)), "Y": np.zeros((4, 2)), "Weight": np.zeros((5, 3, 3))},
        )
