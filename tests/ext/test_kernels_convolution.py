"""Convolutions of images as they lie, and their gradients, against sums over the window in double."""

import itertools

import numpy as np
import pytest

from fluidlite import core
from fluidlite._ext import kernels
from fluidlite._ext.arity import count_windows
from fluidlite._ext.engine import TOO_LARGE, Engine, KernelFailure

from .native import blank, draw, each_target, near

CASES = {
    "few of everything": (2, 3, 9, 9, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
    "runs of whole units": (5, 20, 12, 12, 50, 5, 5, 1, 1, 0, 0, 0, 0, 1, 1),
    "one channel, long rows": (2, 1, 28, 43, 20, 5, 5, 1, 1, 0, 0, 0, 0, 1, 1),
    "window of one element": (3, 17, 7, 7, 33, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1),
    "small images, much depth": (16, 300, 2, 2, 270, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1),
    "every other element": (2, 5, 8, 9, 9, 1, 1, 2, 2, 0, 0, 0, 0, 1, 1),
    "every other row": (2, 5, 9, 8, 9, 1, 1, 2, 1, 0, 0, 0, 0, 1, 1),
    "strides and borders": (3, 8, 9, 11, 13, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1),
    "deep window": (1, 3, 32, 32, 16, 7, 7, 2, 2, 3, 3, 3, 3, 1, 1),
    "gaps in the window": (2, 300, 6, 5, 20, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2),
    "gaps and strides": (2, 3, 13, 12, 7, 2, 4, 3, 2, 1, 0, 2, 3, 3, 3),
    "borders alone": (2, 2, 1, 1, 3, 3, 3, 1, 1, 4, 3, 4, 3, 1, 1),
    "more stride than image": (2, 2, 5, 4, 3, 2, 2, 7, 6, 0, 0, 0, 0, 1, 1),
    "few places, many filters": (8, 512, 2, 2, 520, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1),
    "few places, strides": (4, 300, 8, 8, 530, 1, 1, 2, 2, 0, 0, 0, 0, 1, 1),
    "few places, rows left out": (2, 130, 8, 8, 530, 1, 1, 3, 1, 0, 0, 0, 0, 1, 1),
    "few places, borders": (2, 200, 3, 3, 600, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
    "window of one element, borders": (2, 130, 5, 6, 140, 1, 1, 2, 3, 1, 2, 2, 1, 1, 1),
    "window of one element, many places": (9, 40, 17, 19, 30, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1),
    "pieces of images": (9, 12, 30, 30, 21, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
}
STATISTICS = draw(4, 64, seed=7, low=0.5)
"""Scale, shift, mean and variance."""


def results(sizes):
    """The output and the gradients of images and filters in double; the images, the filters and what comes back."""
    n, c, h, w, oc, kh, kw, sh, sw, top, bottom, left, right, dh, dw = sizes
    x, filters = draw(n, c, h, w), draw(oc, c, kh, kw, seed=1)
    padded = np.pad(x.astype(float), [(0, 0), (0, 0), (top, bottom), (left, right)])
    oh, ow = (
        (h + top + bottom - (kh - 1) * dh - 1) // sh + 1,
        (w + left + right - (kw - 1) * dw - 1) // sw + 1,
    )
    back = draw(n, oc, oh, ow, seed=2)
    out, d_padded, d_filters = np.zeros(back.shape), np.zeros(padded.shape), np.zeros(filters.shape)
    for i, j in itertools.product(range(kh), range(kw)):
        at = (
            slice(None),
            slice(None),
            slice(i * dh, i * dh + (oh - 1) * sh + 1, sh),
            slice(j * dw, j * dw + (ow - 1) * sw + 1, sw),
        )
        out += np.einsum("nchw,oc->nohw", padded[at], filters[:, :, i, j].astype(float))
        d_padded[at] += np.einsum("nohw,oc->nchw", back.astype(float), filters[:, :, i, j])
        d_filters[:, :, i, j] = np.einsum("nohw,nchw->oc", back.astype(float), padded[at])
    return out, d_padded[:, :, top : top + h, left : left + w], d_filters, x, filters, back


def filled(array):
    return np.full(array.shape, np.nan, "float32")


@each_target
@pytest.mark.parametrize("case", CASES)
def test_convolutions_and_gradients(case, target):
    sizes = CASES[case]
    out, d_x, d_filters, x, filters, back = results(sizes)
    for want, part, operands in (
        (out, "", [x, filters, None]),
        (d_x, "_grad_input", [filters, back]),
        (d_filters, "_grad_filter", [x, back]),
    ):
        got = filled(want)
        kernels.call(f"conv2d_plain{part}.f32", [*operands, got], sizes, target=target)
        scale = max(1.0, np.abs(want).max())
        near(got / scale, want / scale, "f32", 3)


@each_target
@pytest.mark.parametrize("normalised", [False, True])
def test_bias_statistics_and_activation(normalised, target):
    sizes = CASES["pieces of images"]
    out, _, _, x, filters, _ = results(sizes)
    scale, shift, mean, variance = STATISTICS[:, :21].copy()
    bias = draw(21, seed=5)
    each = (slice(None), None, None)
    for added, (act, end) in itertools.product(
        (None, bias),
        enumerate([lambda v: v, lambda v: np.maximum(v, 0), lambda v: 1 / (1 + np.exp(-v)), np.tanh]),
    ):
        want = out if added is None else out + added[each]
        operands, name, floats = [x, filters, added, filled(out)], "conv2d_plain", []
        if normalised:
            want = (want - mean[each]) / np.sqrt(variance[each] + 1e-5) * scale[each] + shift[each]
            operands += [scale, shift, mean, variance]
            name, floats = "conv2d_plain_norm", [1e-5]
        kernels.call(f"{name}.f32", operands, [*sizes, act], floats, target=target)
        near(operands[3], end(want), "f32", 30)


@each_target
def test_what_is_not_a_number_stays_where_it_is_seen(target):
    sizes = (1, 2, 9, 9, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1)
    x, filters, out = draw(1, 2, 9, 9), draw(5, 2, 3, 3, seed=1), blank(1, 5, 9, 9)
    x[0, 1, 4, 4] = np.nan
    kernels.call("conv2d_plain.f32", [x, filters, None, out], [*sizes, 1], target=target)
    assert np.isnan(out[:, :, 3:6, 3:6]).all() and np.isnan(out).sum() == 5 * 9
    d_x = blank(1, 2, 9, 9)
    kernels.call("conv2d_plain_grad_input.f32", [filters, out, d_x], sizes, target=target)
    assert np.isnan(d_x).sum() == 2 * 25


@each_target
def test_nothing_to_convolve(target):
    for n, c, h, oc in ((0, 3, 5, 4), (2, 0, 5, 4), (2, 3, 5, 0)):
        sizes = [n, c, h, 5, oc, 3, 3, 1, 1, 0, 0, 0, 0, 1, 1]
        x, filters, back = blank(n, c, h, 5), blank(oc, c, 3, 3), blank(n, oc, max(0, h - 2), 3)
        kernels.call("conv2d_plain.f32", [x.copy(), filters.copy(), None, back], sizes, target=target)
        d_x, d_filters = blank(*x.shape), blank(*filters.shape)
        kernels.call("conv2d_plain_grad_input.f32", [filters, back, d_x], sizes, target=target)
        kernels.call("conv2d_plain_grad_filter.f32", [x, back, d_filters], sizes, target=target)
        assert not back.any() and not d_x.any() and not d_filters.any()


@pytest.mark.parametrize(
    "case", [name for name in CASES if name.startswith(("few places", "window of one", "pieces"))]
)
def test_results_do_not_depend_on_the_number_of_threads(case):
    sizes = CASES[case]
    *_, x, filters, back = results(sizes)
    found = []
    try:
        for threads in (1, 3):
            core.set_num_threads(threads)
            made = [filled(back), filled(x), filled(filters)]
            kernels.call("conv2d_plain.f32", [x, filters, None, made[0]], sizes)
            kernels.call("conv2d_plain_grad_input.f32", [filters, back, made[1]], sizes)
            kernels.call("conv2d_plain_grad_filter.f32", [x, back, made[2]], sizes)
            found.append(made)
    finally:
        core.set_num_threads(0)
    for one, several in zip(*found, strict=True):
        np.testing.assert_array_equal(one, several)


NO_WINDOW = {
    "larger by less than a stride": (1, 8, 2, 5, 8, 3, 3, 2, 2, 0, 0, 0, 0, 1, 1),
    "larger by a stride": (1, 8, 5, 2, 8, 3, 4, 1, 2, 0, 0, 0, 0, 1, 1),
    "much larger": (1, 8, 5, 5, 8, 3, 3, 3, 3, 1, 0, 1, 0, 4, 4),
}


@pytest.mark.parametrize("case", NO_WINDOW)
@pytest.mark.parametrize("name", ["conv2d_plain", "conv2d"])
def test_windows_that_do_not_fit_are_refused(name, case):
    """By one rule for all implementations, before a call, and in the kernel itself, whose sizes may change."""
    if not kernels.available(f"{name}.f32"):
        pytest.skip("oneDNN is missing")
    sizes = [*NO_WINDOW[case], *([1] if name == "conv2d" else [])]
    n, c, h, w, oc, kh, kw = sizes[:7]
    x, filters, out = draw(n, c, h, w), draw(oc, c, kh, kw), blank(n, oc, 9, 9)
    for part, operands in (
        ("", [x, filters, None, out]),
        ("_grad_input", [filters, out, x]),
        ("_grad_filter", [x, out, filters]),
    ):
        with pytest.raises(ValueError, match="does not fit into"):
            kernels.call(f"{name}{part}.f32", operands, sizes)
        plan = Engine(len(operands))
        plan.add(f"{name}{part}.f32", [-1 if one is None else k for k, one in enumerate(operands)], sizes)
        for k, one in enumerate(operands):
            if one is not None:
                plan.bind(k, one)
        with pytest.raises(KernelFailure) as failure:
            plan.run()
        assert failure.value.code == TOO_LARGE and failure.value.err[0] > failure.value.err[1]
    assert (out == 77).all()


def test_windows_are_counted_alike():
    for size, before, after, count, dilation, step in itertools.product(
        (1, 2, 7), (0, 1), (0, 2), (1, 3), (1, 2), (1, 2, 3)
    ):
        reach = (count - 1) * dilation + 1
        starts = [k for k in range(0, size + before + after, step) if k + reach <= size + before + after]
        if starts:
            assert count_windows(size, before, after, count, dilation, step) == len(starts)
        else:
            with pytest.raises(ValueError, match="does not fit"):
                count_windows(size, before, after, count, dilation, step)
