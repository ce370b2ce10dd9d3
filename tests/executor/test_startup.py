"""First runs without feeds, which have no plan: values are those of the reference kernels."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import seeds
from fluidlite.executor.interpreter.interpreter import Interpreter

layers = fluid.layers


def programs(build, seed=0):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = seed
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        build()
    return main, startup


def network():
    x = fluid.data("x", [None, 3, 8, 8])
    h = layers.batch_norm(layers.conv2d(x, 4, 3), act="relu")
    h = layers.fc(h, 5, param_attr=fluid.initializer.TruncatedNormal(scale=0.1))
    h = layers.fc(h, 5, param_attr=fluid.initializer.NumpyArrayInitializer(np.eye(5, dtype="float32")))
    fluid.optimizer.Adam(0.1).minimize(layers.mean(h))


def weight_norm():
    x = fluid.data("x", [None, 3])
    layers.fc(x, 4, param_attr=fluid.WeightNormParamAttr(dim=0))
    layers.fc(x, 4)


def halves():
    for k in range(2):
        layers.create_parameter(
            [2, 3], "float16", name=f"w{k}", default_initializer=fluid.initializer.Normal()
        )


def computed_between():
    """Initial values that depend on the order of operators: overwritten ones, random ones."""
    block = fluid.default_startup_program().global_block()
    for name in "abc":
        block.create_var(name=name, shape=[2], dtype="float32", persistable=True)
    block.create_var(name="d", shape=[2, 2], dtype="float32", persistable=True)
    fill = {"shape": [2], "dtype": 5}
    block.append_op("fill_constant", {}, {"Out": ["a"]}, {**fill, "value": 1.0})
    block.append_op("scale", {"X": ["a"]}, {"Out": ["b"]}, {"scale": 3.0})
    block.append_op("fill_constant", {}, {"Out": ["a"]}, {**fill, "value": 7.0})
    block.append_op(
        "gaussian_random_batch_size_like", {"Input": ["a"]}, {"Out": ["d"]}, {"shape": [2, 2], "dtype": 5}
    )
    block.append_op("uniform_random", {}, {"Out": ["c"]}, fill)


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("build", [network, weight_norm, halves, computed_between])
def test_startup_programs_give_the_numbers_of_the_reference_kernels(build, seed):
    _, startup = programs(build, seed)
    found, wanted = fluid.Scope(), fluid.Scope()
    seeds.reseed(5)
    fluid.Executor().run(startup, scope=found)
    seeds.reseed(5)
    Interpreter(startup, wanted, {}).run()
    names = [var.name for var in startup.list_vars() if var.persistable]
    assert names
    for name in names:
        one, other = (np.asarray(scope.find_var(name).get_tensor()) for scope in (found, wanted))
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_no_run_is_the_interpreters(monkeypatch):
    main, startup = programs(lambda: layers.increment(layers.create_global_var([1], 1.0, "float32", True)))
    make = Interpreter.__init__

    def made(self, *args, **how):
        assert type(self) is not Interpreter
        make(self, *args, **how)

    monkeypatch.setattr(Interpreter, "__init__", made)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    (name,) = startup.global_block().vars
    for wanted in (2, 3, 4):
        assert exe.run(main, fetch_list=[name], scope=scope)[0] == wanted
    assert "without a plan: 1 fill_constant" in exe.describe(startup, scope)
    assert "1 instruction on the CPU" in exe.describe(main, scope)
    assert exe.run(startup, fetch_list=[name], scope=scope)[0] == 1


def test_a_first_run_fetches_initial_values():
    _, startup = programs(network, seed=1)
    name = startup.global_block().ops[0].output_arg_names[0]
    scope = fluid.Scope()
    (found,) = fluid.Executor().run(startup, fetch_list=[name], scope=scope)
    np.testing.assert_array_equal(found, np.asarray(scope.find_var(name).get_tensor()))


def test_errors_of_initialisation_name_the_users_line():
    def build():
        block = fluid.default_startup_program().global_block()
        block.create_var(name="w", shape=[4], dtype="float32", persistable=True)
        attrs = {"shape": [4], "dtype": 5, "diag_num": 9, "diag_step": 1}
        block.append_op("uniform_random", {}, {"Out": ["w"]}, attrs)

    _, startup = programs(build)
    with pytest.raises(fluid.core.EnforceNotMet, match=r"uniform_random(.|\n)*diag_num 9") as raised:
        fluid.Executor().run(startup, scope=fluid.Scope())
    assert "test_startup.py" in str(raised.value)


def test_a_run_makes_all_persistable_variables():
    main, startup = fluid.Program(), fluid.Program()
    for program, name in ((startup, "table"), (main, "of_main")):
        program.global_block().create_var(name=name, shape=[2], dtype="float32", persistable=True)
    startup.global_block().create_var(name="passing", shape=[2], dtype="float32")
    scope = fluid.Scope()
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(scope):
        exe.run(startup)
        assert scope.find_var("of_main") is None and scope.find_var("passing") is None
        scope.find_var("table").get_tensor().set(np.float32([3, 4]), exe.place)
        exe.run(startup)
        np.testing.assert_array_equal(np.array(scope.find_var("table").get_tensor()), [3, 4])
