"""Batch normalisation on a GPU against the reference kernels."""

import numpy as np
import pytest

from fluidlite import backend
from fluidlite.ops.registry import find

from .agreement import agree, agree_and_replay, gpu, launched, on_gpu, rand, refused

SHAPES = {
    "images": ((3, 5, 4, 6), "NCHW"),
    "one channel": ((2, 1, 5, 5), "NCHW"),
    "rows": ((9, 40), "NCHW"),
    "volumes": ((2, 3, 2, 3, 4), "NCHW"),
    "channels last": ((2, 4, 5, 33), "NHWC"),
    "parts": ((9, 3, 32, 33), "NCHW"),
    "parts of rows": ((1300, 34), "NCHW"),
    "parts with channels last": ((3, 20, 20, 5), "NHWC"),
}


def given(shape, layout, dtype="float32", **how):
    channels = shape[-1] if layout == "NHWC" else shape[1]
    return {
        "X": rand(*shape, dtype=dtype, **how),
        "Scale": rand(channels, dtype=dtype, seed=1),
        "Bias": rand(channels, dtype=dtype, seed=2),
        "Mean": rand(channels, dtype=dtype, seed=3),
        "Variance": rand(channels, dtype=dtype, seed=4, low=0.5),
    }


def for_gradient(inputs, attrs):
    """The inputs of the gradient, whose statistics are those of X."""
    made = find("batch_norm").call(np, {slot: [array] for slot, array in inputs.items()}, attrs)
    dy = rand(*inputs["X"].shape, dtype=str(inputs["X"].dtype), seed=6)
    return {**inputs, "SavedMean": made[3], "SavedVariance": made[4], "Y@GRAD": dy}


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("case", SHAPES)
def test_batch_norm(cuda, case, moving):
    shape, layout = SHAPES[case]
    attrs = {"data_layout": layout, "use_global_stats": moving, "momentum": 0.7, "epsilon": 1e-3}
    inputs = given(shape, layout)
    agree_and_replay("batch_norm", inputs, times=10, **attrs)
    # What is added up over a channel is as inexact as its largest partial sum.
    agree_and_replay("batch_norm_grad", for_gradient(inputs, attrs), times=200, **attrs)


@pytest.mark.parametrize("shape", [(3, 2, 4, 4), (7, 5)])
def test_double_precision(cuda, shape):
    inputs = given(shape, "NCHW", "float64")
    agree("batch_norm", inputs)
    agree("batch_norm_grad", for_gradient(inputs, {}), times=10)


def test_inference(cuda):
    inputs = given((3, 4, 5, 5), "NCHW")
    agree("batch_norm", inputs, is_test=True)
    agree("batch_norm", inputs, is_test=True, trainable_statistics=True, times=4)


@pytest.mark.parametrize("shape", [(4, 3, 8, 8), (64, 3), (12, 2, 30, 30)])
def test_numbers_far_from_zero(cuda, shape):
    """Sums of squares would lose all digits of the deviation."""
    inputs = given(shape, "NCHW")
    x = inputs["X"] = (inputs["X"] + 3000).astype("float32")
    found = launched("batch_norm", on_gpu(inputs))
    axes = (0, *range(2, len(shape)))
    deviation = x.astype("float64").std(axis=axes)
    np.testing.assert_allclose(1 / backend.to_host(found[4]), deviation, rtol=1e-3)


def test_moving_statistics_change_in_place(cuda):
    inputs = on_gpu(given((4, 3, 5, 5), "NCHW"))
    found = launched("batch_norm", inputs)
    assert found[1] is inputs["Mean"][0] and found[2] is inputs["Variance"][0]
    same = launched("batch_norm", inputs, use_global_stats=True)
    assert same[1] is inputs["Mean"][0] and same[2] is inputs["Variance"][0]


def test_momentum_from_a_tensor(cuda):
    inputs = {**given((4, 3, 5, 5), "NCHW"), "MomentumTensor": np.array([0.25], "float32")}
    agree_and_replay("batch_norm", inputs, times=4)


@pytest.mark.parametrize("slot", ["X@GRAD", "Scale@GRAD", "Bias@GRAD"])
def test_only_what_is_wanted(cuda, slot):
    inputs = for_gradient(given((2, 3, 4, 4), "NCHW"), {})
    agree("batch_norm_grad", inputs, wanted=(slot,), times=20)
    found = launched("batch_norm_grad", on_gpu(inputs), wanted=(slot,))
    assert [one is not None for one in found] == [slot == f"{name}@GRAD" for name in ("X", "Scale", "Bias")]


@pytest.mark.parametrize("shape", [(1, 3), (1, 4, 1, 1), (0, 4, 2, 2)])
def test_nothing_to_normalise_is_left_to_the_reference_kernel(cuda, shape):
    assert refused("batch_norm", given(shape, "NCHW"))


def test_mixed_types_are_left_to_the_reference_kernel(cuda):
    inputs = given((2, 3, 4, 4), "NCHW")
    inputs["Scale"] = inputs["Scale"].astype("float64")
    assert refused("batch_norm", inputs)


def test_launches(simulation):
    """One kernel for small channels; parts of large ones are looked through first."""
    for shape, launches in (((2, 3, 4, 4), 1), ((9, 3, 32, 33), 2)):
        inputs = on_gpu(given(shape, "NCHW"))
        gpu().synchronize()
        simulation.counters.reset()
        launched("batch_norm", inputs)
        assert (simulation.counters.launches, simulation.counters.syncs) == (launches, 0)
