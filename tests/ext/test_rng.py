"""The random streams against numbers that Fluid 1.8.5 drew on the CPU with the same seeds."""

import numpy as np
import pytest

from fluidlite._ext import rng

# Columns: seed, then what the operators drew with it.
UNIFORM = {  # on [-1.5, 2)
    90: "-0x1.7e2ff8p+0 0x1.920890p-1 -0x1.12ed08p+0 -0x1.48eee8p-1 -0x1.180d5cp+0 -0x1.3f6ab4p+0 -0x1.2165e8p-2",
    2147483647: "-0x1.7ffad8p+0 -0x1.33cf98p+0 0x1.359fb8p-1 0x1.9ee23cp+0 0x1.e349d0p+0 -0x1.ac1370p-1",
}
NORMAL = {  # mean 0.5, deviation 2
    90: "-0x1.6ab810p-3 -0x1.024af8p-1 0x1.4eb05ap+1 -0x1.01b11cp-1 0x1.c180d2p+0 0x1.f9a420p-1 0x1.352868p-2",
    2147483647: "0x1.242e38p+1 0x1.ec3890p-1 -0x1.1e4716p+2 0x1.3aefa0p+0 0x1.23ed64p+1 -0x1.3bd6cap+0",
}
TRUNCATED = {
    90: [-1.9654492, 0.37444264, -1.0850686, -0.6538108, -1.1100687, -1.3312708, -0.3725325, 0.8638342],
    2147483647: [
        -1.9996016, -1.2595629, 0.24492067, 1.1445048, 1.6133305, -0.8280929, 0.03583854, -0.2464964,
    ],
}  # fmt: skip
RANDINT = {  # on [-3, 11)
    90: [-3, 6, -2, 0, -2, -2, 1, 8, 6, 9, -3, 3, 2, 9, 0, -3],
    2147483647: [-3, -2, 5, 9, 10, -1, 4, 2, 0, 7, -2, 4, 5, 8, 5, 4],
}
MASK = {
    (90, 0.3): "0100001111011100111111110110110111100111",
    (90, 0.5): "0100000111000100110110110110100010100100",
    (2147483647, 0.3): "0011101101011111111101111101101111111110",
    (2147483647, 0.5): "0011101001011111111100111101101001011110",
}


def numbers(text: str) -> np.ndarray:
    return np.array([float.fromhex(word) for word in text.split()], np.float32)


@pytest.mark.parametrize("seed", UNIFORM)
def test_uniform_is_fluids_bit_for_bit(seed):
    want = numbers(UNIFORM[seed])
    got = rng.uniform(seed, -1.5, 2.0, want.size)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("seed", NORMAL)
def test_normal_is_fluids_to_an_ulp_of_the_logarithm(seed):
    want = numbers(NORMAL[seed])
    np.testing.assert_allclose(rng.normal(seed, 0.5, 2.0, want.size), want, rtol=3e-7)


def test_double_precision_is_a_stream_of_its_own():
    words = "0x1.92088cbe4f628p-1 -0x1.48eee8696f6fcp-1 -0x1.3f6ab36c2dc58p+0"
    uniform = [float.fromhex(word) for word in words.split()]
    got = rng.uniform(90, -1.5, 2.0, 3, True)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, uniform)
    normal = [
        float.fromhex(word)
        for word in "-0x1.f921e8123b0d4p+0 0x1.fbb441d04ef7ap+0 0x1.f4fc067de8166p-3".split()
    ]
    np.testing.assert_allclose(rng.normal(90, 0.5, 2.0, 3, True), normal, rtol=1e-15)


@pytest.mark.parametrize("seed", TRUNCATED)
def test_truncated_normal_follows_fluids_stream(seed):
    want = np.array(TRUNCATED[seed], np.float32)
    np.testing.assert_allclose(rng.truncated_normal(seed, 0.0, 1.0, want.size), want, atol=3e-6)
    np.testing.assert_allclose(rng.truncated_normal(seed, 1.0, 0.5, want.size), 1 + want / 2, atol=3e-6)


@pytest.mark.parametrize("seed", RANDINT)
def test_integers_are_fluids(seed):
    want = RANDINT[seed]
    got = rng.randint(seed, -3, 11, len(want))
    assert got.dtype == np.int64
    assert got.tolist() == want


@pytest.mark.parametrize("seed, prob", MASK)
def test_dropout_masks_are_fluids(seed, prob):
    want = MASK[seed, prob]
    got = rng.dropout_mask(seed, prob, len(want))
    assert got.dtype == np.uint8
    assert "".join(map(str, got)) == want


def test_dropout_with_probability_zero_keeps_and_with_one_drops_everything():
    assert rng.dropout_mask(7, 0.0, 1000).all()
    assert not rng.dropout_mask(7, 1.0, 1000).any()


def test_seeds_that_the_generator_cannot_hold_count_as_one():
    one = rng.uniform(1, 0.0, 1.0, 5)
    np.testing.assert_array_equal(rng.uniform(0, 0.0, 1.0, 5), one)
    np.testing.assert_array_equal(rng.uniform(2147483647, 0.0, 1.0, 5), one)


def test_the_truncated_normal_stays_within_two_sigma_and_has_its_moments():
    drawn = rng.truncated_normal(11, 0.0, 1.0, 100_000)
    assert np.abs(drawn).max() <= 2.0 + 1e-6
    assert abs(drawn.mean()) < 0.01
    assert abs(drawn.std() - 0.8796) < 0.01


def test_nothing_is_drawn_for_n_zero():
    for drawn in (
        rng.uniform(1, 0, 1, 0),
        rng.normal(1, 0, 1, 0),
        rng.truncated_normal(1, 0, 1, 0),
        rng.randint(1, 0, 2, 0),
        rng.dropout_mask(1, 0.5, 0),
    ):
        assert drawn.shape == (0,)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="negative, got -1"):
        rng.uniform(1, 0, 1, -1)
    with pytest.raises(ValueError, match="low 3 and high 3"):
        rng.randint(1, 3, 3, 4)


INTEGERS = {
    (0, 2147483645): [337896, 1278240557, 449829613, 518142576, 1665781404, 704006133, 1298864185, 1688048240],
    (0, 2147483646): [337896, 1278240557, 449829613, 518142576, 1665781404, 704006133, 1298864185, 1688048240],
    (0, 2147483647): [
        1278240557, 518142576, 1432299807, 1249809431, 2073592675, 1645572782, 2109593000, 1226194020,
    ],
    (-5, 2147483640): [337891, 1278240552, 449829608, 518142571, 1665781399, 704006128, 1298864180, 1688048235],
    (-2147483648, 2147483647): [
        -869243091, -1629341072, 1688048238, 1981546505, -715183841, -897674217, -73890973, -501910866,
    ],
}  # fmt: skip
"""Fluid's draws with seed 7, for ranges that just fit one number of the generator, and wider ones."""


@pytest.mark.parametrize("bounds", INTEGERS)
def test_integers_of_ranges_as_wide_as_the_generator_and_wider(bounds):
    assert rng.randint(7, *bounds, 8).tolist() == INTEGERS[bounds]


@pytest.mark.parametrize("bounds", [(-(2**63), 2**63 - 1), (0, 2**62), (-3, 2**40)])
def test_integers_of_any_range_are_even(bounds):
    low, high = bounds
    drawn = rng.randint(1, low, high, 4000).astype(object)
    assert min(drawn) >= low and max(drawn) < high
    quarters = np.bincount([int(4 * (n - low) // (high - low)) for n in drawn], minlength=4)
    assert (abs(quarters - 1000) < 120).all()
