"""Functions of one array on the GPU."""

import numpy as np
import pytest

from fluidlite.ops.registry import find, known_types

from .agreement import agree, gpu, launched, rand, refused

FUNCTIONS = sorted(
    op_type
    for op_type in known_types()
    if (find(op_type).dispatch.cuda or "").startswith("elementwise.function:")
)
DOMAIN = {"asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "log1p": (-0.9, 3)} | dict.fromkeys(
    ("log", "log2", "log10", "sqrt", "rsqrt"), (0.1, 5)
)
SIZES = [(1,), (3, 5), (2, 0), (257, 5)]

pytestmark = pytest.mark.usefixtures("cuda")


@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_value_and_gradient(op_type):
    low, high = DOMAIN.get(op_type, (-4, 4))
    for shape, dtype in [(shape, "float32") for shape in SIZES] + [((7, 3), "float64")]:
        x, g = rand(*shape, dtype=dtype, low=low, high=high), rand(*shape, dtype=dtype, seed=1)
        (out,) = agree(op_type, {"X": x}, times=4)
        if op_type == "sign":
            continue
        kept = {
            slot.name: {"X": x, "Out": out}[slot.name] for slot in find(op_type + "_grad").input_slots[:-1]
        }
        agree(op_type + "_grad", {**kept, "Out@GRAD": g}, times=4)


@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_infinities_and_nan(op_type):
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e30, 88.0, -104.0], "float32")
    agree(op_type, {"X": x}, times=4)


def test_attributes_arrive():
    x = rand(50)
    agree("leaky_relu", {"X": x}, alpha=0.3)
    agree("hard_swish", {"X": x}, threshold=5.0, scale=4.0, offset=2.0)
    agree("gelu", {"X": x}, approximate=True)
    agree("gelu_grad", {"X": x, "Out@GRAD": rand(50, seed=1)}, approximate=True)
    agree("softshrink", {"X": x}, **{"lambda": 0.9})


def test_clip_and_pow():
    x, g = rand(40), rand(40, seed=1)
    agree("clip", {"X": x}, min=-1.0, max=0.5)
    agree("clip_grad", {"X": x, "Out@GRAD": g}, min=-1.0, max=0.5)
    agree("pow", {"X": np.abs(x)}, factor=2.5)
    agree("pow_grad", {"X": np.abs(x), "Out@GRAD": g}, factor=2.5)
    agree("pow", {"X": x}, factor=2.0)
    assert refused("clip", {"X": x, "Min": np.zeros(1, "float32")}, max=0.5)


def test_other_types_are_left_to_the_reference_kernel():
    assert refused("relu", {"X": np.arange(4)})
    assert refused("relu_grad", {"Out": rand(3), "Out@GRAD": rand(3, dtype="float64")})


def test_elements_need_not_lie_side_by_side():
    x = rand(6, 4)
    with gpu().active():
        across = gpu().put(x).T
    (out,) = launched("tanh", {"X": across})
    np.testing.assert_allclose(gpu().get(out), np.tanh(x.T), 1e-6)
