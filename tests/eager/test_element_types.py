"""The class of errors about element types: layers ask for those of Variables, Fluid's native part for tensors'."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import core, layers

CALLS = {
    "relu": lambda ids, x: layers.relu(ids),
    "mean": lambda ids, x: layers.mean(ids),
    "dropout": lambda ids, x: layers.dropout(ids, 0.5),
    "label_smooth": lambda ids, x: layers.label_smooth(ids),
    "huber_loss": lambda ids, x: layers.huber_loss(x, ids, 1.0),
    "logical_not": lambda ids, x: layers.logical_not(x),
    "one_hot": lambda ids, x: layers.one_hot(x, 3),
    "layers.embedding": lambda ids, x: layers.embedding(x, [3, 4]),
    "fluid.embedding": lambda ids, x: fluid.embedding(x, [3, 4]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_errors_of_element_types(call):
    with fluid.dygraph.guard():
        ids = fluid.dygraph.to_variable(np.ones((2, 1), "int64"))
        x = fluid.dygraph.to_variable(np.ones((2, 3), "float32"))
        with pytest.raises(core.EnforceNotMet, match="data type of") as error:
            call(ids, x)
        assert error.type.__name__ == "EnforceNotMet"
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.raises(TypeError, match="data type of") as error:
            call(fluid.data("ids", [None, 1], "int64"), fluid.data("x", [None, 3], "float32"))
        assert error.type is TypeError
