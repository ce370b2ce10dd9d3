"""Updates inside of branches, and programs with branches that are cloned, saved, and run on several places."""

import numpy as np
import pytest

import fluidlite as fluid

from .test_branches import executor, feeds, flag

layers = fluid.layers


def trained(build, feed, steps=3):
    """Parameters after each step of a program of one weight [3, 1] that begins with ones."""
    x = fluid.data("x", [None, 3], "float32")
    start = fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.0))
    loss = layers.mean(layers.fc(x, 1, param_attr=start, bias_attr=False))
    build(loss)
    exe = executor()
    found = []
    for _ in range(steps):
        exe.run(feed={"x": np.ones((2, 3), "float32"), **feed}, fetch_list=[])
        found.append(np.array(fluid.global_scope().find_var("w").get_tensor())[:, 0].tolist())
    return found


def sgd(rate, **options):
    return fluid.optimizer.SGD(rate, **options)


@pytest.mark.parametrize(("taken", "expected"), [(True, [0.5, 0.0, -0.5]), (False, [0.75, 0.5, 0.25])])
@pytest.mark.parametrize("kind", ["cond", "case", "Switch", "nested"])
def test_minimize_in_a_branch(kind, taken, expected):
    def build(loss):
        def step(rate):
            def minimize():
                sgd(rate).minimize(loss)
                return loss

            return minimize

        if kind == "cond":
            layers.cond(flag(), step(0.5), step(0.25))
        elif kind == "case":
            layers.case([(flag(), step(0.5))], default=step(0.25))
        elif kind == "nested":
            layers.cond(flag(), lambda: layers.cond(flag("q"), step(0.5), lambda: loss), step(0.25))
        else:
            with layers.Switch() as switch:
                with switch.case(flag()):
                    step(0.5)()
                with switch.default():
                    step(0.25)()

    found = trained(build, {"p": np.array([taken]), "q": np.array([True])})
    np.testing.assert_allclose(found, [[value] * 3 for value in expected], atol=1e-6)


def test_minimize_a_loss_of_the_branch_with_clipping_weight_decay_and_a_schedule():
    def build(loss):
        def minimize():
            mine = layers.scale(loss, 3.0)
            rate = layers.piecewise_decay([1], [0.5, 0.25])
            options = {
                "grad_clip": fluid.clip.GradientClipByGlobalNorm(1.0),
                "regularization": fluid.regularizer.L2Decay(0.1),
            }
            sgd(rate, **options).minimize(mine)
            return mine

        layers.cond(flag(), minimize, lambda: loss)

    found = trained(build, {"p": np.array([True])})
    weight, expected = 1.0, []
    for rate in (0.5, 0.25, 0.25):
        weight -= rate * (1 / np.sqrt(3.0) + 0.1 * weight)
        expected.append([weight] * 3)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert retrained({"p": np.array([False])}) == pytest.approx(weight)


def retrained(feed):
    """The first element of the weight after one more step of the program built last."""
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(feed={"x": np.ones((2, 3), "float32"), **feed}, fetch_list=[])
    return np.array(fluid.global_scope().find_var("w").get_tensor())[0, 0].item()


def test_two_optimizers_in_one_branch():
    def build(loss):
        def minimize():
            sgd(0.5).minimize(loss)
            sgd(0.25).minimize(layers.scale(loss, 2.0))

        layers.cond(flag(), minimize)

    found = trained(build, {"p": np.array([True])}, steps=2)
    np.testing.assert_allclose(found, [[0.0] * 3, [-1.0] * 3], atol=1e-6)


def test_a_branch_that_is_not_taken_gives_zeros_and_momentum_goes_on():
    x = fluid.data("x", [1, 1], "float32")
    start = fluid.initializer.Constant(1.0)

    def look():
        return layers.fc(x, 1, param_attr=fluid.ParamAttr("w", initializer=start), bias_attr=False)

    loss = layers.mean(layers.cond(flag(), look, lambda: x * 1.0))
    fluid.optimizer.Momentum(0.5, 0.5).minimize(loss)
    exe = executor()
    seen = []
    for taken in (True, False, False):
        feed = {"x": np.ones((1, 1), "float32"), "p": np.array([taken])}
        gradient = exe.run(feed=feed, fetch_list=["w@GRAD"])[0].item()
        seen.append((gradient, np.array(fluid.global_scope().find_var("w").get_tensor()).item()))
    assert seen == [(1.0, 0.5), (0.0, 0.25), (0.0, 0.125)]


def test_updates_need_gradients_of_the_same_branch():
    x = fluid.data("x", [1, 1], "float32")
    loss = layers.mean(layers.fc(x, 1))
    optimizer = sgd(0.5)
    pairs = optimizer.backward(loss)
    with pytest.raises(ValueError, match="need gradients that were computed there"):
        layers.cond(flag(), lambda: optimizer.apply_gradients(pairs) and None)
    assert fluid.default_main_program().current_block_idx == 0


def dropping():
    """A program that draws in one branch and passes on in the other; its result."""
    x = fluid.data("x", [None, 3], "float32")
    h = layers.fc(x, 3, param_attr=fluid.initializer.Constant(1.0), bias_attr=False)
    made = layers.cond(flag(), lambda: layers.dropout(h, 0.5), lambda: layers.relu(h))
    return x, made


def test_a_clone_for_test_has_the_blocks_that_still_run():
    _, made = dropping()
    program = fluid.default_main_program()
    sgd(0.5).minimize(layers.mean(made))
    assert len(program.blocks) == 5
    clone = program.clone(for_test=True)
    assert len(clone.blocks) == 3
    dropout = next(op for op in clone.block(1).ops if op.type == "dropout")
    assert dropout.attr("is_test") and not program.block(1).ops[0].attr("is_test")
    blocks = [op.attr("sub_block") for op in clone.global_block().ops if op.type == "conditional_block"]
    assert blocks == [clone.block(1), clone.block(2)]
    exe = executor()
    for feed, factor in zip(feeds("p"), (0.5, 1.0), strict=True):
        feed = {**feed, "x": np.ones((2, 3), "float32")}
        assert (exe.run(clone, feed=feed, fetch_list=[made.name])[0] == 3.0 * factor).all()


def test_a_saved_model_has_its_branches(tmp_path):
    _, made = dropping()
    unused = layers.cond(flag("q"), lambda: layers.exp(made), lambda: made)
    sgd(0.5).minimize(layers.mean(unused))
    exe = executor()
    fluid.io.save_inference_model(str(tmp_path), ["x", "p"], [made], exe)
    with fluid.scope_guard(fluid.Scope()):
        program, names, (target,) = fluid.io.load_inference_model(str(tmp_path), exe)
        assert names == ["x", "p"] and len(program.blocks) == 3
        for feed, factor in zip(feeds("p"), (0.5, 1.0), strict=True):
            feed = {**feed, "x": np.ones((2, 3), "float32")}
            assert (exe.run(program, feed=feed, fetch_list=[target])[0] == 3.0 * factor).all()


def test_a_program_with_updates_in_branches_is_written_and_read():
    x = fluid.data("x", [None, 3], "float32")
    loss = layers.mean(layers.fc(x, 1, param_attr=fluid.initializer.Constant(1.0), bias_attr=False))
    layers.cond(flag(), lambda: sgd(0.5).minimize(loss) and None)
    text = fluid.default_main_program().desc.serialize_to_string()
    parsed = fluid.Program.parse_from_string(text)
    exe = executor()
    feed = {"p": np.array([True]), "x": np.ones((2, 3), "float32")}
    values = [exe.run(parsed, feed=feed, fetch_list=[loss.name])[0].item() for _ in range(2)]
    assert values == [3.0, 1.5]


def test_branches_on_several_places():
    x = fluid.data("x", [None, 3], "float32")
    h = layers.fc(x, 1, param_attr=fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.0)))
    total = layers.reduce_sum(x)
    high = layers.greater_than(total, layers.fill_constant([1], "float32", 4.0))
    loss = layers.mean(layers.cond(high, lambda: h * 2.0, lambda: h))
    sgd(0.5).minimize(loss)
    exe = executor()
    both = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=loss.name, places=[fluid.CPUPlace()] * 2
    )
    rows = np.array([[1, 1, 1], [2, 2, 2]], "float32")
    losses = exe.run(both, feed={"x": rows}, fetch_list=[loss])[0]
    assert losses.tolist() == [3.0, 12.0]
    weight = np.array(fluid.global_scope().find_var("w").get_tensor())[:, 0]
    np.testing.assert_allclose(weight, [1 - 0.5 * (1 + 4) / 2] * 3)


def test_updates_in_branches_take_one_place():
    x = fluid.data("x", [None, 3], "float32")
    loss = layers.mean(layers.fc(x, 1))
    layers.cond(flag(), lambda: sgd(0.5).minimize(loss) and None)
    exe = executor()
    feed = {"x": np.ones((2, 3), "float32"), "p": np.array([True, True])}
    both = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=loss.name, places=[fluid.CPUPlace()] * 2
    )
    with pytest.raises(NotImplementedError, match="optimizer is used in control flow.*there are 2 places"):
        exe.run(both, feed=feed, fetch_list=[loss])


@pytest.mark.parametrize("branch", [True, False])
def test_minimize_in_a_loop_wants_a_branch(branch):
    x = fluid.data("x", [None, 3], "float32")
    start = fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.0))
    loss = layers.mean(layers.fc(x, 1, param_attr=start, bias_attr=False))
    i, n = (layers.fill_constant([1], "int64", value) for value in (0, 3))
    going = layers.less_than(i, n)

    def build():
        with layers.While(going).block():
            if branch:
                layers.cond(flag(), lambda: sgd(0.25).minimize(loss) and None)
            else:
                sgd(0.25).minimize(loss)
            layers.increment(i)
            layers.less_than(i, n, cond=going)

    if not branch:
        with pytest.raises(NotImplementedError, match="minimize inside of While"):
            build()
        return
    build()
    exe = executor()
    for feed, expected in zip(feeds("p"), (0.25, 0.25), strict=True):
        exe.run(feed={**feed, "x": np.ones((2, 3), "float32")}, fetch_list=[])
        weight = np.array(fluid.global_scope().find_var("w").get_tensor())[:, 0]
        np.testing.assert_allclose(weight, [expected] * 3)


def test_second_derivatives_in_a_branch():
    x = fluid.data("x", [2, 3], "float32")
    x.stop_gradient = False

    def penalty():
        (slope,) = fluid.gradients([layers.square(x) * x], [x])
        return layers.reduce_sum(layers.square(slope))

    made = layers.cond(flag(), penalty, lambda: layers.reduce_sum(x))
    once = fluid.gradients([made], [x])
    parsed = fluid.gradients([layers.scale(made, 2.0)], [x])
    exe = executor()
    for feed, expected in zip(feeds("p"), (36 * 2.0**3, 1.0), strict=True):
        got = exe.run(feed={**feed, "x": np.full((2, 3), 2.0, "float32")}, fetch_list=once + parsed)
        np.testing.assert_allclose(got[0], np.full((2, 3), expected))
        np.testing.assert_allclose(got[1], np.full((2, 3), 2 * expected))
