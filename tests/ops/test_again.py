"""Which calls are made again, how, and for how much work."""

import pytest

from fluidlite.ops.again import again, work
from fluidlite.ops.registry import Call


def test_dropout_goes_by_its_mask():
    found = again(Call("dropout.f32", ["x", "out", "mask"], [8, 1, 0], [0.3]), ["x"], ["out", "mask"])
    assert found.call == Call("dropout_grad.f32", ["x", "mask", "out"], [8, 1], [0.3])
    assert found.results == ["out"]


def test_batch_norm_reads_no_statistics_that_move():
    names = ["x", "scale", "bias", "mean", "variance", "y", "mean", "variance", "saved", "inverse"]
    call, results = again(Call("batch_norm.f32", names, [2, 3, 4, 1], [1e-5, 0.9]), names[:5], names[5:])
    assert "mean" not in call.operands[:5]
    assert "variance" not in call.operands[:5]
    assert list(results) == names[5:]


@pytest.mark.parametrize(
    "kernel", ["dropout_mask", "lstm.f32", "sgd.f32", "relu_grad.f32", "conv2d_grad_input.f32"]
)
def test_others_are_not_made_again(kernel):
    assert again(Call(kernel, ["a", "b"], [4]), ["a"], ["b"]) is None


def test_what_is_changed_in_place_is_not_made_again():
    call = Call("chain", ["a", "b", "a"], [4])
    assert again(call, ["a", "b"], ["a", "c"]) is None
    assert again(call, ["a", "b"], ["c"]) is not None


@pytest.mark.parametrize(
    "call, multiplied",
    [
        (Call("gemm.f32", ["a", "b", "c", None], [4, 5, 6, 0, 0], [1, 0]), 4 * 5 * 6),
        (Call("gemm_batched.f32", ["a", "b", "c"], [4, 5, 6, 0, 0, 7, 1, 1, 1], [1, 0]), 4 * 5 * 6 * 7),
        # 100 bytes are 25 results, of 3 channels in windows of 5 x 2.
        (Call("conv2d.f32", ["a", "b", None, "c"], [2, 6, 9, 9, 8, 5, 2, *[1] * 8, 2]), 25 * 3 * 10),
        (Call("conv2d_plain.f32", ["a", "b", None, "c"], [2, 3, 9, 9, 8, 5, 2, *[1] * 8, 1]), 25 * 3 * 10),
        (Call("conv3d.f32", ["a", "b", None, "c"], [2, 6, 9, 9, 9, 8, 5, 2, 1, *[1] * 12, 2]), 25 * 3 * 10),
        (Call("attention.f32", ["a", "b", "c", None, None], [2, 3, 4, 5, 6, 7]), 2 * 3 * 4 * 5 * (6 + 7)),
        (Call("tanh.f32", ["a", "c"], [25]), 0),
    ],
)
def test_products_are_counted_as_work(call, multiplied):
    moved = 100 * sum(name is not None for name in call.operands)
    assert work(call, lambda name: 100) == pytest.approx(moved + multiplied / 3)
