"""`paddle.einsum` beside NumPy's."""

import numpy as np
import pytest

import fluidlite.paddle as paddle

CASES = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bij,kj->bik", (2, 3, 4), (5, 4)),
    ("ij->ji", (2, 3)),
    ("ij->j", (2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    ("...i,i->...", (2, 3, 4), (4,)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ab,cd->acbd", (2, 3), (4, 5)),
]


@pytest.mark.parametrize("equation, shapes", [(case[0], case[1:]) for case in CASES])
def test_as_numpy(compute, equation, shapes):
    rng = np.random.default_rng(0)
    arrays = [rng.random(shape, "float32") for shape in shapes]
    (made,) = compute(lambda *tensors: paddle.einsum(equation, *tensors), *arrays)
    np.testing.assert_allclose(made, np.einsum(equation, *arrays), rtol=1e-5)


def test_sums_to_one_number(compute):
    (made,) = compute(lambda x: paddle.einsum("ij->", x), np.ones((2, 3), "float32"))
    assert made.tolist() == [6.0]


def test_gradients(slope):
    rng = np.random.default_rng(0)
    slope(lambda x, y: paddle.einsum("bij,kj->kib", x, y), rng.random((2, 3, 4)), rng.random((5, 4)))


@pytest.mark.parametrize(
    "equation, shapes, message",
    [
        ("ij,jk->ik", [(2, 3)], "2 operands, got 1"),
        ("ii->i", [(2, 2)], "'ii' must be letters that come once each"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "axis 'j' has size 3 in one operand and 4 in another"),
        ("ijk->i", [(2, 3)], r"'ijk' does not fit an operand of shape \[2, 3\]"),
        ("ij->iz", [(2, 3)], "letters of the operands"),
    ],
)
def test_errors(equation, shapes, message):
    with pytest.raises(ValueError, match=message):
        paddle.einsum(equation, *[paddle.ones(shape) for shape in shapes])
