"""append_backward and gradients: operators, names, accumulation, stop_gradient, errors."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from fluidlite.eager import Tensor
from tests.refusals import refuses

L = fluid.layers


@pytest.fixture
def main():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()), unique_name.guard():
        yield program


def types(program):
    return [op.type for op in program.global_block().ops]


def test_gradients_that_arrive_from_several_places_are_added_in_fluids_order(main):
    x = fluid.data("x", [None, 4], "float32")
    h = L.fc(x, 3)
    loss = L.reduce_mean(L.relu(h) + L.tanh(h) + h)
    pairs = fluid.backward.append_backward(loss)
    assert [(p.name, g.name) for p, g in pairs] == [
        ("fc_0.w_0", "fc_0.w_0@GRAD"),
        ("fc_0.b_0", "fc_0.b_0@GRAD"),
    ]
    assert types(main)[7:] == [
        "fill_constant", "reduce_mean_grad", "elementwise_add_grad", "elementwise_add_grad", "tanh_grad", "relu_grad",
        "sum", "elementwise_add_grad", "mul_grad",
    ]  # fmt: skip
    total = main.global_block().ops[13]
    assert total.input("X") == [f"fc_0.tmp_1@GRAD@RENAME@block0@{k}" for k in range(3)]
    last = main.global_block().ops[-1]
    assert last.output("X@GRAD") == [] and last.attr("op_role_var") == ["fc_0.w_0", "fc_0.w_0@GRAD"]


def test_no_grad_set_and_untrainable_parameters_get_no_gradient(main):
    x = fluid.data("x", [None, 4], "float32")
    w1 = L.create_parameter([4, 4], "float32", name="w1")
    w2 = L.create_parameter([4, 4], "float32", name="w2")
    w3 = L.create_parameter([4, 4], "float32", attr=fluid.ParamAttr(name="w3", trainable=False))
    loss = L.mean(L.mul(L.mul(L.mul(x, w1), w2), w3))
    pairs = fluid.backward.append_backward(loss, no_grad_set={"w2"})
    assert [p.name for p, _ in pairs] == ["w1"]
    assert not main.global_block().has_var("w2@GRAD") and not main.global_block().has_var("w3@GRAD")
    assert w1.trainable and w2.trainable and not w3.trainable


def test_parameter_list_chooses(main):
    x = fluid.data("x", [None, 4], "float32")
    loss = L.mean(L.fc(L.fc(x, 3), 2))
    pairs = fluid.backward.append_backward(loss, parameter_list=["fc_1.w_0"])
    assert [p.name for p, _ in pairs] == ["fc_1.w_0"]


def test_parameter_list_may_name_what_is_not_there(main):
    loss = L.mean(L.fc(L.fc(fluid.data("x", [None, 4], "float32"), 3), 2))
    _, pairs = fluid.optimizer.SGD(0.1).minimize(loss, parameter_list=["fc_1.w_0", "of another program"])
    assert [p.name for p, _ in pairs] == ["fc_1.w_0"]
    assert types(main).count("sgd") == 1


def test_calc_gradient_gives_the_gradient_of_one_input_itself(main):
    x, y = (fluid.data(name, [2], "float32") for name in "xy")
    x.stop_gradient = y.stop_gradient = False
    z = x * y
    assert fluid.backward.calc_gradient(z, x).name == "x@GRAD"
    assert [g.name.rpartition("/")[2] for g in fluid.backward.calc_gradient(z, [x, y])] == [
        "x@GRAD",
        "y@GRAD",
    ]
    assert fluid.backward.calc_gradient(z, fluid.data("other", [2], "float32")) is None


def test_a_second_pass_has_names_of_its_own(main):
    x = fluid.data("x", [None, 4], "float32")
    y = L.fc(x, 3, bias_attr=False)
    fluid.backward.append_backward(L.mean(y))
    pairs = fluid.backward.append_backward(L.reduce_sum(y))
    assert [g.name for _, g in pairs] == ["grad/grad/fc_0.w_0@GRAD"]


def test_an_unused_output_has_a_zero_gradient(main):
    x = fluid.data("x", [None, 4], "float32")
    x.stop_gradient = False
    left, _ = L.split(x, 2, dim=1)
    grad = fluid.gradients(L.reduce_sum(left), x)[0]
    assert "fill_zeros_like" in types(main)
    exe = fluid.Executor()
    (got,) = exe.run(main, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[grad])
    np.testing.assert_array_equal(got, [[1, 1, 0, 0], [1, 1, 0, 0]])


def test_gradients_of_targets_with_weights(main):
    x = fluid.data("x", [None, 3], "float32")
    x.stop_gradient = False
    weight = fluid.data("weight", [None, 3], "float32")
    grad = fluid.gradients([L.square(x)], [x], target_gradients=[weight])[0]
    data = np.arange(6, dtype="float32").reshape(2, 3)
    exe = fluid.Executor()
    (got,) = exe.run(main, feed={"x": data, "weight": data + 1}, fetch_list=[grad])
    np.testing.assert_allclose(got, 2 * data * (data + 1))


def test_gradients_of_gradients(main):
    x = fluid.data("x", [None, 3], "float32")
    x.stop_gradient = False
    first = fluid.gradients(L.reduce_sum(L.square(x) * x), x)[0]
    second = fluid.gradients(first, x)[0]
    data = np.array([[1.0, -2.0, 0.5]], "float32")
    got = fluid.Executor().run(main, feed={"x": data}, fetch_list=[first, second])
    np.testing.assert_allclose(got[0], 3 * data**2, rtol=1e-6)
    np.testing.assert_allclose(got[1], 6 * data, rtol=1e-6)


def test_no_path_gives_none_or_an_empty_list(main):
    x, y = fluid.data("x", [None, 3], "float32"), fluid.data("y", [None, 3], "float32")
    x.stop_gradient = y.stop_gradient = False
    out = L.square(x)
    assert fluid.gradients(out, y) == []
    both = fluid.gradients(out, [x, y])
    assert both[0].shape == (-1, 3) and both[1] is None


def test_without_inputs_all_that_has_gradients_gets_them(main):
    x = L.fill_constant([3], "float32", 2.0)
    x.stop_gradient = False
    assert fluid.gradients(L.mean(L.square(x)), []) == []
    (grad,) = fluid.Executor().run(main, fetch_list=[x.name + "@GRAD"])
    np.testing.assert_allclose(grad, [4 / 3] * 3, rtol=1e-6)


def test_errors_say_what_is_wrong(main):
    x = fluid.data("x", [None, 3], "float32")
    y = L.square(x)
    refuses(lambda: fluid.backward.append_backward(3), TypeError, "'loss'.*int")
    refuses(lambda: fluid.backward.append_backward(y), ValueError, r"loss\.shape should be \(1L,\).*mean")
    with pytest.raises(ValueError, match="not computed by an operator"):
        fluid.backward.append_backward(fluid.data("z", [1], "float32"))
    with pytest.raises(ValueError, match="same number of target_gradients"):
        fluid.gradients([y], [x], target_gradients=[y, y])
    refuses(lambda: fluid.gradients([y], [x], no_grad_set=[3]), TypeError, "no_grad_set")
    refuses(lambda: fluid.gradients([y], [x], target_gradients="y"), TypeError, "target_gradients.*str")


def test_gradients_of_eager_tensors_are_computed_elsewhere(main):
    x = Tensor(np.ones(2, "float32"), stop_gradient=False)
    a = main.global_block().create_var(name="a", shape=[2], dtype="float32", stop_gradient=False)
    y, b = L.reduce_sum(x * x), L.reduce_sum(a)
    for given in (([y], [x]), (y, a), (b, x), ([b], [a], [y])):
        with pytest.raises(fluid.core.EnforceNotMet, match="computed by fluid.dygraph.grad"):
            fluid.gradients(*given)
    with pytest.raises(TypeError, match="member must be paddle.fluid.Variable or str"):
        fluid.gradients(b, a, no_grad_set=[x])


def test_one_name_is_no_list_of_names(main):
    """Its letters would be taken for names, of which there are none."""
    loss = L.mean(L.fc(fluid.data("x", [None, 3], "float32"), 2))
    for given in ("fc_0.w_0", loss):
        with pytest.raises(TypeError, match="no_grad_set should be set or list or tuple"):
            fluid.backward.append_backward(loss, no_grad_set=given)
    for given in ("fc_0.w_0", main.global_block().var("fc_0.w_0")):
        with pytest.raises(TypeError, match="parameter_list must be a list, tuple or set"):
            fluid.optimizer.SGD(0.1).minimize(loss, parameter_list=given)
    assert not [op for op in main.global_block().ops if op.type.endswith("_grad")]


def test_gradients_that_variables_with_stop_gradient_would_have(main):
    x = fluid.data("x", [None, 3], "float32")
    L.square(x).stop_gradient = True
    assert fluid.backward._get_stop_gradients_(main) == {0: {"x@GRAD", "square_0.tmp_0@GRAD"}}
    refuses(lambda: fluid.backward._get_stop_gradients_(3), AssertionError, "Program")


def test_gradients_match_finite_differences_through_a_network(main):
    x = fluid.data("x", [5, 4], "float32")
    x.stop_gradient = False
    h = L.fc(x, 6, act="tanh")
    loss = L.mean(L.square(L.fc(h, 2, act="sigmoid") + L.fc(h, 2)))
    (grad,) = fluid.gradients(loss, x)
    startup = fluid.default_startup_program()
    startup.random_seed = 3
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        exe.run(startup)
        data = np.random.RandomState(0).uniform(-1, 1, (5, 4)).astype("float32")

        def value(at):
            return float(exe.run(main, feed={"x": at}, fetch_list=[loss])[0][0])

        (got,) = exe.run(main, feed={"x": data}, fetch_list=[grad])
        for index in [(0, 0), (2, 3), (4, 1)]:
            step = np.zeros_like(data)
            step[index] = 1e-2
            numeric = (value(data + step) - value(data - step)) / 2e-2
            assert abs(numeric - got[index]) < 2e-4


@pytest.mark.parametrize("weighted", [False, True])
def test_a_target_may_be_on_the_way_to_another_one(main, weighted):
    x = fluid.data("x", [3], "float32")
    x.stop_gradient = False
    first = L.square(x)
    second = L.exp(first)
    weights = (
        [L.fill_constant([3], "float32", 2.0), L.fill_constant([3], "float32", 3.0)] if weighted else None
    )
    (gradient,) = fluid.gradients([first, second], [x], weights)
    value = np.array([0.5, -1.0, 0.2], "float32")
    one, other = (2.0, 3.0) if weighted else (1.0, 1.0)
    for _ in range(3):
        found = fluid.Executor(fluid.CPUPlace()).run(main, feed={"x": value}, fetch_list=[gradient])[0]
        np.testing.assert_allclose(found, 2 * value * (one + other * np.exp(value**2)), rtol=1e-5)


def test_gradients_that_go_no_further_are_added_where_fluid_adds_them(main):
    x = fluid.data("x", [None, 4], "float32")
    w = fluid.data("w", [4, 4], "float32")
    w.stop_gradient = False
    first = L.scale(x, 2.0)
    h = L.fc(first, 4)
    y = L.scale(x, 3.0)
    parts = (L.relu(y), L.tanh(y), h, L.mul(first, w), L.mul(y, w), L.elementwise_mul(first, y))
    fluid.backward.append_backward(L.mean(sum(parts[1:], parts[0])))
    assert [(op.type, op.output("Out")) for op in main.global_block().ops[-6:] if op.type == "sum"] == [
        ("sum", ["scale_1.tmp_0@GRAD"]),
        ("sum", ["scale_0.tmp_0@GRAD"]),
        ("sum", ["w@GRAD"]),
    ]
    assert types(main)[-6:] == ["relu_grad", "sum", "elementwise_add_grad", "mul_grad", "sum", "sum"]


def test_operators_name_the_gradients_of_parameters_they_make_the_last_ones_first(main):
    x = fluid.data("x", [5, None, 4], "float32")
    x.stop_gradient = False
    rnn = L.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        memory = rnn.memory(shape=[-1, 4], batch_ref=word, ref_batch_dim_idx=0)
        hidden = L.fc([word, memory], 4, act="tanh")
        rnn.update_memory(memory, hidden)
        rnn.step_output(hidden)
    fluid.backward.append_backward(L.mean(rnn()))
    (made,) = (op for op in main.global_block().ops if op.type == "recurrent_grad")
    assert made.attr("op_role_var")[::2] == ["fc_0.b_0", "fc_0.w_1", "fc_0.w_0"]
    assert made.attr("op_role") == 1  # backward
    assert not any(op.type == "recurrent_grad" for op in main.clone(for_test=True).global_block().ops)


def test_second_gradients_of_a_target_are_named_and_declared_as_in_fluid(main):
    x = fluid.data("x", [-1, 4])
    x.stop_gradient = False
    y = fluid.layers.mean(fluid.layers.tanh(x))
    found = [fluid.gradients(y, x)[0].name for _ in range(3)]
    assert found == ["x@GRAD", "grad/grad/x@GRAD", "grad/grad/grad/x@GRAD"]
    block = fluid.default_main_program().global_block()
    filled = [op.output("Out") for op in block.ops if op.type == "fill_constant"]
    assert filled == [[f"mean_0.tmp_0@GRAD{number}"] for number in ("", "_0", "_1")]
    assert block.var("mean_0.tmp_0_shape").dtype == fluid.core.VarDesc.VarType.BOOL
    given = np.array([[0.0, 1.0, -2.0, 0.5]], "float32")
    for gradient in fluid.Executor().run(feed={"x": given}, fetch_list=found):
        np.testing.assert_allclose(gradient, (1 - np.tanh(given) ** 2) / 4, rtol=1e-5)


def test_each_pass_begins_with_a_gradient_of_its_own(main):
    """Names of Paddle 1.8.5."""
    loss = L.mean(L.fc(fluid.data("x", [None, 3], "float32"), 1, bias_attr=False))
    for _ in range(3):
        fluid.backward.append_backward(loss)
    begins = [op.output("Out") for op in main.global_block().ops if op.type == "fill_constant"]
    assert begins == [["mean_0.tmp_0@GRAD"], ["mean_0.tmp_0@GRAD_0"], ["mean_0.tmp_0@GRAD_1"]]


def test_sums_of_gradients_stand_before_zeros(main):
    """Operators of Paddle 1.8.5."""
    made = L.fc(fluid.data("x", [6, 6], "float32"), 6, bias_attr=False)
    unused, one, other = L.split(made, 3, 1)
    fluid.backward.append_backward(L.reduce_sum(L.exp(one) * one + other * L.exp(other)))
    types = [op.type for op in main.global_block().ops]
    assert types[-5:] == ["sum", "sum", "fill_zeros_like", "concat", "mul_grad"]


def test_gradients_through_integers_are_cut_to_integers(main):
    """Numbers of Paddle 1.8.5."""
    x = fluid.data("x", [4], "float32")
    x.stop_gradient = False
    whole = L.cast(L.cast(x, "int64"), "float32")
    (slope,) = fluid.gradients(L.reduce_sum(whole * x * 3.7), x)
    value = np.array([-1.6, 0.4, 0.8, 2.5], "float32")
    (got,) = fluid.Executor().run(main, feed={"x": value}, fetch_list=[slope])
    np.testing.assert_allclose(got, np.trunc(value) * 3.7 + np.trunc(value * 3.7), rtol=1e-6)


WHOLE = {
    "scale": (lambda v: v * 3, [126, 154, 182]),
    "add": (lambda v: v + v, [90, 110, 130]),
    "sub": (lambda v: v - v, [18, 22, 26]),
    "mul": (lambda v: v * v, [618, 878, 1098]),
    "div": (lambda v: v / (v + 1), [18, 23, 26]),
    "max": (lambda v: L.elementwise_max(v, v + 1), [54, 66, 78]),
    "reshape": (lambda v: L.reshape(v, [2, 6]), [54, 66, 78]),
    "transpose": (lambda v: L.transpose(v, [1, 0]), [54, 66, 78]),
    "split": (lambda v: L.split(v, 3, 1)[1], [18, 66, 26]),
    "slice": (lambda v: L.slice(v, [0], [1], [3]), [36, 44, 52]),
    "gather": (lambda v: L.gather(v, L.assign(np.array([0, 2], "int32"))), [30, 38, 46]),
    "sum": (lambda v: L.reduce_sum(v, 1), [54, 66, 78]),
    "mean": (lambda v: L.reduce_mean(v, 1), [18, 22, 26]),
    "largest": (lambda v: L.reduce_max(v, 1), [18, 22, 78]),
    "square": (L.square, [618, 878, 1098]),
    "cumsum": (L.cumsum, [126, 110, 78]),
    "mod": (lambda v: L.elementwise_mod(v, v + 1), [18, 22, 26]),
    "bool": (lambda v: L.cast(v, "bool"), [36, 44, 52]),
}
"""Functions of v = cast(w * [0 ... 11], int64), and the gradient of w in Paddle 1.8.5."""


@pytest.mark.parametrize("name", WHOLE)
def test_gradients_pass_through_integers(programs, name):
    work, expected = WHOLE[name]
    main, startup = programs
    x = fluid.data("x", [4, 3], "float32")
    w = L.create_parameter([3], "float32", default_initializer=fluid.initializer.Constant(1.3))
    loss = L.reduce_sum(L.cast(work(L.cast(x * w, "int64")), "float32") * 2.7) + L.reduce_sum(x * w)
    ((_, gradient),) = fluid.backward.append_backward(loss)
    given = np.arange(12, dtype="float32").reshape(4, 3)
    exe = fluid.Executor()
    exe.run(startup)
    (found,) = exe.run(main, feed={"x": given}, fetch_list=[gradient])
    np.testing.assert_array_equal(found, expected)
    with fluid.dygraph.guard():
        weight = fluid.dygraph.to_variable(np.full(3, 1.3, "float32"))
        weight.stop_gradient = False
        made = fluid.dygraph.to_variable(given) * weight
        loss = L.reduce_sum(L.cast(work(L.cast(made, "int64")), "float32") * 2.7) + L.reduce_sum(made)
        loss.backward()
        np.testing.assert_array_equal(weight.gradient(), expected)


def test_comparisons_end_gradients_after_their_cast(main):
    """Operators of Paddle 1.8.5: masks that operators of Python make have no `stop_gradient`."""
    x = fluid.data("x", [4], "float32")
    x.stop_gradient = False
    before = fluid.gradients(L.reduce_sum(L.cast(x > 0.5, "float32") * x), x)
    assert [op.type for op in main.global_block().ops][-4:] == [
        "fill_constant",
        "reduce_sum_grad",
        "elementwise_mul_grad",
        "cast",
    ]
    (slope,) = fluid.Executor().run(
        main, feed={"x": np.array([0, 0.7, 1, 0.2], "float32")}, fetch_list=before
    )
    np.testing.assert_array_equal(slope, [0, 1, 1, 0])


def test_what_makes_an_input_of_gradients_is_not_differentiated(programs):
    main, startup = programs
    x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "float32")
    made = fluid.layers.fc(x, 1, bias_attr="bias")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(made, y))
    fluid.optimizer.SGD(0.0).minimize(loss)
    before = len(main.global_block().ops)
    (slope,) = fluid.gradients(fluid.layers.reduce_sum(made * 3.0), made)
    types = [op.type for op in main.global_block().ops[before:]]
    assert types == ["scale", "reduce_sum", "shape", "fill_constant", "reduce_sum_grad", "scale"]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    feed = {"x": np.zeros((2, 4), "float32"), "y": np.ones((2, 1), "float32")}
    given, of_bias = exe.run(feed=feed, fetch_list=[slope, "bias@GRAD"])
    np.testing.assert_array_equal(given, [[3], [3]])
    np.testing.assert_array_equal(of_bias, [-2])  # of the loss, not of what was differentiated since
