"""`help()` of the names that old scripts use most: it tells arguments, results and errors, and its example runs."""

import doctest
import inspect
import re

import pytest

import fluidlite as fluid
import fluidlite.as_paddle  # noqa: F401 - examples import paddle
from fluidlite.framework import mode

# By how many of some hundred public scripts have them.
MOST_USED = """
    data ParamAttr layers.fc layers.reshape CUDAPlace layers.concat Executor CPUPlace default_main_program layers.pool2d
    Program layers.conv2d default_startup_program layers.mean layers.reduce_sum program_guard layers.cast
    initializer.Uniform layers.batch_norm embedding initializer.Constant io.DataLoader.from_generator
    layers.reduce_mean layers.transpose layers.dropout unique_name.guard layers.elementwise_add layers.elementwise_mul
    layers.cross_entropy optimizer.Adam layers.accuracy dygraph.Layer layers.relu dygraph.guard global_scope load
    regularizer.L2Decay layers.squeeze core.EOFException DataFeeder initializer.Normal core.get_cuda_device_count
    layers.unsqueeze io.load_inference_model layers.fill_constant layers.square layers.piecewise_decay
    io.save_inference_model io.batch layers.matmul
""".split()
# Their classes have the examples.
METHODS = ["Executor.run", "optimizer.Optimizer.minimize"]
RAISE_NOTHING = {
    *("CPUPlace", "Program", "default_main_program", "default_startup_program", "global_scope"),
    *("core.EOFException", "core.get_cuda_device_count", "unique_name.guard"),
}


def named(name):
    found = fluid
    for part in name.split("."):
        found = getattr(found, part)
    return found


def sections(text):
    """The sections of a docstring by their headings."""
    parts = re.split(r"(?m)^(Args|Returns|Raises|Example):\n", text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", MOST_USED + METHODS)
def test_help_has_all_sections(name):
    value = named(name)
    found = sections(inspect.getdoc(value))
    try:
        signature = inspect.signature(value)
    except ValueError:  # an exception class
        signature = inspect.Signature()
    told = re.findall(r"(?m)^    (\w+(?:, \w+)*):", found.get("Args", ""))
    assert {one for some in told for one in some.split(", ")} == {*signature.parameters} - {"self"}
    gives = inspect.isfunction(value) and not str(signature.return_annotation).startswith(
        ("None", "Iterator[")
    )
    assert ("Returns" in found) == gives
    assert ("Raises" in found) == (name not in RAISE_NOTHING)
    assert name in METHODS or ">>>" in found["Example"]


@pytest.mark.parametrize("name", MOST_USED)
def test_examples_run(name):
    (test,) = doctest.DocTestFinder(recurse=False).find(named(name), name, globs={}, module=False)
    said = []
    with (
        mode.guard(None),
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        ran = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert ran.attempted and not ran.failed, "".join(said)
