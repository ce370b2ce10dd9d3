"""Arrays of the simulated CuPy refuse what CuPy refuses."""

import numpy as np
import pytest

from . import simulated


@pytest.fixture
def a(cp):
    return cp.asarray(np.arange(6, dtype="float32").reshape(2, 3))


def test_functions_compute_as_numpy(cp, a):
    plain = a.get()
    np.testing.assert_array_equal((a * 2 - a / 4).get(), plain * 2 - plain / 4)
    np.testing.assert_array_equal(cp.where(a > 2, a, 0.0).get(), np.where(plain > 2, plain, np.float32(0)))
    np.testing.assert_array_equal(a.sum(axis=1, keepdims=True).get(), plain.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(cp.concatenate([a, a[::-1]]).get(), np.concatenate([plain, plain[::-1]]))


@pytest.mark.parametrize(
    "use",
    [
        lambda cp, a: np.asarray(a),
        lambda cp, a: a + np.ones(3, "float32"),
        lambda cp, a: np.ones(3, "float32") * a,
        lambda cp, a: cp.add(a, [1, 2, 3]),
        lambda cp, a: cp.where(a > 1, np.zeros(3), a),
        lambda cp, a: cp.concatenate([a, np.ones((1, 3))]),
        lambda cp, a: cp.sum(a, where=a > 1),
        lambda cp, a: cp.add(a, a, where=a > 1),
        lambda cp, a: cp.sum([1, 2]),
        lambda cp, a: range(cp.array(3)),
        lambda cp, a: a.__setitem__(0, [1, 2, 3]),
        lambda cp, a: cp.add(a, 1.5, out=cp.zeros((2, 3), "int32")),
        lambda cp, a: cp.add.at(cp.zeros(3, "int64"), cp.array([0]), 1),
    ],
)
def test_type_errors(cp, a, use):
    with pytest.raises(TypeError):
        use(cp, a)


def test_other_refusals(cp, a):
    with pytest.raises(ValueError, match="non-scalar numpy.ndarray cannot be used for fill"):
        a[0] = np.ones(3)
    with pytest.raises(IndexError):
        a[np.array([0, 1])]
    with pytest.raises(ValueError, match="Unsupported dtype"):
        cp.array(["text"])
    with pytest.raises(NotImplementedError, match="not supported yet"):
        cp.multiply.at(a, cp.array([0]), 2.0)
    with pytest.raises(KeyError):
        a.flags["WRITEABLE"]
    assert not hasattr(cp, "errstate") and not hasattr(cp, "float96")


def test_indices_out_of_range_wrap_around(cp, a):
    np.testing.assert_array_equal(a[cp.array([0, 3])].get(), a.get()[[0, 1]])
    np.testing.assert_array_equal(cp.take(a, cp.array([2, -1]), axis=0).get(), a.get()[[0, 1]])
    with pytest.raises(IndexError):
        a[5]


def test_results_without_dimensions_are_arrays(cp, a):
    assert isinstance(a.sum(), cp.ndarray) and isinstance(a[0, 1], cp.ndarray)
    assert float(a[0, 1]) == 1.0 and a.argmax().item() == 5
    a[0, 1][...] = 9
    assert float(a[0, 1]) == 9.0


def test_numpy_functions_give_arrays_of_the_device(cp, a):
    assert isinstance(np.zeros_like(a), cp.ndarray)
    assert isinstance(np.float32(2) * a, cp.ndarray) and isinstance(np.exp(a), cp.ndarray)


def test_what_waits_is_counted(sim, cp, a):
    sim.counters.reset()
    b = (a + 1).reshape(3, 2).T
    b[...] = 0
    assert sim.counters.syncs == 0
    for wait in (lambda: b.get(), lambda: bool(b[0, 0] > 1), lambda: cp.nonzero(b), lambda: b[b > 1]):
        sim.counters.reset()
        wait()
        assert sim.counters.syncs >= 1


def test_fresh_memory_holds_garbage(cp):
    assert np.isnan(cp.empty(4, "float32").get()).all()
    made = cp.full(4, 7.0, "float32")
    cp.cuda.Stream.null.synchronize()
    del made
    assert np.isnan(cp.empty(4, "float32").get()).all()


def test_the_dtype_of_numpy_scalars_depends_on_the_version():
    for version, dtype in (("13.6.0", "float32"), ("14.2.0", "float64")):
        with simulated(cupy_version=version) as sim:
            assert (sim.cupy.ones(2, "float32") * np.float64(2)).dtype == dtype


def test_parameters_are_those_of_cupy(cp, a):
    with pytest.raises(TypeError):
        a.sum(initial=1)
    with pytest.raises(TypeError):
        a.argsort(stable=True)
    with pytest.raises(ValueError, match="stable"):
        cp.sort(a, kind="mergesort")
