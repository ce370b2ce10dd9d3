"""Programs, blocks, variables, guards, names and clones."""

import threading

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from fluidlite.base.dtypes import VarType
from tests.refusals import refuses


@pytest.fixture
def programs():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), unique_name.guard():
        yield main, startup


def test_guard_switches_and_restores_programs_even_after_an_error():
    before = fluid.default_main_program(), fluid.default_startup_program()
    main, startup = fluid.Program(), fluid.Program()
    with pytest.raises(KeyError), fluid.program_guard(main, startup):
        assert fluid.default_main_program() is main
        assert fluid.default_startup_program() is startup
        raise KeyError("boom")
    assert (fluid.default_main_program(), fluid.default_startup_program()) == before


def test_guard_refuses_what_is_no_program():
    with pytest.raises(TypeError, match=r"fluid\.Program.*str"), fluid.program_guard("main"):
        pass


def test_a_guard_in_one_thread_does_not_show_in_another():
    seen = []
    with fluid.program_guard(fluid.Program()):
        thread = threading.Thread(target=lambda: seen.append(fluid.default_main_program()))
        thread.start()
        thread.join()
        assert seen[0] is not fluid.default_main_program()


def test_unique_names_count_per_key_and_guards_begin_anew():
    with unique_name.guard():
        assert [unique_name.generate("fc") for _ in range(3)] == ["fc_0", "fc_1", "fc_2"]
        assert unique_name.generate("conv") == "conv_0"
        with unique_name.guard("pre_"):
            assert unique_name.generate("fc") == "pre_fc_0"
        assert unique_name.generate("fc") == "fc_3"
    with unique_name.guard():
        old = unique_name.switch()
        assert unique_name.generate("a") == "a_0"
        unique_name.switch(*old)


def test_names_of_parameters_and_temporaries_are_those_of_fluid(programs):
    main, startup = programs
    x = fluid.data("x", [None, 4], "float32")
    y = fluid.layers.fc(x, 3, act="relu")
    fluid.layers.fc(y, 2, name="own")
    fluid.layers.fc(y, 2, name="own")
    names = [op.output_arg_names[0] for op in main.global_block().ops]
    assert names == [
        "fc_0.tmp_0",
        "fc_0.tmp_1",
        "fc_0.tmp_2",
        "own.tmp_0",
        "own.tmp_1",
        "own.tmp_2",
        "own.tmp_3",
    ]
    assert [p.name for p in main.all_parameters()] == [
        "fc_0.w_0",
        "fc_0.b_0",
        "own.w_0",
        "own.b_0",
        "own.w_1",
        "own.b_1",
    ]
    assert [op.output_arg_names[0] for op in startup.global_block().ops] == [
        "own.b_1", "own.w_1", "own.b_0", "own.w_0", "fc_0.b_0", "fc_0.w_0",
    ]  # fmt: skip


def test_a_parameter_name_used_twice_is_shared_only_with_its_shape(programs):
    main, _ = programs
    x = fluid.data("x", [None, 4], "float32")
    fluid.layers.fc(x, 3, param_attr="shared", bias_attr=False)
    fluid.layers.fc(x, 3, param_attr="shared", bias_attr=False)
    assert [p.name for p in main.all_parameters()] == ["shared"]
    with pytest.raises(ValueError, match=r"'shared'.*\[4, 3\].*\[4, 5\]"):
        fluid.layers.fc(x, 5, param_attr="shared", bias_attr=False)


def test_a_variable_created_twice_stays_as_it_was(programs):
    block = programs[0].global_block()
    first = block.create_var(name="v", shape=[2, 3], dtype="int32", lod_level=1, persistable=True)
    second = block.create_var(name="v", stop_gradient=True)
    assert block.var("v") is second is not first
    assert (second.shape, second.dtype, second.lod_level, second.persistable) == (
        (2, 3),
        VarType.INT32,
        1,
        True,
    )
    assert second.stop_gradient
    same = block.create_var(name="v", shape=(2, 3), dtype="int32", lod_level=1, persistable=True)
    assert same.shape == (2, 3)
    rows = block.create_var(name="r", type=VarType.SELECTED_ROWS)
    assert block.create_var(name="r").type == rows.type


@pytest.mark.parametrize(
    "other",
    [
        {"shape": [9]}, {"shape": [-1, 3]}, {"dtype": "float32"}, {"lod_level": 1}, {"persistable": True},
        {"type": VarType.SELECTED_ROWS},
    ],
)  # fmt: skip
def test_a_variable_created_twice_cannot_change(programs, other):
    block = programs[0].global_block()
    first = block.create_var(name="v", shape=[2, 3], dtype="int32")
    with pytest.raises(ValueError, match=f"variable 'v' exists with {next(iter(other))}"):
        block.create_var(name="v", **other)
    assert block.var("v") is first


def _op_types(program):
    return [op.type for op in program.global_block().ops]


@pytest.mark.parametrize("schedule", ["exponential_decay", "piecewise_decay", "noam_decay"])
def test_running_a_test_program_does_not_move_the_learning_rate(programs, schedule):
    main, startup = programs
    x = fluid.data("x", [None, 3], "float32")
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    arguments = {
        "exponential_decay": (0.1, 2, 0.5),
        "piecewise_decay": ([2], [0.1, 0.2]),
        "noam_decay": (16, 3),
    }
    rate = getattr(fluid.layers, schedule)(*arguments[schedule])
    before = main.clone(for_test=True)
    fluid.optimizer.SGD(rate).minimize(loss)
    after = main.clone(for_test=True)
    assert _op_types(after) == ["mul", "elementwise_add", "mean"]
    assert after.num_blocks == 1
    assert "@LR_DECAY_COUNTER@" not in after.global_block().vars
    assert _op_types(before)[:4] == ["mul", "elementwise_add", "mean", "cast"], (
        "the schedule stays, the count not"
    )
    exe = fluid.Executor()
    exe.run(startup)
    feed = {"x": np.ones((1, 3), "float32")}
    rates = []
    for _ in range(3):
        for test in (before, after):
            exe.run(test, feed=feed, fetch_list=[loss])
        rates.append(exe.run(main, feed=feed, fetch_list=[rate])[0].item())
    expected = {
        "exponential_decay": [0.1 * 0.5 ** (step / 2) for step in range(3)],
        "piecewise_decay": [0.1, 0.1, 0.2],
        "noam_decay": [16**-0.5 * min(step**-0.5, step * 3**-1.5) for step in (1, 2, 3)],
    }
    np.testing.assert_allclose(rates, expected[schedule], rtol=1e-6)


def test_gradients_that_nothing_is_updated_with_stay_in_test_programs(programs):
    main, startup = programs
    x = fluid.data("x", [None, 3], "float32")
    x.stop_gradient = False
    slope = fluid.gradients(fluid.layers.reduce_sum(fluid.layers.square(x)), [x])[0]
    penalty = fluid.layers.reduce_sum(slope)
    test = main.clone(for_test=True)
    exe = fluid.Executor()
    exe.run(startup)
    feed = {"x": np.float32([[1, 2, 3]])}
    np.testing.assert_allclose(exe.run(test, feed=feed, fetch_list=[penalty])[0], [12.0])
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(x, 1)))
    assert not {"square_grad", "sgd"} & set(_op_types(main.clone(for_test=True))), (
        "training takes all of them out"
    )


def test_averages_without_training_stay_in_test_programs(programs):
    main, _ = programs
    x = fluid.data("x", [None, 3], "float32")
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    fluid.optimizer.ExponentialMovingAverage(0.9).update()
    assert _op_types(main.clone(for_test=True)) == _op_types(main)
    fluid.optimizer.SGD(0.1).minimize(loss)
    assert _op_types(main.clone(for_test=True)) == ["mul", "elementwise_add", "mean"]


def test_clone_is_independent_and_for_test_drops_training(programs):
    main, _ = programs
    x = fluid.data("x", [None, 4], "float32")
    y = fluid.layers.dropout(fluid.layers.fc(x, 3), 0.5)
    loss = fluid.layers.mean(y)
    before = main.clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    after = main.clone(for_test=True)
    types = [op.type for op in before.global_block().ops]
    assert types == ["mul", "elementwise_add", "dropout", "mean"]
    assert [op.type for op in after.global_block().ops] == types
    assert before.global_block().ops[2].attr("is_test") is True
    assert main.global_block().ops[2].attr("is_test") is False
    assert not any(name.endswith("@GRAD") for name in after.global_block().vars)
    copy = main.clone()
    copy.global_block()._remove_op(0)
    assert main.global_block().ops[0].type == "mul"
    assert copy.global_block().var("x").block is copy.global_block()


def test_global_seed_is_for_programs_made_later():
    earlier, program = fluid.Program(), fluid.Program()
    try:
        program.global_seed(90)
        assert [earlier.random_seed, program.random_seed, fluid.Program().random_seed] == [0, 90, 90]
    finally:
        program.global_seed(0)
    assert fluid.Program().random_seed == 0


def test_global_prog_seed_is_what_new_programs_take(monkeypatch):
    monkeypatch.setattr(fluid.framework, "global_prog_seed", 7)
    program = fluid.Program()
    assert [program.random_seed, program.clone().random_seed] == [7, 7]
    program.global_seed(11)
    assert [fluid.framework.global_prog_seed, fluid.Program().random_seed] == [11, 11]


def test_random_seed_wants_an_integer():
    program = fluid.Program()
    with pytest.raises(ValueError, match="Seed must be a integer"):
        program.random_seed = "7"
    program.random_seed = 7
    assert program.clone().random_seed == 7


def test_blocks_say_what_they_do_not_have(programs):
    main, _ = programs
    fluid.data("image", [None, 4], "float32")
    block = main.global_block()
    assert block.has_var("image") and not block.has_var("imago")
    refuses(lambda: block.var("imago"), ValueError, r"var imago not in this block; did you mean 'image'")
    refuses(lambda: block.var(3), TypeError, "name of a variable")


def test_malformed_operators_are_refused_where_they_are_built(programs):
    main, _ = programs
    block = main.global_block()
    x = fluid.data("x", [None, 4], "float32")
    out = block.create_var(name="out", dtype="float32")
    with pytest.raises(fluid.core.EnforceNotMet, match=r"relu has no input 'Z'.*test_program\.py"):
        block.append_op(type="relu", inputs={"Z": x}, outputs={"Out": out})
    with pytest.raises(ValueError, match="input X is missing"):
        block.append_op(type="relu", inputs={}, outputs={"Out": out})
    with pytest.raises(ValueError, match="'nobody', which is not in the program"):
        block.append_op(type="relu", inputs={"X": "nobody"}, outputs={"Out": out})
    with pytest.raises(AttributeError, match="no operator 'rely'"):
        block.append_op(type="rely", inputs={"X": x}, outputs={"Out": out})
    assert main.global_block().ops == []


def test_a_shape_error_names_the_operator_the_shapes_and_the_users_line(programs):
    x = fluid.data("x", [3, 4], "float32")
    y = fluid.data("y", [5, 6], "float32")
    with pytest.raises(
        fluid.core.EnforceNotMet, match=r"matmul.*X=x\[3, 4\].*Y=y\[5, 6\].*test_program\.py:\d+"
    ):
        fluid.layers.matmul(x, y)


def test_operators_read_back(programs):
    main, _ = programs
    x = fluid.data("x", [None, 4], "float32")
    fluid.layers.fc(x, 3)
    op = main.global_block().ops[0]
    assert (op.type, op.input("X"), op.output("Out")) == ("mul", ["x"], ["fc_0.tmp_0"])
    assert op.input_names == ["X", "Y"]
    assert op.attr("x_num_col_dims") == 1 and op.has_attr("y_num_col_dims")
    assert op.idx == 0
    op._rename_input("x", "z")
    assert op.input("X") == ["z"]
    other = fluid.layers.dropout(x, 0.5).op
    assert (other.input_names, other.output_names) == (["Seed", "X"], ["Mask", "Out"])


def test_static_variables_have_no_values(programs):
    x = fluid.data("x", [None, 4], "float32")
    refuses(x.numpy, TypeError, r"numpy\(\) needs a value.*'x'.*Executor\.run")
    refuses(lambda: list(x), TypeError, "no elements to iterate")
    assert x.shape == (-1, 4) and x.dtype == VarType.FP32 and str(x.dtype) == "VarType.FP32"


def test_data_accepts_none_and_refuses_other_shapes(programs):
    refuses(lambda: fluid.data("x", [None, "a"], "float32"), TypeError, "'x'")
    refuses(lambda: fluid.data("x", [None], "float31"), TypeError, "unknown data type 'float31'")
