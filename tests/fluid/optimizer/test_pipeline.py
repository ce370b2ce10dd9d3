"""PipelineOptimizer in one process; DGCMomentumOptimizer, which is for several."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.base.errors import NotSupportedError


def losses(optimizer):
    """The losses of three steps; `optimizer(hidden, loss)` makes the optimizer."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 2
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        hidden = layers.fc(fluid.data("x", [None, 4], "float32"), 3)
        loss = layers.mean(layers.square(layers.fc(hidden, 1)))
        optimizer(hidden, loss).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feed = {"x": np.ones((2, 4), "float32")}
        return [float(exe.run(main, feed=feed, fetch_list=[loss])[0][0]) for _ in range(3)]


def test_sections_run_in_order():
    def pipeline(hidden, loss):
        places = [fluid.CPUPlace()] * 3
        return fluid.optimizer.PipelineOptimizer(
            fluid.optimizer.SGD(0.1), [[hidden], [loss]], places, [1, 1, 1], queue_size=2
        )

    assert losses(pipeline) == losses(lambda hidden, loss: fluid.optimizer.SGD(0.1))


def test_sections_need_cuts_and_places():
    sgd = fluid.optimizer.SGD(0.1)
    with pytest.raises(TypeError, match="cut_list must be lists of Variables"):
        losses(lambda hidden, loss: fluid.optimizer.PipelineOptimizer(sgd))
    with pytest.raises(IndexError, match="2 cuts make 3 sections, but there are 1 places"):
        losses(
            lambda hidden, loss: fluid.optimizer.PipelineOptimizer(
                sgd, [[hidden], [loss]], [fluid.CPUPlace()]
            )
        )


def test_dgc_is_for_gpus(monkeypatch):
    arguments = {"learning_rate": 0.1, "momentum": 0.9, "rampup_begin_step": 1}
    monkeypatch.setattr("fluidlite.optimizer.wrappers.is_compiled_with_cuda", lambda: False)
    with pytest.raises(AssertionError, match="DGC is for GPUs only"):
        fluid.optimizer.DGCMomentumOptimizer(**arguments)
    monkeypatch.setattr("fluidlite.optimizer.wrappers.is_compiled_with_cuda", lambda: True)
    with pytest.raises(NotSupportedError, match="there is one here"):
        fluid.optimizer.DGCMomentumOptimizer(**arguments)
