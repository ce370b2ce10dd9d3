"""Compile time is linear in the size of a program: the tests count calls of functions, not seconds."""

import gc
import sys

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.executor.compile import compile_for_cpu, typed
from fluidlite.executor.cuda import compile as device_compile
from fluidlite.executor.cuda.launch import of_operator
from fluidlite.executor.feeding import as_feed, expanded
from fluidlite.executor.interpreter.interpreter import Interpreter
from fluidlite.executor.ir.request import Request
from fluidlite.executor.passes.rewriting import apply_passes
from fluidlite.optimizer import Adam


def _layers(x, size):
    for _ in range(size):
        x = fluid.layers.fc(x, 4, act="relu")
    return x


def _shared(x, size):
    for _ in range(size):
        x = fluid.layers.fc(x, 4, param_attr="w", bias_attr=False)
    return x


def _uses(x, size):
    return fluid.layers.sums([fluid.layers.relu(x) for _ in range(size)])


def _parameters(x, size):
    return fluid.layers.sums([fluid.layers.fc(x, 4) for _ in range(size)])


def _tables(x, size):
    ids = fluid.layers.cast(x, "int64")
    found = [fluid.embedding(ids, [3, 4], is_sparse=True) for _ in range(size)]
    return fluid.layers.sums(found)


def _calls(work):
    """How many functions (and steps of generators) `work` calls, without what the collector ends meanwhile."""
    count = 0

    def seen(frame, event, arg):
        nonlocal count
        count += event == "call"

    gc.disable()
    sys.setprofile(seen)
    try:
        made = work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count, made


def _launches(program, scope, given):
    request = Request(program, scope, given, [], fixed=True)
    return [of_operator(op, view) for op, view in typed(request).steps]


def _stages(network, size):
    """Stage -> calls."""
    main, startup = fluid.Program(), fluid.Program()
    clip = fluid.clip.GradientClipByGlobalNorm(1.0)
    feed = {"x": np.zeros([2, 4], "float32")}
    counts = {}

    def build():
        x = fluid.data("x", [None, 4])
        x.stop_gradient = False
        return fluid.layers.mean(network(x, size))

    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        scope = fluid.global_scope()
        counts["build"], loss = _calls(build)
        counts["minimize"], _ = _calls(lambda: Adam(0.1, grad_clip=clip).minimize(loss))
        counts["clone"], _ = _calls(lambda: main.clone(for_test=True))
        counts["prune"], _ = _calls(lambda: main._prune([loss.name]))
        counts["serialize"], saved = _calls(main.desc.serialize_to_string)
        counts["parse"], _ = _calls(lambda: fluid.Program.parse_from_string(saved))
        exe = fluid.Executor()
        counts["startup"], _ = _calls(lambda: exe.run(startup))
        fed = as_feed(main, feed)
        given = expanded(fed)
        counts["plan"], plan = _calls(lambda: compile_for_cpu(Request(main, scope, given, [loss.name])))
        counts["fuse on a GPU"], _ = _calls(
            lambda: apply_passes(_launches(main, scope, given), [loss.name], device_compile.PASSES)
        )
        counts["interpret"], _ = _calls(lambda: Interpreter(main, scope, fed).run())
    return counts


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("network", [_layers, _shared, _uses, _parameters, _tables])
def test_every_stage_is_linear(network):
    _stages(network, 2)  # what is loaded or compiled once
    small, medium, large = (_stages(network, size) for size in (10, 20, 40))
    for stage, count in large.items():
        first, second = medium[stage] - small[stage], count - medium[stage]
        assert second <= 2 * first * 1.05 + 40, f"{stage}: {small[stage]}, {medium[stage]}, {count} calls"
