"""Each phase of the compiler, called alone: its input and its result."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.sizes import formula
from fluidlite.executor.compile import compile_for_cpu
from fluidlite.executor.cpu.assembly import Assembly, allocate
from fluidlite.executor.cpu.code import changed_early
from fluidlite.executor.cpu.lowering import lower
from fluidlite.executor.cpu.optimize import optimize
from fluidlite.executor.cpu.plan import Plan
from fluidlite.executor.frontend import infer_shapes, prune, structure
from fluidlite.executor.ir.request import Request
from fluidlite.executor.ir.type_env import TypeEnv

layers = fluid.layers


@pytest.fixture
def request_of_a_step(alone):
    """fc, relu, mean, and a dropout that no fetch needs; a counter of the scope that is always updated."""
    x = fluid.data("x", [None, 3], "float32")
    out = layers.relu(layers.fc(x, 2))
    loss = layers.mean(out)
    layers.dropout(out, 0.5)
    steps = layers.create_global_var([1], 0.0, "float32", persistable=True, name="steps")
    layers.increment(steps)
    fluid.Executor().run(fluid.default_startup_program())
    main = fluid.default_main_program()
    return Request(main, fluid.global_scope(), {"x": np.ones((4, 3), "float32")}, [loss.name])


def types(ops):
    return [op.type for op in ops]


def typed(request):
    meta = TypeEnv(request)
    return infer_shapes(structure(prune(request, meta), request, meta), request, meta)


def test_prune_keeps_what_fetches_and_updates_of_state_need(request_of_a_step):
    ops = prune(request_of_a_step, TypeEnv(request_of_a_step))
    assert types(ops) == ["mul", "elementwise_add", "relu", "mean", "increment"]


def test_structure_names_each_value_of_a_temporary_once(alone):
    x = fluid.data("x", [None, 2], "float32")
    y = layers.scale(x, 2.0)
    layers.increment(layers.reduce_sum(y))
    layers.assign(layers.scale(y, 3.0), y)
    out = layers.scale(y, 1.0)
    request = Request(
        fluid.default_main_program(),
        fluid.global_scope(),
        {"x": np.ones((2, 2), "float32")},
        [out.name, y.name],
    )
    meta = TypeEnv(request)
    graph = structure(prune(request, meta), request, meta)
    written = [name for op in graph.ops for name in op.writes()]
    assert len(written) == len({*written})
    assert graph.results == [out.name, f"{y.name}@V1"]


def test_structure_puts_the_block_of_a_branch_between_jumps(alone):
    x = fluid.data("x", [1], "float32")
    out = layers.cond(x > 0.0, lambda: x * 2.0, lambda: x * 3.0)
    request = Request(
        fluid.default_main_program(), fluid.global_scope(), {"x": np.ones(1, "float32")}, [out.name]
    )
    meta = TypeEnv(request)
    ops = types(structure(prune(request, meta), request, meta).ops)
    assert ops.count("branch") == ops.count("branch_end") == 2 and "conditional_block" not in ops


def test_infer_shapes_gives_formulas_of_the_sizes_of_feeds(request_of_a_step):
    found = typed(request_of_a_step)
    shapes = [
        [formula(size) for size in found.meta.shapes[name]] for op, _ in found.steps for name in op.writes()
    ]
    assert shapes == [["x.0", "2"], ["x.0", "2"], ["x.0", "2"], ["1"], ["1"]]


def test_infer_shapes_leaves_constants_out(alone):
    three = layers.scale(layers.fill_constant([2], "float32", 1.0), 3.0)
    request = Request(fluid.default_main_program(), fluid.global_scope(), {}, [three.name])
    found = typed(request)
    assert found.steps == []
    np.testing.assert_array_equal(found.meta.constants[three.name], [3.0, 3.0])


def test_lower_and_optimize(request_of_a_step):
    code = lower(typed(request_of_a_step), request_of_a_step)
    assert [each.name for each in code.instructions] == [
        "mul",
        "elementwise_add",
        "relu",
        "mean",
        "increment",
    ]
    optimize(code)
    assert [each.name for each in code.instructions] == ["mul+elementwise_add+relu", "mean", "increment"]
    assert changed_early(code) == []


def test_allocate_gives_temporaries_live_ranges(request_of_a_step):
    code = lower(typed(request_of_a_step), request_of_a_step)
    optimize(code)
    storages = allocate(code)
    (relu,) = (storages[name] for name in storages if name.startswith("relu"))
    assert (relu.first, relu.last, formula(relu.bytes)) == (0, 1, "8*x.0")
    assert "steps" not in storages, "variables of the scope have memory of their own"


def test_an_assembled_engine_runs(request_of_a_step):
    code = lower(typed(request_of_a_step), request_of_a_step)
    optimize(code)
    assembly = Assembly(code, allocate(code))
    plan = Plan(request_of_a_step, code, assembly, changed_early(code), False)
    assembly.settle()
    x = np.full((5, 3), 2.0, "float32")
    assert plan.accepts([x])
    plan.run()
    weight, bias = (
        np.array(fluid.global_scope().find_var(each.name).get_tensor())
        for each in fluid.default_main_program().all_parameters()
    )
    np.testing.assert_allclose(plan.fetch()[0], [np.maximum(x @ weight + bias, 0).mean()], rtol=1e-6)
    assert np.array(fluid.global_scope().find_var("steps").get_tensor()) == 1.0


def test_phases_are_printed_on_request(request_of_a_step, monkeypatch, capsys):
    monkeypatch.setenv("FLUIDLITE_PRINT_PHASES", "1")
    compile_for_cpu(request_of_a_step)
    text = capsys.readouterr().err
    phases = [line for line in text.splitlines() if line.startswith("==")]
    assert phases == [
        "== prune: 5", "== structure: 5", "== infer_shapes: 5", "== lower: 5", "== optimize: 3",
    ]  # fmt: skip
    assert "mul(x, fc_0.w_0) -> fc_0.tmp_0[x.0, 2]" in text
