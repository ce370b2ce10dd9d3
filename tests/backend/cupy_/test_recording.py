"""Launchers can be recorded as a CUDA graph, and do not wait for the GPU."""

import numpy as np
import pytest

from fluidlite import backend
from fluidlite.ops.registry import find

from .agreement import gpu, launched, lists, on_gpu, rand, replayed, same

LABEL = np.array([[1], [0], [3]])

CASES = {
    "relu": {"X": rand(3, 4)},
    "relu_grad": {"Out": rand(3, 4), "Out@GRAD": rand(3, 4, seed=1)},
    "elementwise_add": {"X": rand(3, 4), "Y": rand(4, seed=1)},
    "elementwise_add_grad": {"X": rand(3, 4), "Y": rand(4, seed=1), "Out@GRAD": rand(3, 4, seed=2)},
    "elementwise_mul_grad": {"X": rand(3, 4), "Y": rand(4, seed=1), "Out@GRAD": rand(3, 4, seed=2)},
    "sum": {"X": [rand(3, 4, seed=k) for k in range(10)]},
    "scale": {"X": rand(3, 4)},
    "mean": {"X": rand(3, 4)},
    "mean_grad": {"X": rand(3, 4), "Out@GRAD": rand(1)},
    "reduce_sum": {"X": rand(9000, 2)},
    "reduce_max_grad": {"X": rand(3, 4), "Out": rand(3, 4).max(0), "Out@GRAD": rand(4)},
    "softmax": {"X": rand(3, 4)},
    "softmax_grad": {"Out": rand(3, 4), "Out@GRAD": rand(3, 4, seed=1)},
    "softmax_with_cross_entropy": {"Logits": rand(3, 4), "Label": LABEL},
    "softmax_with_cross_entropy_grad": {"Softmax": rand(3, 4), "Label": LABEL, "Loss@GRAD": rand(3, 1)},
    "cross_entropy": {"X": rand(3, 4, low=0.1), "Label": LABEL},
    "cross_entropy_grad": {"X": rand(3, 4, low=0.1), "Label": LABEL, "Y@GRAD": rand(3, 1)},
    "sigmoid_cross_entropy_with_logits": {"X": rand(3, 4), "Label": rand(3, 4, seed=1)},
    "lookup_table": {"W": rand(5, 2), "Ids": LABEL},
    "lookup_table_grad": {"W": rand(5, 2), "Ids": LABEL, "Out@GRAD": rand(3, 2)},
    "top_k": {"X": rand(3, 4)},
    "accuracy": {"Out": rand(3, 1), "Indices": LABEL, "Label": np.ones((3, 1), "int64")},
    "layer_norm": {"X": rand(3, 4), "Scale": rand(4), "Bias": rand(4)},
    "clip": {"X": rand(3, 4)},
    "pow": {"X": rand(3, 4)},
}
LAUNCHES = {"elementwise_add_grad": 1, "elementwise_mul_grad": 2, "sum": 2, "reduce_sum": 2}


def changed(inputs):
    """Other numbers of the same kinds: everything back to front."""
    return {slot: [np.ascontiguousarray(a[::-1]) for a in arrays] for slot, arrays in lists(inputs).items()}


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("op_type", sorted(CASES))
def test_a_graph_of_it_computes_with_new_numbers(op_type):
    attrs = {"min": -1.0, "max": 1.0} if op_type == "clip" else {}
    then = changed(CASES[op_type])
    expected = find(op_type).call(np, then, attrs)
    for mine, theirs in zip(replayed(op_type, CASES[op_type], then, **attrs), expected, strict=True):
        same(mine, theirs, op_type, 50)


@pytest.mark.parametrize("op_type", sorted(CASES))
def test_it_is_few_launches_and_no_waiting(op_type, simulation):
    inputs = on_gpu(CASES[op_type])
    launched(op_type, inputs)
    gpu().synchronize()
    simulation.counters.reset()
    made = launched(op_type, inputs)
    counters = simulation.counters
    assert counters.launches == LAUNCHES.get(op_type, 1)
    assert (counters.syncs, sum(counters.copies.values())) == (0, 0)
    assert all(backend.on_device(array) for array in made)


def test_normalized_losses_do_not_wait_either(simulation):
    inputs = on_gpu({"X": rand(3, 4), "Label": rand(3, 4, seed=1)})
    launched("sigmoid_cross_entropy_with_logits", inputs, normalize=True)
    simulation.counters.reset()
    launched("sigmoid_cross_entropy_with_logits", inputs, normalize=True)
    assert (simulation.counters.launches, simulation.counters.syncs) == (2, 0)
