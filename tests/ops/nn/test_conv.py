"""Convolutions and their transposes against sums written out element by element."""

import itertools

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype("float32")


def convolved(x, w, strides, pads, dilations, groups=1):
    """The definition: images [N, C, S...], filters [M, C / groups, K...], pads (before, after) by
    dimension.
    """
    x = np.pad(x.astype(float), [(0, 0), (0, 0), *pads])
    kernel = w.shape[2:]
    sizes = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    per = w.shape[0] // groups
    for m, place in itertools.product(range(w.shape[0]), itertools.product(*map(range, sizes))):
        group = m // per
        for c, k in itertools.product(range(w.shape[1]), itertools.product(*map(range, kernel))):
            at = tuple(p * s + i * d for p, s, i, d in zip(place, strides, k, dilations, strict=True))
            out[(slice(None), m, *place)] += x[(slice(None), group * w.shape[1] + c, *at)] * w[(m, c, *k)]
    return out.astype("float32")


CASES = {
    "plain": ({}, [(0, 0), (0, 0)]),
    "stride": ({"strides": [2, 1], "paddings": [1, 0]}, [(1, 1), (0, 0)]),
    "four": ({"paddings": [0, 1, 2, 1]}, [(0, 1), (2, 1)]),
    "dilation": ({"dilations": [2, 1]}, [(0, 0), (0, 0)]),
    "one window that stands over": ({"strides": [3, 1], "dilations": [3, 1]}, [(0, 2), (0, 0)]),
    "groups": ({"groups": 2, "paddings": [1, 1]}, [(1, 1), (1, 1)]),
    "same": ({"padding_algorithm": "SAME", "strides": [2, 2]}, [(1, 1), (0, 0)]),
    "valid": ({"padding_algorithm": "VALID", "paddings": [3, 3]}, [(0, 0), (0, 0)]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("op_type", ["conv2d", "depthwise_conv2d"])
def test_conv2d(op_type, case):
    attrs, pads = CASES[case]
    x, w = normal(2, 4, 5, 4), normal(4, 4 // attrs.get("groups", 1), 3, 2)
    strides, dilations = attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    want = convolved(x, w, strides, pads, dilations, attrs.get("groups", 1))
    inputs = {"Input": x, "Filter": w}
    check(op_type, inputs, attrs, {"Output": want}, grads=("Input", "Filter"), atol=1e-5, grad_atol=1e-5)


def test_conv2d_channels_last_and_bias():
    x, w, b = normal(2, 5, 4, 3), normal(2, 3, 3, 2), normal(2)
    want = convolved(x.transpose(0, 3, 1, 2), w, [1, 1], [(0, 0)] * 2, [1, 1]).transpose(0, 2, 3, 1) + b
    inputs = {"Input": x, "Filter": w, "Bias": b}
    check(
        "conv2d",
        inputs,
        {"data_format": "NHWC"},
        {"Output": want},
        grads=("Input", "Filter", "Bias"),
        atol=1e-5,
    )


def test_conv2d_of_no_images():
    out = run_kernel("conv2d", {"Input": np.zeros((0, 3, 5, 5), "float32"), "Filter": normal(2, 3, 3, 3)})
    assert out["Output"][0].shape == (0, 2, 3, 3)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("op_type", ["conv2d", "depthwise_conv2d"])
def test_conv2d_with_channels_last(op_type, case):
    attrs, pads = CASES[case]
    x, w = normal(2, 5, 4, 4), normal(4, 4 // attrs.get("groups", 1), 3, 2)
    strides, dilations = attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    want = convolved(x.transpose(0, 3, 1, 2), w, strides, pads, dilations, attrs.get("groups", 1))
    attrs = {**attrs, "data_format": "NHWC"}
    want = want.transpose(0, 2, 3, 1)
    inputs = {"Input": x, "Filter": w}
    check(op_type, inputs, attrs, {"Output": want}, grads=("Input", "Filter"), atol=1e-5, grad_atol=1e-5)


@pytest.mark.parametrize("last", [False, True])
def test_conv3d_in_groups_with_every_attribute(last):
    x, w = normal(2, 4, 5, 6, 4), normal(6, 2, 2, 3, 2)
    pads = [(1, 0), (0, 2), (1, 1)]
    want = convolved(x, w, [2, 1, 1], pads, [1, 2, 1], 2)
    if last:
        x, want = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.moveaxis(want, 1, -1)
    attrs = {"strides": [2, 1, 1], "paddings": [1, 0, 0, 2, 1, 1], "dilations": [1, 2, 1], "groups": 2}
    attrs["data_format"] = "NDHWC" if last else "NCDHW"
    inputs = {"Input": x, "Filter": w}
    check("conv3d", inputs, attrs, {"Output": want}, grads=("Input", "Filter"), atol=1e-5, grad_atol=1e-5)


@pytest.mark.parametrize("layout", ["NHWC", "NCDHW", "NDHWC"])
def test_empty_batches_of_other_layouts(layout):
    channels, dims = (-1, len(layout) - 2) if layout[-1] == "C" else (1, len(layout) - 2)
    shape = [0] + [5] * (dims + 1)
    shape[channels] = 3
    out = run_kernel(
        f"conv{dims}d",
        {"Input": np.zeros(shape, "float32"), "Filter": normal(2, 3, *[3] * dims)},
        {"data_format": layout},
    )["Output"][0]
    assert out.shape == tuple(np.moveaxis(np.zeros((0, 2, *[3] * dims)), 1, channels).shape)


def test_conv3d():
    x, w = normal(1, 2, 3, 4, 3), normal(2, 2, 2, 2, 1)
    attrs = {"strides": [1, 2, 1], "paddings": [1, 0, 0]}
    want = convolved(x, w, [1, 2, 1], [(1, 1), (0, 0), (0, 0)], [1, 1, 1])
    check("conv3d", {"Input": x, "Filter": w}, attrs, {"Output": want}, grads=("Input", "Filter"), atol=1e-5)


def spread(x, w, strides, pads, dilations, size, groups=1):
    """The definition of the transpose: each element adds its filter, [C, M / groups, K...], around its
    place.
    """
    room = [n + sum(p) + 8 for n, p in zip(size, pads, strict=True)]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *room))
    per = x.shape[1] // groups
    for c, m in itertools.product(range(x.shape[1]), range(w.shape[1])):
        for place in itertools.product(*map(range, x.shape[2:])):
            for k in itertools.product(*map(range, w.shape[2:])):
                at = tuple(p * s + i * d for p, s, i, d in zip(place, strides, k, dilations, strict=True))
                out[(slice(None), c // per * w.shape[1] + m, *at)] += (
                    x[(slice(None), c, *place)] * w[(c, m, *k)]
                )
    inner = tuple(slice(before, before + n) for n, (before, _) in zip(size, pads, strict=True))
    return out[(slice(None), slice(None), *inner)].astype("float32")


@pytest.mark.parametrize(
    ("attrs", "size"),
    [
        ({}, (5, 5)),
        ({"strides": [2, 2], "paddings": [1, 0], "output_size": [6, 8]}, (6, 8)),
        ({"groups": 2}, (5, 5)),
        ({"dilations": [2, 1]}, (7, 5)),
    ],
)
@pytest.mark.parametrize("op_type", ["conv2d_transpose", "depthwise_conv2d_transpose"])
def test_conv2d_transpose(op_type, attrs, size):
    x, w = normal(2, 2, 3, 4), normal(2, 1, 3, 2)
    pads = [(p, p) for p in attrs.get("paddings", [0, 0])]
    strides, dilations = attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    want = spread(x, w, strides, pads, dilations, size, attrs.get("groups", 1))
    inputs = {"Input": x, "Filter": w}
    check(op_type, inputs, attrs, {"Output": want}, grads=("Input", "Filter"), atol=1e-5)


@pytest.mark.parametrize("layout", ["NHWC", "NDHWC", "NCDHW"])
def test_transposes_in_groups_of_other_layouts(layout):
    dims = len(layout) - 2
    x, w = normal(2, 4, *[3, 2, 4][:dims]), normal(4, 3, *[2, 3, 1][:dims])
    size = [(n - 1) * 2 + k for n, k in zip(x.shape[2:], w.shape[2:], strict=True)]
    want = spread(x, w, [2] * dims, [(0, 0)] * dims, [1] * dims, size, 2)
    if layout[-1] == "C":
        x, want = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.moveaxis(want, 1, -1)
    attrs = {"strides": [2] * dims, "paddings": [0] * dims, "dilations": [1] * dims, "groups": 2}
    inputs = {"Input": x, "Filter": w}
    check(
        f"conv{dims}d_transpose",
        inputs,
        {**attrs, "data_format": layout},
        {"Output": want},
        grads=("Input", "Filter"),
        atol=1e-5,
    )


@pytest.mark.parametrize(("channels", "filters"), [(3, 1), (5, 2)])
def test_channels_of_a_transpose_beyond_a_multiple_of_groups_do_nothing(channels, filters):
    """As in Paddle 1.8.5."""
    x, w = normal(2, channels, 3, 4), normal(channels, filters, 3, 2)
    used = channels // 2 * 2
    want = spread(x[:, :used], w[:used], [1, 1], [(0, 0)] * 2, [1, 1], (5, 5), 2)
    inputs = {"Input": x, "Filter": w}
    check("conv2d_transpose", inputs, {"groups": 2}, {"Output": want}, grads=("Input", "Filter"), atol=1e-5)


def test_conv3d_transpose():
    x, w = normal(1, 2, 2, 2, 2), normal(2, 1, 2, 2, 1)
    want = spread(x, w, [1] * 3, [(0, 0)] * 3, [1] * 3, (3, 3, 2))
    check(
        "conv3d_transpose",
        {"Input": x, "Filter": w},
        {},
        {"Output": want},
        grads=("Input", "Filter"),
        atol=1e-5,
    )


@pytest.mark.parametrize(
    ("shapes", "attrs", "message"),
    [
        (((2, 3, 5, 5), (4, 2, 3, 3)), {}, "groups = 2 channels .* got 3"),
        (((2, 2, 5, 5), (3, 1, 3, 3)), {"groups": 2}, "multiple of groups = 2, got 3"),
        (((2, 2, 2, 5), (3, 2, 3, 3)), {}, "smaller than the filter"),
        (((2, 2, 1, 5), (3, 2, 3, 3)), {"strides": [2, 1]}, "smaller than the filter"),
        (((2, 2, 5), (3, 2, 3, 3)), {}, "as many dimensions as Filter .4., got 3"),
        (((2, 2, 5, 5), (3, 2, 3, 3)), {"paddings": [1, 2, 3]}, "2 or 4 elements, got"),
        (((2, 2, 5, 5), (3, 2, 3, 3)), {"strides": [0, 1]}, "must be positive"),
    ],
)
def test_what_does_not_fit_is_refused(shapes, attrs, message):
    inputs = {"Input": np.zeros(shapes[0], "float32"), "Filter": np.zeros(shapes[1], "float32")}
    with pytest.raises(OperatorError, match="^operator conv2d .*" + message):
        infer("conv2d", inputs, attrs)


def test_a_transpose_cannot_have_any_size():
    inputs = {"Input": normal(1, 2, 3, 3), "Filter": normal(2, 1, 3, 3)}
    with pytest.raises(OperatorError, match=r"output_size must be in \[5, 6\) along spatial axis 0, got 9"):
        infer("conv2d_transpose", inputs, {"output_size": [9, 5]})
