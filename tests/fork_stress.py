"""Forks during running steps: `python fork_stress.py HOW SECONDS` trains in threads while others fork; counts both.

HOW is `plan`, `eager`, `interpreter` or `conv`. Fails if the training comes to a halt, or something is left over.
"""

import faulthandler
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import paddle.fluid as fluid

from fluidlite.reader import leaks

how, seconds = sys.argv[1], float(sys.argv[2])
faulthandler.dump_traceback_later(seconds + 60, exit=True)
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of every fork beside threads
stop = threading.Event()
steps: dict[int, int] = {}
forks: dict[str, int] = {}
errors: list[BaseException] = []

scope = fluid.global_scope()
main = fluid.default_main_program()
exe = fluid.Executor(fluid.CPUPlace())
if how == "conv":
    x = fluid.data("x", [None, 3, 24, 24])
    hidden = fluid.layers.conv2d(fluid.layers.conv2d(x, 8, 3, act="relu"), 8, 3)
else:
    x = fluid.data("x", [None, 512], lod_level=int(how == "interpreter"))
    hidden = fluid.layers.fc(fluid.layers.fc(x, 256), 512)
loss = fluid.layers.mean(hidden)
fluid.optimizer.SGD(0.01).minimize(loss)
exe.run(fluid.default_startup_program())
X = np.random.rand(*(16 if how == "conv" else 512, *x.shape[1:])).astype("float32")
fed = fluid.create_lod_tensor(X, [[256, 256]], fluid.CPUPlace()) if how == "interpreter" else X


def train(number: int) -> None:
    try:
        if how == "eager":
            with fluid.dygraph.guard():
                linear = fluid.dygraph.Linear(512, 256)
                while not stop.is_set():
                    linear(fluid.dygraph.to_variable(X)).numpy()
                    steps[number] += 1
        own = fluid.Executor(fluid.CPUPlace())
        while not stop.is_set():
            own.run(main, feed={"x": fed}, fetch_list=[loss], scope=scope)
            steps[number] += 1
    except BaseException as error:
        errors.append(error)


def batches():
    for number in range(3):
        yield [np.full((2, 2), number, "float32")]


def plain() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(int(not (np.ones((300, 300), "float32") @ np.ones((300, 300), "float32") == 300).all()))
    assert os.waitpid(pid, 0)[1] == 0


def process() -> None:
    worker = multiprocessing.get_context("fork").Process(target=int)
    worker.start()
    worker.join()
    while worker.exitcode is None:  # another thread's start() has waited for it and is about to say so
        time.sleep(0.001)
    assert worker.exitcode == 0


def program() -> None:
    subprocess.run([sys.executable, "-S", "-c", ""], preexec_fn=int, check=True)


def loader() -> None:
    given = fluid.Program()
    with fluid.program_guard(given, fluid.Program()):
        reader = fluid.io.DataLoader.from_generator(
            [fluid.data("y", [2, 2])], capacity=2, use_multiprocess=True
        )
    reader.set_batch_generator(batches, fluid.CPUPlace())
    epoch = iter(reader)
    assert np.array(next(epoch)[0]["y"])[0, 0] == 0
    running = epoch.prefetcher._requests.pool.processes()  # none if all batches are there already
    if running and random.random() < 0.3:
        os.kill(running[0].pid, signal.SIGKILL)
    elif random.random() < 0.5:
        assert len(list(epoch)) == 2


WAYS = [plain, process, program, loader]


def fork(seed: int) -> None:
    choose = random.Random(seed)
    try:
        while not stop.is_set():
            way = choose.choice(WAYS)
            with fluid.scope_guard(fluid.Scope()):
                way()
            forks[way.__name__] = forks.get(way.__name__, 0) + 1
    except BaseException as error:
        errors.append(error)


def main_loop() -> None:
    end, before, still = time.monotonic() + seconds, dict(steps), time.monotonic()
    while time.monotonic() < end and not errors:
        time.sleep(0.05)
        if all(steps[number] > before[number] for number in steps):
            before, still = dict(steps), time.monotonic()
        assert time.monotonic() - still < 20, f"a training thread came to a halt: {steps}, {forks}"


threads = []
for number in range(2):
    steps[number] = 0
    threads.append(threading.Thread(target=train, args=(number,), daemon=True))
    threads[-1].start()
while not errors and not all(steps.values()):
    time.sleep(0.01)
for number in range(2):
    threads.append(threading.Thread(target=fork, args=(number,), daemon=True))
    threads[-1].start()
main_loop()
stop.set()
for thread in threads:
    thread.join(30)
    assert not thread.is_alive()
if errors:
    raise errors[0]
gc.collect()
left = leaks()
assert not any(left[what] for what in ("threads", "processes", "queues", "items", "segments")), left
print(f"{sum(steps.values())} steps beside {sum(forks.values())} forks: {dict(sorted(forks.items()))}")
