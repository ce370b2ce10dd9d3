"""Softmax and cross entropies on the GPU."""

import numpy as np
import pytest

from .agreement import agree, gpu, launched, on_gpu, rand, refused

ROWS = [(1, 1), (3, 10), (5, 33), (2, 3, 7), (2, 1025), (1, 3000)]

pytestmark = pytest.mark.usefixtures("cuda")


def labels(shape: tuple[int, ...], classes: int, dtype: str = "int64") -> np.ndarray:
    return np.random.default_rng(5).integers(0, classes, shape).astype(dtype)


def probabilities(*shape: int, seed: int = 0) -> np.ndarray:
    powers = np.exp(rand(*shape, seed=seed))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("shape", ROWS)
def test_softmax(shape):
    for dtype in ("float32", "float64"):
        (out,) = agree("softmax", {"X": rand(*shape, dtype=dtype, low=-9, high=9)}, times=5)
        agree("softmax_grad", {"Out": out, "Out@GRAD": rand(*shape, dtype=dtype, seed=1)}, times=5)


def test_softmax_of_extremes():
    x = np.array([[0, -70, -1000, 2], [np.nan, 1, 2, 3], [-np.inf, 0, 1, 2], [1e30, 1e30, 0, 0]], "float32")
    agree("softmax", {"X": x})
    agree("softmax", {"X": rand(4, 5, 1)}, axis=1)
    assert refused("softmax", {"X": rand(4, 5)}, axis=0)
    assert launched("softmax", on_gpu({"X": rand(0, 5)}))[0].shape == (0, 5)


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_softmax_with_cross_entropy(shape, dtype):
    logits = rand(*shape, low=-9, high=9)
    label = labels((*shape[:-1], 1), shape[-1], dtype)
    softmax, loss = agree("softmax_with_cross_entropy", {"Logits": logits, "Label": label}, times=10)
    given = {"Label": label, "Softmax": softmax, "Loss@GRAD": rand(*loss.shape, seed=1)}
    agree("softmax_with_cross_entropy_grad", given, times=5)


@pytest.mark.parametrize("shape", ROWS)
def test_soft_labels(shape):
    weight = probabilities(*shape, seed=1)
    given = {"Logits": rand(*shape), "Label": weight}
    softmax, loss = agree("softmax_with_cross_entropy", given, times=10, soft_label=True)
    given = {"Label": weight, "Softmax": softmax, "Loss@GRAD": rand(*loss.shape, seed=1)}
    agree("softmax_with_cross_entropy_grad", given, times=5, soft_label=True)
    (y,) = agree("cross_entropy", {"X": softmax, "Label": weight}, times=20, soft_label=True)
    given = {"X": softmax, "Label": weight, "Y@GRAD": rand(*y.shape, seed=1)}
    agree("cross_entropy_grad", given, times=5, soft_label=True)


@pytest.mark.parametrize("ignored", [-100, 2])
def test_labels_to_ignore(ignored):
    label = np.array([[0], [ignored], [3], [2]])
    softmax, loss = agree(
        "softmax_with_cross_entropy", {"Logits": rand(4, 5), "Label": label}, times=5, ignore_index=ignored
    )
    given = {"Label": label, "Softmax": softmax, "Loss@GRAD": np.ones_like(loss)}
    agree("softmax_with_cross_entropy_grad", given, times=5, ignore_index=ignored)
    (y,) = agree("cross_entropy", {"X": softmax, "Label": label}, times=5, ignore_index=ignored)
    agree("cross_entropy_grad", {"X": softmax, "Label": label, "Y@GRAD": y}, ignore_index=ignored)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_cross_entropy(dtype):
    for x in (probabilities(5, 7), probabilities(2, 3, 4), np.ones((1, 1), "float32")):
        for label in (
            labels((*x.shape[:-1], 1), x.shape[-1], dtype),
            labels(x.shape[:-1], x.shape[-1], dtype),
        ):
            (y,) = agree("cross_entropy", {"X": x, "Label": label}, times=5)
            agree("cross_entropy_grad", {"X": x, "Label": label, "Y@GRAD": rand(*y.shape, seed=1)})
            y, _, match = agree("cross_entropy2", {"X": x, "Label": label}, times=5)
            shape = np.zeros((*x.shape, 0), "float32")
            given = {"Label": label, "MatchX": match, "XShape": shape, "Y@GRAD": rand(*y.shape, seed=1)}
            agree("cross_entropy_grad2", given)


def test_a_probability_of_zero_has_a_finite_loss():
    x = np.array([[0, 1], [1, 0]], "float32")
    label = np.array([[0], [0]])
    (y,) = agree("cross_entropy", {"X": x, "Label": label})
    np.testing.assert_array_equal(y, np.array([[1e20], [0]], "float32"))
    agree("cross_entropy_grad", {"X": x, "Label": label, "Y@GRAD": np.ones((2, 1), "float32")})


def test_an_unwanted_softmax_is_left_out():
    given = on_gpu({"Logits": rand(3, 4), "Label": labels((3, 1), 4)})
    softmax, loss = launched("softmax_with_cross_entropy", given, ["Loss"])
    assert softmax is None
    np.testing.assert_array_equal(
        gpu().get(loss), gpu().get(launched("softmax_with_cross_entropy", given)[1])
    )


@pytest.mark.parametrize("normalize", [False, True])
def test_sigmoid_cross_entropy(normalize):
    for shape in ((1,), (4, 5), (3000, 2)):
        label = (rand(*shape, seed=2) > 0).astype("float32")
        label.reshape(-1)[-1] = -1
        given = {"X": rand(*shape, low=-20, high=20), "Label": label}
        attrs = {"ignore_index": -1, "normalize": normalize}
        agree("sigmoid_cross_entropy_with_logits", given, times=5, **attrs)
        given["Out@GRAD"] = rand(*shape, seed=1)
        agree("sigmoid_cross_entropy_with_logits_grad", given, times=5, **attrs)
