"""The print operator."""

from collections import Counter

import numpy as np

from fluidlite.ops.program import host
from fluidlite.ops.registry import OpView, find

from ..harness import ArrayMeta, run_kernel

X = np.arange(6, dtype="float32").reshape(3, 2)
LOD = {"In": [[[0, 1, 3]]]}


def shown(capsys, **attrs):
    made = run_kernel("print", {"In": X}, {"tensor_name": "x", **attrs}, LOD)
    np.testing.assert_array_equal(made["Out"][0], X)
    return capsys.readouterr().out


def test_what_is_printed(capsys):
    lines = shown(capsys, serial=-1, message="hello", summarize=4).splitlines()
    assert lines[0].split("\t")[1:] == ["hello", "The place is:CPUPlace"]
    assert lines[1:] == [
        "Tensor[x]",
        "\tshape: [3,2,]",
        "\tdtype: float32",
        "\tLoD: [[ 0,1,3, ]]",
        "\tdata: 0,1,2,3,",
    ]


def test_parts_can_be_left_out(capsys):
    out = shown(
        capsys,
        serial=-2,
        summarize=-1,
        print_tensor_name=False,
        print_tensor_type=False,
        print_tensor_shape=False,
        print_tensor_lod=False,
    )
    assert out.splitlines()[1:] == ["\tdata: 0,1,2,3,4,5,"]


def test_only_so_often(capsys, monkeypatch):
    monkeypatch.setattr(host, "_shown", Counter())
    assert [bool(shown(capsys, serial=-3, first_n=2)) for _ in range(4)] == [True, True, False, False]


def test_phases(capsys):
    assert shown(capsys, serial=-4, print_phase="FORWARD")
    assert not shown(capsys, serial=-4, print_phase="BACKWARD")
    assert shown(capsys, serial=-4, print_phase="BACKWARD", is_forward=False)


def test_gradient_is_printed_under_its_name():
    view = OpView(find("print"), {"In": ["x"]}, {"Out": ["y"]}, {"message": "m"}, ArrayMeta({"x": X}))
    (spec,) = find("print").grad(view)
    assert (spec.type, spec.inputs, spec.outputs) == ("print", {"In": ["y@GRAD"]}, {"Out": ["x@GRAD"]})
    assert spec.attrs["tensor_name"] == "y@GRAD" and spec.attrs["is_forward"] is False
