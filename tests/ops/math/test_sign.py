"""sign."""

import numpy as np

from ..harness import check


def test_sign():
    x = np.array([[-2.5, 0.0, 3.0], [1e-3, -1e-3, -0.0]], "float32")
    check("sign", {"X": x}, {}, {"Out": np.sign(x)})
    check("sign", {"X": x[x != 0]}, grads=["X"])
