"""transpiler.details, debugger, graphviz and net_drawer; texts are recorded from Paddle 1.8.5."""

import io
import logging
import socket
import threading

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import debugger, graphviz, layers, net_drawer
from fluidlite.transpiler import details


@pytest.fixture
def program():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3], "float32", lod_level=1)
        fluid.optimizer.SGD(0.1).minimize(layers.mean(layers.fc(x, 2, act="relu")))
        yield main


def test_variables_and_operators_as_code(program):
    block = program.global_block()
    assert details.variable_to_code(block.var("x")) == (
        "var x : fluid.VarType.LOD_TENSOR.shape(-1, 3).astype(VarType.FP32)"
    )
    assert details.variable_to_code(block.var("fc_0.w_0")) == (
        "persist trainable parameter fc_0.w_0 : fluid.VarType.LOD_TENSOR.shape(3, 2).astype(VarType.FP32)"
    )
    assert details.op_to_code(block.ops[0]) == (
        "{Out=['fc_0.tmp_0']} = mul(inputs={X=['x'], Y=['fc_0.w_0']}, force_fp32_output = False, op_device = , "
        "op_namescope = /, op_role = 0, op_role_var = [], scale_out = 1.0, scale_x = 1.0, scale_y = [1.0], "
        "use_mkldnn = False, x_num_col_dims = 1, y_num_col_dims = 1)"
    )
    out = io.StringIO()
    details.program_to_code(program, out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "{ // block 0"
    assert lines[1].startswith("    persist trainable parameter fc_0.b_0 : ")
    assert len(lines) == 1 + len(block.vars) + 1 + len(block.ops) + 1


def test_operators_are_found_and_deleted(program):
    block = program.global_block()
    assert details.find_op_by_input_arg(block, "x") == 0
    assert details.find_op_by_output_arg(block, "fc_0.tmp_1") == 1
    assert details.find_op_by_output_arg(block, "fc_0.w_0", reverse=True) == len(block.ops) - 1
    assert details.find_op_by_output_arg(block, "nothing") == -1
    details.delete_ops(block, block.ops[-2:])
    assert block.ops[-1].type == "mul_grad"


def test_union_find():
    sets = details.UnionFind(["a", "b", "c", "d"])
    sets.union("a", "b")
    sets.union("c", "b")
    assert sets.is_connected("a", "c") and not sets.is_connected("a", "d")
    assert sets.find("a") == sets.find("b") and sets.find("nothing") == -1


def test_parts_of_variables(program):
    weight, bias = (program.global_block().var(name) for name in ("fc_0.w_0", "fc_0.b_0"))
    parts = details.VarsDistributed()
    parts.add_distributed_var(weight, bias, None, 0, 0, "Param", "127.0.0.1:1")
    parts.add_distributed_var(weight, weight, None, 1, 3, "Opt", "127.0.0.1:2")
    assert parts.overview().splitlines()[1] == (
        "var owned: Opt, origin var: ( fc_0.w_0 : fluid.VarType.LOD_TENSOR.shape(3, 2).astype(VarType.FP32) ), "
        "slice var: ( fc_0.w_0 : fluid.VarType.LOD_TENSOR.shape(3, 2).astype(VarType.FP32).slice(False).block(1)"
        ".offset(3) ), endpoint: 127.0.0.1:2 "
    )
    first, second = parts.distributed_vars
    assert first.is_slice and not second.is_slice
    assert parts.get_distributed_var_by_slice("fc_0.b_0") is first
    assert parts.get_distributed_var_by_origin_and_ep("fc_0.w_0", "127.0.0.1:2") is second
    assert parts.get_distributed_vars_by_vtypes(["Opt"], groupby=True) == {"fc_0.w_0": [second]}
    assert parts.get_distributed_vars_by_ep("127.0.0.1:1", "Opt") == []


def test_a_server_is_waited_for():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        waiting = threading.Thread(
            target=details.wait_server_ready, args=([f"127.0.0.1:{server.getsockname()[1]}"],)
        )
        waiting.start()
        waiting.join(20)
        assert not waiting.is_alive()


def test_blocks_as_text(program):
    lines = debugger.pprint_program_codes(program).splitlines()
    assert lines[:4] == [
        "// block-0  parent--1",
        "// variables",
        "LoDTensor x (level=1, tensor(type=float32, shape=[-1, 3]))",
        "Tensor fc_0.w_0 (tensor(type=float32, shape=[3, 2]))",
    ]
    assert any(line.startswith("fc_0.tmp_0 = mul(X=x, Y=fc_0.w_0) [{") for line in lines)
    assert not any("@GRAD" in line for line in lines)
    assert "mean_0.tmp_0@GRAD = 1.0 [shape=[1]]" in debugger.pprint_block_codes(program.global_block(), True)


def test_pictures(program, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "block.dot"
    debugger.draw_block_graphviz(program.global_block(), highlights=["fc_0.w_0"], path=str(path))
    text = path.read_text()
    assert text.startswith('digraph G {\ntitle = "some graph"\nlayout="dot";\n')
    assert text.count("orange") == 2 + 6  # the weight and its gradient, and the arrows at both
    assert "there is no program dot" in caplog.text
    graph = net_drawer.draw_graph(fluid.default_startup_program(), program)
    assert len(graph.edges) == sum(
        len(op.input_arg_names) + len(op.output_arg_names)
        for drawn in (fluid.default_startup_program(), program)
        for op in drawn.global_block().ops
    )


def test_nodes_and_arrows():
    graph = graphviz.Graph("pairs", layout="dot")
    group = graph.rank_group("same", 1)
    one = graph.node("one", "arg", shape="box", width=1.5, rank=group)
    other = graph.node("other", "op")
    graph.edge(one, other, color="red")
    assert f'{one.name} [label=one ,shape="box",width=1.5 ];' in graph.code()
    assert f"{{rank=same;{one.name}}}" in graph.code()
    assert f'{one.name} -> {other.name} [color="red"]' in graph.code()


def test_what_is_not_finite_is_named(program, caplog):
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()), caplog.at_level(logging.WARNING):
        exe.run(fluid.default_startup_program())
        feed = {"x": np.ones((2, 3), "float32")}
        (loss,) = debugger.run_fast_nan_inf_debug(exe, program, feed=feed, fetch_list=["mean_0.tmp_0"])
        assert loss.shape == (1,) and not caplog.records
        feed["x"][0, 0] = np.nan
        debugger.run_fast_nan_inf_debug(exe, program, feed=feed, fetch_list=["mean_0.tmp_0"])
    assert "operator mul is the first that is not finite: fc_0.tmp_0 = mul(X=x" in caplog.text
