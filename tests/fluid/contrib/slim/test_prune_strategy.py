"""contrib.slim.prune: strategies. Shapes and sums of `RECORDED` are those recorded on Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.contrib.slim import Compressor, Context
from fluidlite.contrib.slim.graph import GraphWrapper
from fluidlite.contrib.slim.prune import PruneStrategy, StructurePruner, UniformPruneStrategy

PLACE = fluid.CPUPlace()
PRUNER = StructurePruner({"*": 0}, {"*": "l1_norm"})


def conv(x, name, filters, size=3, act="relu", groups=1):
    out = layers.conv2d(
        x, filters, size, padding=size // 2, groups=groups, param_attr=f"{name}_weights", bias_attr=False
    )
    return layers.batch_norm(
        out,
        act=act,
        param_attr=f"{name}_s",
        bias_attr=f"{name}_b",
        moving_mean_name=f"{name}_m",
        moving_variance_name=f"{name}_v",
    )


def residual(x):
    first = conv(x, "c1", 4)
    second, short = conv(first, "c2", 8, act=None), conv(first, "c3", 8, size=1, act=None)
    joined = layers.elementwise_add(second, short, act="relu")
    fourth = conv(joined, "c4", 8)
    return layers.elementwise_add(joined, conv(fourth, "c5", 8, act=None), act="relu")


def joined(x):
    return conv(layers.concat([conv(x, "c1", 4), conv(x, "c2", 6)], 1), "c3", 5)


def depthwise(x):
    return conv(conv(conv(x, "c1", 4), "dw", 4, groups=4), "c3", 8, size=1)


def excited(x):
    first = conv(x, "c1", 8)
    pooled = layers.pool2d(first, pool_type="avg", global_pooling=True)
    narrow = layers.fc(pooled, 2, act="relu", param_attr="f1", bias_attr="f1b")
    scale = layers.fc(narrow, 8, act="sigmoid", param_attr="f2", bias_attr="f2b")
    return conv(layers.elementwise_mul(first, scale, axis=0), "c2", 4)


def build(body, minimize=True):
    """The graph that trains, the scope, and what runs one step."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x, y = fluid.data("x", [None, 3, 8, 8]), fluid.data("y", [None, 1], "int64")
        scores = layers.fc(body(x), 3, act="softmax", param_attr="fc_weights", bias_attr="fc_b")
        loss = layers.mean(layers.cross_entropy(scores, y))
        test = main.clone(for_test=True)
        if minimize:
            fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    scope, exe = fluid.Scope(), fluid.Executor(PLACE)
    with fluid.scope_guard(scope):
        exe.run(startup)
    for param in main.all_parameters():
        value = np.cos(np.arange(np.prod(param.shape)) * 1.7).reshape(param.shape) + 0.1
        scope.find_var(param.name).get_tensor().set(value.astype("float32"), PLACE)
    graphs = [
        GraphWrapper(program, [("x", "x"), ("y", "y")], [("loss", loss.name)]) for program in (main, test)
    ]

    def step(program):
        feed = {"x": np.ones((2, 3, 8, 8), "float32"), "y": np.ones((2, 1), "int64")}
        with fluid.scope_guard(scope):
            return exe.run(program, feed=feed, fetch_list=[loss])[0]

    return graphs, scope, step


def value(scope, name):
    return np.array(scope.find_var(name).get_tensor())


RECORDED = [
    (residual, "c1_weights", {"c2_weights": ((8, 2, 3, 3), 14.17), "c3_weights": ((8, 2, 1, 1), 3.58)}),
    (residual, "c4_weights", {"c4_v": ((4,), 0.59), "c5_weights": ((8, 4, 3, 3), 30.2)}),
    (joined, "c1_weights", {"c1_weights": ((2, 3, 3, 3), 7.48), "c3_weights": ((5, 8, 3, 3), 35.67)}),
    (joined, "c2_weights", {"c2_s": ((3,), 1.08), "c3_weights": ((5, 7, 3, 3), 31.64)}),
    (depthwise, "c3_weights", {"c3_b": ((4,), 0.96), "fc_weights": ((256, 3), 77.13)}),
]


@pytest.mark.parametrize("body, param, expected", RECORDED)
def test_what_goes_with_a_parameter_has_the_recorded_sizes_and_sums(body, param, expected):
    (graph, _), scope, step = build(body)
    PruneStrategy(PRUNER)._prune_parameters(graph, scope, [param], [0.5], PLACE)
    for name, (shape, total) in expected.items():
        held = value(scope, name)
        assert held.shape == shape == graph.var(name).shape()
        np.testing.assert_allclose(held.sum(), total, atol=0.006)
    velocity = f"{param}_velocity_0"
    assert graph.var(velocity).shape() == value(scope, velocity).shape == graph.var(param).shape()
    assert np.isfinite(step(graph.program)).all()


@pytest.mark.parametrize(
    "body, param, together",
    [
        (
            residual,
            "c5_weights",
            {"c2_weights": (4, 4, 3, 3), "c3_weights": (4, 4, 1, 1), "fc_weights": (256, 3)},
        ),
        (depthwise, "c1_weights", {"dw_weights": (2, 1, 3, 3), "c3_weights": (8, 2, 1, 1)}),
        (excited, "c1_weights", {"f1": (4, 2), "f2": (2, 4), "f2b": (4,), "c2_weights": (4, 4, 3, 3)}),
    ],
)
def test_what_must_keep_the_same_size_is_pruned_alike(body, param, together):
    (graph, _), scope, step = build(body)
    PruneStrategy(PRUNER)._prune_parameters(graph, scope, [param], [0.5], PLACE)
    assert {name: value(scope, name).shape for name in together} == together
    assert np.isfinite(step(graph.program)).all()


def test_lazy_pruning_makes_zeros_and_keeps_what_was_there():
    (graph, _), scope, _ = build(residual)
    before, backup, shapes = value(scope, "c1_weights"), {}, {}
    PruneStrategy(PRUNER)._prune_parameters(
        graph, scope, ["c1_weights"], [0.5], PLACE, True, False, backup, shapes
    )
    pruned = value(scope, "c1_weights")
    assert pruned.shape == before.shape and (np.abs(pruned).sum(axis=(1, 2, 3)) == 0).sum() == 2
    np.testing.assert_array_equal(backup["c1_weights"], before)
    assert shapes["c2_weights"] == (8, 4, 3, 3) and "c4_weights" not in shapes


def test_what_an_operator_does_not_allow_changes_nothing():
    (graph, _), scope, step = build(lambda x: layers.conv2d(x, 4, 3, param_attr="w"))
    pruner = StructurePruner({"*": 1}, {"*": "l1_norm"})
    with pytest.raises(ValueError, match="out of x, which no operator computes"):
        PruneStrategy(pruner)._prune_parameters(graph, scope, ["w"], [0.34], PLACE)
    assert value(scope, "w").shape == (4, 3, 3, 3) == graph.var("w").shape()


@pytest.mark.parametrize("target", [0.3, 0.5])
def test_uniform_pruning_saves_the_part_of_the_operations(target):
    (graph, test), scope, step = build(depthwise)
    for name in ("c1_v", "dw_v", "c3_v"):  # variances, which programs for tests divide by
        scope.find_var(name).get_tensor().set(np.abs(value(scope, name)), PLACE)
    context = Context(PLACE, scope, train_graph=graph, eval_graph=test)
    context.optimize_graph, context.epoch_id = graph, 1
    strategy = UniformPruneStrategy(PRUNER, start_epoch=1, target_ratio=target, pruned_params="c.*_weights")
    before = test.flops()
    params, ratios = strategy._get_best_ratios(context)
    assert params == ["c1_weights", "c3_weights"] and ratios[0] == ratios[1]
    assert value(scope, "c1_weights").shape == (4, 3, 3, 3)
    strategy.on_epoch_begin(context)
    assert abs(1 - test.flops() / before - target) < 0.15
    assert test.var("c3_weights").shape() == value(scope, "c3_weights").shape
    assert np.isfinite(step(graph.program)).all() and np.isfinite(step(test.program)).all()
    with pytest.raises(ValueError, match="no parameter's name matches"):
        UniformPruneStrategy(PRUNER, pruned_params="none")._get_best_ratios(context)


def test_a_compression_goes_on_with_the_pruned_model(tmp_path):
    sizes = []
    for epochs in (2, 3):
        (main, test), scope, _ = build(depthwise, minimize=False)
        loss = test.out_nodes["loss"]
        batch = [(np.ones((3, 8, 8), "float32"), [1])]
        feeds = [("x", "x"), ("y", "y")]
        compressor = Compressor(
            PLACE,
            scope,
            main.program,
            train_reader=lambda batch=batch: iter([batch]),
            train_feed_list=feeds,
            train_fetch_list=[("loss", loss)],
            eval_program=test.program,
            eval_feed_list=feeds,
            eval_fetch_list=[("loss", loss)],
            checkpoint_path=str(tmp_path),
            train_optimizer=fluid.optimizer.Momentum(0.01, 0.9),
        )
        compressor.strategies = [UniformPruneStrategy(PRUNER, start_epoch=1, pruned_params="c.*_weights")]
        compressor.epoch = epochs
        graph = compressor.run()
        sizes.append({param.name(): param.shape() for param in graph.all_parameters()})
        assert value(scope, "c3_weights").shape == sizes[-1]["c3_weights"]
        (velocity,) = [name for name in scope.local_var_names() if name.startswith("c3_weights_velocity")]
        assert value(scope, velocity).shape == sizes[-1]["c3_weights"]
    assert sizes[0] == sizes[1] and sizes[0]["c3_weights"][0] < 8
