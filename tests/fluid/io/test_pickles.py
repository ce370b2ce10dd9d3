"""`.pdparams` and `.pdopt`: the same bytes as Paddle's, and nothing in a file is ever run."""

import builtins
import pickle
import pickletools
import resource
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from fluidlite.base.errors import FormatError
from fluidlite.io.pickles import read_pickle, write_pickle

from ...refusals import refuses

DATA = Path(__file__).parent / "data"


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "file.pdparams"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["adam.pdparams", "adam.pdopt"])
def test_same_bytes_as_paddle(name, tmp_path):
    state = read_pickle(DATA / name)
    write_pickle(tmp_path / "own", state)
    assert (tmp_path / "own").read_bytes() == (DATA / name).read_bytes()


def test_reads_what_paddle_wrote():
    state = read_pickle(DATA / "adam.pdparams")
    assert list(state) == ["fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"]
    assert state["fc_0.w_0"].dtype == np.float32
    np.testing.assert_allclose(state["fc_0.b_0"], [-0.33811772, -0.76812738, -0.32370883], rtol=1e-7)
    state["fc_0.w_0"][:] = 0  # writable memory of its own


def test_the_names_are_those_of_numpy_1(tmp_path):
    write_pickle(tmp_path / "f", {"w": np.ones(3, "float32"), "v": np.zeros((2, 2))})
    named = {
        arg for code, arg, _ in pickletools.genops((tmp_path / "f").read_bytes()) if code.name == "GLOBAL"
    }
    assert named == {"numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype", "_codecs encode"}


def test_an_empty_dict(tmp_path):
    write_pickle(tmp_path / "f", {})
    assert read_pickle(tmp_path / "f") == {}


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_and_plain_value_is_read(protocol, tmp_path):
    state = OrderedDict(
        w=np.arange(6, dtype="float32").reshape(2, 3),
        fortran=np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        big_endian=np.arange(3, dtype=">i4"),
        flags=np.array([True, False]),
        half=np.ones(2, "float16"),
        empty=np.zeros((0, 3)),
        scalar=np.float32(1.5),
        nested={"list": [1, 2.5, "text", None], "tuple": (True, np.ones(1))},
    )
    found = read_pickle(written(tmp_path, pickle.dumps(state, protocol)))
    for name in ("w", "fortran", "big_endian", "flags", "half", "empty"):
        np.testing.assert_array_equal(found[name], state[name])
        assert found[name].dtype == state[name].dtype.newbyteorder("=")
    assert found["scalar"] == 1.5
    assert found["nested"]["list"] == state["nested"]["list"]
    assert found["nested"]["tuple"][1].tolist() == [1.0]


def test_a_file_of_python_2_is_read(tmp_path):
    # As Python 2 and NumPy 1 pickle {'w': numpy.array([1, 2], 'float32')}: the bytes are a byte string.
    data = (
        b"\x80\x02}U\x01wcnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K\x02\x85"
        b"cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        b"U\x08\x00\x00\x80?\x00\x00\x00@tbs."
    )
    assert read_pickle(written(tmp_path, data))["w"].tolist() == [1.0, 2.0]


class Hostile:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Hostile(eval, "1/0"), "eval"),
        (Hostile(builtins.__import__, "os"), "__import__"),
        (Hostile(np.load, "file"), "load"),
        (print, "print"),
        (np.array([1, None], dtype=object), "arrays of Python objects|elements 'O8'"),
        (np.zeros(2, [("x", "f4")]), "arrays of records"),
        (np.array(["a"]), "elements 'U1'"),
        ({1, 2}, "set"),
    ],
)
def test_what_is_not_plain_data_is_refused(value, named, tmp_path):
    path = written(tmp_path, pickle.dumps({"w": value}, 2))
    with pytest.raises(FormatError, match=named) as caught:
        read_pickle(path)
    assert str(path) in str(caught.value)
    assert "Nothing in it was run" in str(caught.value)


def test_the_functions_a_file_may_name_cannot_be_changed(tmp_path):
    # Names _codecs.encode and then sets an attribute of it.
    data = b"\x80\x02}X\x01\x00\x00\x00wc_codecs\nencode\n}X\x04\x00\x00\x00_runK\x01sbs."
    refuses(lambda: read_pickle(written(tmp_path, data)), FormatError, "a changed function")


def test_codecs_are_not_run(tmp_path):
    data = b"\x80\x02}X\x01\x00\x00\x00wc_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86Rs."
    refuses(lambda: read_pickle(written(tmp_path, data)), FormatError, "text in 'rot13'")


def test_every_cut_is_noticed(tmp_path):
    data = (DATA / "adam.pdparams").read_bytes()
    for size in range(0, len(data), 7):
        with pytest.raises(FormatError, match=r"file\.pdparams"):
            read_pickle(written(tmp_path, data[:size]))


def test_foreign_files_are_refused(tmp_path):
    refuses(lambda: read_pickle(written(tmp_path, b"hello")), FormatError, "got 5 bytes that cannot be read")
    with pytest.raises(FormatError, match="should hold a dict of arrays, but holds a list"):
        read_pickle(written(tmp_path, pickle.dumps([1])))
    refuses(lambda: read_pickle(DATA / "adam.pdmodel"), FormatError, "cannot be read")
    refuses(lambda: read_pickle(tmp_path / "nothing"), FileNotFoundError)


def test_a_lying_shape_is_refused(tmp_path):
    data = pickle.dumps({"w": np.ones(3, "float32")}, 2).replace(b"K\x03\x85", b"K\x04\x85")
    refuses(lambda: read_pickle(written(tmp_path, data)), FormatError, "reshape")


def array_of(data: bytes, size: int) -> bytes:
    """The instructions of an array of bytes, whose elements `data` puts on the stack."""
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
    kind = b"cnumpy\ndtype\n(X\x02\x00\x00\x00u1K\x00K\x01tR(K\x03X\x01\x00\x00\x00|NNN"
    kind += b"J\xff\xff\xff\xff" * 2 + b"K\x00tb"
    return made + b"(K\x01(" + b"J" + size.to_bytes(4, "little") + b"t" + kind + b"\x89" + data + b"tb"


LIES = {
    "a part of many bytes": b"\x80\x05}X\x01\x00\x00\x00a\x96\x00\x00\x00\x00\x02\x00\x00\x00s.",
    "bytes": b"\x80\x04}X\x01\x00\x00\x00a\x8e\x00\x00\x00\x00\x02\x00\x00\x00s.",
    "the number of a part": b"\x80\x02}r\xff\xff\xff\x7f.",
    "the number of a part in digits": b"(dp2000000000\n.",
    "too many digits": b"(dp" + b"9" * 4000 + b"\n.",
}


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("lie", LIES)
def test_sizes_that_lie_take_no_memory(lie, tmp_path):
    before = memory()
    refuses(lambda: read_pickle(written(tmp_path, LIES[lie])), FormatError, "cut off")
    assert memory() - before < 100 << 10


def test_lists_in_lists_are_read_once(tmp_path):
    """Each twice in the next: more than any memory, if each was a list of its own."""
    nested = ["x"]
    for _ in range(60):
        nested = [nested, nested]
    found = read_pickle(written(tmp_path, pickle.dumps({"w": nested}, 2)))["w"]
    assert found[0] is found[1]


@pytest.mark.parametrize("protocol", [2, 5])
def test_an_array_that_is_there_twice_is_one(protocol, tmp_path):
    array = np.arange(4.0)
    found = read_pickle(
        written(tmp_path, pickle.dumps({"a": array, "b": array, "c": [array, b"\x00"]}, protocol))
    )
    assert found["a"] is found["b"] is found["c"][0] and found["c"][1] == b"\x00"


SIZE = 1 << 16


@pytest.mark.parametrize("what", ["array", "text", "list"])
def test_pickles_that_outgrow_their_file_are_refused(what, tmp_path):
    """Many arrays of the same bytes, or many texts and dicts of the same ones, are far more than the file."""
    text = b"X" + SIZE.to_bytes(4, "little") + b"a" * SIZE + b"q\x000"
    if what == "array":
        data = text + b"]" + (array_of(b"h\x00", SIZE) + b"a") * 100
    elif what == "text":
        data = text + b"]" + b"c_codecs\nencode\n(h\x00X\x06\x00\x00\x00latin1tRa" * 100
    else:
        pairs = b"(" + b"".join(b"K" + bytes([k]) + b"N\x86" for k in range(200)) + b"l" + b"q\x000"
        data = pairs + b"]" + b"ccollections\nOrderedDict\n(h\x00tRa" * 1000
    with pytest.raises(FormatError, match="outgrow the file"):
        read_pickle(written(tmp_path, b"\x80\x02" + data + b"."))
