"""Big batches on their way to one GPU. usage: gpu_loader_fluid.py PLACE BATCHES IMAGES WIDTH LAYERS"""

import sys
import time

import numpy as np
import paddle.fluid as fluid
from timing import result

SHAPE = (3, 224, 224)
DIFFERENT = 6  # batches that come in turn, in memory of their own

count, images, width, layers = map(int, sys.argv[2:])
on_gpu = sys.argv[1] == "gpu"
place = fluid.CUDAPlace(0) if on_gpu else fluid.CPUPlace()
draws = np.random.default_rng(1)
ordinary = [draws.random((images, *SHAPE), "float32") for _ in range(DIFFERENT)]
locked = ordinary
if on_gpu:
    locked = [fluid.LoDTensor() for _ in range(DIFFERENT)]
    for tensor, array in zip(locked, ordinary, strict=True):
        tensor.set(array, fluid.CUDAPinnedPlace())

image = fluid.data("image", [None, *SHAPE], "float32")
out = fluid.layers.fc(fluid.layers.reduce_mean(image, dim=[2, 3]), width)
weight = fluid.layers.create_parameter([width, width], "float32")
for _ in range(layers):
    out = fluid.layers.matmul(out, weight, alpha=1e-3)
loss = fluid.layers.reduce_mean(out)
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())
main = fluid.default_main_program()


def loader(batches, double_buffer=True):
    """A loader whose epochs have `count` batches, and its `places`."""
    made = fluid.io.DataLoader.from_generator([image], capacity=4, use_double_buffer=double_buffer)
    made.set_batch_generator(lambda: ((batches[i % DIFFERENT],) for i in range(count)), place)
    return made


def wait():
    """Until the GPU has done everything."""
    if on_gpu:
        from fluidlite.backend import device_at

        device_at(place).synchronize()


def read(batches):
    """Milliseconds that a batch takes from the generator to the device, with nothing done there."""
    epoch = iter(loader(batches))
    next(epoch)
    begin = time.perf_counter()
    for _ in epoch:
        pass
    wait()
    return 1e3 * (time.perf_counter() - begin) / (count - 1)


def train(feeds):
    """Milliseconds a step with a new batch each."""
    exe.run(main, feed=next(feeds), fetch_list=[loss])
    begin = time.perf_counter()
    for feed in feeds:
        exe.run(main, feed=feed)
    wait()
    return 1e3 * (time.perf_counter() - begin) / (count - 1)


def copy():
    """Milliseconds of one copy, when nothing but copies from page-locked memory is done."""
    if not on_gpu:
        target = np.empty_like(ordinary[0])
        begin = time.perf_counter()
        for i in range(count):
            np.copyto(target, ordinary[i % DIFFERENT])
        return 1e3 * (time.perf_counter() - begin) / count
    from fluidlite.backend import device_at

    device = device_at(place)
    runtime = device.xp.cuda.runtime
    target = device.empty(ordinary[0].shape, "float32")
    device.synchronize()
    begin = time.perf_counter()
    for i in range(count):
        source = np.asarray(locked[i % DIFFERENT].array)
        runtime.memcpyAsync(
            target.data.ptr, source.ctypes.data, source.nbytes, runtime.memcpyHostToDevice, device.copying.ptr
        )
    device.copying.synchronize()
    return 1e3 * (time.perf_counter() - begin) / count


def measured():
    """Name -> milliseconds, or a ratio."""
    there = fluid.LoDTensor()
    there.set(ordinary[0], place)
    found = {"plain copy, ms": copy()}
    found["loader, page-locked arrays, ms"] = read(locked)
    found["loader, ordinary arrays, ms"] = read(ordinary)
    found["step without reading, ms"] = train(iter([{"image": there}] * count))
    found["step, double buffer, ms"] = train(iter(loader(ordinary)))
    found["step, no double buffer, ms"] = train(iter(loader(ordinary, False)))
    plain = found["plain copy, ms"]
    found["loader / plain copy, page-locked"] = found["loader, page-locked arrays, ms"] / plain
    found["loader / plain copy, ordinary"] = found["loader, ordinary arrays, ms"] / plain
    slowest = max(plain, found["step without reading, ms"])
    found["step / max(copy, compute)"] = found["step, double buffer, ms"] / slowest
    return found


measured()  # the first time allocates and compiles
metrics = {}
for _ in range(3):
    for name, value in measured().items():
        metrics.setdefault(name, []).append(value)
result(metrics)
