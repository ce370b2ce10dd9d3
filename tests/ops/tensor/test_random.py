"""Random operators: recorded streams, moments, and when numbers repeat."""

import numpy as np
import pytest

from fluidlite.base.dtypes import VarType
from fluidlite.ops.registry import OperatorError, find
from fluidlite.ops.tensor.random_ import _place

from ..harness import infer, run_kernel

# What Paddle 1.8.5 drew with seed 3.
_UNIFORM = [-0.9998651, -0.4898053, 0.6081157, 0.3496677, 0.8077342, 0.1381387]
_NORMAL = [2.1872685, 3.0648081, 1.3008784]


def _out(op_type, attrs, **inputs):
    return run_kernel(op_type, inputs, attrs)["Out"][0]


def test_uniform_random_repeats_paddle():
    made = _out("uniform_random", {"shape": [2, 3], "seed": 3})
    assert made.dtype == np.float32
    np.testing.assert_allclose(made.ravel(), _UNIFORM, rtol=1e-6)


def test_uniform_random_diagonal():
    attrs = {"shape": [3, 3], "seed": 3, "diag_num": 3, "diag_step": 3, "diag_val": 9.0}
    made = _out("uniform_random", attrs)
    np.testing.assert_array_equal(np.diag(made), [9, 9, 9])
    assert (made == 9).sum() == 3
    with pytest.raises(ValueError, match="reaches beyond the 9 elements"):
        _out("uniform_random", {**attrs, "diag_num": 4})


def test_gaussian_random_repeats_paddle():
    made = _out("gaussian_random", {"shape": [3], "mean": 1.0, "std": 2.0, "seed": 3})
    np.testing.assert_allclose(made, _NORMAL, rtol=2e-6)


@pytest.mark.parametrize(
    ("op_type", "seed", "numbers"),
    [
        # What Paddle 1.8.5 drew.
        ("uniform_random", -1, [-0.99995506, -0.8299351, 0.20270526]),
        ("gaussian_random", -5, [-0.59363425, -1.0324041, -0.15043926]),
        ("truncated_gaussian_random", -3, [1.9996016, 1.2595625, -0.24492052]),
    ],
)
def test_seeds_below_0_are_taken_for_unsigned_ones(op_type, seed, numbers):
    np.testing.assert_allclose(_out(op_type, {"shape": [3], "seed": seed}), numbers, rtol=1e-5)


def test_randint_repeats_paddle():
    made = _out("randint", {"shape": [6], "low": 0, "high": 10, "seed": 7})
    np.testing.assert_array_equal(made, [0, 5, 2, 2, 7, 3])
    assert made.dtype == np.int64
    assert _out("randint", {"shape": [2], "high": 3, "dtype": int(VarType.INT32)}).dtype == np.int32


def test_truncated_gaussian_random_is_cut_at_two_deviations():
    made = _out("truncated_gaussian_random", {"shape": [4000], "mean": 1.0, "std": 2.0, "seed": 5})
    assert np.abs(made - 1).max() <= 4
    assert abs(made.mean() - 1) < 0.1
    assert abs(made.std() - 2 * 0.8796) < 0.1


@pytest.mark.parametrize("op_type", ["uniform_random", "gaussian_random", "truncated_gaussian_random"])
def test_without_a_seed_numbers_are_new(op_type):
    first, second = (_out(op_type, {"shape": [8]}) for _ in range(2))
    assert not np.array_equal(first, second)
    assert find(op_type).effects.random


@pytest.mark.parametrize(
    ("op_type", "like"),
    [
        ("uniform_random", "uniform_random_batch_size_like"),
        ("gaussian_random", "gaussian_random_batch_size_like"),
    ],
)
def test_batch_size_like(op_type, like):
    x = np.zeros((3, 2), "float32")
    attrs = {"shape": [-1, 4], "seed": 2}
    np.testing.assert_array_equal(_out(like, attrs, Input=x), _out(op_type, {"shape": [3, 4], "seed": 2}))
    assert infer(like, {"Input": x}, attrs)["Out"][0] == ((3, 4), VarType.FP32)


@pytest.mark.parametrize("op_type", ["uniform_random", "gaussian_random", "randint"])
def test_shape_from_variables(op_type):
    attrs = {"shape": [-1, 3], "seed": 4, **({"high": 9} if op_type == "randint" else {})}
    sizes = [np.array([2], "int32"), np.array([3], "int32")]
    made = _out(op_type, attrs, ShapeTensorList=sizes)
    assert made.shape == (2, 3)
    np.testing.assert_array_equal(made, _out(op_type, attrs, ShapeTensor=np.array([2, 3], "int32")))
    assert infer(op_type, {"ShapeTensorList": sizes}, attrs)["Out"][0][0] == (2, 3)
    assert infer(op_type, {"ShapeTensorList": sizes}, {**attrs, "shape": []})["Out"][0][0] == (2, 3)


def test_half_precision_rounds_the_stream_of_single_precision():
    made = _out("uniform_random", {"shape": [3], "seed": 3, "dtype": int(VarType.FP16)})
    assert made.dtype == np.float16
    np.testing.assert_allclose(made, _UNIFORM[:3], rtol=1e-3)


def test_double_precision_has_a_stream_of_its_own():
    made = _out(
        "uniform_random", {"shape": [3], "seed": 90, "min": -1.5, "max": 2.0, "dtype": int(VarType.FP64)}
    )
    assert made.dtype == np.float64
    np.testing.assert_allclose(
        made, [0.7852214796363954, -0.6424477223115157, -1.2477218760593782], rtol=1e-15
    )


def test_randint_needs_a_range():
    with pytest.raises(OperatorError, match="low must be below high, got 3 and 3"):
        infer("randint", {}, {"shape": [1], "low": 3, "high": 3})


def test_seed_is_given_or_new():
    assert _out("seed", {"seed": 7}).tolist() == [7]
    drawn = {int(_out("seed", {})[0]) for _ in range(4)}
    assert len(drawn) == 4 and min(drawn) > 0
    assert _out("seed", {}).dtype == np.int32


@pytest.mark.parametrize(
    ("shape", "cut", "seed", "firsts", "seeds"),
    [
        ([5, 7, 9], [3, 4], 11, [[5, 94, 153, 218, 289], [2, 102, 156, 230, 280]], [2115326081, 1474374447]),
        (
            [2, 3, 100],
            [7],
            -5,
            [[93, 186, 237, 310, 403, 576], [56, 169, 224, 385, 441, 539]],
            [1041581486, 408952498],
        ),
    ],
)
def test_random_crop_repeats_paddle(shape, cut, seed, firsts, seeds):
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    for first, following in zip(firsts, seeds, strict=True):
        made = run_kernel("random_crop", {"X": x, "Seed": np.array([seed])}, {"shape": cut})
        parts = made["Out"][0].reshape(-1, *cut)
        assert parts[(slice(None), *[0] * len(cut))].tolist() == first
        seed = made["SeedOut"][0].item()
        assert seed == following


def test_positions_of_crops_are_drawn_by_rejection():
    # Of 2**31 - 3 places that the generator tells apart, 2**30 are left once the numbers are divided.
    state = 2**30 + 1
    assert _place(state, (2**30 + 1,)) == [state - 1] and _place(state + 1, (2**30 + 1,)) != [state]
