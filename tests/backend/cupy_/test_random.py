"""Random numbers on the GPU."""

import math

import numpy as np
import pytest

from fluidlite.backend.cupy_ import launch
from fluidlite.backend.cupy_.launchers import random
from fluidlite.base import seeds
from fluidlite.base.dtypes import VarType

from .agreement import agree, gpu, launched, on_gpu, rand, refused, replayed

pytestmark = pytest.mark.usefixtures("cuda")

FP32, FP64, INT32, INT64 = (int(kind) for kind in (VarType.FP32, VarType.FP64, VarType.INT32, VarType.INT64))

KNOWN = [  # the authors' vectors: counter, key, result
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def test_philox_gives_the_published_words(cuda):
    more = 'extern "C" __global__ void words(u64 a, u64 b, u64 key, u32 *out) { philox(a, b, key, out); }'
    kernel = cuda.RawModule(
        code=launch.source("random") + more, options=("-std=c++17", "-DSCALAR=float")
    ).get_function("words")
    for (a, b, c, d), (low, high), expected in KNOWN:
        with gpu().active():
            out = cuda.empty(4, "uint32")
            kernel(
                (1,), (1,), (np.uint64(b << 32 | a), np.uint64(d << 32 | c), np.uint64(high << 32 | low), out)
            )
        assert tuple(gpu().get(out).tolist()) == expected


def drawn(op_type: str, **attrs) -> np.ndarray:
    return gpu().get(launched(op_type, {}, **attrs)[0])


@pytest.mark.parametrize("dtype", [FP32, FP64])
def test_uniform(dtype):
    x = drawn("uniform_random", shape=[101, 99], dtype=dtype, min=-1.0, max=3.0)
    assert x.dtype == ("float32" if dtype == FP32 else "float64")
    assert -1 <= x.min() < -0.98 and 2.98 < x.max() < 3
    counts, _ = np.histogram(x, 20, (-1, 3))
    assert ((counts - x.size / 20) ** 2 / (x.size / 20)).sum() < 60  # chi squared, 19 degrees of freedom
    assert abs(np.corrcoef(x.ravel()[:-1], x.ravel()[1:])[0, 1]) < 0.05


@pytest.mark.parametrize("dtype", [FP32, FP64])
def test_normal(dtype):
    x = drawn("gaussian_random", shape=[20001], dtype=dtype, mean=2.0, std=3.0)
    z = np.sort((x - 2) / 3)
    ideal = np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in z])
    assert np.abs(ideal - np.arange(1, x.size + 1) / x.size).max() < 0.02  # Kolmogorov and Smirnov
    assert 3.2 < np.abs(z).max() < 7


@pytest.mark.parametrize("dtype", [FP32, FP64])
def test_truncated_normal(dtype):
    x = drawn("truncated_gaussian_random", shape=[20000], dtype=dtype, mean=-1.0, std=0.5)
    assert np.abs(x + 1).max() <= 1.0 + 1e-6
    assert abs(x.mean() + 1) < 0.02 and abs(x.std() / 0.5 - 0.8796) < 0.02


@pytest.mark.parametrize("dtype", [INT32, INT64])
def test_integers(dtype):
    x = drawn("randint", shape=[9001], dtype=dtype, low=-3, high=6)
    assert x.dtype == ("int32" if dtype == INT32 else "int64")
    values, counts = np.unique(x, return_counts=True)
    assert values.tolist() == list(range(-3, 6)) and counts.min() > 850


def test_every_draw_is_another():
    seen = [drawn("uniform_random", shape=[50]) for _ in range(3)]
    assert len({x.tobytes() for x in seen}) == 3
    assert len(np.unique(np.concatenate(seen))) == 150


def test_a_seed_gives_the_numbers_of_the_cpu():
    for dtype in (FP32, FP64):
        agree("uniform_random", {}, shape=[3, 4], seed=7, dtype=dtype)
        agree("gaussian_random", {}, shape=[5], seed=7, mean=1.0, std=2.0, dtype=dtype)
        agree("truncated_gaussian_random", {}, shape=[40], seed=7, dtype=dtype)
    for dtype in (INT32, INT64):
        agree("randint", {}, shape=[9], seed=7, low=2, high=9, dtype=dtype)
    batch = np.zeros((6, 2), "float32")
    agree("uniform_random_batch_size_like", {"Input": batch}, shape=[-1, 3], seed=5)
    agree("gaussian_random_batch_size_like", {"Input": batch}, shape=[-1, 3], seed=5)
    agree("uniform_random", {}, shape=[70000], seed=7)


def test_what_is_left_to_the_host():
    assert refused("uniform_random", {}, shape=[4], diag_num=2)
    assert refused("uniform_random", {"ShapeTensor": np.array([3])}, shape=[])
    assert refused("dropout", {"X": rand(3), "Seed": np.array([3], "int32")})


@pytest.mark.parametrize("kind", ["upscale_in_train", "downgrade_in_infer"])
def test_dropout(kind):
    x = rand(101, 33)
    for prob in (0.0, 0.3, 1.0):
        attrs = {"dropout_prob": prob, "dropout_implementation": kind}
        out, mask = (gpu().get(made) for made in launched("dropout", on_gpu({"X": x}), **attrs))
        factor = 1 / (1 - prob) if kind == "upscale_in_train" and prob < 1 else 1.0
        assert mask.dtype == np.uint8 and set(np.unique(mask)) <= {0, 1}
        assert abs(mask.mean() - (1 - prob)) < 0.04
        np.testing.assert_allclose(out, x * mask * np.float32(factor), 1e-6)
        agree("dropout_grad", {"Mask": mask, "Out@GRAD": rand(101, 33, seed=1)}, **attrs)
        agree("dropout", {"X": x}, seed=3, **attrs)
        agree("dropout", {"X": x}, fix_seed=True, **attrs)
        agree("dropout", {"X": x}, is_test=True, **attrs)


def test_dropout_of_nothing_and_in_double():
    out, mask = launched("dropout", on_gpu({"X": rand(0, 3)}))
    assert out.shape == mask.shape == (0, 3)
    agree("dropout", {"X": rand(5, dtype="float64")}, seed=2)


def test_reseeding_reproduces_the_numbers():
    try:
        runs = []
        for _ in range(2):
            seeds.reseed(11)
            runs.append([drawn("gaussian_random", shape=[9]), drawn("uniform_random", shape=[9])])
        for first, second in zip(*runs, strict=True):
            np.testing.assert_array_equal(first, second)
        seeds.reseed(12)
        assert (drawn("gaussian_random", shape=[9]) != runs[0][0]).all()
    finally:
        seeds.reseed(None)


def test_replays_draw_new_numbers():
    x = {"X": np.ones(500, "float32")}
    before = gpu().get(random.generator(gpu()))
    masks = [replayed("dropout", x, x)[1] for _ in range(2)]
    assert 0.35 < (masks[0] != masks[1]).mean() < 0.65
    after = gpu().get(random.generator(gpu()))
    assert (after - before).tolist() == [0, 4, 0]  # two warm runs and two replays have drawn


def test_replays_with_a_seed_draw_the_same():
    x = {"X": np.ones(500, "float32")}
    expected = agree("dropout", x, seed=3)[1]
    np.testing.assert_array_equal(replayed("dropout", x, x, seed=3)[1], expected)
