"""Curves of a training: two learning rates, drawn beside each other on one page.

usage: python -m fluidlite examples/curves.py [FOLDER] [STEPS]
then:  fluidlite plot FOLDER

It needs the extra `visual`. FOLDER/curves.html has a chart for each tag, and a line for each run.
"""

import itertools
import os
import sys

import paddle
import paddle.fluid as fluid
from visualdl import LogWriter


def train(rate, folder, steps):
    """Train an MLP on digits; returns the last loss. Losses and accuracies go to `folder`."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        fluid.default_startup_program().random_seed = 1
        image = fluid.data("image", [None, 784], "float32")
        label = fluid.data("label", [None, 1], "int64")
        predicted = fluid.layers.fc(fluid.layers.fc(image, 64, act="relu"), 10, act="softmax")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(predicted, label))
        accuracy = fluid.layers.accuracy(predicted, label)
        fluid.optimizer.SGD(rate).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        feeder = fluid.DataFeeder([image, label], fluid.CPUPlace())
        batches = paddle.batch(paddle.dataset.mnist.train(), 64)
        with LogWriter(logdir=folder) as writer:
            for step, batch in enumerate(itertools.islice(batches(), steps)):
                values = exe.run(feed=feeder.feed(batch), fetch_list=[loss, accuracy])
                writer.add_scalar(tag="train/loss", value=values[0].item(), step=step)
                writer.add_scalar(tag="train/accuracy", value=values[1].item(), step=step)
    return values[0].item()


def main(folder, steps):
    for rate in (0.01, 0.1):
        found = train(rate, os.path.join(folder, f"rate={rate}"), steps)
        print(f"learning rate {rate}: loss {found:.4f} after {steps} steps")
    print(f"now: fluidlite plot {folder}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "logs", int(sys.argv[2]) if len(sys.argv) > 2 else 150)
