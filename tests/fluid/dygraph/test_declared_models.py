"""Declared, traced, saved and loaded models give the eager results, also for other batch sizes and lengths."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, layers
from fluidlite.dygraph import declarative, to_variable
from fluidlite.paddle import jit
from fluidlite.paddle.static import InputSpec

from .declared_models import MODELS

SIZES = [(3, 4), (2, 6), (1, 3), (3, 4)]


pytestmark = pytest.mark.usefixtures("eager")


def made(kind):
    """A model with parameters that are the same in every process and test."""
    with fluid.unique_name.guard():
        net = kind()
    random = np.random.default_rng(3)
    for parameter in net.parameters():
        low = 0.5 if parameter.name.startswith("batch_norm") else -0.5
        parameter.set_value(random.uniform(low, low + 1, parameter.shape).astype("float32"))
    return net


def flat(found):
    return list(found) if isinstance(found, (list, tuple)) else [found]


def results(net, call, arrays):
    """The results of a call, and the gradients of the sum of their squares for inputs and parameters."""
    inputs = [to_variable(array) for array in arrays]
    for x in inputs:
        x.stop_gradient = "float" not in str(x.numpy().dtype)
    found = flat(call(*inputs))
    total = sum(layers.reduce_sum(out * out) for out in found if "float" in str(out.numpy().dtype))
    net.clear_gradients()
    if not total.stop_gradient:
        total.backward()
    slopes = {name: parameter.gradient() for name, parameter in net.named_parameters()}
    slopes.update({f"input {i}": x.gradient() for i, x in enumerate(inputs)})
    return [out.numpy() for out in found], {n: slope for n, slope in slopes.items() if slope is not None}


def assert_same(found, expected):
    for one, other in zip(found[0], expected[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert set(found[1]) == set(expected[1])
    for name, slope in expected[1].items():
        np.testing.assert_allclose(found[1][name], slope, rtol=1e-3, atol=2e-4, err_msg=name)


def batches(inputs):
    random = np.random.default_rng(1)
    return [inputs(random, *sizes) for sizes in SIZES]


@pytest.mark.parametrize("name", MODELS)
def test_declared_as_it_is(name):
    kind, inputs = MODELS[name]
    eager, net = made(kind), made(kind)
    declared = declarative(net.forward)
    for arrays in batches(inputs):
        assert_same(results(net, declared, arrays), results(eager, eager, arrays))
    for key, value in eager.state_dict().items():
        np.testing.assert_allclose(net.state_dict()[key].numpy(), value.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded(name, tmp_path):
    kind, inputs = MODELS[name]
    net = made(kind)
    net.eval()
    given = batches(inputs)
    specs = []
    for i, (array, other) in enumerate(zip(given[0], given[1], strict=True)):
        shape = [None if a != b else a for a, b in zip(array.shape, other.shape, strict=True)]
        specs.append(InputSpec(shape, str(array.dtype), f"x{i}"))
    jit.save(net, str(tmp_path / "net"), input_spec=specs)
    loaded = jit.load(str(tmp_path / "net"))
    for arrays in given:
        found, expected = (
            [out.numpy() for out in flat(call(*map(to_variable, arrays)))] for call in (loaded, net)
        )
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["conv", "residual", "language model", "seq2seq", "transformer", "sentiment of convolutions"]
)
def test_traced_and_run_by_others(name, tmp_path):
    """Models saved by TracedLayer take other batch sizes: run by an Executor, and trained by StaticModelRunner."""
    kind, inputs = MODELS[name]
    net, folder = made(kind), str(tmp_path)
    net.eval()
    random = np.random.default_rng(1)
    expected, traced = dygraph.TracedLayer.trace(net, list(map(to_variable, inputs(random, 3, 4))))
    assert len(traced(list(map(to_variable, inputs(random, 2, 4))))) == len(flat(expected))
    traced.save_inference_model(folder)
    runner = dygraph.StaticModelRunner(folder)
    runner.eval()
    names = {parameter.name: parameter for parameter in net.parameters()}
    for batch in (2, 5, 1):
        arrays = inputs(random, batch, 4)
        eager = results(net, net, arrays)
        found, slopes = results(runner, runner, arrays)
        for one, other in zip(found, eager[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
        of_names = {
            names[key.removesuffix("@LOADED")].name: value for key, value in slopes.items() if "@" in key
        }
        for key, parameter in net.named_parameters():
            if key in eager[1]:
                np.testing.assert_allclose(of_names[parameter.name], eager[1][key], rtol=1e-3, atol=2e-4)
    with fluid.framework._dygraph_guard(None):
        exe = fluid.Executor(fluid.CPUPlace())
        with fluid.scope_guard(fluid.Scope()):
            program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
            got = exe.run(program, feed=dict(zip(feeds, arrays, strict=True)), fetch_list=fetches)
    for one, other in zip(got, eager[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
