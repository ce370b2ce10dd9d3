"""Weights in safetensors files, read and written beside the package of that name."""

import json
import struct
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import fluidlite as fluid
from fluidlite import weights
from fluidlite.base.errors import FormatError, NotSupportedError

from ...refusals import refuses

KINDS = (
    "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16",
    "uint8", "bool",
)  # fmt: skip


def arrays():
    random = np.random.default_rng(2)
    found = {f"a.{kind}": (random.uniform(0, 9, (3, 2))).astype(kind) for kind in KINDS}
    return {
        **found,
        "empty": np.zeros((0, 4), "float32"),
        "number": np.array(2.5),
        "ü": np.ones(3, "float32"),
    }


def same(got, want):
    assert got.keys() == want.keys()
    for name, array in want.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape
        np.testing.assert_array_equal(got[name], array)


def test_the_package_reads_what_we_write_and_the_other_way_round(tmp_path):
    weights.save(tmp_path / "folder" / "ours", arrays(), metadata={"made": "here"})
    same(load_file(tmp_path / "folder" / "ours"), arrays())
    same(weights.load(tmp_path / "folder" / "ours"), arrays())
    save_file(arrays(), tmp_path / "theirs", {"made": "there"})
    same(weights.load(tmp_path / "theirs"), arrays())


def test_arrays_in_another_order_or_of_other_bytes(tmp_path):
    given = {"a": np.arange(12.0).reshape(3, 4).T, "b": np.arange(4, dtype=">i4"), "c": np.arange(9)[::2]}
    weights.save(tmp_path / "x", given)
    same(load_file(tmp_path / "x"), {"a": given["a"], "b": np.arange(4, dtype="int32"), "c": given["c"]})


def write(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_bfloat16_becomes_float32(tmp_path):
    bits = np.array([0x3F80, 0xC020], "<u2")
    header = {"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}
    same(weights.load(write(tmp_path / "x", header, bits.tobytes())), {"a": np.array([1, -2.5], "float32")})


def entry(dtype="F32", shape=(2,), begin=0, end=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    "header",
    [
        b"{x",
        b"[" * 100_000,
        b"[1]",
        {"a": 3},
        {"a": entry(dtype=7)},
        {"a": entry(shape=[3])},
        {"a": entry(shape=[-2])},
        {"a": entry(shape=[2.5])},
        {"a": entry(shape=[1 << 62, 1 << 62])},
        {"a": entry(shape=[0, 1 << 70], end=0)},
        {"a": entry(begin=8, end=16)},
        {"a": entry(), "b": entry()},
        {"a": entry(shape=[1], end=4)},
        {},
    ],
)
def test_damaged_files_are_errors(header, tmp_path):
    with pytest.raises(FormatError, match="x is not a safetensors file, or a damaged one: "):
        weights.load(write(tmp_path / "x", header, bytes(8)))


def test_types_that_numpy_does_not_have(tmp_path):
    with pytest.raises(FormatError, match="'a' has elements of type 'F8_E4M3', which NumPy does not have"):
        weights.load(write(tmp_path / "x", {"a": entry(dtype="F8_E4M3", shape=[8])}, bytes(8)))


def test_without_the_package_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    refuses(lambda: weights.save(tmp_path / "x", {"a": np.zeros(1)}), NotSupportedError, "pip install")
    assert not (tmp_path / "x").exists()


def test_sizes_that_lie_and_files_that_end_early(tmp_path):
    path = tmp_path / "x"
    weights.save(path, arrays())
    data = path.read_bytes()
    for size in (*range(0, 40), len(data) - 1):
        path.write_bytes(data[:size])
        refuses(lambda: weights.load(path), FormatError, "x is not")
    path.write_bytes(struct.pack("<Q", 1 << 63) + data[8:])
    refuses(lambda: weights.load(path), FormatError, "x is not")


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_give_arrays_or_an_error(tmp_path_factory, changes):
    path = tmp_path_factory.getbasetemp() / "changed.safetensors"
    weights.save(path, {"a": np.arange(6.0).reshape(2, 3), "b": np.arange(4)})
    data = bytearray(path.read_bytes())
    for place, value in changes:
        data[place % len(data)] = value
    path.write_bytes(data)
    try:
        found = weights.load(path)
    except FormatError as error:
        assert "changed.safetensors" in str(error)
    else:
        assert sum(array.nbytes for array in found.values()) <= 2 * len(data)


def test_what_has_no_type_in_the_format_is_refused(tmp_path):
    for value in (np.array([1j]), np.array(["a"]), None):
        with pytest.raises(TypeError, match="'a' cannot be saved"):
            weights.save(tmp_path / "x", {"a": value})
    assert not (tmp_path / "x").exists()


def test_arguments_in_another_order_are_named(tmp_path):
    with pytest.raises(TypeError, match="the path and then the state, a dict of arrays, got dict and "):
        weights.save({"a": np.ones(2)}, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_names_of_another_framework_go_both_ways(tmp_path):
    rules = tmp_path / "names.json"
    rules.write_text(json.dumps({
        "layers.*.weight": {"name": "net.*.weight", "transpose": True}, "norm._mean": "bn.running_mean",
    }))  # fmt: skip
    state = {
        "layers.0.weight": np.arange(6.0).reshape(2, 3), "layers.1.weight": np.arange(3.0).reshape(3, 1),
        "layers.0.bias": np.arange(3.0), "norm._mean": np.ones(2),
    }  # fmt: skip
    weights.save(tmp_path / "x", state, rules)
    there = load_file(tmp_path / "x")
    assert sorted(there) == ["bn.running_mean", "layers.0.bias", "net.0.weight", "net.1.weight"]
    np.testing.assert_array_equal(there["net.0.weight"], state["layers.0.weight"].T)
    same(weights.load(tmp_path / "x", rules), state)


def test_rules_that_make_no_sense_are_errors(tmp_path):
    one = {"a": np.ones(2), "b": np.ones(2)}
    refuses(lambda: weights.renamed(one, {"a": "b"}), ValueError, "two tensors would be called 'b'")
    refuses(lambda: weights.renamed(one, {"a.*": "b"}), ValueError, "one \\* on both sides")
    with pytest.raises(ValueError, match=r"expected a matrix, got shape \[2\]"):
        weights.renamed(one, {"a": {"name": "c", "transpose": True}})
    refuses(lambda: weights.renamed(one, {"a": 3}), FormatError, "should be a name")
    (tmp_path / "rules").write_text("[]")
    refuses(lambda: weights.renamed(one, tmp_path / "rules"), FormatError, "rules should hold a JSON object")


def test_a_program_and_a_layer_give_and_take_their_weights(tmp_path):
    main, startup, exe = fluid.Program(), fluid.Program(), fluid.Executor(fluid.CPUPlace())
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3])
        out = fluid.layers.fc(x, 2)
        fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(out))
    feed = {"x": np.random.default_rng(2).uniform(-1, 1, (4, 3)).astype("float32")}
    test = main.clone(for_test=True)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        exe.run(main, feed=feed)
        want = exe.run(test, feed=feed, fetch_list=[out])[0]
        weights.save(tmp_path / "program", weights.program_state(main))
    assert "fc_0.w_0_moment1_0" in load_file(tmp_path / "program")
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fluid.set_program_state(main, weights.load(tmp_path / "program"))
        np.testing.assert_array_equal(exe.run(test, feed=feed, fetch_list=[out])[0], want)
    with fluid.dygraph.guard(), fluid.unique_name.guard():
        layer, other = fluid.dygraph.Linear(3, 2), fluid.dygraph.Linear(3, 2)
        weights.save(tmp_path / "layer", layer.state_dict(), {"weight": {"transpose": True}})
        assert load_file(tmp_path / "layer")["weight"].shape == (2, 3)
        other.set_dict(weights.load(tmp_path / "layer", {"weight": {"transpose": True}}))
        np.testing.assert_array_equal(other.weight.numpy(), layer.weight.numpy())
