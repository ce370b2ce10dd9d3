"""Names that are made for variables are new to the program: one that was loaded, cloned, or whose names count anew."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import io
from fluidlite import layers as L
from fluidlite.base import unique_name

pytestmark = pytest.mark.usefixtures("alone")

X = np.arange(8, dtype="float32").reshape(2, 4)


def exported(folder):
    """A saved model with two outputs, and what they are of X."""
    x = fluid.data("x", [None, 4])
    hidden = L.fc(x, 3)
    outputs = [L.fc(hidden, 2), L.relu(L.fc(hidden, 5))]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    io.save_inference_model(folder, ["x"], outputs, exe)
    return exe.run(feed={"x": X}, fetch_list=outputs)


def loaded(folder):
    return io.load_inference_model(folder, fluid.Executor())


def same(found, wanted):
    return [value.tolist() for value in found] == [value.tolist() for value in wanted]


def test_a_loaded_model_is_reexported_with_its_results_in_another_order(tmp_path):
    first, second = exported(str(tmp_path / "0"))
    exe = fluid.Executor()
    for number, pick in enumerate(([1, 0], [1, 0], [1], [0, 0])):
        with fluid.scope_guard(fluid.Scope()), unique_name.guard():
            program, fed, fetched = loaded(str(tmp_path / "0"))
            folder = str(tmp_path / f"{number}again")
            io.save_inference_model(folder, fed, [fetched[k] for k in pick], exe, program)
            program, fed, fetched = loaded(folder)
            assert same(exe.run(program, {"x": X}, fetched), [(first, second)[k] for k in pick])


def test_layers_added_to_a_loaded_model_leave_its_variables_alone(tmp_path):
    first, second = exported(str(tmp_path))
    with fluid.scope_guard(fluid.Scope()), unique_name.guard():
        program, _, fetched = loaded(str(tmp_path))
        exe, startup, before = fluid.Executor(), fluid.Program(), set(program.global_block().vars)
        with fluid.program_guard(program, startup):
            more = L.fc(fetched[1], 3, act="relu")
            fluid.optimizer.SGD(0.0).minimize(L.mean(more))
        new = [op.output_arg_names for op in startup.global_block().ops]
        assert before.isdisjoint(sum(new, []))
        exe.run(startup)
        *kept, made = exe.run(program, {"x": X}, [*fetched, more])
        assert same(kept, [first, second])
        assert made.shape == (2, 3)


def test_results_of_two_networks_in_one_program_differ_and_parameters_are_shared():
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 4])
    made = []
    for each in (x, y):
        with unique_name.guard():
            made.append(L.fc(each, 3, act="relu") * 2.0 + each[:, :3])
    assert len({var.name for var in made}) == 2
    assert len(fluid.default_main_program().all_parameters()) == 2  # as in Fluid
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    weight = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    feed = {"x": X, "y": X - 3}
    found = exe.run(feed=feed, fetch_list=made)
    for value, array in zip(found, feed.values(), strict=True):
        assert np.allclose(value, np.maximum(array @ weight, 0) * 2 + array[:, :3], atol=1e-5)


def test_a_clone_that_is_built_further_keeps_its_results():
    x = fluid.data("x", [None, 4])
    first = L.scale(x, 2.0) + 1.0
    clone = fluid.default_main_program().clone()
    with fluid.program_guard(clone), unique_name.guard():
        second = L.scale(clone.global_block().var(first.name), 3.0) + 1.0
    found = fluid.Executor().run(clone, {"x": X}, [first.name, second])
    assert same(found, [X * 2 + 1, (X * 2 + 1) * 3 + 1])


def test_two_optimizers_whose_names_count_anew_have_accumulators_of_their_own():
    x = fluid.data("x", [None, 4])
    for _ in range(2):
        with unique_name.guard():
            fluid.optimizer.Momentum(0.1, 0.9).minimize(L.mean(L.fc(x, 1)))
    updates = [op for op in fluid.default_main_program().global_block().ops if op.type == "momentum"]
    held = [name for op in updates for name in op.input("Velocity")]
    assert len(held) == len(set(held)) == 4
