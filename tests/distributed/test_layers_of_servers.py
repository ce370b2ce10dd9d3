"""`fluid.layers.io.Send`, `Recv` and `ListenAndServ`, and operators on servers as eager functions."""

import multiprocessing

import numpy as np
import pytest

pytest.importorskip("grpc", reason="parameter servers need grpcio")

import fluidlite as fluid
from fluidlite import core, layers
from fluidlite.distributed.rpc.client import client
from fluidlite.executor.tensor_files import read_tensors
from fluidlite.initializer import Constant
from fluidlite.layers.io import BlockGuardServ, ListenAndServ, Recv, Send

from ..rpc.ports import free_port


def _serve(endpoint, trainers):
    """Scales what all trainers send: the sum is what they get."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        server = ListenAndServ(endpoint, ["X"], fan_in=trainers, optimizer_mode=False)
        with server.do():
            block = program.global_block()
            out = block.create_var(name="out", shape=[4, 2], dtype="float32", persistable=True)
            given = layers.data("X", [4, 2], append_batch_size=False)
            Constant(1.0)(given, block)
            Constant(0.0)(out, block)
            layers.assign(layers.scale(given, 10.0), out)
    fluid.Executor(fluid.CPUPlace()).run(program)


@pytest.fixture
def server():
    endpoint = f"127.0.0.1:{free_port()}"
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(endpoint, 1), daemon=True)
    process.start()
    yield endpoint
    client(0).complete()
    process.join(30)
    assert process.exitcode == 0


def test_what_is_sent_comes_back_from_the_block_of_the_server(server, tmp_path):
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = layers.data("X", [4, 2], append_batch_size=False)
        out = program.global_block().create_var(name="out", shape=[4, 2], dtype="float32")
        Constant(0.0)(out, program.global_block())
        Send(server, [x])
        assert Recv(server, [out]) == [out]
    exe = fluid.Executor(fluid.CPUPlace())
    for step in range(3):
        sent = np.arange(8, dtype="float32").reshape(4, 2) + step
        (got,) = exe.run(program, feed={"X": sent}, fetch_list=[out])
        np.testing.assert_array_equal(got, sent * 10)
    with fluid.dygraph.guard():
        ids, table = (
            fluid.dygraph.to_variable(np.array(a)) for a in ([[3], [0], [3]], np.zeros((4, 2), "float32"))
        )
        (rows,) = core.ops.distributed_lookup_table(
            [ids], table, 1, "table_names", ["out"], "height_sections", [4], "endpoints", [server]
        )
        np.testing.assert_array_equal(rows.numpy(), got[[3, 0, 3]])
        path = tmp_path / "whole"
        assert core.ops.recv_save(
            "endpoints", [server], "remote_varnames", ["out"], "shape", [4, 2], "file_path", str(path)
        ) is None  # fmt: skip
    with open(path, "rb") as file:
        np.testing.assert_array_equal(read_tensors(file, ["out"], path)["out"].array, got)


def _described(program):
    return [
        (
            op.type,
            {slot: names for slot, names in (*op.inputs.items(), *op.outputs.items()) if names},
            op.attr("endpoints") if op.has_attr("endpoints") else op.attr("epmap"),
        )
        for op in program.global_block().ops
    ]


def test_the_programs_are_those_of_paddle():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x, y = layers.data("x", [3]), layers.data("y", [3])
        token = layers.create_global_var([1], 0.0, "float32")
        assert Send("a:1,a:1", [x, y]) is None
        Recv("a:1", [y], sync=False)
        Send("a:1", [x], dummy_output=token, sync=False)
        Recv("a:1", [y], dummy_input=token)
    assert _described(program) == [
        ("send", {"X": ["x", "y"]}, ["a:1", "a:1"]),
        ("send_barrier", {}, ["a:1"]),
        ("recv", {"Out": ["y"]}, ["a:1"]),
        ("send", {"X": ["x"], "Out": [token.name]}, ["a:1"]),
        ("recv", {"X": [token.name], "Out": ["y"]}, ["a:1"]),
        ("fetch_barrier", {"Out": ["y"]}, ["a:1"]),
    ]
    assert [op.attr("op_role") for op in program.global_block().ops][:2] == [4, 0]
    with fluid.program_guard(program), pytest.raises(AssertionError, match="send_vars must be a list"):
        Send("a:1", x)
    with (
        fluid.program_guard(program),
        pytest.raises(AssertionError, match="2 endpoints, one for each of get_vars"),
    ):
        Recv("a:1,b:2", [x])


def test_servers_list_the_parameters_they_update():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        server = ListenAndServ("a:1", ["w@GRAD"], fan_in=2)
        with pytest.raises(AssertionError, match=r"within ListenAndServ\.do"):
            server.parent_block()
        weights = layers.create_parameter([3, 2], "float32", name="w")
        gradient = layers.data("w@GRAD", [3, 2], append_batch_size=False)
        rate = layers.fill_constant([1], "float32", 0.1)
        with server.do():
            takes = {"Param": [weights], "Grad": [gradient], "LearningRate": [rate]}
            program.current_block().append_op("sgd", takes, {"ParamOut": [weights]})
            assert server.get_params_and_grads() == (["w"], ["w@GRAD"])
            assert server.parent_block() is program.global_block()
            server.optimizer_mode = False
            assert server.get_params_and_grads()[0] == ["w@GRAD", rate.name, "w"]
    op = program.global_block().ops[-1]
    assert (op.type, op.attr("Fanin"), op.attr("endpoint")) == ("listen_and_serv", 2, "a:1")
    assert op.inputs["X"] == ["w@GRAD"] and op.attr("optimize_blocks") == [program.block(1)]
    with pytest.raises(TypeError, match="takes a ListenAndServ, got int"):
        BlockGuardServ(3)
