"""The stand-in for cuDNN refuses what cuDNN refuses."""

import ctypes
from ctypes import c_int, c_void_p

import pytest

from fluidlite.backend.cupy_ import dnn
from fluidlite.base.errors import EnforceNotMet

from . import cudnn

NUMBERS = dnn.integers


@pytest.fixture
def fake(simulation):
    with cudnn.patched() as found:
        dnn.cudnn()
        yield found


def tensor(shape, kind=dnn.FLOAT):
    made = dnn.created("TensorDescriptor")
    strides = [1]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)
    dnn.call("cudnnSetTensorNdDescriptor", made, kind, len(shape), NUMBERS(shape), NUMBERS(strides))
    return made


def filters(shape):
    made = dnn.created("FilterDescriptor")
    dnn.call("cudnnSetFilterNdDescriptor", made, 0, 0, len(shape), NUMBERS(shape))
    return made


def convolution(groups=1, pads=(0, 0), strides=(1, 1)):
    made = dnn.created("ConvolutionDescriptor")
    how = (NUMBERS(pads), NUMBERS(strides), NUMBERS((1, 1)))
    dnn.call("cudnnSetConvolutionNdDescriptor", made, 2, *how, 1, 0)
    dnn.call("cudnnSetConvolutionGroupCount", made, groups)
    return made


def room(x, w, how, y, number=0):
    """Ask for the workspace of a forward convolution, which compares all descriptors."""
    size = ctypes.c_size_t()
    handle = dnn.created("")
    dnn.call("cudnnGetConvolutionForwardWorkspaceSize", handle, x, w, how, y, number, ctypes.byref(size))
    return size.value


def test_descriptors_that_fit(fake):
    assert room(tensor((2, 4, 5, 5)), filters((6, 2, 3, 3)), convolution(2), tensor((2, 6, 3, 3)), 1) == 256


@pytest.mark.parametrize(
    ("x", "w", "groups", "y"),
    [
        ((2, 4, 5, 5), (6, 4, 3, 3), 2, (2, 6, 3, 3)),
        ((2, 4, 5, 5), (6, 4, 3, 3), 1, (2, 6, 3, 4)),
        ((2, 4, 5, 5), (6, 4, 3, 3), 1, (1, 6, 3, 3)),
        ((2, 4, 5, 5), (5, 2, 3, 3), 2, (2, 5, 3, 3)),
    ],
)
def test_sizes_that_do_not_fit(fake, x, w, groups, y):
    with pytest.raises(EnforceNotMet, match="2000"):
        room(tensor(x), filters(w), convolution(groups), tensor(y))


def test_other_types(fake):
    with pytest.raises(EnforceNotMet, match="2000"):
        double = tensor((2, 6, 3, 3), dnn.DOUBLE)
        room(tensor((2, 4, 5, 5)), filters((6, 4, 3, 3)), convolution(), double)


@pytest.mark.parametrize("make", [lambda: tensor((2, 0, 5, 5)), lambda: tensor((2, 5, 5))])
def test_tensors_that_cudnn_does_not_know(fake, make):
    with pytest.raises(EnforceNotMet, match="cudnnSetTensorNdDescriptor reports"):
        make()


@pytest.mark.parametrize("how", [{"pads": (-1, 0)}, {"strides": (0, 1)}, {"groups": 0}])
def test_convolutions_that_make_no_sense(fake, how):
    with pytest.raises(EnforceNotMet, match="cudnnSetConvolution"):
        convolution(**how)


def test_descriptors_of_another_kind_or_none(fake):
    x, w, y = tensor((2, 4, 5, 5)), filters((6, 4, 3, 3)), tensor((2, 6, 3, 3))
    for wrong in ((w, w), (x, x)):
        with pytest.raises(EnforceNotMet, match="2000"):
            room(*wrong, convolution(), y)
    dnn.call("cudnnDestroyTensorDescriptor", y)
    with pytest.raises(EnforceNotMet, match="2000"):
        room(x, w, convolution(), y)
    with pytest.raises(EnforceNotMet, match="cudnnDestroyTensorDescriptor reports"):
        dnn.call("cudnnDestroyTensorDescriptor", y)


def test_arguments_are_converted_as_c_wants_them(fake):
    with pytest.raises(ctypes.ArgumentError):
        dnn.call("cudnnSetConvolutionGroupCount", c_void_p(0x5000), 1.5)
    with pytest.raises(TypeError):
        fake.cudnnSetConvolutionGroupCount(c_int(1))
