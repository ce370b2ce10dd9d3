"""Static programs on a GPU: the same results as on the CPU, steps as one CUDA graph, feeds and fetches."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.backend import on_device

from .programs import Net, batches

TOLERANCE = {"rtol": 2e-5, "atol": 2e-6}
"""Between steps on a GPU and on the CPU, in float32: sums are added up in another order."""


def warm(net, steps=2):
    """Run until the step is a graph."""
    for batch in batches(steps):
        net.step(batch)


def test_initial_values_are_those_of_the_cpu(gpu):
    here, there = Net(fluid.CPUPlace()).parameters(), Net(gpu).parameters()
    assert here.keys() == there.keys()
    for name, value in here.items():
        np.testing.assert_array_equal(value, there[name], err_msg=name)


@pytest.mark.parametrize("kind", ["SGD", "Momentum", "Adam"])
def test_training_gives_the_losses_and_parameters_of_the_cpu(gpu, kind):
    def optimizer():
        more = {"momentum": 0.9} if kind == "Momentum" else {}
        return getattr(fluid.optimizer, kind)(learning_rate=0.05, **more)

    cpu, device = Net(fluid.CPUPlace(), optimizer), Net(gpu, optimizer)
    np.testing.assert_allclose(device.losses(8), cpu.losses(8), **TOLERANCE)
    expected = cpu.parameters()
    for name, value in device.parameters().items():
        np.testing.assert_allclose(value, expected[name], err_msg=name, **TOLERANCE)


def test_parameters_live_on_the_device(gpu):
    net = Net(gpu)
    warm(net)
    tensor = net.tensor("fc_0.w_0")
    assert on_device(tensor.array)
    assert tensor._place() == fluid.CUDAPlace(0)


def test_a_warm_step_is_one_graph_launch_and_waits_only_for_what_is_fetched(simulation):
    net = Net(fluid.CUDAPlace(0))
    warm(net)
    simulation.counters.reset()
    for batch in batches(5):
        net.step(batch)
    counters = simulation.counters
    assert (counters.graph_launches, counters.launches, counters.array_calls) == (5, 0, 0)
    assert counters.syncs == 5
    assert (counters.copies["h2d"], counters.copies["d2h"]) == (5, 5)
    assert counters.mallocs == counters.captures == 0


def test_steps_without_fetches_do_not_wait_and_do_not_run_far_ahead(simulation):
    net = Net(fluid.CUDAPlace(0))
    for batch in batches(3):
        net.step(batch, fetch=[])
    simulation.counters.reset()
    given = batches(6, seed=1)
    for batch in given:
        net.step(batch, fetch=[])
    assert simulation.counters.graph_launches == 6
    assert simulation.counters.copies["d2h"] == 0
    assert simulation.counters.syncs <= 6  # each waits for the step before the last one at most
    plain = Net(fluid.CPUPlace())
    for batch in [*batches(3), *given]:
        plain.step(batch, fetch=[])
    np.testing.assert_allclose(net.parameters()["fc_0.w_0"], plain.parameters()["fc_0.w_0"], **TOLERANCE)


def test_feeds_may_be_changed_as_soon_as_a_step_returns(gpu):
    """Nothing is fetched, so that the copies may still be under way when the next batch comes into the same arrays."""
    net, plain = Net(gpu), Net(fluid.CPUPlace())
    memory = {name: np.empty_like(array) for name, array in batches(1)[0].items()}
    for batch in batches(9):
        plain.step(batch, fetch=[])
        for name, array in batch.items():
            memory[name][...] = array
        net.step(memory, fetch=[])
        for array in memory.values():
            array[...] = 0
    for name, value in plain.parameters().items():
        np.testing.assert_allclose(net.parameters()[name], value, err_msg=name, **TOLERANCE)


def test_feeds_on_the_device_and_of_foreign_streams(gpu, cuda):
    net, plain = Net(gpu), Net(fluid.CPUPlace())
    stream = cuda.cuda.Stream(non_blocking=True)
    for number, batch in enumerate(batches(6)):
        expected = plain.step(batch)[0]
        if number % 2:
            with stream:
                given = {name: cuda.asarray(array) + 0 for name, array in batch.items()}
                found = net.step(given)[0]
        else:
            given = {name: fluid.core.LoDTensor() for name in batch}
            for name, tensor in given.items():
                tensor.set(batch[name], gpu)
            found = net.step(given)[0]
        np.testing.assert_allclose(found, expected, **TOLERANCE)


def test_fetched_tensors_are_copies_on_the_device(gpu):
    net = Net(gpu)
    warm(net)
    (first,) = net.step(batches(1)[0], fetch=["fc_0.w_0"], return_numpy=False)
    assert on_device(first.array)
    before = np.array(first)
    net.step(batches(1)[0], fetch=["fc_0.w_0"], return_numpy=False)
    np.testing.assert_array_equal(np.array(first), before)
    assert not np.array_equal(net.parameters()["fc_0.w_0"], before)


def test_every_batch_size_has_its_graph(gpu):
    net, plain = Net(gpu), Net(fluid.CPUPlace())
    for rows in (4, 7, 4, 7, 1, 4, 7, 1):
        batch = batches(1, rows, seed=rows)[0]
        np.testing.assert_allclose(net.step(batch)[0], plain.step(batch)[0], **TOLERANCE)
    text = net.executor.describe(net.main, net.scope)
    assert text.count("one CUDA graph") == 3


def test_training_and_testing_programs_share_parameters(gpu):
    net, plain = Net(gpu), Net(fluid.CPUPlace())
    for batch in batches(4):
        for each in (net, plain):
            each.step(batch)
            each.tested = each.executor.run(each.test, batch, [each.loss.name], scope=each.scope)[0]
        np.testing.assert_allclose(net.tested, plain.tested, **TOLERANCE)


def test_the_learning_rate_decays_under_replay(gpu):
    def optimizer():
        return fluid.optimizer.SGD(layers.exponential_decay(0.1, 1, 0.5))

    net = Net(gpu, optimizer)
    rates = [net.step(batch, fetch=[net.rate])[0].item() for batch in batches(5)]
    np.testing.assert_allclose(rates, 0.1 * 0.5 ** np.arange(5), rtol=1e-5)


def test_dropout_draws_anew_under_replay(gpu):
    net = Net(gpu, lambda: fluid.optimizer.SGD(0.0), dropout=0.5, seed=0)
    batch = batches(1, rows=64)[0]
    seen = [net.step(batch, fetch=[net.hidden])[0] for _ in range(5)]
    assert "one CUDA graph" in net.executor.describe(net.main, net.scope)
    masks = [value != 0 for value in seen]
    for k, mask in enumerate(masks):
        assert mask.any()
        assert not any(np.array_equal(mask, other) for other in masks[:k])


def test_labels_out_of_range_are_reported_by_the_step_that_fetches(gpu):
    net = Net(gpu)
    warm(net, 3)
    batch = batches(1)[0]
    batch["y"][2] = 5
    net.step(batch, fetch=[])
    with pytest.raises(fluid.core.EnforceNotMet, match=r"5 at position 2"):
        net.step(batches(1)[0])
    net.step(batches(1)[0])


def test_threads_run_the_same_program(gpu):
    net = Net(gpu, lambda: fluid.optimizer.SGD(0.0))
    given = batches(6, seed=3)
    expected = [net.step(batch)[0].item() for batch in given]
    problems = []

    def work(number):
        for _ in range(6):
            found = net.step(given[number])[0].item()
            if found != pytest.approx(expected[number], rel=1e-5):
                problems.append((number, found))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert not problems


def test_closing_waits_and_refuses_further_steps(simulation):
    net = Net(fluid.CUDAPlace(0))
    net.step(batches(1)[0], fetch=[])
    simulation.counters.reset()
    net.executor.close()
    assert simulation.counters.syncs == 1
    with pytest.raises(RuntimeError, match="closed"):
        net.step(batches(1)[0])


def test_staged_feeds_outlive_a_dropped_plan(simulation, monkeypatch):
    """The copy from page-locked memory may still be under way; another plan must not get that memory before.

    Without graphs: a plan that has a pool of its own waits anyhow when it gives that back.
    """
    monkeypatch.setenv("FLUIDLITE_CUDA_GRAPHS", "0")
    net, plain = Net(fluid.CUDAPlace(0)), Net(fluid.CPUPlace())
    for number, batch in enumerate(batches(5)):
        for each in (net, plain):
            each.step(batch, fetch=[])
            each.main._plans.clear()
        other = batches(1, seed=number + 50)[0]
        for each in (net, plain):
            each.executor.run(each.test, other, [each.loss.name], scope=each.scope, return_numpy=False)
    for name, value in plain.parameters().items():
        np.testing.assert_allclose(net.parameters()[name], value, err_msg=name, **TOLERANCE)
