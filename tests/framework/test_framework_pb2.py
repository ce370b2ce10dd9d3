"""`fluid.proto.framework_pb2`: messages of files, for scripts that read them; numbers are those of Paddle 1.8.5."""

import struct
from pathlib import Path

import numpy as np

import fluidlite as fluid
from fluidlite.proto import framework_pb2


def test_shapes_are_read_from_parameter_files(tmp_path):
    """As scripts do that look whether pretrained parameters fit."""
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(fluid.Program(), fluid.Program()):
        fluid.layers.create_parameter([2, 3], "float32", attr=fluid.ParamAttr("w"))
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_params(exe, str(tmp_path))
    data = (tmp_path / "w").read_bytes()
    (size,) = struct.unpack_from("<i", data, 16)
    described = framework_pb2.VarType.TensorDesc()
    described.ParseFromString(data[20 : 20 + size])
    assert tuple(described.dims) == (2, 3) and described.data_type == framework_pb2.VarType.FP32 == 5
    assert np.frombuffer(data[20 + size :], "float32").size == 6


def test_programs_are_messages(programs):
    fluid.layers.scale(fluid.data("x", [None, 3]), 2.0)
    data = fluid.default_main_program().desc.serialize_to_string()
    block = framework_pb2.ProgramDesc.FromString(data).blocks[0]
    assert [op.type for op in block.ops] == ["scale"]
    (x,) = (var for var in block.vars if var.name == "x")
    assert x.type.type == framework_pb2.VarType.LOD_TENSOR and list(x.type.lod_tensor.tensor.dims) == [-1, 3]
    scale = next(attr for attr in block.ops[0].attrs if attr.name == "scale")
    assert scale.type == framework_pb2.FLOAT == 1 and scale.f == 2.0
    assert framework_pb2.AttrType.Name(framework_pb2.LONGS) == "LONGS"


def test_the_module_is_there_as_in_fluid():
    assert fluid.proto.framework_pb2 is framework_pb2


def test_messages_of_protobuf_in_python(python):
    """Scripts with message classes of an old protocol compiler need the Python implementation."""
    done = python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not in_python", __file__,
        Path(__file__).with_name("test_proto.py"),
        env={"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
