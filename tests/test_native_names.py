"""Small names of Fluid that scripts and its own tests use: of `fluid.core`, `fluid.op` and helpers of layers."""

import os
import signal

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import core, distribute_lookup_table, multiprocess_utils, net_drawer
from fluidlite.base import missing
from fluidlite.base.errors import EnforceNotMet
from fluidlite.base.names import stand_ins
from fluidlite.base.names.stand_ins import why_never
from fluidlite.layers import control_flow
from fluidlite.layers.layer_function_generator import escape_math
from fluidlite.reader.watchdog import ParentWatchDog

from .refusals import refuses


@pytest.fixture
def linear(programs):
    """A program of one layer, its input and its output."""
    x = fluid.data("x", [None, 3])
    return fluid.default_main_program(), x, fluid.layers.fc(x, 2)


def test_what_never_comes_says_why():
    for name in stand_ins._REASONS:
        module, _, last = name.rpartition(".")
        found = missing.found_or_stand_in(module, last)
        assert why_never(found) == stand_ins.reason(name)
        with pytest.raises(missing.NotSupportedError, match=r"will not be in fluidlite: \w"):
            found()
    assert stand_ins.reason("fluid.load_op_library") == stand_ins.reason("fluid.framework.load_op_library")
    assert stand_ins.reason("fluid.layers.fc") is None and why_never(fluid.layers.fc) is None


def test_graphs(linear):
    graph = core.Graph(linear[0].desc)
    order = core.topology_sort(graph)
    assert [node.name() for node in order] == ["mul", "elementwise_add"]
    before = {
        node.name(): {other.name() for other in core.build_adjacency_list(graph)[node]} for node in order
    }
    assert before == {"mul": set(), "elementwise_add": {"mul"}}
    assert not core.has_circle(graph) and core.graph_num(graph) == 1
    core.graph_safe_remove_nodes(graph, {order[1]})
    assert [node.name() for node in core.topology_sort(graph)] == ["mul"]


def test_passes(linear, tmp_path):
    builder = core.PassBuilder()
    builder.append_pass("fc_fuse_pass")
    drawn = builder.insert_pass(0, "graph_viz_pass")
    assert [step.type() for step in builder.all_passes()] == ["graph_viz_pass", "fc_fuse_pass"]
    builder.remove_pass(0)
    assert [step.type() for step in builder.all_passes()] == ["fc_fuse_pass"]
    graph = core.Graph(linear[0].desc)
    refuses(lambda: drawn.apply(graph), EnforceNotMet, "graph_viz_path")
    drawn.set("graph_viz_path", str(tmp_path / "g.dot"))
    assert drawn.has("graph_viz_path")
    drawn.apply(graph)
    assert 'label="mul"' in (tmp_path / "g.dot").read_text()
    refuses(lambda: drawn.set("graph_viz_path", "x"), EnforceNotMet, "already set")
    for wrong in (lambda: builder.remove_pass(7), lambda: builder.insert_pass(7, "fc_fuse_pass")):
        with pytest.raises(EnforceNotMet, match="there are 1 passes"):
            wrong()
    refuses(lambda: core.get_pass("nope"), EnforceNotMet, "nope")


def test_is_test_pass(programs):
    fluid.layers.dropout(fluid.data("x", [None, 3]), 0.5)
    graph = core.Graph(fluid.default_main_program().desc)
    core.get_pass("is_test_pass").apply(graph)
    assert core.topology_sort(graph)[0].op().attr("is_test")
    assert not fluid.default_main_program().global_block().ops[0].attr("is_test")


def test_programs_are_cut(programs):
    x = fluid.data("x", [None, 4])
    kept = fluid.layers.fc(x, 3)
    fluid.layers.fc(x, 5)
    loss = fluid.layers.mean(kept)
    fluid.optimizer.SGD(0.1).minimize(loss)
    whole = fluid.default_main_program()
    forward, blocks = core.prune_backward(whole.desc)
    kinds = ["mul", "elementwise_add", "mul", "elementwise_add", "mean"]
    assert [op.type for op in forward._shown.global_block().ops] == kinds and blocks == {0: 0}
    cut, blocks = core.prune(whole.desc, set(), [[0, whole.global_block().ops.index(loss.op)]])
    assert [op.type for op in cut._shown.global_block().ops] == ["mul", "elementwise_add", "mean"]
    assert blocks == {0: 0} and len(cut._shown.global_block().vars) == 6
    cut, _ = core.prune(whole.desc, {kept.name}, [[0, whole.global_block().ops.index(loss.op)]])
    assert [op.type for op in cut._shown.global_block().ops] == ["mean"]
    refuses(lambda: core.prune(whole.desc, set(), [[0, 99]]), EnforceNotMet, "block 0")
    assert core.save_op_compatible_info(whole.desc) is True


def test_a_program_that_feeds_itself(linear):
    main, x, y = linear
    block = main.global_block()
    feed = block.create_var(name="feed", type=core.VarDesc.VarType.FEED_MINIBATCH, persistable=True)
    fetch = block.create_var(name="fetch", type=core.VarDesc.VarType.FETCH_LIST, persistable=True)
    block._prepend_op(type="feed", inputs={"X": [feed]}, outputs={"Out": [x]}, attrs={"col": 1})
    block.append_op(type="fetch", inputs={"X": [y]}, outputs={"Out": [fetch]}, attrs={"col": 0})
    place = core.Place()
    place.set_place(core.CPUPlace())
    exe, scope = core.Executor(place), core.Scope()
    exe.run(fluid.default_startup_program().desc, scope, 0, False, True, [])
    refuses(lambda: exe.run(main.desc, scope, 0, True, True, ["fetch"]), EnforceNotMet, "column 1")
    tensor = core.LoDTensor()
    tensor.set(np.ones((4, 3), "float32"), core.CPUPlace())
    core.set_feed_variable(scope, tensor, "feed", 1)
    exe.run(main.desc, scope, 0, True, True, ["fetch"])
    weight = np.array(scope.find_var("fc_0.w_0").get_tensor())
    found = core.get_fetch_variable(scope, "fetch", 0)
    np.testing.assert_allclose(np.array(found), np.ones((4, 3)) @ weight, rtol=1e-5)
    for name, index in (("fetch", 3), ("nothing", 0), ("feed", 0)):
        with pytest.raises(EnforceNotMet, match=name):
            core.get_fetch_variable(scope, name, index)
    assert core.diff_tensor_shape(tensor, x.desc, 1) is None
    assert core.diff_tensor_shape(tensor, y.desc, 1) == [4, 3]
    assert len(scope.find_var("fetch").get()._move_to_list()) == 1 and not len(scope.find_var("fetch").get())


def test_protos():
    protos = {proto.type: proto for proto in fluid.op.get_all_op_protos()}
    scale = fluid.op.OpDescCreationMethod(protos["scale"])
    made = scale(X="a", Out="b", scale=2.0)
    assert made.type == "scale" and made.inputs[0].arguments == ["a"] and made.attrs[0].f == 2.0
    refuses(lambda: scale("a"), ValueError, "keyword")
    refuses(lambda: scale(X=["a", "c"], Out="b"), ValueError, "only one input, but 2")
    refuses(lambda: fluid.op.OpDescCreationMethod("scale"), TypeError, "OpProto")
    assert scale.any_is_true([False, True]) and not scale.any_is_true([])
    info = fluid.op.create_op_creation_method(protos["scale"])
    assert info.name == "scale" and info.method(X="a", Out="b").type() == "scale"
    assert core.infer_no_need_buffer_slots("elementwise_add_grad", {}, {}, {}) >= {"Y"}
    refuses(lambda: core.infer_no_need_buffer_slots("nope", {}, {}, {}), EnforceNotMet, "nope")


def test_commands():
    assert core.run_cmd("echo hi") == "hi\n" and core.run_shell_command("echo hi") == "hi"
    assert core.run_shell_command("echo no >&2") is None
    with pytest.warns(UserWarning, match=r"status\[1\]"):
        assert core.run_cmd("echo hi; false", 20, 5) == "hi\n"
    assert "libc" in core.get_dso_path("/bin/sh", "libc") and core.get_dso_path("/bin/sh", "nope") is None
    with pytest.warns(UserWarning, match="failed"):
        assert core.load_dso("/none.so") is None
    with pytest.warns(UserWarning, match="gperftools"):
        core.stop_imperative_gperf_profiler()
    assert (core.var_names.empty(), core.var_names.temp()) == ("@EMPTY@", "@TEMP@")


def test_helpers_of_layers(programs):
    assert escape_math("$$a = b^2$$ and $c$ $d_2$") == "$$a = b^2$$ and :math:`c` :math:`d_2`"
    hold = fluid.layers.utils.hold_mutable_vars
    given = ([], [1, 2], (1, [2]), {"a": [1]}, [[1], 2], ("ab",), ((1,), 2))
    assert [hold(one) for one in given] == [False, False, True, False, True, False, True]
    registry = fluid.layers.nn.PyFuncRegistry
    count = registry.registered_func_num()
    one = registry(abs)
    assert (one.id, registry.registered_func_num()) == (count, count + 1)
    assert registry.registered_func(count) is abs and one(-3) == (3,)
    refuses(lambda: registry(3), TypeError)
    assert (
        fluid.layers.compare_ops[2] == "__lt__" and type(fluid.Variable) is fluid.framework.VariableMetaClass
    )


def test_guards_of_blocks(programs):
    x = fluid.data("x", [3, 2, 4])
    rnn = fluid.layers.StaticRNN()
    with control_flow.BlockGuardWithCompletion(rnn):
        step = rnn.step_input(x)
        before = rnn.memory(shape=[-1, 4], batch_ref=step)
        total = fluid.layers.elementwise_add(step, before)
        rnn.update_memory(before, total)
        rnn.step_output(total)
    rows = fluid.data("rows", [None, 1])
    choice = fluid.layers.IfElse(rows > 0.0)
    with control_flow.IfElseBlockGuard(True, choice):
        choice.output(choice.input(rows) * 10.0)
    with control_flow.IfElseBlockGuard(False, choice):
        choice.output(choice.input(rows))
    data = np.arange(24, dtype="float32").reshape(3, 2, 4)
    column = np.array([[1], [-2], [3]], "float32")
    sums, merged = fluid.Executor().run(feed={"x": data, "rows": column}, fetch_list=[rnn(), *choice()])
    np.testing.assert_array_equal(sums, data.cumsum(0))
    assert merged.ravel().tolist() == [10, -2, 30]
    for guard in (
        control_flow.BlockGuardWithCompletion,
        control_flow.ConditionalBlockGuard,
        lambda one: control_flow.IfElseBlockGuard(True, one),
    ):
        with pytest.raises(TypeError):
            guard(3)


def test_the_table_that_is_spread(programs):
    ids = fluid.data("ids", [None, 1], "int64")
    assert distribute_lookup_table.find_distributed_lookup_table(fluid.default_main_program()) is None
    found = [
        fluid.layers.embedding(ids, [9, 4], is_sparse=True, is_distributed=True, param_attr="table")
        for _ in range(2)
    ]
    program = fluid.default_main_program()
    assert distribute_lookup_table.find_distributed_lookup_table(program) == "table"
    inputs = distribute_lookup_table.find_distributed_lookup_table_inputs(program, "table")
    outputs = distribute_lookup_table.find_distributed_lookup_table_outputs(program, "table")
    assert [var.name for var in inputs] == ["ids", "ids"] and outputs == found
    fluid.layers.embedding(ids, [9, 4], is_distributed=True, param_attr="other")
    with pytest.raises(RuntimeError, match="only one table"):
        distribute_lookup_table.find_distributed_lookup_table(program)


def test_drawing_helpers(linear):
    op = linear[0].global_block().ops[0]
    assert net_drawer.draw_node(op)["label"] == "mul" and net_drawer.draw_node(op)["shape"] == "oval"
    count = net_drawer.unique_id()
    assert (count(), count()) == (0, 1)


def test_the_end_of_a_process(python):
    registrar = multiprocess_utils.CleanupFuncRegistrar
    refuses(lambda: registrar.register(3), TypeError, "not callable")
    code = (
        "import os, signal; from fluidlite.multiprocess_utils import CleanupFuncRegistrar as C\n"
        "C.register(lambda: print('cleaned'), signals=[signal.SIGTERM]); os.kill(os.getpid(), signal.SIGTERM)"
    )
    assert python("-c", code).stdout == "cleaned\n" and signal.SIGTERM
    watch = ParentWatchDog()
    assert watch.is_alive() and watch._parent_pid == os.getppid()
    watch._parent_pid = -1
    assert not watch.is_alive()
