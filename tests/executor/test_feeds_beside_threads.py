"""Arrays that another thread writes while a step reads them."""

import threading

import numpy as np
import pytest

import fluidlite as fluid

L = fluid.layers


@pytest.mark.parametrize("places", [0, 2])
def test_a_step_sees_what_was_fed(places):
    x = fluid.data("x", [None, 64])
    before, h = L.reduce_max(x), x
    for _ in range(6):
        h = L.fc(h, 64, act="tanh")
    after = L.elementwise_add(L.scale(h, 0.0), x)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    program = fluid.default_main_program()
    if places:
        program = fluid.CompiledProgram(program).with_data_parallel(places=fluid.cpu_places(places))
    fed, stop = np.zeros((2048, 64), "float32"), threading.Event()
    contents = [np.full(fed.shape, k, "float32").tobytes() for k in range(1, 4)]
    memory = memoryview(fed).cast("B")
    memory[:] = contents[0]

    def write():
        while not stop.is_set():
            for content in contents:
                memory[:] = content

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(10):
            largest, whole = exe.run(program, {"x": fed}, [before, after])
            assert set(largest.tolist()) == {float(whole.min())} == {float(whole.max())}
    finally:
        stop.set()
        thread.join()
