"""`TracedLayer` and `ProgramTranslator`."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, layers
from fluidlite.dygraph import ProgramTranslator, TracedLayer, declarative, jit, to_variable
from fluidlite.eager import Tensor

from ...refusals import refuses


@pytest.fixture(autouse=True)
def guard():
    with dygraph.guard():
        yield
    ProgramTranslator.reset()


class Net(dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.linear = dygraph.Linear(3, 2)
        self.norm = dygraph.BatchNorm(2)

    def forward(self, x):
        y = self.norm(self.linear(x))
        return y, layers.dropout(y, 0.5)


X = np.arange(12, dtype="float32").reshape(4, 3) / 7


def test_trace_gives_the_layers_result_and_a_program():
    net = Net()
    outputs, traced = TracedLayer.trace(net, [to_variable(X)])
    assert isinstance(outputs, tuple)
    block = traced.program.global_block()
    assert [op.type for op in block.ops] == ["matmul", "elementwise_add", "batch_norm", "dropout"]
    assert block.ops[0].input("X") == ["feed_0"]
    assert block.ops[0].input("Y") == [net.linear.weight.name]
    assert block.ops[2].output("Y") == ["fetch_0"]
    assert block.ops[2].output("MeanOut") == [net.norm._mean.name]
    assert block.ops[3].output("Out") == ["fetch_1"]
    arrays = traced([to_variable(X)])
    assert [type(value).__name__ for value in arrays] == ["ndarray", "ndarray"]
    np.testing.assert_allclose(arrays[0], outputs[0].numpy(), rtol=1e-4, atol=1e-6)


def test_training_mode_goes_on_in_the_program():
    net = Net()
    _, traced = TracedLayer.trace(net, [to_variable(X)])
    before = net.norm._mean.numpy()
    assert 0 in traced([X])[1]
    assert not np.array_equal(net.norm._mean.numpy(), before)


def test_program_works_on_the_layers_own_parameters():
    net = dygraph.Linear(3, 1)
    _, traced = TracedLayer.trace(net, [to_variable(X)])
    net.weight.set_value(np.zeros((3, 1), "float32"))
    net.bias.array = np.array([5], "float32")
    assert traced([X])[0].tolist() == [[5]] * 4
    assert traced([X[:1]])[0].tolist() == [[5]]


def test_inputs_parameters_and_repeated_results_are_copied_out():
    class Odd(dygraph.Layer):
        def __init__(self):
            super().__init__()
            self.weight = self.create_parameter([2])

        def forward(self, x):
            y = x + 1
            return [x, self.weight, y, y]

    net = Odd()
    _, traced = TracedLayer.trace(net, [to_variable(np.zeros(2, "float32"))])
    x, weight, y, twin = traced([np.ones(2, "float32")])
    assert (x.tolist(), y.tolist(), twin.tolist()) == ([1, 1], [2, 2], [2, 2])
    assert weight.tolist() == net.weight.numpy().tolist()


def test_saved_model_runs_without_the_layer(tmp_path):
    net = Net()
    net.eval()
    outputs, traced = TracedLayer.trace(net, [to_variable(X)])
    traced.save_inference_model(str(tmp_path), feed=[0], fetch=[0])
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        executor = fluid.Executor(fluid.CPUPlace())
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), executor)
        assert (feeds, len(fetches)) == (["feed_0"], 1)
        got = executor.run(program, feed={feeds[0]: X[:2]}, fetch_list=fetches)
    np.testing.assert_allclose(got[0], outputs[0].numpy()[:2], rtol=1e-4, atol=1e-6)


def test_bad_arguments():
    net = dygraph.Linear(3, 1)
    x = to_variable(X)
    with pytest.raises(AssertionError, match="takes a fluid.dygraph.Layer, got function"):
        TracedLayer.trace(lambda x: x, [x])
    with pytest.raises(TypeError, match="inputs of TracedLayer.trace are tensors, got ndarray"):
        TracedLayer.trace(net, [X])
    _, traced = TracedLayer.trace(net, x)
    traced.set_strategy(fluid.BuildStrategy())
    refuses(lambda: traced(x), AssertionError, "list or tuple")
    refuses(lambda: traced([x, x]), AssertionError, "traced with 1 inputs, got 2")
    with pytest.raises(IndexError, match="number 3, but the model has 1"):
        traced.save_inference_model("nowhere", feed=[3])
    with pytest.raises(TypeError, match="numbers of inputs or outputs, got 'x'"):
        traced.save_inference_model("nowhere", fetch=["x"])
    traced([x])
    refuses(traced.set_strategy, AssertionError, "Cannot set strategy after run")

    class Dict(dygraph.Layer):
        def forward(self, x):
            return {"a": x}

    with pytest.raises(TypeError, match="returns a tensor or a list of tensors, got \\['dict'\\]"):
        TracedLayer.trace(Dict(), [x])


def odd(x):
    """An input, a result and a copy of it, changed in place on the way."""
    y = x + 1
    layers.assign(y * 2, y)
    z = y.detach()
    layers.assign(y + 3, y)
    return [x, y, z]


def with_values(x):
    y = x * 2
    while float(layers.reduce_sum(y).numpy()[0]) < 50:
        y = y * 2
    return y + to_variable(y.numpy()) * 0.5


def overwritten(x):
    y = x * 2
    y.set_value(np.full((2, 2), 5, "float32"))
    return y + x


def slope(x):
    x.stop_gradient = False
    y = x * x * x
    (found,) = dygraph.grad([y], [x])
    with dygraph.no_grad():
        (none,) = dygraph.grad([found * x], [x], allow_unused=True)
    return [found, x if none is None else none]


@dygraph.declarative
def decided(x):
    return x + 1 if layers.reduce_sum(x) > 0 else x - 1


STEPS = np.array([[1, 2], [3, 4]], "float32")

RUNS = [
    # What is traced, the operators, and the results for [[1, 2], [3, 4]] and for ten times that.
    (odd, "scale scale assign assign scale assign assign", ["x", "2 * x + 5", "2 * x + 2"]),
    (
        with_values,
        "scale reduce_sum scale reduce_sum scale reduce_sum scale elementwise_add",
        ["8 * x + 4 * S"],
    ),
    (overwritten, "scale elementwise_add", ["x + 5"]),
    (slope, None, ["3 * x * x", "x"]),
    (lambda x: [decided(x), decided(-x)], "reduce_sum fill_constant greater_than scale", ["x + 1", "-x - 1"]),
    (lambda x: [x.clone().astype("float64"), x[0]], "assign cast slice", ["x", "x[0]"]),
]


@pytest.mark.parametrize("function, ops, results", RUNS, ids=[str(each[1]) for each in RUNS])
def test_program_is_what_one_eager_run_has_computed(function, ops, results):
    """`x` is the input, S what it was when the layer was traced."""

    class Once(dygraph.Layer):
        calls = 0

        def forward(self, x):
            Once.calls += 1
            return function(x)

    outputs, traced = TracedLayer.trace(Once(), [to_variable(STEPS)])
    found = [each.numpy() for each in (outputs if isinstance(outputs, list) else [outputs])]
    for given, got in ((STEPS, found), (STEPS, traced([STEPS])), (STEPS * 10, traced([STEPS * 10]))):
        for value, result in zip(got, results, strict=True):
            np.testing.assert_array_equal(value, eval(result, {"x": given, "S": STEPS}))
    assert Once.calls == 1
    types = [op.type for op in traced.program.global_block().ops]
    assert ops is None or types[: len(ops.split())] == ops.split()


def test_random_numbers_and_side_effects_are_those_of_the_one_run():
    class Draws(dygraph.Layer):
        def __init__(self):
            super().__init__()
            self.seen = []
            self.steps = self.create_parameter([1], default_initializer=fluid.initializer.Constant(0.0))
            self.steps.stop_gradient = True

        def forward(self, x):
            noise = layers.uniform_random([2, 2])
            self.seen.append(noise.numpy())
            layers.increment(self.steps)
            return x + noise

    net = Draws()
    output, traced = TracedLayer.trace(net, [to_variable(np.zeros((2, 2), "float32"))])
    (seen,) = net.seen
    np.testing.assert_array_equal(output.numpy(), seen)
    assert net.steps.numpy().tolist() == [1]
    assert not np.array_equal(traced([np.zeros((2, 2), "float32")])[0], seen)
    assert net.steps.numpy().tolist() == [2] and len(net.seen) == 1


def test_layers_in_files_are_part_of_the_program(tmp_path):
    import fluidlite.paddle as paddle

    paddle.jit.save(
        paddle.jit.to_static(dygraph.Linear(3, 1)), str(tmp_path / "m"), [paddle.static.InputSpec([None, 3])]
    )
    loaded = paddle.jit.load(str(tmp_path / "m"))

    class Wrapper(dygraph.Layer):
        def forward(self, x):
            return loaded(x) * 2

    _, traced = TracedLayer.trace(Wrapper(), [to_variable(X)])
    np.testing.assert_allclose(traced([X + 1])[0], 2 * loaded(to_variable(X + 1)).numpy(), rtol=1e-6)


def plus_one(x):
    return x + 1


def test_translator_is_one_object_that_switches_tracing():
    translator = ProgramTranslator.get_instance()
    assert translator is ProgramTranslator() is jit.ProgramTranslator()
    calls = []

    @declarative
    def counted(x):
        calls.append(isinstance(x, Tensor))
        return x * 2

    x = to_variable(np.ones(2, "float32"))
    counted(x), counted(x)
    translator.enable(False)
    assert not translator.enable_declarative
    assert isinstance(counted(x), Tensor)
    assert counted(np.ones(1)).tolist() == [2]  # the function itself: arrays stay arrays, as in Fluid
    assert calls == [False, True, False]
    assert translator.get_program(plus_one, x).numpy().tolist() == [2, 2]
    translator.enable(True)
    counted(x)
    assert len(calls) == 3


def test_translator_gives_output_program_function_and_code(tmp_path):
    translator = ProgramTranslator()
    assert translator.get_output(plus_one, np.ones(2, "float32")).numpy().tolist() == [2, 2]
    main, startup, inputs, outputs = translator.get_program(plus_one, np.ones((2, 3), "float32"))
    assert [op.type for op in main.global_block().ops] == ["scale"]
    assert startup.global_block().ops == []
    assert (inputs[0].name, inputs[0].shape, outputs[0].shape) == ("feed_0", (2, 3), (2, 3))
    assert translator.get_func(declarative(plus_one)) is plus_one
    assert jit.dygraph_to_static_func(plus_one) is plus_one
    code = "def plus_one(x):\n    return x + 1\n"
    assert translator.get_code(plus_one) == translator.get_code(declarative(plus_one)) == code
    for method in ("get_output", "get_func", "get_program", "get_code"):
        with pytest.raises(AssertionError, match=f"not a callable in ProgramTranslator.{method}"):
            getattr(translator, method)(3)


@pytest.mark.parametrize("given", [3, "yes", None, np.bool_(False)])
def test_translator_is_enabled_by_true_and_false_only(given):
    with pytest.raises(
        TypeError, match="'enable_declarative' of ProgramTranslator.enable must be True or False"
    ):
        ProgramTranslator().enable(given)
    assert ProgramTranslator().enable_declarative is True


def test_translator_calls_with_keywords_and_keeps_programs_for_each():
    translator = ProgramTranslator()

    def scaled(x, times=2, *, more=1):
        return x * times + more

    x = np.ones(2, "float32")
    assert [translator.get_output(scaled, x, times=k).numpy().tolist() for k in (5, 2, 5)] == [
        [6, 6],
        [3, 3],
        [6, 6],
    ]
    assert translator.get_output(scaled, x, more=3).numpy().tolist() == [5, 5]
    _, (concrete, _) = translator.get_program_cache().last()
    assert [op.type for op in concrete.main_program.global_block().ops] == ["scale", "scale"]


def test_translator_saves_what_ran_last(tmp_path):
    net = dygraph.Linear(3, 1)
    call = declarative(net.forward)
    out = call(to_variable(X))
    ProgramTranslator().save_inference_model(str(tmp_path))
    with fluid.scope_guard(fluid.Scope()):
        executor = fluid.Executor()
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), executor)
        got = executor.run(program, feed={feeds[0]: X}, fetch_list=fetches)
    np.testing.assert_allclose(got[0], out.numpy(), rtol=1e-5)


def test_output_of_a_method_is_traced_once():
    class Counting(dygraph.Layer):
        calls = 0

        def forward(self, x):
            type(self).calls += 1
            return x + 1

    net = Counting()
    translator = ProgramTranslator()
    for _ in range(3):
        translator.get_output(net.forward, X)
    assert Counting.calls == 1


def test_declarative_wants_a_function():
    refuses(lambda: declarative(3), TypeError, "declarative takes a function, got 3")
