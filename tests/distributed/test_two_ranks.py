"""Two processes compared with one: collective operations and training."""

import json

import numpy as np
import pytest

import fluidlite as fluid

from . import networks
from .ranks import launch, needs_mpi

pytestmark = needs_mpi


@pytest.fixture(scope="module")
def found():
    """The results of `two_ranks.py`, by rank."""
    done = launch(
        "two_ranks.py", "exchanging", "operators", "training", "fleet", "buckets", "gpus", "dygraph", "shuffling",
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("[0] FOUND "))
    return json.loads(line.partition("FOUND ")[2])


X = [np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3) + 1]


@pytest.mark.parametrize(
    "what, expected",
    {
        "sum": X[0] + X[1], "prod": X[0] * X[1], "max": X[1], "min": X[0], "half": [4.5, 6.0],
        "truth": [True, False, True], "number": 5, "strided": (X[0] + X[1]).T, "empty": [0, 3],
        "broadcast": X[1], "ragged": [[1, 1], [1, 1]],
    }.items(),
)  # fmt: skip
def test_what_both_get(found, what, expected):
    for got in found[what]:
        np.testing.assert_array_equal(got, expected)


def test_what_each_gets(found):
    assert found["shares"] == [[[1, 3, 5]], [[7, 9, 11]]]
    assert found["exchange"] == [[[0], [0, 1]], [[0, 1, 2], [10, 11, 12]]]


@pytest.mark.parametrize(
    "what, expected",
    {
        "other size": "rank 0 is at all_reduce (sum) of float64 [2], rank 1 at all_reduce (sum) of float64 [3]",
        "other type": "rank 0 is at all_reduce (sum) of float64 [2], rank 1 at all_reduce (sum) of float32 [2]",
        "other call": "rank 0 is at all_reduce (sum) of float64 [2], rank 1 at barrier",
        "other root": "rank 0 is at broadcast (from rank 0) of float64 [2], rank 1 at broadcast (from rank 1)",
        "no root": "there is no process 2",
        "objects": "integers and reals",
        "not to be shared": "rows must be a multiple",
    }.items(),
)
def test_processes_that_call_different_operations_get_an_error(found, what, expected):
    for got in found[what]:
        assert expected in got


def test_a_slow_process_is_named(found):
    for before, after, waited, slowest, hosts in found["stats"]:
        assert before[0] < after[0] and before == before[::-1] and after == after[::-1]
        assert slowest == 1 and waited[0] > 0.5 + waited[1] and hosts[0] == hosts[1]


def test_operators(found):
    """The second run is of two plans that fetch something else than the first run of one of them did."""
    gathered = [[0, 1], [2, 3], [10, 11], [12, 13]]
    for rank, (rows, own, least, root) in enumerate(found["operators"]):
        assert rows == gathered and least == gathered[:2] and root == gathered[2:]
        assert own == [[10 + 4 * rank, 12 + 4 * rank]]


ALONE = {}


def alone(train, name):
    if (train, name) not in ALONE:
        ALONE[train, name] = train(name)
    return ALONE[train, name]


@pytest.mark.parametrize(
    "way",
    ["ParallelExecutor lenet"]
    + [f"GradAllReduce {name}" for name in networks.BUILT]
    + [f"GradAllReduce 300-byte {name}" for name in ("lenet", "ctr")]
    + ["fleet nccl2 lenet", "fleet nccl2 ctr", "fleet collective lstm", "fleet gpus lenet", "fleet gpus ctr"]
    + [
        f"fleet {size}-byte buckets {way} {name}"
        for size in (1, 300)
        for way in ("recompute", "merging")
        for name in networks.BUILT
    ],
)
def test_programs_train_as_one_process_does_with_the_joined_batch(found, way):
    expected = alone(networks.train, way.split()[-1])
    np.testing.assert_allclose(np.mean(found[way], 0), expected, rtol=0, atol=1e-5)
    assert np.ptp(expected) > 1e-3


def trained_alone(steps=5):
    """The losses of two processes that take the mean of their parameters after each step, computed in one."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss = networks.ctr(lambda made: made)
    exe, scopes, losses = fluid.Executor(fluid.CPUPlace()), [fluid.Scope(), fluid.Scope()], [[], []]
    for scope in scopes:
        exe.run(startup, scope=scope)
    for step in range(steps):
        for rank, scope in enumerate(scopes):
            (value,) = exe.run(main, networks.batch("ctr", step, (rank, 2)), [loss.name], scope=scope)
            losses[rank].append(float(value.item()))
        for parameter in main.all_parameters():
            held = [scope.find_var(parameter.name).get_tensor() for scope in scopes]
            mean = np.mean([np.array(tensor) for tensor in held], axis=0)
            for tensor in held:
                tensor.set(mean, fluid.CPUPlace())
    return losses


@pytest.mark.parametrize("way", ["LocalSGD ctr", "LocalSGD 300-byte ctr"])
def test_local_updates(found, way):
    """The first step is that of one process; then each trains by itself, and the parameters become the means."""
    one = alone(networks.train, "ctr")
    assert np.mean(found[way], 0)[0] == pytest.approx(one[0], abs=1e-6)
    np.testing.assert_allclose(found[way], trained_alone(), rtol=0, atol=1e-5)
    assert abs(np.mean(found[way], 0)[1:] - one[1:]).max() > 1e-4


@pytest.mark.parametrize("way", ["fluid", "hooks"])
@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_models_train_as_one_process_does_with_the_joined_batch(found, way, name):
    expected = alone(networks.train_eager, name)
    np.testing.assert_allclose(np.mean(found[f"dygraph {way} {name}"], 0), expected, rtol=0, atol=1e-5)
    assert np.ptp(expected) > 1e-3


def test_fleet(found):
    assert found["split_files"] == [list("abc"), list("de")]
    assert found["workers"] == [[rank, 2, "127.0.0.1:6170,127.0.0.1:6171"] for rank in range(2)]
    assert found["all_reduce_worker"] == [[2, 1]] * 2
    assert found["all_gather"] == [[5, 6]] * 2
    ends = [["127.0.0.1:6170"], ["127.0.0.1:6171"]]
    assert found["pair"] == [[True, False, 1, 1, 0, *ends], [False, True, 1, 1, 0, *ends]]


def test_functions_of_paddle_distributed(found):
    common = [[3, 4], [2, 2], [2, 2]]
    assert found["paddle.distributed"] == [
        [*common, [3, 4], [[3, 4], [2, 2]], [4]],
        [*common, [2, 2], [[3, 4], [2, 2]], [5]],
    ]


def test_samples_are_dealt_out(found):
    (before, first), (_, second) = found["shuffled"]
    assert before == 40 and 5 < len(first) < 35
    expected = [
        [[k + 100 * rank] * (1 + k % 2), float(np.float32(k / 3))] for rank in range(2) for k in range(20)
    ]
    assert sorted(first + second) == sorted(expected)
    assert {ids[0] >= 100 for ids, _ in first} == {True, False}
