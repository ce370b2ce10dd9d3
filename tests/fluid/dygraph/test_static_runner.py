"""StaticModelRunner; numbers are those recorded on Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers

X = np.random.RandomState(1).rand(3, 1, 4, 4).astype("float32")
LOSSES = [0.8696985, 0.6212928, 0.4339672]
MEAN = [1.2943270, 1.4002666]
BIAS = [0.6344636, 0.4821295, 0.2643663]
FOUND = [0.0027744, 0.0792868, 0.9179388]


@pytest.fixture
def model(tmp_path):
    """The folder of a saved model."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        hidden = layers.batch_norm(layers.conv2d(fluid.data("img", [None, 1, 4, 4], "float32"), 2, 3))
        predicted = layers.fc(hidden, 3, act="softmax")
        exe, place = fluid.Executor(fluid.CPUPlace()), fluid.CPUPlace()
        exe.run(startup)
        random = np.random.RandomState(0)
        for param in sorted(main.all_parameters(), key=lambda param: param.name):
            value = random.uniform(0.1, 1, param.shape).astype("float32")
            fluid.global_scope().find_var(param.name).get_tensor().set(value, place)
        fluid.io.save_inference_model(str(tmp_path), ["img"], [predicted], exe, main)
    return str(tmp_path)


def test_a_saved_model_is_trained(model):
    with fluid.dygraph.guard():
        runner = fluid.dygraph.StaticModelRunner(model)
        assert len(runner.parameters()) == 8 and runner.training
        sgd = fluid.optimizer.SGD(0.5, parameter_list=runner.parameters())
        losses = []
        for _ in range(3):
            predicted = runner(fluid.dygraph.to_variable(X))
            label = fluid.dygraph.to_variable(np.array([[0], [1], [2]]))
            loss = layers.mean(layers.cross_entropy(predicted, label))
            loss.backward()
            sgd.minimize(loss)
            runner.clear_gradients()
            losses.append(float(loss.numpy()[0]))
        state = runner.state_dict()
        mean = state["batch_norm_0.w_1@LOADED"].numpy()
        bias = state["fc_0.b_0@LOADED"].numpy()
        runner.eval()
        (found,) = runner(X).numpy()[:1]
    np.testing.assert_allclose(losses, LOSSES, rtol=1e-5)
    np.testing.assert_allclose(mean, MEAN, rtol=1e-5)
    np.testing.assert_allclose(bias, BIAS, rtol=1e-5)
    np.testing.assert_allclose(found, FOUND, rtol=1e-4)


def test_statistics_are_not_trained(model):
    with fluid.dygraph.guard():
        named = dict(fluid.dygraph.StaticModelRunner(model).named_parameters())
    fixed = [name for name, param in named.items() if param.stop_gradient]
    assert sorted(fixed) == ["batch_norm_0.w_1@LOADED", "batch_norm_0.w_2@LOADED"]


def test_what_is_refused(model):
    with fluid.dygraph.guard():
        runner = fluid.dygraph.StaticModelRunner(model)
        with pytest.raises(ValueError, match="takes 1 inputs"):
            runner(X, X)
        with pytest.raises(TypeError, match="must be numpy array or Variable"):
            runner([X])
        with pytest.raises(ValueError, match="There is no directory named 'nowhere'"):
            fluid.dygraph.StaticModelRunner("nowhere")
