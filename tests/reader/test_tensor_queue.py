"""Queues that are pushed into by hand: alone, read by readers of places, read by programs."""

import threading
import time

import numpy as np
import pytest

from fluidlite import core, layers
from fluidlite.base.errors import EnforceNotMet, EOFException
from fluidlite.base.place import CPUPlace
from fluidlite.executor import Executor, Scope, scope_guard

from ..refusals import refuses


def queue_of(capacity=2, ordered=False):
    return core.init_lod_tensor_blocking_queue(core.Scope().var("queue"), capacity, ordered)


def tensor(array, lod=()):
    made = core.LoDTensor()
    made.set(np.asarray(array), CPUPlace())
    if lod:
        made.set_lod(lod)
    return made


def test_a_queue_holds_as_many_as_it_may():
    queue = queue_of()
    assert type(queue) is core.LoDTensorBlockingQueue and queue.wait_for_inited(10)
    assert (queue.capacity(), queue.size()) == (2, 0)
    assert queue.push([tensor([1.0])]) is True and queue.size() == 1
    queue.close()
    assert queue.push([tensor([2.0])]) is False
    assert np.array(queue.take()[0]).tolist() == [1.0]
    refuses(queue.take, EOFException)
    queue.reset()
    assert queue.push([np.zeros(3)]) and queue.size() == 1
    queue.kill()
    refuses(lambda: queue.push([tensor([1.0])]), EnforceNotMet, "killed")
    refuses(queue.take, EnforceNotMet, "killed")
    refuses(lambda: queue_of(0), EnforceNotMet, "must be greater than 0")


@pytest.mark.parametrize("ordered", [False, True])
def test_readers_give_a_batch_for_each_place(ordered):
    queue = queue_of(8, ordered)
    kind = core.OrderedMultiDeviceFeedReader if ordered else core.MultiDeviceFeedReader
    places = [CPUPlace()] * 2

    def reader(drop_last):
        return core.create_py_reader(
            queue,
            ["x", "y"],
            [[-1, 2], [-1, 1]],
            ["float32", "int64"],
            [True, True],
            places,
            False,
            drop_last,
        )

    for drop_last, items in ((True, 1), (False, 2)):
        for number in range(3):
            queue.push([tensor(np.full((3, 2), number, "float32")), tensor([[1], [2], [3]], [[0, 1, 3]])])
        queue.close()
        made = reader(drop_last)
        assert isinstance(made, kind)
        first = made.read_next()
        assert [np.array(each["x"])[0, 0] for each in first] == [0, 1]
        assert first[1]["y"].lod() == [[0, 1, 3]]
        for _ in range(items - 1):
            assert len(made.read_next_list()) == 1
        with pytest.raises(StopIteration):
            made.read_next()
        made.reset()
    queue.push([np.ones(2, "float32"), np.ones(1)])
    queue.push([np.ones(2, "float32"), np.ones(1)])
    assert [each.numpy().tolist() for each in reader(False).read_next_var_list()] == [[1, 1], [1]]


def test_a_program_reads_what_is_pushed(programs):
    reader = layers.py_reader(4, [[-1, 2], [-1, 1]], ["float32", "int64"], use_double_buffer=False)
    x, _ = layers.read_file(reader)
    total = layers.reduce_sum(x)

    def push(epoch):
        for number in range(6):
            array = core.LoDTensorArray()
            array.append(tensor(np.full((3, 2), number + epoch, "float32")))
            array.append(tensor(np.zeros((3, 1), "int64")))
            assert reader.queue.push(array)
        reader.queue.close()

    with scope_guard(Scope()):
        executor = Executor(CPUPlace())
        executor.run(programs[1])
        for epoch in range(2):
            if epoch:
                reader.start()
            thread = threading.Thread(target=push, args=(epoch,))
            thread.start()
            while not reader.queue.size():
                time.sleep(0.001)
            found = []
            with pytest.raises(EOFException):
                while True:
                    found.append(executor.run(programs[0], fetch_list=[total])[0].item())
            thread.join()
            assert found == [6.0 * (number + epoch) for number in range(6)]
            reader.reset()
            assert not reader.queue.push([])
            refuses(lambda: executor.run(programs[0], fetch_list=[total]), RuntimeError, "was not started")


def test_a_variable_has_one_queue():
    variable = core.Scope().var("queue")
    core.init_lod_tensor_blocking_queue(variable, 2, False)
    with pytest.raises(core.EnforceNotMet, match="variable 'queue' has a queue already"):
        core.init_lod_tensor_blocking_queue(variable, 2, False)
