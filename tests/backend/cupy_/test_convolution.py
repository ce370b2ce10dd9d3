"""Convolutions on a GPU, through cuDNN and through products of matrices, against the reference kernels."""

from contextlib import ExitStack

import numpy as np
import pytest

from fluidlite.backend.cupy_ import blas, dnn
from fluidlite.backend.cupy_.device import device
from fluidlite.base.errors import EnforceNotMet
from fluidlite.base.windows import forward_geometry
from fluidlite.ops.registry import find
from tests.simulated_cuda import cublas, cudnn
from tests.simulated_cuda.machine import is_simulated

from .agreement import agree, agree_and_replay, rand, refused


@pytest.fixture(params=["cudnn", "products"])
def means(request, cuda):
    """The implementation of convolutions: cuDNN, or matrix products."""
    with ExitStack() as stack:
        simulated = is_simulated()
        if simulated:
            stack.enter_context(cublas.patched())
        if request.param == "products":
            stack.enter_context(cudnn.absent())
        elif simulated:
            stack.enter_context(cudnn.patched())
        elif dnn.missing(device(0)):
            pytest.skip(dnn.missing(device(0)))
        yield


@pytest.fixture
def fake(simulation):
    with cudnn.patched() as found, cublas.patched():
        yield found


CASES = {
    "plain": ((2, 3, 6, 5), (4, 3, 3, 2), {}),
    "one by one": ((3, 4, 5, 5), (6, 4, 1, 1), {}),
    "stride": ((2, 3, 7, 8), (4, 3, 3, 3), {"strides": [2, 3], "paddings": [1, 1]}),
    "sides": ((2, 3, 5, 6), (4, 3, 3, 3), {"paddings": [0, 2, 1, 0], "strides": [2, 1]}),
    "dilation": ((2, 2, 9, 9), (3, 2, 3, 2), {"dilations": [2, 3], "paddings": [2, 1]}),
    "groups": ((2, 6, 5, 5), (9, 2, 3, 3), {"groups": 3, "paddings": [1, 1]}),
    "same": ((1, 2, 7, 6), (3, 2, 3, 4), {"padding_algorithm": "SAME", "strides": [2, 2]}),
    "valid": ((1, 2, 7, 6), (3, 2, 3, 4), {"padding_algorithm": "VALID", "paddings": [3, 3]}),
    "wide padding": ((1, 2, 3, 3), (2, 2, 2, 2), {"paddings": [3, 2]}),
    "left over": ((2, 2, 8, 8), (2, 2, 3, 3), {"strides": [3, 3]}),
    "depthwise": ((2, 4, 6, 6), (4, 1, 3, 3), {"groups": 4, "paddings": [1, 1], "strides": [2, 1]}),
    "depthwise twice": ((2, 3, 6, 5), (6, 1, 3, 2), {"groups": 3, "dilations": [1, 2]}),
}


def with_gradient(op_type, inputs, attrs):
    """The inputs of the gradient of an operator."""
    out = find(op_type).call(np, {slot: [array] for slot, array in inputs.items()}, attrs)[0]
    return {**inputs, "Output@GRAD": rand(*out.shape, dtype=str(out.dtype), seed=5)}


def check_both(op_type, inputs, check=agree_and_replay, **attrs):
    """The operator and its gradient: sums of some hundred numbers."""
    check(op_type, inputs, times=20, **attrs)
    check(op_type + "_grad", with_gradient(op_type, inputs, attrs), times=20, **attrs)


@pytest.mark.parametrize("case", CASES)
def test_conv2d(means, case):
    shape, filters, attrs = CASES[case]
    check_both("conv2d", {"Input": rand(*shape), "Filter": rand(*filters, seed=1)}, **attrs)


@pytest.mark.parametrize("case", ["plain", "sides", "groups", "depthwise"])
def test_conv2d_with_channels_last(means, case):
    (n, c, *sizes), filters, attrs = CASES[case]
    inputs = {"Input": rand(n, *sizes, c), "Filter": rand(*filters, seed=1)}
    check_both("conv2d", inputs, **attrs, data_format="NHWC")


@pytest.mark.parametrize("op_type", ["conv2d", "conv2d_transpose"])
def test_double_precision_and_bias(means, op_type):
    inputs = {
        "Input": rand(2, 3, 5, 4, dtype="float64"),
        "Filter": rand(3, 3, 2, 3, dtype="float64", seed=1),
        "Bias": rand(3, dtype="float64", seed=2),
    }
    check_both(op_type, inputs, paddings=[1, 0])


TRANSPOSED = {
    "plain": ((2, 3, 4, 3), (3, 4, 3, 2), {}),
    "stride": ((2, 3, 4, 3), (3, 4, 3, 3), {"strides": [2, 3], "paddings": [1, 1]}),
    "size": ((2, 3, 4, 3), (3, 4, 3, 3), {"strides": [3, 2], "output_size": [14, 8]}),
    "sides": ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": [2, 2], "paddings": [0, 1, 2, 0]}),
    "dilation": ((1, 2, 4, 5), (2, 3, 2, 3), {"dilations": [3, 2]}),
    "groups": ((2, 4, 4, 5), (4, 3, 3, 3), {"groups": 2, "paddings": [1, 1]}),
    "same": ((1, 2, 4, 5), (2, 2, 3, 3), {"padding_algorithm": "SAME", "strides": [2, 2]}),
    "depthwise": ((2, 4, 4, 5), (4, 1, 3, 3), {"groups": 4, "strides": [2, 2]}),
}


@pytest.mark.parametrize("case", TRANSPOSED)
def test_conv2d_transpose(means, case):
    shape, filters, attrs = TRANSPOSED[case]
    check_both("conv2d_transpose", {"Input": rand(*shape), "Filter": rand(*filters, seed=1)}, **attrs)


@pytest.mark.parametrize("op_type", ["conv3d", "conv3d_transpose"])
def test_three_dimensions(means, op_type):
    attrs = {
        "strides": [2, 1, 2],
        "paddings": [1, 0, 1, 1, 0, 0],
        "dilations": [1, 2, 1],
        "groups": 2,
        "data_format": "NCDHW",
    }
    check_both(op_type, {"Input": rand(2, 4, 4, 5, 4), "Filter": rand(4, 2, 2, 2, 3, seed=1)}, **attrs)


@pytest.mark.parametrize("missing", [(), ("DDInput", "DDBias"), ("DDFilter",), ("DDBias",)])
@pytest.mark.parametrize("op_type", ["conv2d", "conv2d_transpose"])
def test_second_derivatives(means, op_type, missing):
    attrs = {"strides": [2, 1], "paddings": [1, 0]}
    inputs = {"Input": rand(2, 3, 5, 4), "Filter": rand(3, 3, 3, 2, seed=1)}
    dout = with_gradient(op_type, inputs, attrs)["Output@GRAD"]
    given = {
        "DOutput": dout,
        "DDInput": rand(2, 3, 5, 4, seed=2),
        "DDFilter": rand(3, 3, 3, 2, seed=3),
        "DDBias": rand(3, seed=4),
    }
    inputs |= {slot: array for slot, array in given.items() if slot not in missing}
    agree_and_replay(op_type + "_grad_grad", inputs, times=20, **attrs)


def test_batches_in_parts(means, monkeypatch):
    """Patches of few images fit into the workspace."""
    limit = 3 * (2 * 9) * 16 * 4  # bytes of the patches of three images
    monkeypatch.setattr("fluidlite.base.flags.convolution_workspace", lambda: limit)
    inputs = {"Input": rand(7, 2, 4, 4), "Filter": rand(3, 2, 3, 3, seed=1)}
    check_both("conv2d", inputs, paddings=[1, 1])


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_no_images(means, groups):
    attrs = {"groups": groups}
    inputs = {"Input": rand(0, 4, 5, 5), "Filter": rand(4, 4 // groups, 3, 3)}
    check_both("conv2d", inputs, agree, **attrs)
    check_both("conv2d_transpose", inputs, agree, **attrs)


@pytest.mark.parametrize("slot", ["Input@GRAD", "Filter@GRAD"])
@pytest.mark.parametrize("op_type", ["conv2d", "conv2d_transpose"])
def test_only_what_is_wanted(fake, op_type, slot):
    inputs = {"Input": rand(2, 3, 5, 5), "Filter": rand(3, 3, 3, 3, seed=1)}
    agree(op_type + "_grad", with_gradient(op_type, inputs, {}), wanted=(slot,), times=20)
    assert len(fake.calls) == 1


def test_whole_numbers_are_left_to_the_reference_kernel(cuda):
    x = np.ones((1, 1, 3, 3), "int32")
    assert refused("conv2d", {"Input": x, "Filter": x})


def run(fake):
    agree("conv2d", {"Input": rand(2, 2, 5, 5), "Filter": rand(2, 2, 3, 3)}, times=20)
    return fake.calls


def test_the_fastest_algorithm_that_is_exact_and_fits(fake):
    assert run(fake) == [("Forward", 3, 3)]


def test_tf32_when_allowed(fake, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_ALLOW_TF32", "1")
    assert run(fake) == [("Forward", 7, 0)]


def test_sums_in_the_same_order_when_wanted(fake, monkeypatch):
    monkeypatch.setenv("FLAGS_cudnn_deterministic", "1")
    assert run(fake) == [("Forward", 1, 3)]


def test_workspace_limit(fake, monkeypatch):
    fake.heuristics = lambda elements: [
        cudnn.Algorithm(1, room=(1 << 20) + 1),
        cudnn.Algorithm(2, room=1 << 20),
        cudnn.Algorithm(0),
    ]
    monkeypatch.setenv("FLAGS_conv_workspace_size_limit", "1")
    assert run(fake) == [("Forward", 2, 3)]


@pytest.mark.parametrize("text", ["0", "-3", "much"])
def test_workspace_limit_that_is_no_size(fake, monkeypatch, text):
    monkeypatch.setenv("FLAGS_conv_workspace_size_limit", text)
    with pytest.raises(ValueError, match="FLAGS_conv_workspace_size_limit must be a number of MiB above 0"):
        run(fake)


def test_no_algorithm_at_all(fake):
    fake.heuristics = lambda elements: [cudnn.Algorithm(1, status=cudnn.NOT_SUPPORTED)]
    assert run(fake) == []


def test_refused_when_it_runs(fake):
    fake.refused.add("Forward")
    assert run(fake) == []
    fake.refused.clear()
    assert run(fake) == [], "what was refused once is not tried again"


def test_failure_names_the_function(fake):
    fake.cudnnConvolutionForward.function = lambda *arguments: 5001
    with pytest.raises(EnforceNotMet, match=r"cudnnConvolutionForward reports CUDNN_STATUS_5001 \(5001\)"):
        run(fake)


def test_descriptors_are_given_back(fake):
    run(fake)
    made = len(fake.live)
    assert made > 1
    dnn.convolution.cache_clear()
    assert made - len(fake.live) == 4, "two tensors, filters, the convolution"


def test_descriptions_are_made_once(fake):
    run(fake)
    made = len(fake.live)
    run(fake)
    assert len(fake.live) == made


def test_too_many_elements(fake, monkeypatch):
    monkeypatch.setattr(dnn, "_TOO_MANY", 2 * 2 * 5 * 5)
    assert run(fake) == []


def test_too_old(simulation):
    with cudnn.patched(version=8907):
        assert dnn.missing(device(0)) == "cuDNN 9 is needed, found version number 8907"


def test_why_there_is_none(simulation):
    with cudnn.absent():
        assert dnn.missing(device(0)).startswith("cuDNN cannot be used: libcudnn.so.9: cannot open")


def test_cudnn_that_cannot_be_set_up(fake):
    fake.cudnnCreate.function = lambda place: 1001
    assert "cudnnCreate reports CUDNN_STATUS_1001" in dnn.missing(device(0))
    assert run(fake) == []


def test_refused_by_the_environment(simulation, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_CUDNN", "0")
    dnn._handle.cache_clear()
    assert dnn.missing(device(0)) == "cuDNN cannot be used: refused by FLUIDLITE_CUDNN=0"


def test_parts_of_a_batch():
    g = forward_geometry((4, 4), (3, 3), (1, 1), (1, 1), (1, 1), "EXPLICIT")
    huge = 1 << 28
    assert list(blas._parts(3, huge, g, 4)) == [(0, 1), (1, 2), (2, 3)]
    assert list(blas._parts(3, 1, g, 4)) == [(0, 3)]
