"""contrib.slim.prune: strategies that look for what to take out. Ratios are those recorded on Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.contrib.slim import Context
from fluidlite.contrib.slim.graph import GraphWrapper
from fluidlite.contrib.slim.prune import (
    AutoPruneStrategy,
    SensitivePruneStrategy,
    StructurePruner,
    prune_strategy,
)
from fluidlite.contrib.slim.searcher import EvolutionaryController

PLACE = fluid.CPUPlace()
PRUNER = StructurePruner({"*": 0}, {"*": "l1_norm"})
NAMES = ["conv1_weights", "conv2_weights"]
PARAMS = "conv[12]_weights"
PARTS = [0.125, 0.25, 0.5, 0.75]
KNOWN = {
    "conv1_weights": {"pruned_percent": PARTS, "loss": [0.01, 0.05, 0.2, 0.5], "size": 8},
    "conv2_weights": {"pruned_percent": PARTS, "loss": [0.02, 0.08, 0.3, 0.9], "size": 12},
}


@pytest.fixture
def context():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 3, 8, 8]), fluid.data("y", [None, 1], "int64")
        out = x
        for number, (filters, padding) in enumerate(((8, 1), (12, 1), (6, 0)), start=1):
            name = f"conv{number}_weights"
            act = "relu" if number < 3 else None
            out = layers.conv2d(out, filters, 3, padding=padding, param_attr=name, bias_attr=False, act=act)
        scores = layers.fc(out, 4, act="softmax")
        accuracy = layers.accuracy(scores, y)
        loss = layers.mean(layers.cross_entropy(scores, y))
    scope, exe = fluid.Scope(), fluid.Executor(PLACE)
    random = np.random.RandomState(0)
    test = main.clone(for_test=True)
    samples = random.randn(16, 3, 8, 8).astype("float32")
    with fluid.scope_guard(scope):
        exe.run(startup)
        for param in main.all_parameters():
            value = random.randn(*param.shape).astype("float32") * 0.2
            scope.find_var(param.name).get_tensor().set(value, PLACE)
        feed = {"x": samples, "y": np.zeros((16, 1), "int64")}
        labels = exe.run(test, feed, [scores])[0].argmax(axis=1)
    batch = [(sample, [label]) for sample, label in zip(samples, labels, strict=True)]
    graphs = [
        GraphWrapper(program, [("x", "x"), ("y", "y")], [("loss", loss.name), ("top1_acc", accuracy.name)])
        for program in (main, test)
    ]
    made = Context(
        PLACE, scope, train_graph=graphs[0], eval_graph=graphs[1], eval_reader=lambda: iter([batch])
    )
    made.optimize_graph = graphs[0]
    return made


def sizes(context):
    return [np.array(context.scope.find_var(name).get_tensor()).shape[0] for name in NAMES]


@pytest.mark.parametrize(
    ("target", "ratios"),
    [(0.3, [0.2358, 0.1728]), (0.5, [0.3817, 0.3214]), (0.6, [0.5265, 0.4427]), (0.8, [0.7166, 0.5830])],
)
def test_parts_for_the_same_fall_of_the_metric(context, target, ratios):
    names, found = SensitivePruneStrategy(PRUNER)._get_best_ratios(context, KNOWN, target)
    assert names == NAMES
    np.testing.assert_allclose(found, ratios, atol=3e-4)
    assert sizes(context) == [8, 12]


def test_steps_wait_until_the_metric_has_settled(context):
    strategy = SensitivePruneStrategy(PRUNER, target_ratio=0.4, num_steps=3)
    asked = []
    for context.epoch_id in range(6):
        context.eval_results = {"top1_acc": [0.5, 0.5 if context.epoch_id % 2 else 0.6]}
        asked.append(strategy._current_pruning_target(context))
    step = pytest.approx(0.1565673346982508)
    assert asked == [step, step, None, step, None, None]


def test_sensitivities_are_found_kept_and_used(context, tmp_path):
    path = str(tmp_path / "known")
    before = [np.array(context.scope.find_var(name).get_tensor()) for name in NAMES]
    arguments = {"delta_rate": 0.4, "target_ratio": 0.5, "pruned_params": PARAMS, "sensitivities_file": path}
    strategy = prune_strategy.SensitivePruneStrategy(PRUNER, **arguments)
    found = strategy._compute_sensitivities(context)
    assert [found[name]["size"] for name in NAMES] == [8, 12]
    for name, value in zip(NAMES, before, strict=True):
        np.testing.assert_allclose(found[name]["pruned_percent"], [0.4, 0.8])
        assert 0 < found[name]["loss"][1] <= 1
        np.testing.assert_array_equal(np.array(context.scope.find_var(name).get_tensor()), value)
    other = SensitivePruneStrategy(PRUNER, **arguments)
    assert (
        other._load_sensitivities(path) == found and other._load_sensitivities(str(tmp_path / "none")) == {}
    )
    other._metric = None  # stored results are reused
    flops = context.eval_graph.flops()
    other.on_epoch_begin(context)
    assert abs(1 - context.eval_graph.flops() / flops - 0.5) < 0.15
    assert sizes(context) == [context.eval_graph.var(name).shape()[0] for name in NAMES] != [8, 12]
    assert np.isfinite(context.run_eval_graph()[0]).all()
    with pytest.raises(ValueError, match="not metric_name 'top5'"):
        SensitivePruneStrategy(PRUNER, metric_name="top5")._metric(context)


class Controller(EvolutionaryController):
    def reset(self, range_table, init_tokens, constrain_func):
        self.begun, self.allows, self.rewards = (range_table, init_tokens), constrain_func, []

    def next_tokens(self):
        return [30, 40]

    def update(self, tokens, reward):
        self.rewards.append((tokens, reward))


@pytest.mark.parametrize(("retrain", "trial"), [(0, 1), (1, 1), (2, 2)])
def test_trials_are_pruned_rewarded_and_restored(context, retrain, trial):
    controller = Controller()
    strategy = AutoPruneStrategy(
        PRUNER, controller, 1, 5, 0.3, 0.6, pruned_params=PARAMS, retrain_epoch=retrain, init_tokens=[20, 30]
    )
    strategy.on_compression_begin(context)
    assert controller.begun == ([20, 30], [20, 30])
    assert [controller.allows(tokens) for tokens in ([0, 0], [20, 30], [40, 50], [80, 80])] == [
        False,
        True,
        True,
        False,
    ]
    values = [np.array(context.scope.find_var(name).get_tensor()) for name in NAMES]
    context.eval_results = {"top1_acc": []}
    during = []
    for context.epoch_id in range(6):
        strategy.on_epoch_begin(context)
        during.append(sizes(context))
        assert during[-1] == [context.train_graph.var(name).shape()[0] for name in NAMES]
        assert np.isfinite(context.run_eval_graph()[0]).all()
        context.eval_results["top1_acc"].append(context.epoch_id / 10)
        strategy.on_epoch_end(context)
    assert during == [[8, 12], *[[6, 8]] * trial, *[[6, 7]] * (4 - trial), [8, 12]]
    assert controller.rewards[:2] == [([20, 30], trial / 10), ([30, 40], 2 * trial / 10)]
    assert len(controller.rewards) == 4 // trial and context.skip_training == (retrain == 0)
    for name, value in zip(NAMES, values, strict=True):
        np.testing.assert_array_equal(np.array(context.scope.find_var(name).get_tensor()), value)
        assert context.eval_graph.var(name).shape() == value.shape


def test_the_first_trial_takes_the_same_part_of_all(context):
    strategy = AutoPruneStrategy(PRUNER, Controller(), pruned_params=PARAMS, uniform_range=[0.4, 0.6])
    strategy.on_compression_begin(context)
    first, second = strategy._current_tokens
    saved = strategy._saved(context, NAMES, strategy._tokens_to_ratios([first, second]))
    assert first == second and abs(saved - 0.5) < 0.1
    assert strategy._ratios_to_tokens([0.1, 0.25, 0.999, 0.123]) == [10, 25, 99, 12]
