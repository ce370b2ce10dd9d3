"""Handwritten digits, by workers whose gradients fleet adds up.

usage: fluidlite launch -n 2 examples/distributed/fleet_digits.py [STEPS]
"""

import itertools
import sys

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.collective import DistributedStrategy, fleet

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100

fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))

image = fluid.data("image", [None, 784])
label = fluid.data("label", [None, 1], "int64")
hidden = fluid.nets.simple_img_conv_pool(fluid.layers.reshape(image, [-1, 1, 28, 28]), 8, 5, 2, 2, act="relu")
predicted = fluid.layers.fc(hidden, 10, act="softmax")
loss = fluid.layers.mean(fluid.layers.cross_entropy(predicted, label))
accuracy = fluid.layers.accuracy(predicted, label)

optimizer = fleet.distributed_optimizer(fluid.optimizer.Adam(0.005), DistributedStrategy())
optimizer.minimize(loss)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fleet.startup_program)
feeder = fluid.DataFeeder([image, label], fluid.CPUPlace())
# Every worker takes its own batches.
batches = fluid.contrib.reader.distributed_batch_reader(paddle.batch(paddle.dataset.mnist.train(), 32))
for step, batch in enumerate(itertools.islice(itertools.cycle(batches()), steps)):
    found = exe.run(fleet.main_program, feed=feeder.feed(batch), fetch_list=[loss, accuracy])
    if step % 20 == 0 or step == steps - 1:
        print(f"step {step}: loss {found[0].item():.3f} accuracy {found[1].item():.3f}")

total = np.zeros(1)
fleet.all_reduce_worker(found[1].astype("float64"), total)
if fleet.worker_index() == 0:
    print(f"accuracy of all {fleet.worker_num()} workers {total[0] / fleet.worker_num():.3f}")
