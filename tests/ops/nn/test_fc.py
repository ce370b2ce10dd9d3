"""fc: values recorded from Paddle 1.8.5."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

X = np.arange(6, dtype="float32").reshape(2, 1, 3) - 2
W = np.arange(12, dtype="float32").reshape(3, 4) - 5
B = np.arange(4, dtype="float32")
PLAIN = np.array([[11, 8, 5, 2], [2, 8, 14, 20]], "float32")


@pytest.mark.parametrize("split, shape", [(1, (2, 4)), (2, (2, 1, 4))])
def test_a_product(split, shape):
    check("fc", {"Input": X, "W": W}, {"in_num_col_dims": split}, {"Out": PLAIN.reshape(shape)}, grads=[])


@pytest.mark.parametrize("bias", [B, B[None]])
def test_bias_and_relu(bias):
    given = {"Input": X, "W": W, "Bias": bias - 9}
    plus = (PLAIN + B - 9).reshape(2, 1, 4)
    check("fc", given, {"in_num_col_dims": 2, "activation_type": "tanh"}, {"Out": plus}, grads=[])
    check(
        "fc", given, {"in_num_col_dims": 2, "activation_type": "relu"}, {"Out": np.maximum(plus, 0)}, grads=[]
    )


@pytest.mark.parametrize(
    "given, attrs, message",
    [
        ({"W": W[:2]}, {}, "W has 2 rows"),
        ({"W": W[0]}, {}, "matrix"),
        ({}, {"in_num_col_dims": 3}, "in_num_col_dims"),
        ({"Bias": B[:3]}, {}, "Bias must have 4"),
        ({}, {"activation_type": "relu"}, "needs a Bias"),
    ],
)
def test_what_does_not_fit(given, attrs, message):
    with pytest.raises(OperatorError, match=message):
        infer("fc", {"Input": X, "W": W, **given}, attrs)
