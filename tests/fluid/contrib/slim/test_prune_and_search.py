"""contrib.slim.prune and contrib.slim.searcher; numbers are those recorded on Paddle 1.8.5."""

import numpy as np
import pytest

from fluidlite.contrib.slim import prune, searcher


@pytest.fixture
def weight():
    return np.random.RandomState(0).normal(0, 1, (6, 4, 3, 3)).astype("float32")


def test_smallest_entries_are_found(weight):
    pruner = prune.StructurePruner({"*": 0, "conv": 1}, {"*": "l1_norm"})
    assert pruner.cal_pruned_idx("x", weight, 0.5).tolist() == [1, 3, 5]
    assert pruner.cal_pruned_idx("x", weight, 0.34).tolist() == [1, 3]
    assert pruner.cal_pruned_idx("x", weight, 0.25, axis=1).tolist() == [3]
    assert pruner.cal_pruned_idx("conv", weight, 0.25).tolist() == [3]
    assert pruner.cal_pruned_idx("x", weight, 0.0).tolist() == []
    with pytest.raises(KeyError):
        prune.StructurePruner({"fc": 0}, {"fc": "l1_norm"}).cal_pruned_idx("x", weight, 0.5)
    with pytest.raises(ValueError, match="got 'l2_norm'"):
        prune.StructurePruner({"*": 0}, {"*": "l2_norm"}).cal_pruned_idx("x", weight, 0.5)


def test_entries_are_taken_out(weight):
    pruner = prune.StructurePruner({"*": 0}, {"*": "l1_norm"})
    short = pruner.prune_tensor(weight, [1, 3], 1)
    np.testing.assert_array_equal(short, weight[:, [0, 2]])
    same = pruner.prune_tensor(weight, [1, 3], 0, lazy=True)
    assert same is weight and not weight[[1, 3]].any() and weight[[0, 2]].all()


def test_annealing_goes_as_in_fluid():
    controller = searcher.SAController(range_table=[3, 4, 5], reduce_rate=0.9, init_temperature=10)
    controller.reset([3, 4, 5], [0, 1, 2])
    before, seen = np.random.get_state(), []
    np.random.seed(3)
    try:
        for _ in range(6):
            seen.append(controller.next_tokens())
            controller.update(seen[-1], -abs(sum(seen[-1]) - 5))
        asked = controller.next_tokens(control_token=[1, 1, 1])
    finally:
        np.random.set_state(before)
    assert seen == [[0, 3, 2], [0, 3, 3], [0, 3, 1], [2, 3, 1], [2, 0, 1], [2, 3, 1]]
    assert asked == [2, 1, 1]
    assert controller._best_tokens == [0, 3, 2] and controller._max_reward == 0


def test_constraints_hold():
    controller = searcher.SAController()
    controller.reset([4, 4], [0, 0], constrain_func=lambda tokens: sum(tokens) < 2)
    for _ in range(20):
        tokens = controller.next_tokens()
        assert sum(tokens) < 2
        controller.update(tokens, 1.0)
    assert "_constrain_func" not in controller.__getstate__()


def test_base_classes_do_nothing():
    assert prune.Pruner().prune(1) is None
    base = searcher.EvolutionaryController()
    for call in (lambda: base.update([1], 1), lambda: base.reset([1]), base.next_tokens):
        with pytest.raises(NotImplementedError):
            call()
