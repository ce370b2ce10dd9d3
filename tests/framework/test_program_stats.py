"""`fluid.backward.ProgramStats`; what it says is what Paddle 1.8.5 says of the same program."""

import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.backward import ProgramStats


@pytest.fixture
def stats():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x, y = fluid.data("x", [4, 3]), fluid.data("y", [4, 5])
        hidden = layers.fc(x, 5)
        one, other = layers.relu(hidden), layers.tanh(hidden)
        dropped = layers.dropout(one, 0.3, seed=3)
        total = one + other + dropped + y
        layers.assign(total, hidden)
        layers.concat([total, one, one], 1)
        block = fluid.default_main_program().global_block()
        made = ProgramStats(block, block.ops)
        made.build_stats()
        return made


def test_who_depends_on_whom(stats):
    assert [op.type for op in stats.ops][:5] == ["mul", "elementwise_add", "relu", "tanh", "dropout"]
    assert stats.op_deps[2] == {"in_ops": [1], "out_ops": [4, 5, 9, 9]}
    assert stats.op_deps[9] == {"in_ops": [7, 2, 2], "out_ops": []}
    assert stats.var_op_deps["fc_0.tmp_1"] == {"var_as_input_ops": [2, 3], "var_as_output_ops": [1, 8]}
    assert stats.get_input_nodes() == ["x", "y"] and stats.get_reserved_vars() == []


def test_what_parts_exchange(stats):
    names = stats.get_out_of_subgraph_vars
    assert names(0, 4) == ["relu_0.tmp_0"] * 4 + ["tanh_0.tmp_0"]
    assert names(3, 5) == ["tanh_0.tmp_0", "fc_0.tmp_1", "dropout_0.tmp_0", "relu_0.tmp_0"]
    assert names(2, 2) == []


def test_parts_between_names(stats):
    assert stats.is_subgraph(["relu_0.tmp_0", "tanh_0.tmp_0"], ["concat_0.tmp_0"]) == (True, 4, 9)
    assert stats.is_subgraph(["relu_0.tmp_0"], ["relu_0.tmp_0"]) == (False, 4, 2)
    assert stats.is_subgraph(["x"], ["nobody"]) == (False, 10, -1)
    assert stats.is_subgraph([], ["relu_0.tmp_0"]) == (False, 10, 2)


def test_checkpoints_in_order(stats):
    known = ["fc_0.tmp_1", "tmp_0", "x", "tanh_0.tmp_0"]
    assert stats.sort_checkpoints(known) == ["x", "tanh_0.tmp_0", "tmp_0", "fc_0.tmp_1"]
    with pytest.warns(UserWarning, match="'nobody' is left out"):
        assert stats.sort_checkpoints(["nobody"]) == []


def test_dropouts_get_seeds(stats):
    stats.modify_forward_desc_for_recompute()
    assert [op.type for op in stats.ops][3:6] == ["tanh", "seed", "dropout"]
    assert stats.ops[4].attr("seed") == 3 and stats.get_reserved_vars() == ["seed_0.tmp_0"]
