"""Epochs of the MNIST tutorial on one GPU, and of its reading alone. usage: gpu_tutorial_fluid.py PLACE EPOCHS"""

import sys
import time

import paddle
import paddle.dataset.mnist as mnist
import paddle.fluid as fluid
from timing import result

place = fluid.CPUPlace() if sys.argv[1] == "cpu" else fluid.CUDAPlace(0)
image = fluid.data("image", [None, 784], "float32")
label = fluid.data("label", [None, 1], "int64")
loader = fluid.io.DataLoader.from_generator(feed_list=[image, label], capacity=64)
loss = fluid.layers.reduce_mean(fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(image, 10), label))
fluid.optimizer.Adam(0.01).minimize(loss)
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())
main = fluid.default_main_program()
reader = fluid.io.shuffle(paddle.batch(mnist.train(), 512), buf_size=1024)
loader.set_sample_list_generator(reader, places=place)


def read():
    for _ in loader():
        pass


def train():
    for feed in loader():
        exe.run(main, feed=feed, fetch_list=[loss])


metrics = {"reading alone, s": [], "training, s": [], "training / reading": []}
for epoch in range(int(sys.argv[2]) + 1):
    times = []
    for work in (read, train):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    if epoch:  # the first one compiles, and reads the files
        metrics["reading alone, s"].append(times[0])
        metrics["training, s"].append(times[1])
        metrics["training / reading"].append(times[1] / times[0])
result(metrics)
