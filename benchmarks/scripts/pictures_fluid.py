"""Pictures by threads in front of a loader. usage: pictures_fluid.py PICTURES COUNT..."""

import sys
import time

import cv2
import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.dataset import image
from timing import result

BATCH, FILES, TURNS = 32, 16, 3
HEIGHT, WIDTH, RESIZED, CUT = 375, 500, 256, 224


def files():
    """The contents of some files, with edges and noise as photographs have them."""
    random = np.random.RandomState(0)
    made = []
    for _ in range(FILES):
        coarse = random.randint(0, 256, (12, 16, 3)).astype("uint8")
        smooth = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
        noisy = np.clip(smooth + random.normal(0, 6, smooth.shape), 0, 255).astype("uint8")
        made.append(cv2.imencode(".jpg", noisy)[1].tobytes())
    return made


def transformed(sample):
    data, label = sample
    return image.simple_transform(image.load_image_bytes(data), RESIZED, CUT, True), label


def loop(count):
    for k in range(count):
        transformed((FILES_OF_ALL[k % FILES], k))


def by_threads(threads, count):
    def samples():
        for k in range(count):
            yield FILES_OF_ALL[k % FILES], k

    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        fed = [fluid.data("image", [None, 3, CUT, CUT], "float32"), fluid.data("label", [None, 1], "int64")]
        loader = fluid.io.DataLoader.from_generator(fed, capacity=4)
    mapped = paddle.reader.xmap_readers(transformed, samples, threads, 2 * BATCH)
    loader.set_sample_generator(mapped, BATCH, drop_last=False, places=fluid.cpu_places(1))
    assert sum(1 for _ in loader()) == -(-count // BATCH)


def microseconds(work, *arguments):
    begin = time.perf_counter()
    work(*arguments)
    return (time.perf_counter() - begin) / arguments[-1] * 1e6


cv2.setNumThreads(1)
FILES_OF_ALL = files()
pictures, counts = int(sys.argv[1]), [int(count) for count in sys.argv[2:]]
loop(FILES)
metrics = {}
for _ in range(TURNS):
    metrics.setdefault("loop", []).append(microseconds(loop, pictures))
    for count in counts:
        metrics.setdefault("%d threads" % count, []).append(microseconds(by_threads, count, pictures))
result(metrics)
