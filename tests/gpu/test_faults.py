"""What goes wrong on a GPU: it is said, once and clearly, and work goes on."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.backend.cupy_ import device as devices
from fluidlite.backend.cupy_ import pools
from fluidlite.base import place as places
from fluidlite.executor.plan_cache import PLANS_KEPT
from fluidlite.ops.registry import OperatorError

from ..executor.cuda.programs import Net, batches
from ..simulated_cuda import simulated

GPU, CPU = fluid.CUDAPlace(0), fluid.CPUPlace()


@pytest.mark.parametrize("seed", [None, 1])
def test_steps_fit_or_fail_as_a_whole_when_memory_is_short(seed) -> None:
    with simulated(memory=10 << 18, seed=seed):
        net, host = Net(GPU), Net(CPU)
        failed = 0
        for rows in (8, 10_000, 8, 500, 1_000, 1_500, 3_000, 10_000, 8):
            batch = batches(1, rows)[0]
            for _ in range(3):  # a first step, one that is recorded, and a replay
                before = net.parameters()
                try:
                    loss = net.step(batch)[0].item()
                except MemoryError as error:
                    assert "MiB free. Use smaller batches" in str(error)
                    failed += 1
                    for name, value in net.parameters().items():
                        np.testing.assert_array_equal(value, before[name], err_msg=name)
                else:
                    assert loss == pytest.approx(host.step(batch)[0].item(), rel=1e-3)
        assert failed == 6
        gc.collect()


def test_a_graph_keeps_the_memory_that_it_uses_when_there_is_no_more() -> None:
    # Recording needs other pieces than the first step left: CuPy's pools would give those up that the graph has.
    with simulated(memory=10 << 18):
        net, host = Net(GPU), Net(CPU)
        for rows in (8, 500, 1_000, 1_500, 2_000, 2_500):
            batch = batches(1, rows)[0]
            for _ in range(3):
                assert net.step(batch)[0].item() == pytest.approx(host.step(batch)[0].item(), rel=1e-3)
        gc.collect()


def test_memory_that_only_garbage_holds_is_used_again() -> None:
    with simulated(memory=10 << 18):
        net, host = Net(GPU), Net(CPU)
        gc.disable()
        try:
            ring: list[object] = [devices.device(0).put(np.zeros(6 << 18, "uint8"))]
            ring.append(ring)
            del ring
            batch = batches(1, 2_500)[0]
            for _ in range(3):
                assert net.step(batch)[0].item() == pytest.approx(host.step(batch)[0].item(), rel=1e-3)
        finally:
            gc.enable()
        gc.collect()


def test_a_wrong_label_is_told_once_by_the_next_fetch(simulation) -> None:
    net, batch = Net(GPU), batches(1)[0]
    wrong = {**batch, "y": np.array([[0], [1], [77], [0]])}
    for warm in range(4):
        for _ in range(warm):
            net.step(batch)
        net.step(wrong, [])
        net.step(batch, [])
        with pytest.raises(
            OperatorError, match=r"cross_entropy2: Label must be in \[0, 3\).*got 77 at position 2"
        ):
            net.step(batch)
        assert np.isfinite(net.step(batch)[0]).all()


def test_a_wrong_label_that_nobody_fetched_is_told_when_the_executor_is_closed(simulation) -> None:
    net, batch = Net(GPU), batches(1)[0]
    net.step({**batch, "y": np.full((4, 1), 9)}, [])
    with pytest.raises(OperatorError, match="got 9 at position 0"):
        net.executor.close()
    net.executor.close()
    with pytest.raises(RuntimeError, match="closed Executor"):
        net.step(batch)


def test_a_recording_that_fails_is_tried_no_more(simulation) -> None:
    net, host, batch = Net(GPU), Net(CPU), batches(1)[0]
    losses = [net.step(batch)[0].item()]
    cache = next(iter(net.main._plans[net.scope].values()))
    launch = cache.plans[0]._list.launches[-1]
    run = launch.action.run

    def fail_while_recording(device, get):
        if device.recording is not None:
            raise ValueError("not now")
        return run(device, get)

    launch.action = replace(launch.action, run=fail_while_recording)
    losses += [net.step(batch)[0].item() for _ in range(3)]
    np.testing.assert_allclose(losses, [host.step(batch)[0].item() for _ in losses], rtol=1e-4)
    assert "not captured: operator adam" in net.executor.describe(net.main, net.scope)
    assert (simulation.counters.captures, simulation.counters.graph_launches) == (1, 0)


@pytest.mark.parametrize("seed", [None, 1])
def test_interrupted_steps_are_done_or_not_done(seed) -> None:
    with simulated(seed=seed):
        net, host = Net(GPU), Net(CPU)
        interrupted = 0
        for after, batch in enumerate(batches(40)):
            before = net.parameters()
            calls = 0

            def count(frame, event, _argument, after=after):
                nonlocal calls
                if event == "call" and "fluidlite" in frame.f_code.co_filename:
                    calls += 1
                    if calls > after:
                        sys.setprofile(None)
                        raise KeyboardInterrupt

            sys.setprofile(count)
            try:
                net.step(batch)
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                sys.setprofile(None)
            found = net.parameters()
            if any(not np.array_equal(found[name], before[name]) for name in found):
                host.step(batch)
            for name, value in host.parameters().items():
                np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
        assert interrupted > 30
        assert np.isfinite(net.step(batch)[0]).all()
        gc.collect()


@pytest.mark.parametrize("seed", [None, 1])
def test_threads_train_programs_of_their_own(seed) -> None:
    with simulated(seed=seed):
        nets = [Net(GPU), Net(GPU), Net(GPU, dropout=0.5)]
        found: list[np.ndarray | None] = [None] * 3

        def train(number: int) -> None:
            found[number] = nets[number].losses(8)

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(train, range(3)))
        expected = Net(CPU).losses(8)
        for losses in found[:2]:
            np.testing.assert_allclose(losses, expected, rtol=1e-3)
        assert found[2] is not None and np.isfinite(found[2]).all()
        assert all("one CUDA graph" in net.executor.describe(net.main, net.scope) for net in nets)
        gc.collect()


def in_child(work) -> str:
    """What `work` raises in the child of a fork, as text."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        text = "nothing"
        try:
            work()
        except BaseException as error:  # noqa: BLE001  (nothing may leave the child)
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf8") as file:
        text = file.read()
    assert os.waitpid(pid, 0)[1] == 0
    return text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_child_of_a_fork_says_that_it_cannot_use_gpus(simulation) -> None:
    net, batch = Net(GPU), batches(1)[0]
    net.losses(3)

    def eager() -> None:
        with fluid.dygraph.guard(GPU):
            fluid.dygraph.to_variable(np.ones(3, "float32"))

    for work in (lambda: net.step(batch), lambda: Net(GPU), net.parameters, eager):
        text = in_child(work)
        assert text.startswith("RuntimeError: GPUs cannot be used in this process: it was forked from one"), (
            text
        )
        assert "spawn" in text
    assert in_child(lambda: Net(CPU).losses(3)) == "nothing"
    assert np.isfinite(net.step(batch)[0]).all()


@pytest.mark.parametrize(
    "options", [{"driver_too_old": True}, {"no_driver": True}], ids=["old driver", "no driver"]
)
def test_programs_run_on_the_cpu_without_a_usable_driver(monkeypatch, options) -> None:
    monkeypatch.setattr(places, "_warned", False)
    with simulated(**options):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            losses = Net(GPU).losses(3)
        assert len(seen) == 1 and "finds no usable GPU" in str(seen[0].message)
        np.testing.assert_array_equal(losses, Net(CPU).losses(3))
        monkeypatch.setenv("FLUIDLITE_REQUIRE_GPU", "1")
        with pytest.raises(RuntimeError, match="a GPU is required"):
            fluid.Executor(GPU)


def test_plans_of_many_shapes_and_nets_take_no_more_and_more_memory(simulation) -> None:
    def taken() -> tuple[int, ...]:
        gc.collect()
        devices.device(0).synchronize()
        own = (
            pools.bytes_held(devices.device(0)),
            simulation.machine.devices[0].used,
            simulation.machine.pinned.used,
        )
        return *own, pools.counters()["blocks"]

    net = Net(GPU)
    seen = []
    for _ in range(3):
        for rows in range(3, 5 + PLANS_KEPT):
            batch = batches(1, rows)[0]
            net.step(batch), net.step(batch)
        seen.append(taken())
    assert seen[1] == seen[2]
    caches = net.main._plans[net.scope].values()
    assert max(len(cache.plans) for cache in caches) == PLANS_KEPT
    del net, caches
    seen.clear()
    for _ in range(4):
        for _ in range(5):
            Net(GPU).losses(3)
        seen.append(taken())
    assert seen[1] == seen[3]
    assert seen[3][3] <= 1
