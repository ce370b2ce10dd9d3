"""`fluid.contrib.slim.Compressor`, its graphs, its strategies from YAML, and distillation."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.contrib import slim
from fluidlite.contrib.slim.core.compressor import cached_reader
from fluidlite.contrib.slim.distillation import FSPDistiller, L2Distiller, SoftLabelDistiller
from fluidlite.contrib.slim.graph import GraphWrapper, SlimGraphExecutor
from tests.refusals import refuses

PLACE = fluid.CPUPlace()


def small_net():
    """A program of two convolutions, its startup program, and the names of its input, label, cost and accuracy."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        image, label = fluid.data("img", [None, 1, 8, 8]), fluid.data("lab", [None, 1], "int64")
        first = fluid.layers.conv2d(image, 4, 3, padding=1, bias_attr=False)
        hidden = fluid.layers.pool2d(fluid.layers.batch_norm(first, act="relu"), 2, "max", 2)
        second = fluid.layers.conv2d(hidden, 6, 3, act="relu")
        scores = fluid.layers.fc(second, 10, act="softmax")
        cost = fluid.layers.mean(fluid.layers.cross_entropy(scores, label))
        accuracy = fluid.layers.accuracy(scores, label)
    feeds = [("image", "img"), ("label", "lab")]
    return main, startup, feeds, [("acc", accuracy.name), ("cost", cost.name)], first


def started(startup):
    scope = fluid.core.Scope()
    with fluid.scope_guard(scope):
        fluid.Executor(PLACE).run(startup)
    return scope


def samples(count=3):
    draws = np.random.RandomState(0)
    return [(draws.rand(1, 8, 8).astype("float32"), [k]) for k in range(count)]


def test_what_a_graph_says():
    main, _, feeds, fetches, first = small_net()
    graph = GraphWrapper(main, feeds, fetches)
    op, var = graph.ops()[0], graph.var(first.name)
    assert (graph.flops(), graph.flops(True), graph.numel_params()) == (7248, 6336, 524)  # as Paddle 1.8.5
    assert [other.type() for other in graph.next_ops(op)] == ["batch_norm"]
    assert [other.type() for other in graph.pre_ops(graph.ops()[1])][0] == "conv2d"
    assert [param.name() for param in graph.get_param_by_op(op)] == ["conv2d_0.w_0"]
    assert (op.idx(), op.type(), op.attr("strides"), op.inputs("Input")[0].name()) == (
        0,
        "conv2d",
        [1, 1],
        "img",
    )
    assert [one.type() for one in var.inputs()] == ["batch_norm"] and [
        one.type() for one in var.outputs()
    ] == ["conv2d"]
    assert graph.is_parameter(graph.var("conv2d_0.w_0")) and not graph.is_parameter(var)
    assert op == graph.ops()[0] != graph.ops()[1] and var == graph.var(first.name)
    refuses(lambda: graph.var("nope"), ValueError, "nope")
    var.set_shape((1, 2, 3, 4))
    assert var.shape() == (1, 2, 3, 4)
    graph.infer_shape()
    assert var.shape() == (-1, 4, 8, 8)
    copy = graph.clone(for_test=True)
    assert copy.in_nodes == graph.in_nodes and copy.program is not main
    assert [one.type() for one in copy.ops()] == [one.type() for one in graph.ops()]


def test_graphs_are_trained_saved_and_loaded(tmp_path):
    main, startup, feeds, fetches, _ = small_net()
    graph, scope, runner = GraphWrapper(main, feeds, fetches), started(startup), SlimGraphExecutor(PLACE)
    trained = graph.get_optimize_graph(fluid.optimizer.Momentum(0.1, 0.9), PLACE, scope)
    assert {op.type() for op in trained.ops() if op.is_opt_op()} == {"momentum"}
    assert any(op.is_bwd_op() for op in trained.ops()) and not any(op.is_bwd_op() for op in graph.ops())
    values, names = runner.run(trained, scope, data=samples())
    for _ in range(10):
        later, _ = runner.run(trained, scope, data=samples())
    assert names == ["acc", "cost"] and later[1] < values[1]
    with fluid.scope_guard(scope):
        trained.save_persistables(str(tmp_path / "p"), runner)
        graph.save_model(str(tmp_path / "m"), runner)
        graph.save_infer_model(str(tmp_path / "i"), runner, (["img"], [fetches[1][1]]), program_only=True)
        before = np.array(scope.find_var("fc_0.w_0").get_tensor())
        scope.find_var("fc_0.w_0").get_tensor().set(np.zeros_like(before), PLACE)
        trained.load_persistables(str(tmp_path / "p"), runner)
    np.testing.assert_array_equal(np.array(scope.find_var("fc_0.w_0").get_tensor()), before)
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["__model__", "__params__"]
    assert [path.name for path in (tmp_path / "i").iterdir()] == ["__model__.infer"]


def features():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 2, 4, 4])
        layers = [fluid.layers.conv2d(x, 2, 3, padding=1) for _ in range(4)]
        scores = [fluid.layers.fc(x, 5) for _ in range(2)]
        cost = fluid.layers.mean(layers[0])
    return GraphWrapper(main, [("x", "x")], [("cost", cost.name)]), startup, layers, scores


def value(graph, startup, names):
    scope = started(startup)
    data = np.random.RandomState(1).rand(3, 2, 4, 4).astype("float32")
    with fluid.scope_guard(scope):
        return fluid.Executor(PLACE).run(graph.program, feed={"x": data}, fetch_list=names)


def test_distillers():
    graph, startup, (a, b, c, d), (s, t) = features()
    for distiller in (
        L2Distiller(a.name, b.name, 2),
        SoftLabelDistiller(s.name, t.name, 2.0, 3.0, 0.5),
        FSPDistiller([[a.name, b.name]], [[c.name, d.name]], 2),
    ):
        assert distiller.distiller_loss(graph) is graph
    named = dict(graph.out_nodes)
    l2, soft = named[f"l2loss_{a.name}_{b.name}"], named[f"soft_label_loss_{s.name}_{t.name}"]
    wanted = [a, b, c, d, s, t, l2, soft, named["fsp_distillation_loss"], named["loss"]]
    x, y, z, w, left, right, l2, soft, fsp, total = value(graph, startup, wanted)

    def softmax(v):
        e = np.exp(v - v.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    np.testing.assert_allclose(l2, 2 * np.mean((x - y) ** 2), rtol=1e-5)
    cross = -(softmax(right / 3) * np.log(softmax(left / 2))).sum(1).mean()
    np.testing.assert_allclose(soft, 0.5 * cross, rtol=1e-5)
    one, two = (np.einsum("nchw,ndhw->ncd", p, q) / 16 for p, q in ((x, y), (z, w)))
    np.testing.assert_allclose(fsp, 2 * np.mean((one - two) ** 2), rtol=1e-5)
    np.testing.assert_allclose(total, l2 + soft + fsp, rtol=1e-5)
    refuses(lambda: SoftLabelDistiller().distiller_loss(graph), ValueError, "must name variables")


def test_the_operators_of_a_distiller_are_those_of_fluid():
    graph, _, (a, b, *_), _ = features()
    count = len(graph.ops())
    L2Distiller(a.name, b.name, 2).distiller_loss(graph)
    kinds = [op.type() for op in graph.ops()[count:]]
    assert kinds == ["elementwise_sub", "square", "reduce_mean", "scale", "scale"]


CONFIG = """
version: 1.0
distillers:
    near:
        class: L2Distiller
        student_feature_map: fc_0.tmp_1
        teacher_feature_map: teacher_out
        distillation_loss_weight: 3
strategies:
    learn:
        class: DistillationStrategy
        distillers: [near]
        start_epoch: 0
        end_epoch: 2
compressor:
    epoch: 3
    checkpoint_path: {path}
    strategies:
        - learn
"""


def test_a_student_learns_from_its_teacher(tmp_path):
    pytest.importorskip("yaml")
    draws = np.random.RandomState(0)
    data = draws.uniform(-1, 1, (20, 4, 3)).astype("float32")
    student, teacher, startup = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.unique_name.guard():
        with fluid.program_guard(student, startup):
            x = fluid.data("x", [None, 3])
            cost = fluid.layers.mean(fluid.layers.fc(x, 1)) * 0.0
        with fluid.program_guard(teacher, startup):
            fluid.layers.fc(
                fluid.data("x", [None, 3]), 1, name="teacher_fc", param_attr="tw", bias_attr=False
            )
            block = teacher.global_block()
            block.create_var(name="teacher_out", shape=[-1, 1], dtype="float32")
            block.append_op(
                type="scale", inputs={"X": [block.ops[-1].output("Out")[0]]}, outputs={"Out": ["teacher_out"]}
            )
    scope = started(startup)
    config = tmp_path / "c.yaml"
    config.write_text(CONFIG.format(path=tmp_path / "kept"))
    seen = []

    class Watch(slim.Strategy):
        def on_epoch_end(self, context):
            seen.append((context.epoch_id, sorted(context.optimize_graph.out_nodes)))

    made = slim.Compressor(
        PLACE,
        scope,
        student,
        train_reader=lambda: iter([[(row,) for row in batch] for batch in data]),
        train_feed_list=[("x", "x")],
        train_fetch_list=[("cost", cost.name)],
        eval_program=student.clone(for_test=True),
        eval_reader=lambda: iter([[(row,) for row in data[0]]]),
        eval_feed_list=[("x", "x")],
        eval_fetch_list=[("cost", cost.name)],
        teacher_programs=[teacher],
        train_optimizer=fluid.optimizer.SGD(0.1),
        distiller_optimizer=fluid.optimizer.SGD(0.1),
    )
    made._add_strategy(Watch(0, 3))
    made.config(str(config))
    assert isinstance(made.run(), GraphWrapper)
    weights = [np.array(scope.find_var(name).get_tensor()) for name in ("fc_0.w_0", "tw")]
    np.testing.assert_allclose(weights[0], weights[1], atol=0.02)
    assert [epoch for epoch, _ in seen] == [0, 1, 2]
    assert "loss" in seen[0][1] and sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "0",
        "1",
        "2",
    ]
    seen.clear()
    made.epoch = 4
    (tmp_path / "kept" / "9").mkdir()  # of a process that was killed before there was a state to go on with
    made.run()
    assert [epoch for epoch, _ in seen] == [3]  # it goes on behind the last checkpoint


def test_yaml_says_what_cannot_be(tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "c.yaml"
    path.write_text("strategies: {one: {class: Nope}}\n")
    refuses(lambda: slim.ConfigFactory(str(path)), ValueError, "no class 'Nope'")
    path.write_text("compressor: {epoch: 1, strategies: [two]}\n")
    refuses(lambda: slim.ConfigFactory(str(path)), ValueError, "'two'")
    path.write_text("strategies: {one: {class: os.system}}\n")
    refuses(lambda: slim.ConfigFactory(str(path)), ValueError, "no class")
    path.write_text(
        "pruners: {p: {class: StructurePruner, pruning_axis: {'*': 0}, criterions: {'*': l1_norm}}}\n"
    )
    made = slim.ConfigFactory(str(path))
    assert isinstance(made.instance("p"), slim.prune.StructurePruner) and made.instance("q") is None


def test_contexts_and_cached_batches(tmp_path):
    context = slim.Context(PLACE, fluid.core.Scope())
    assert not context.eval_converged("acc")
    context.eval_results["acc"] = [0.5, 0.5001]
    assert context.eval_converged("acc") and not context.eval_converged("acc", 1e-5)
    context.put("a", 3)
    assert (context.get("a"), context.get("b")) == (3, None)
    context.epoch_id = 7
    context.to_file(str(tmp_path / "context"))
    other = slim.Context(PLACE, fluid.core.Scope())
    other.from_file(str(tmp_path / "context"))
    assert (other.epoch_id, other.eval_results) == (7, {"acc": [0.5, 0.5001]})
    reader = cached_reader(lambda: iter([[(k, k + 1)] for k in range(10)]), 0.5, str(tmp_path / "cache"), 1)
    first, second = list(reader()), list(reader())
    assert 0 < len(first) < 10 and [tuple(map(int, batch[0])) for batch in second] == [
        batch[0] for batch in first
    ]
    with pytest.raises(AssertionError, match="train_feed_list"):
        slim.Compressor(PLACE, fluid.core.Scope(), fluid.Program(), train_feed_list="x")
