"""Programs as graphs, changed, and programs again."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import core, layers
from fluidlite.framework import IrGraph


@pytest.fixture
def program():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 4
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 3], "float32")
        loss = layers.mean(layers.relu(layers.fc(x, 2)))
        fluid.optimizer.SGD(0.5).minimize(loss)
        fluid.Executor(fluid.CPUPlace()).run(startup)
        yield main


def graph_of(program, **options):
    return IrGraph(core.Graph(program.desc), **options)


def losses(program, steps=3):
    exe, feed = fluid.Executor(fluid.CPUPlace()), {"x": np.ones((2, 3), "float32")}
    return [float(exe.run(program, feed=feed, fetch_list=["mean_0.tmp_0"])[0][0]) for _ in range(steps)]


def test_a_graph_is_the_program(program):
    graph = graph_of(program, for_test=True)
    assert graph.is_test() and not graph.has_circle() and graph.graph_num() == 1
    rebuilt = graph.to_program()
    assert [op.type for op in rebuilt.global_block().ops] == [op.type for op in program.global_block().ops]
    assert {node.name() for node in graph.all_persistable_nodes()} == {
        "fc_0.w_0",
        "fc_0.b_0",
        "learning_rate_0",
    }
    # A parameter is there as it is read, and as its update writes it.
    assert sum(node.name() == "fc_0.w_0" for node in graph.all_var_nodes()) == 2
    assert len(graph.all_nodes()) == len(graph.all_var_nodes()) + len(graph.all_op_nodes())


def test_operators_are_put_between(program):
    graph = graph_of(program)
    (mean,) = (op for op in graph.all_op_nodes() if op.name() == "mean")
    (before,) = mean.inputs
    doubled = graph.create_var_node("doubled", before.type(), before.shape(), before.dtype())
    op = graph.create_op_node("scale", {"scale": 2.0}, {"X": before}, {"Out": doubled})
    graph.link_to(before, op)
    graph.link_to(op, doubled)
    graph.update_input_link(before, doubled, mean)
    assert mean.input("X") == ["doubled"] and [node.name() for node in op.inputs] == ["relu_0.tmp_0"]
    changed = graph.to_program()
    types = [op.type for op in changed.global_block().ops]
    assert types[:5] == ["mul", "elementwise_add", "relu", "scale", "mean"]
    assert "doubled" not in program.global_block().vars
    value = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    held = np.array(value)
    single = losses(program, 1)[0]
    value.set(held, fluid.CPUPlace())
    fluid.global_scope().find_var("fc_0.b_0").get_tensor().set(np.zeros(2, "float32"), fluid.CPUPlace())
    assert losses(changed, 1)[0] == 2 * single


def test_readers_come_before_the_next_value_is_written(program):
    graph = graph_of(program)
    first = next(node for node in graph.all_var_nodes() if node.name() == "fc_0.w_0")
    copied = graph.create_var_node("copied", first.type(), first.shape(), first.dtype())
    op = graph.create_op_node("assign", {}, {"X": first}, {"Out": copied})
    graph.link_to(first, op)
    graph.link_to(op, copied)
    order = [node.name() for node in graph.topology_sort()]
    assert order.index("assign") < max(place for place, name in enumerate(order) if name == "sgd")
    (update,) = (n for n in graph.all_op_nodes() if n.name() == "sgd" and n.input("Param") == ["fc_0.w_0"])
    assert op in graph.build_adjacency_list()[update]


def test_nodes_are_removed(program):
    graph = graph_of(program)
    updates = [op for op in graph.all_op_nodes() if op.name() == "sgd"]
    graph.safe_remove_nodes(updates)
    unused = [node for node in graph.all_var_nodes() if not node.inputs and not node.outputs]
    assert {node.name() for node in unused} == {"fc_0.w_0", "fc_0.b_0", "learning_rate_0"}
    graph.safe_remove_nodes(unused)
    fixed = graph.to_program()
    assert "learning_rate_0" not in fixed.global_block().vars
    assert len(set(losses(fixed))) == 1


def test_circles_and_strangers(program):
    graph, other = graph_of(program), graph_of(program)
    (mean,) = (op for op in graph.all_op_nodes() if op.name() == "mean")
    (relu,) = (op for op in graph.all_op_nodes() if op.name() == "relu")
    order = graph.create_control_dep_var()
    assert order.is_ctrl_var()
    graph.link_to(mean, order)
    graph.link_to(order, relu)
    assert graph.has_circle()
    with pytest.raises(ValueError, match="in a circle"):
        graph.to_program()
    with pytest.raises(AssertionError, match="not in this graph"):
        graph.link_to(mean, other.all_op_nodes()[0])
    with pytest.raises(AssertionError, match="Cannot find the node nothing"):
        graph._find_node_by_name(graph.all_var_nodes(), "nothing")


def test_pictures_and_copies(program, tmp_path):
    graph = graph_of(program)
    graph.draw(str(tmp_path), "network", marked_nodes=graph.all_persistable_nodes())
    text = (tmp_path / "network.dot").read_text()
    assert text.count('label="sgd" shape="box"') == 2 and "yellow" in text
    copy = graph.clone()
    copy.safe_remove_nodes(copy.all_op_nodes())
    assert len(graph.all_op_nodes()) == len(program.global_block().ops)
