"""The tensor format, against files that Paddle 1.8.5 wrote."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from fluidlite.base.errors import FormatError
from fluidlite.executor.lod_tensor import LoDTensor
from fluidlite.executor.tensor_files import read_tensors, write_tensor

from ...refusals import refuses

DATA = Path(__file__).parent / "data"
NAMES = ["t_float32", "t_float64", "t_int16", "t_int32", "t_int64", "t_int8", "z_lod"]


def as_bytes(*tensors: LoDTensor) -> bytes:
    file = io.BytesIO()
    for tensor in tensors:
        write_tensor(file, tensor)
    return file.getvalue()


def read_one(data: bytes) -> LoDTensor:
    return read_tensors(io.BytesIO(data), ["w"], "FILE")["w"]


def saved_by_paddle(name: str) -> bytes:
    return (DATA / "vars" / name).read_bytes()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float32", "float64"])
def test_same_bytes_as_paddle(dtype):
    array = (np.arange(6).reshape(2, 3) - 2).astype(dtype)
    data = saved_by_paddle(f"t_{dtype}")
    assert as_bytes(LoDTensor.wrap(array)) == data
    found = read_one(data)
    assert found.array.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found.array, array)
    found.array += 1  # writable memory of its own


@pytest.mark.parametrize("dtype", ["bool", "float16", "uint8"])
def test_types_that_paddle_only_writes_combined(dtype):
    array = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    data = saved_by_paddle(f"t_{dtype}")
    assert as_bytes(LoDTensor.wrap(array)) == data
    np.testing.assert_array_equal(read_one(data).array, array)


def test_levels_of_detail():
    data = saved_by_paddle("z_lod")
    found = read_one(data)
    assert found.lod() == [[0, 2, 3], [0, 2, 2, 5]]
    np.testing.assert_array_equal(found.array, np.arange(10, dtype="float32").reshape(5, 2))
    assert as_bytes(found) == data


def test_combined_file():
    with (DATA / "combined").open("rb") as file:
        found = read_tensors(file, NAMES, DATA / "combined")
    assert list(found) == NAMES
    assert as_bytes(*found.values()) == (DATA / "combined").read_bytes()
    assert found["t_int64"].array.tolist() == [[-2, -1, 0], [1, 2, 3]]


@settings(deadline=None)
@given(
    npst.arrays(
        st.sampled_from(
            ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"]
        ),
        npst.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4),
    )
)
def test_round_trip(array):
    found = read_one(as_bytes(LoDTensor.wrap(array)))
    assert found.array.tobytes() == np.ascontiguousarray(array).tobytes()
    assert (found.array.shape, found.array.dtype) == (array.shape, array.dtype)


def test_strided_memory_is_written_in_order():
    array = np.arange(12, dtype="float32").reshape(3, 4)[:, ::2].T
    np.testing.assert_array_equal(read_one(as_bytes(LoDTensor.wrap(array))).array, array)


def test_a_tensor_without_dimensions_gets_one():
    assert read_one(as_bytes(LoDTensor.wrap(np.array(3.5)))).array.tolist() == [3.5]


def test_what_cannot_be_written():
    refuses(lambda: as_bytes(LoDTensor()), ValueError, "has not been set")
    refuses(lambda: as_bytes(LoDTensor.wrap(np.zeros(2, "complex128"))), TypeError, "complex128")


def test_every_cut_is_noticed():
    data = saved_by_paddle("z_lod")
    for size in range(len(data)):
        with pytest.raises(FormatError, match="FILE"):
            read_one(data[:size])


def test_the_message_says_what_is_missing():
    with pytest.raises(FormatError) as caught:
        read_one(saved_by_paddle("t_float32")[:-5])
    assert str(caught.value) == (
        "FILE is cut off, or is not a file of tensors as Fluid writes them: expected 24 bytes for the "
        "float32 elements of variable 'w' with shape [2, 3] at offset 26, found 19"
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "format version should be 0"),
        (struct.pack("<IQ", 0, 1000) + bytes(64), "1000 levels of detail"),
        (struct.pack("<IQQ", 0, 1, 12) + bytes(64), "12 bytes, which is not a multiple of 8"),
        (struct.pack("<IQIi", 0, 0, 0, -4) + bytes(64), "description of variable 'w' would have -4 bytes"),
        (struct.pack("<IQIi", 0, 0, 0, 2) + b"\x08\x0f", "element type 15"),
        (struct.pack("<IQIi", 0, 0, 0, 4) + b"\x10\x02\x10\x03" + bytes(24), "data_type missing"),
        (struct.pack("<IQIi", 0, 0, 0, 13) + b"\x08\x05\x10" + b"\xff" * 9 + b"\x01", r"shape \[-1\]"),
        (bytes(64), "description of variable 'w' would have 0 bytes"),
    ],
)
def test_foreign_bytes_are_refused(data, problem):
    refuses(lambda: read_one(data), FormatError, problem)


def test_a_huge_shape_takes_no_memory():
    desc = b"\x08\x05" + b"\x10\xff\xff\xff\xff\x7f" * 3
    refuses(lambda: read_one(struct.pack("<IQIi", 0, 0, 0, len(desc)) + desc), FormatError, "is cut off")


def test_offsets_that_do_not_fit_are_refused():
    data = bytearray(saved_by_paddle("z_lod"))
    data[20 + 16 : 20 + 24] = struct.pack("<Q", 9)
    refuses(lambda: read_one(bytes(data)), FormatError, "invalid LoD")


def test_the_number_of_tensors_must_be_right():
    data = (DATA / "combined").read_bytes()
    with pytest.raises(FormatError, match="bytes after its 2 tensors: expected its end"):
        read_tensors(io.BytesIO(data), NAMES[:2], "FILE")
    with pytest.raises(FormatError, match="ends after 7 tensors, expected 8: 'zz'"):
        read_tensors(io.BytesIO(data), [*NAMES, "zz"], "FILE")
