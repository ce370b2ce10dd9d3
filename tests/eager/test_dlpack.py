"""Tensors to and from other libraries by DLPack, with PyTorch and NumPy on the host and with CuPy on a GPU."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph
from fluidlite.backend import dlpack
from fluidlite.base.errors import EnforceNotMet
from fluidlite.dygraph import to_variable
from fluidlite.executor import LoDTensor
from fluidlite.paddle.utils.dlpack import from_dlpack, to_dlpack

from ..refusals import refuses

GPU, CPU = fluid.CUDAPlace(0), fluid.CPUPlace()


@pytest.fixture(autouse=True)
def guard():
    with dygraph.guard():
        yield


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def lod_tensor(array):
    tensor = LoDTensor()
    tensor.set(array, CPU)
    return tensor


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int16", "uint8", "int8", "bool"])
def test_torch_takes_tensors_and_shares_their_memory(torch, dtype):
    x = to_variable(np.array([[0, 1, 1], [1, 0, 1]], dtype))
    for taken in (torch.from_dlpack(x), torch.utils.dlpack.from_dlpack(to_dlpack(x))):
        assert taken.numpy().dtype == dtype and taken.tolist() == x.tolist()
        taken[0, 0] = 1 - int(taken[0, 0])
        assert x.tolist() == taken.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
def test_tensors_of_torch_are_taken_with_their_memory(torch, dtype):
    theirs = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, dtype))
    for x in (from_dlpack(theirs), from_dlpack(torch.utils.dlpack.to_dlpack(theirs))):
        assert x.array.dtype == dtype and x.stop_gradient and x.place == CPU
        theirs[0, 0] = 1 - int(theirs[0, 0])
        assert x.tolist() == theirs.tolist()
    theirs = None  # the memory lives as long as somebody has it
    assert x.numpy().shape == (2, 3)


def test_layouts_scalars_and_gradients(torch):
    theirs = torch.arange(6.0).reshape(2, 3)
    transposed = from_dlpack(theirs.t())
    assert transposed.array.flags.c_contiguous and transposed.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert from_dlpack(torch.tensor(3.0)).shape == [] and from_dlpack(torch.zeros(0, 2)).shape == [0, 2]
    x = from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(2)))
    x.stop_gradient = False
    fluid.layers.reduce_sum(x * x).backward()
    assert x.gradient().tolist() == [2, 2]
    x.set_value(np.zeros(2, "float32"))
    assert x.tolist() == [0, 0]
    assert torch.from_dlpack(x * 2.0 + 1.0).tolist() == [1, 1]


def test_lod_tensors_as_fluid_has_them(torch):
    tensor = lod_tensor(np.arange(4, dtype="int64"))
    capsule = tensor._to_dlpack()
    assert type(capsule).__name__ == "PyCapsule"
    imported = fluid.core.from_dlpack(capsule)
    assert isinstance(imported, fluid.LoDTensor) and np.array(imported).tolist() == [0, 1, 2, 3]
    refuses(lambda: fluid.core.from_dlpack(capsule), ValueError, "was taken before")
    assert torch.from_dlpack(tensor).tolist() == [0, 1, 2, 3]
    assert np.from_dlpack(tensor).tolist() == [0, 1, 2, 3]
    refuses(lambda: LoDTensor()._to_dlpack(), EnforceNotMet, "has not been set")


def test_what_cannot_be_taken_is_named():
    for wrong in (3, None, [1.0]):
        with pytest.raises(TypeError, match="from_dlpack takes a DLPack capsule, or an array or tensor"):
            from_dlpack(wrong)
    refuses(lambda: to_dlpack(np.ones(2)), TypeError, "to_dlpack takes an eager tensor, got ndarray")
    refuses(lambda: from_dlpack(np.ones(2, "complex64")), TypeError, "unknown data type")

    class Elsewhere:
        def __dlpack__(self, **options):
            raise AssertionError("not asked")

        def __dlpack_device__(self):
            return (8, 0)

    refuses(lambda: from_dlpack(Elsewhere()), ValueError, "got DLPack device type 8")


def test_numpy_asks_for_copies_and_versions():
    x = to_variable(np.arange(3.0))
    copied = np.from_dlpack(x, copy=True)
    copied[0] = 9
    assert x.tolist() == [0, 1, 2] and x.__dlpack_device__() == (1, 0)
    assert not hasattr(x, "__cuda_array_interface__")


def test_cupy_takes_tensors_of_a_gpu(cuda):
    with dygraph.guard(GPU):
        x = to_variable(np.arange(6, dtype="float32").reshape(2, 3))
        assert x.__dlpack_device__() == (2, 0)
        doubled = x * 2.0
        for taken in (
            cuda.from_dlpack(doubled),
            cuda.asarray(doubled),
            from_dlpack(to_dlpack(doubled)).array,
        ):
            assert taken.data.ptr == doubled.array.data.ptr
            assert taken.get().tolist() == [[0, 2, 4], [6, 8, 10]]
        assert doubled.__cuda_array_interface__["shape"] == (2, 3)


def test_arrays_of_cupy_are_taken_where_they_are(cuda):
    stream = cuda.cuda.Stream(non_blocking=True)
    with stream:
        theirs = cuda.arange(6, dtype="float32").reshape(2, 3) * 3
        x = from_dlpack(theirs)  # waits on the device for what the stream has to do
        y = (x + x).numpy()
    assert x.place == GPU and x.array.data.ptr == theirs.data.ptr
    assert y.tolist() == [[0, 6, 12], [18, 24, 30]]
    with stream:
        transposed = from_dlpack(theirs.T)
    assert transposed.array.flags.c_contiguous and transposed.tolist() == [[0, 9], [3, 12], [6, 15]]


def test_lod_tensors_of_a_gpu(cuda):
    tensor = LoDTensor()
    tensor.set(np.arange(3, dtype="float32"), GPU)
    taken = fluid.core.from_dlpack(tensor._to_dlpack())
    assert taken._place() == GPU and taken.array.data.ptr == tensor.array.data.ptr
    assert tensor.__dlpack_device__() == (2, 0) and np.array(taken).tolist() == [0, 1, 2]


def test_streams_of_consumers_wait(simulation):
    """A copy to the host on the consumer's stream, which is given nothing but the capsule, sees what was computed."""
    cupy = simulation.cupy
    with dygraph.guard(GPU):
        x = to_variable(np.ones((4, 4), "float32"))
        for stream in (None, 1, cupy.cuda.Stream(non_blocking=True)):
            y = fluid.layers.relu(x * 2.0) + 1.0
            number = stream.ptr if isinstance(stream, cupy.cuda.Stream) else stream
            array = y.array
            y.__dlpack__(stream=number)
            theirs = stream if isinstance(stream, cupy.cuda.Stream) else cupy.cuda.Stream.null
            assert array.get(stream=theirs).tolist() == [[3] * 4] * 4
        refuses(lambda: x.__dlpack__(stream=0), ValueError, "0")


def test_no_host_waits_when_tensors_are_given(simulation):
    with dygraph.guard(GPU):
        x = to_variable(np.ones(3, "float32"))
        stream = simulation.cupy.cuda.Stream(non_blocking=True)
        simulation.counters.reset()
        with stream:
            taken = simulation.cupy.from_dlpack(x + x)
        assert simulation.counters.syncs == 0
        assert taken.get(stream=stream).tolist() == [2, 2, 2]


def test_devices_are_distinguished_from_capsules():
    assert dlpack._code(np.ones(2).__dlpack__()) == (1, 0)
    assert dlpack._code(np.ones(2).__dlpack__(max_version=(1, 0))) == (1, 0)


class Foreign:
    """A tensor of a library that only speaks DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_to_variable_copies_tensors_of_other_libraries():
    theirs = np.arange(6, dtype="float32").reshape(2, 3)
    x = to_variable(Foreign(theirs))
    theirs[0, 0] = 9
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x.array.flags.writeable


def test_to_variable_refuses_what_is_no_tensor_and_what_cannot_be_taken():
    class Broken(Foreign):
        def __dlpack__(self, **options):
            raise BufferError("elements of 4 bits")

    with pytest.raises(TypeError, match="Broken cannot be made a tensor: elements of 4 bits"):
        to_variable(Broken(np.ones(2)))
    for value in ([1.0], lod_tensor(np.ones((2, 1))), np.float32(1)):
        with pytest.raises(TypeError, match="expected type is 'ndarray' or 'Variable'"):
            to_variable(value)
