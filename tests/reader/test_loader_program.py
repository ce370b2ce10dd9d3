"""Loaders that programs read from: the operators they add, epochs through an executor, errors, `reset` at
any time.
"""

from __future__ import annotations

import gc
import random
import threading
import time

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet, EOFException
from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.executor import Executor, Scope, reading, scope_guard
from fluidlite.framework import default_main_program
from fluidlite.reader import DataLoader, LoaderError, PyReader, State, batch, leaks

from ..refusals import refuses

pytestmark = pytest.mark.usefixtures("programs")


@pytest.fixture(autouse=True)
def scope():
    with scope_guard(Scope()):
        yield


@pytest.fixture
def feed_list(programs):
    return [data("x", [None, 3], "float32"), data("y", [None, 1], "int64")]


def doubled(var):
    """A variable that a program computes from `var`."""
    block = default_main_program().global_block()
    out = block.create_var(name=f"{var.name}_doubled", dtype=var.dtype)
    block.append_op(type="scale", inputs={"X": [var]}, outputs={"Out": [out]}, attrs={"scale": 2.0})
    return out


def batches(count: int = 3):
    def reader():
        for i in range(count):
            yield np.full((2, 3), i, "float32"), np.full((2, 1), i, "int64")

    return reader


def endless():
    i = 0
    while True:
        yield np.full((2, 3), i, "float32"), np.full((2, 1), i, "int64")
        i += 1


def from_generator(feed_list, **options):
    return DataLoader.from_generator(feed_list=feed_list, **{"capacity": 4, "iterable": False, **options})


def epoch(run) -> list[float]:
    """First elements of what `run()` gives until the end of the epoch."""
    got = []
    while True:
        try:
            got.append(float(np.asarray(run()).ravel()[0]))
        except EOFException:
            return got


def taken(loader) -> list[float]:
    return epoch(lambda: loader.take()[0].array)


@pytest.mark.parametrize("double", [True, False])
def test_what_the_program_gets(programs, feed_list, double: bool) -> None:
    main, startup = programs
    words = data("words", [None, 1], "int64", lod_level=1)
    loader = from_generator([*feed_list, words], use_double_buffer=double, drop_last=not double)
    assert loader.iterable is False
    ops = main.global_block().ops
    assert [op.type for op in ops] == (
        ["create_py_reader", "create_double_buffer_reader", "read"]
        if double
        else ["create_py_reader", "read"]
    )
    (queue,), (reader,) = ops[0].input("blocking_queue"), ops[0].output("Out")
    assert queue.startswith("lod_tensor_blocking_queue_") and reader.startswith("create_py_reader_")
    assert reading.lookup(queue) is loader
    expected = {
        "shape_concat": [-1, 3, -1, 1, -1, 1],
        "ranks": [2, 2, 2],
        "lod_levels": [0, 0, 1],
        "dtypes": [5, 3, 3],
        "need_check_feed": [1, 1, 1],
        "use_data_config": True,
        "device_index": 0,
        "device_count": 1,
    }
    assert {name: ops[0].attr(name) for name in expected} == expected
    last = reader
    if double:
        assert ops[1].input("UnderlyingReader") == [reader] and ops[1].attr("place") == "AUTO"
        (last,) = ops[1].output("Out")
        assert last.startswith("double_buffer_")
    assert ops[-1].input("Reader") == [last] and ops[-1].output("Out") == ["x", "y", "words"]
    assert (ops[-1].attr("throw_eof_exp"), ops[-1].attr("infer_out"), ops[-1].attr("drop_last")) == (
        True,
        True,
        not double,
    )
    assert {var.name for var in main.list_vars() if var.persistable} == {reader, last}
    assert startup.global_block().ops == []


def test_names_count_over_the_process_and_ignore_guards(feed_list) -> None:
    from fluidlite.base import unique_name

    names = []
    loaders = []
    for _ in range(3):
        with unique_name.guard():
            loaders.append(from_generator(feed_list))
            names.append(
                [op for op in default_main_program().global_block().ops if op.type == "create_py_reader"][-1]
            )
    assert len({op.input("blocking_queue")[0] for op in names}) == 3


@pytest.mark.parametrize("double", [True, False])
def test_epochs(feed_list, double: bool) -> None:
    loader = from_generator(feed_list, use_double_buffer=double)
    out = doubled(feed_list[0])
    loader.set_sample_generator(lambda: ((np.full(3, i, "float32"), i) for i in range(5)), 2, drop_last=False)
    exe = Executor(CPUPlace())
    for _ in range(3):
        loader.start()
        assert epoch(lambda: exe.run(fetch_list=[out])[0]) == [0, 4, 8]
        for _ in range(3):
            refuses(lambda: exe.run(fetch_list=[out]), EOFException, "There is no next data")
        loader.reset()


def test_reset_in_the_middle(feed_list) -> None:
    loader = from_generator(feed_list).set_batch_generator(batches(5))
    out = doubled(feed_list[0])
    exe = Executor(CPUPlace())
    loader.start()
    assert exe.run(fetch_list=[out])[0][0, 0] == 0
    loader.reset()
    loader.reset()
    assert loader.state is State.STOPPED
    loader.start()
    assert epoch(lambda: exe.run(fetch_list=[out])[0]) == [0, 2, 4, 6, 8]
    loader.start()  # without a reset after the end
    assert taken(loader) == [0, 1, 2, 3, 4]


def test_clone_shares_the_loader_instead_of_copying_it(programs, feed_list) -> None:
    loader = from_generator(feed_list).set_batch_generator(batches(4))
    out = doubled(feed_list[0])
    clone = programs[0].clone(for_test=True)
    exe = Executor(CPUPlace())
    loader.start()
    first = exe.run(programs[0], fetch_list=[out])[0][0, 0]
    second = exe.run(clone, fetch_list=[out.name])[0][0, 0]
    assert (first, second) == (0, 2)
    loader.reset()


def test_wrong_order_of_calls(feed_list) -> None:
    loader = from_generator(feed_list)
    out = doubled(feed_list[0])
    exe = Executor(CPUPlace())
    refuses(loader.start, LoaderError, "data source of the DataLoader has not been set")
    loader.set_batch_generator(batches())
    with pytest.raises(RuntimeError, match=r"gives 'x', 'y' was not started: call its start\(\)"):
        exe.run(fetch_list=[out])
    loader.start()
    refuses(loader.start, RuntimeError, r"started already: call reset\(\)")
    assert exe.run(fetch_list=[out])[0][0, 0] == 0
    loader.reset()
    refuses(lambda: exe.run(fetch_list=[out]), RuntimeError, "was not started")
    refuses(lambda: list(loader), LoaderError, "not iterable")
    with pytest.raises(LoaderError, match="not iterable"):
        for _ in loader():
            pass


def test_a_loader_that_is_gone(feed_list) -> None:
    loader = from_generator(feed_list).set_batch_generator(batches())
    out = doubled(feed_list[0])
    del loader
    gc.collect()
    with pytest.raises(EnforceNotMet, match="DataLoader does not exist any more"):
        Executor(CPUPlace()).run(fetch_list=[out])


def test_reset_of_a_generator_that_never_ends(feed_list) -> None:
    loader = from_generator(feed_list, capacity=2).set_batch_generator(endless)
    for _ in range(3):
        loader.start()
        assert loader.take()[0].array[0, 0] == 0
        begin = time.monotonic()
        loader.reset()
        assert time.monotonic() - begin < 8 and leaks()["threads"] == 0


def test_reset_of_a_generator_that_is_stuck(feed_list) -> None:
    stuck = threading.Event()

    def reader():
        yield from batches(1)()
        stuck.wait(20)

    loader = from_generator(feed_list).set_batch_generator(reader)
    loader.start()
    loader.take()
    begin = time.monotonic()
    loader.reset()
    assert time.monotonic() - begin < 8
    loader.set_batch_generator(batches(2))
    loader.start()
    assert taken(loader) == [0, 1]
    stuck.set()
    deadline = time.monotonic() + 5
    while leaks()["threads"] and time.monotonic() < deadline:
        time.sleep(0.001)


def test_reset_wakes_a_program_that_waits(feed_list) -> None:
    hold = threading.Event()

    def reader():
        hold.wait(20)
        yield from batches(1)()

    loader = from_generator(feed_list).set_batch_generator(reader)
    loader.start()
    seen = []

    def wait() -> None:
        try:
            loader.take()
        except EOFException as error:
            seen.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.02)
    threading.Timer(0.05, hold.set).start()
    loader.reset()
    thread.join(5)
    assert len(seen) == 1 and seen[0].startswith("There is no next data.")


def test_an_empty_epoch_ends_at_once_with_a_warning(feed_list) -> None:
    def nothing():
        return iter(())

    loader = from_generator(feed_list).set_batch_generator(nothing)
    loader.start()
    message = r"nothing\(\) \(.*test_loader_program.py:\d+\).* yielded no batch"
    with pytest.warns(RuntimeWarning, match=message) as caught:
        assert taken(loader) == []
    assert caught[0].filename == __file__
    with pytest.raises(EOFException):  # without a second warning
        loader.take()
    loader.reset()


def test_py_reader_class(feed_list) -> None:
    reader = PyReader(feed_list, capacity=4, iterable=False)
    out = doubled(feed_list[0])
    exe = Executor(CPUPlace())

    def samples():
        return ((np.full(3, i, "float32"), [i]) for i in range(7))

    def ready():
        return ((np.full((2, 3), i, "float32"), np.zeros((2, 1), "int64")) for i in (0, 3, 6))

    for decorate in (
        lambda: reader.decorate_sample_list_generator(batch(samples, 3)),
        lambda: reader.decorate_sample_generator(samples, 3, drop_last=False),
        lambda: reader.decorate_batch_generator(ready),
    ):
        assert decorate() is None
        reader.start()
        assert epoch(lambda: exe.run(fetch_list=[out])[0]) == [0, 6, 12]
        reader.reset()
    assert reader.iterable is False and reader.queue is None and reader.stats()["epochs"] == 3


def test_a_thousand_epochs(feed_list) -> None:
    loader = from_generator(feed_list, capacity=2).set_batch_generator(batches(3))
    for _ in range(1000):
        loader.start()
        assert taken(loader) == [0, 1, 2]
        loader.reset()
    assert loader.stats()["batches"] == 3000
    del loader
    gc.collect()
    assert not any(leaks().values())


def test_reset_at_random_moments(feed_list) -> None:
    chance = random.Random(3)
    loader = from_generator(feed_list, capacity=2)
    for round_ in range(300):
        fails = round_ % 3 == 0
        length = chance.randrange(1, 6)

        def reader(length=length, fails=fails):
            yield from batches(length)()
            if fails:
                raise OSError("the disk is on fire")

        loader.set_batch_generator(reader)
        loader.start()
        want = chance.randrange(8)
        got = 0
        try:
            while got < want:
                assert loader.take()[0].array[0, 0] == got
                got += 1
            if chance.random() < 0.3:
                time.sleep(chance.random() * 0.002)
        except (EOFException, OSError) as error:
            assert got == length and isinstance(error, OSError) is fails
        loader.reset()


def test_four_loaders_at_once_reset_from_other_threads(programs) -> None:
    loaders = []
    for i in range(4):
        var = data(f"x{i}", [None, 3], "float32")
        loaders.append(
            from_generator([var], capacity=1 + i).set_batch_generator(lambda: ((x,) for x, _ in endless()))
        )
    stop = threading.Event()
    problems = []

    def consume(loader) -> None:
        while not stop.is_set():
            try:
                loader.start()
                for i in range(20):
                    if loader.take()[0].array[0, 0] != i:
                        problems.append("out of order")
            except (EOFException, LoaderError):
                pass  # reset by the other thread
            loader.reset()

    threads = [threading.Thread(target=consume, args=(loader,)) for loader in loaders]
    for thread in threads:
        thread.start()
    chance = random.Random(1)
    for _ in range(100):
        chance.choice(loaders).reset()
        time.sleep(chance.random() * 0.003)
    stop.set()
    for thread in threads:
        thread.join(20)
    assert not problems and not any(thread.is_alive() for thread in threads)


def rates_of_epochs(compiled: bool):
    """Learning rates of three epochs of three steps, with a schedule that counts them."""
    x = data("x", [None, 2], "float32")
    loader = DataLoader.from_generator(feed_list=[x], capacity=4, iterable=False)
    loss = fluid.layers.reduce_mean(fluid.layers.fc(x, 1))
    rate = fluid.layers.exponential_decay(1.0, 1, 0.5)
    fluid.optimizer.SGD(rate).minimize(loss)
    loader.set_batch_generator(lambda: iter([[np.ones((3, 2), "float32")]] * 3), places=CPUPlace())
    exe = Executor(CPUPlace())
    exe.run(fluid.default_startup_program())
    program = default_main_program()
    run = (
        fluid.CompiledProgram(program).with_data_parallel(loss.name, places=[CPUPlace()])
        if compiled
        else program
    )
    epochs = []
    for _ in range(3):
        loader.start()
        epochs.append(epoch(lambda: exe.run(run, fetch_list=[rate])[0]))
        loader.reset()
    return np.log2(epochs).tolist()


def test_schedules_count_the_end_of_an_epoch():
    """Operators before `read` have run when it finds no batch, as on Paddle 1.8.5."""
    assert rates_of_epochs(compiled=False) == [[0, -1, -2], [-4, -5, -6], [-8, -9, -10]]


def test_schedules_of_compiled_programs_count_steps():
    assert rates_of_epochs(compiled=True) == [[0, -1, -2], [-3, -4, -5], [-6, -7, -8]]


@pytest.mark.parametrize("maker", [DataLoader.from_generator, PyReader])
def test_a_loader_made_after_the_network_ends_its_epochs(maker):
    """Paddle 1.8.5 has nothing to compute with in the first step."""
    x, y = data("x", [None, 2], "float32"), data("y", [None, 1], "int64")
    weight = fluid.ParamAttr(initializer=fluid.initializer.Constant(0.1))
    hidden = fluid.layers.fc(x, 1, param_attr=weight, bias_attr=False)
    big = fluid.layers.reduce_sum(x) > 100.0
    hidden = fluid.layers.cond(big, lambda: fluid.layers.scale(hidden, 2.0), lambda: hidden)
    loss = fluid.layers.reduce_sum(hidden)
    rate = fluid.layers.exponential_decay(0.25, 1, 0.5)
    fluid.optimizer.SGD(rate).minimize(loss)
    loader = maker(feed_list=[x, y], capacity=4, iterable=False)
    made = [[np.full((1, 2), k, "float32"), np.zeros((1, 1), "int64")] for k in range(3)]
    set_generator = loader.decorate_batch_generator if maker is PyReader else loader.set_batch_generator
    set_generator(lambda: iter(made))
    exe = Executor(CPUPlace())
    exe.run(fluid.default_startup_program())
    losses = []
    for _ in range(2):
        loader.start()
        losses.append(epoch(lambda: exe.run(fetch_list=[loss])[0]))
        loader.reset()
    # w = 0.1; w -= 0.25 * 0.5 ** k * x for the k-th step, in which the end of an epoch counts as well
    assert np.allclose(losses, [[0, 0.2, -0.1], [0, -0.3, -0.63125]], atol=1e-6)
