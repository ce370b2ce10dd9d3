"""Dropout: the masks of real Fluid, both ways to scale, and what tests see."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError, OpView, find

from ..harness import ArrayMeta, check, infer, run_kernel

ONES = np.ones((4, 5), "float32")

# What Fluid 1.8.5 on the CPU keeps for seed 90 and probability 0.3.
SEED_90 = np.array([[0, 1, 0, 0, 0], [0, 1, 1, 1, 1], [0, 1, 1, 1, 0], [0, 1, 1, 1, 1]])


def seeded(**attrs):
    return {"seed": 90, "fix_seed": True, "dropout_prob": 0.3, **attrs}


def test_mask_of_a_seed_is_that_of_fluid():
    outputs = {"Out": SEED_90.astype("float32"), "Mask": SEED_90.astype("uint8")}
    check("dropout", {"X": ONES}, seeded(), outputs, grads=("X",))


def test_upscaling():
    outputs = {"Out": (SEED_90 / 0.7).astype("float32")}
    attrs = seeded(dropout_implementation="upscale_in_train")
    check("dropout", {"X": ONES}, attrs, outputs, grads=("X",))


@pytest.mark.parametrize("kind", ["upscale_in_train", "downgrade_in_infer"])
@pytest.mark.parametrize(("prob", "value"), [(0.0, 1), (1.0, 0)])
def test_all_or_nothing(kind, prob, value):
    attrs = {"dropout_prob": prob, "dropout_implementation": kind}
    check("dropout", {"X": ONES}, attrs, {"Out": ONES * value, "Mask": (ONES * value).astype("uint8")})


@pytest.mark.parametrize(("kind", "factor"), [("upscale_in_train", 1), ("downgrade_in_infer", 0.7)])
def test_in_tests(kind, factor):
    attrs = {"dropout_prob": 0.3, "is_test": True, "dropout_implementation": kind}
    check("dropout", {"X": ONES}, attrs, {"Out": (ONES * factor).astype("float32")})


def test_without_a_seed_every_run_differs():
    x = np.ones((100, 100), "float32")
    masks = [run_kernel("dropout", {"X": x}, {"dropout_prob": 0.25})["Mask"][0] for _ in range(2)]
    assert (masks[0] != masks[1]).any()
    assert abs(masks[0].mean() - 0.75) < 0.03


def test_seed_may_be_a_tensor():
    made = run_kernel("dropout", {"X": ONES, "Seed": np.array([90], "int32")}, {"dropout_prob": 0.3})
    np.testing.assert_array_equal(made["Mask"][0], SEED_90)


def test_there_is_no_gradient_in_test_mode():
    view = OpView(find("dropout"), {"X": ["x"]}, {"Out": ["y"]}, {"is_test": True}, ArrayMeta({"x": ONES}))
    with pytest.raises(OperatorError, match="no gradient with is_test=True"):
        find("dropout").grad(view)


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"dropout_prob": 1.5}, r"dropout_prob must be in \[0, 1\], got 1.5"),
        ({"dropout_implementation": "scale"}, "dropout_implementation must be .* got 'scale'"),
    ],
)
def test_what_does_not_fit_is_refused(attrs, message):
    with pytest.raises(OperatorError, match=message):
        infer("dropout", {"X": ONES}, attrs)
