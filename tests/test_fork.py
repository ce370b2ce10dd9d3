"""Children of a fork: what the parent has used works there, or says clearly why it cannot."""

import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

SETUP = """
import faulthandler, gc, os, sys, threading, time, warnings
import numpy as np
import paddle, paddle.fluid as fluid

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of every fork beside threads

def net(image, label):
    hidden = fluid.layers.conv2d(image, 4, 5, act="relu")
    hidden = fluid.layers.pool2d(fluid.layers.batch_norm(hidden), 2, "max", 2)
    probabilities = fluid.layers.fc(hidden, 10, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(probabilities, label))

image = fluid.data("image", [None, 1, 28, 28], "float32")
label = fluid.data("label", [None, 1], "int64")
main = fluid.default_main_program()
main.random_seed = fluid.default_startup_program().random_seed = 1
X, Y = np.ones((64, 1, 28, 28), "float32"), np.zeros((64, 1), "int64")

def three():
    for _ in range(3):
        yield X, Y

def endless():
    while True:
        yield X, Y

def in_child(work):
    pid = os.fork()
    if pid == 0:
        faulthandler.dump_traceback_later(30, exit=True)
        work()
        sys.exit(0)  # through the whole end of the interpreter
    assert os.waitpid(pid, 0)[1] == 0, work
"""

FED = """
loss = net(image, label)
fluid.optimizer.Adam(0.01).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
parallel = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(2))

def step(program=main):
    return float(exe.run(program, feed={"image": X, "label": Y}, fetch_list=[loss])[0][0])

def use():
    return [step(), step(), step(parallel), step()]

step(), step(parallel)
before = {v.name: np.array(fluid.global_scope().find_var(v.name).get_tensor())
          for v in main.list_vars() if v.persistable}
here = use()
for name, value in before.items():
    fluid.global_scope().find_var(name).get_tensor().set(value, fluid.CPUPlace())

def work():
    assert np.allclose(use(), here, rtol=1e-5), "other losses than in the parent"

for _ in range(3):
    in_child(work)
work()
print("done")
"""

LOADER = """
loader = fluid.io.DataLoader.from_generator([image, label], capacity=2)
epoch = iter(loader.set_batch_generator(endless, places=fluid.CPUPlace()))
next(epoch)
buffered = paddle.reader.buffered(endless, 2)()
next(buffered)

def work():
    global epoch, buffered
    for iterator in epoch, buffered:
        try:
            next(iterator)
        except RuntimeError as error:
            print(type(error).__name__, error)
        else:
            raise AssertionError("the parent's batch was read")
    loader.set_batch_generator(three, places=fluid.CPUPlace())
    assert len(list(loader)) == 3
    assert sum(paddle.reader.multiprocess_reader([lambda: iter(range(10))])()) == 45
    epoch = iterator = buffered = None
    gc.collect()
    from fluidlite.reader import leaks
    counts = leaks()
    assert not any(counts[what] for what in ("threads", "processes", "queues", "items")), counts

in_child(work)
assert next(epoch) and next(buffered)
"""

BUSY = """
loader = fluid.io.DataLoader.from_generator([image, label], capacity=2, iterable=False)
loss = net(image, label)
fluid.optimizer.Adam(0.01).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
loader.set_batch_generator(endless)
loader.start()
steps = []

def train():
    while not stop.is_set():
        steps.append(exe.run(main, fetch_list=[loss]))
        running.set()

stop, running = threading.Event(), threading.Event()
thread = threading.Thread(target=train)
thread.start()
assert running.wait(30)

def work():
    try:
        exe.run(main, fetch_list=[loss])
    except RuntimeError as error:
        print(error)
    loader.reset()
    loader.set_batch_generator(three)
    for _ in range(2):
        loader.start()
        for _ in range(3):
            exe.run(main, fetch_list=[loss])
        try:
            exe.run(main, fetch_list=[loss])
        except fluid.core.EOFException:
            loader.reset()

try:
    for _ in range(5):
        in_child(work)
finally:
    stop.set()
    thread.join()
    loader.reset()
"""


GATE = """
from fluidlite._ext.forks import library_call

began, end, order = threading.Event(), threading.Event(), []

def work():
    began.set()
    end.wait()
    time.sleep(0.2)
    order.append("left")

def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(library_call(int))  # does not wait for who is not there
    assert os.waitpid(pid, 0)[1] == 0
    order.append("forked")

def quick():
    library_call(order.append, "entered")

threads = [threading.Thread(target=library_call, args=(work,))]
threads[0].start()
began.wait()
threads.append(threading.Thread(target=fork))
threads[1].start()
time.sleep(0.2)
threads.append(threading.Thread(target=quick))
threads[2].start()
time.sleep(0.2)
assert order == [], order
end.set()
for thread in threads:
    thread.join()
assert order[0] == "left" and set(order) == {"left", "forked", "entered"}, order
try:
    library_call(lambda: 1 / 0)
except ZeroDivisionError:
    library_call(fork)  # does not wait for itself
    assert library_call(max, [1, 2], key=lambda x: -x) == 1
    print("done")
"""


def run(python, tmp_path, text):
    (tmp_path / "script.py").write_text(SETUP + text)
    done = python("-m", "fluidlite", "script.py")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_plans_and_replicas_run_in_children(python, tmp_path):
    assert run(python, tmp_path, FED) == "done\n"


def test_epochs_stay_with_the_parent_and_loaders_begin_anew(python, tmp_path):
    first, second = run(python, tmp_path, LOADER).splitlines()
    assert first.startswith("AssertionError this epoch was begun before the process was forked")
    assert second.startswith("QueueForked this reader was begun before the process was forked")


def test_forks_while_threads_read_and_train(python, tmp_path):
    messages = run(python, tmp_path, BUSY).splitlines()
    assert len(messages) == 5 and len(set(messages)) == 1
    assert "before the process was forked" in messages[0] and "reset() and start()" in messages[0]


@pytest.mark.parametrize("how", ["plan", "eager", "interpreter", "conv"])
def test_forks_during_steps(python, how):
    done = python("-m", "fluidlite", str(Path(__file__).with_name("fork_stress.py")), how, "0.5")
    assert (done.returncode, done.stderr) == (0, "") and "steps beside" in done.stdout


def test_library_calls_hold_forks_back_and_wait_for_them(tmp_path, python):
    assert run(python, tmp_path, GATE) == "done\n"


def test_a_multiprocess_reader_inside_another_is_refused(python, tmp_path):
    out = run(
        python,
        tmp_path,
        """
read = paddle.reader.multiprocess_reader
try:
    list(read([read([lambda: iter(range(3))])])())
except AssertionError as error:
    print(error)
""",
    )
    assert out.startswith("multiprocess_reader: daemonic processes are not allowed to have children")
