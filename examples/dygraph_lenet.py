"""A convolutional network on handwritten digits in dygraph mode: trained, tested, saved and loaded again.

A worker process reads and normalises the digits (`use_multiprocess=True`).

usage: python -m fluidlite examples/dygraph_lenet.py [EPOCHS] [STEPS_PER_EPOCH]
"""

import itertools
import os
import sys
import tempfile

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid.dygraph import Conv2D, Linear, Pool2D, to_variable


class LeNet(fluid.dygraph.Layer):
    """Two convolutions with pooling, two fully connected layers; gives logits [N, 10]."""

    def __init__(self):
        super().__init__()
        self.conv1 = Conv2D(1, 20, filter_size=5, act="relu")
        self.conv2 = Conv2D(20, 50, filter_size=5, act="relu")
        self.pool = Pool2D(pool_size=2, pool_stride=2)
        self.hidden = Linear(50 * 4 * 4, 128, act="relu")
        self.output = Linear(128, 10)

    def forward(self, images):
        features = self.pool(self.conv2(self.pool(self.conv1(images))))
        return self.output(self.hidden(fluid.layers.reshape(features, [-1, 50 * 4 * 4])))


def digits(reader):
    """Batches of 100 images [100, 1, 28, 28] and labels [100, 1]."""

    def batches():
        for batch in paddle.batch(reader, 100, drop_last=True)():
            yield (
                np.stack([x.reshape(1, 28, 28) for x, _ in batch]),
                np.array([[y] for _, y in batch], "int64"),
            )

    return batches


def accuracy(model, batches):
    """The share of test digits that the model tells right."""
    model.eval()
    right = []
    for images, labels in itertools.islice(digits(paddle.dataset.mnist.test())(), batches):
        predicted = fluid.layers.softmax(model(to_variable(images)))
        right.append(float(fluid.layers.accuracy(predicted, to_variable(labels))))
    model.train()
    return float(np.mean(right))


def main(epochs, steps):
    """Train for `epochs` epochs of at most `steps` steps; None stands for all of them."""
    place = fluid.CPUPlace()
    with fluid.dygraph.guard(place):
        model = LeNet()
        optimizer = fluid.optimizer.Adam(0.001, parameter_list=model.parameters())
        loader = fluid.io.DataLoader.from_generator(capacity=8, use_multiprocess=True)
        loader.set_batch_generator(digits(paddle.dataset.mnist.train()), places=place)
        for epoch in range(epochs):
            for images, labels in itertools.islice(loader(), steps):
                loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(model(images), labels))
                loss.backward()
                optimizer.minimize(loss)
                model.clear_gradients()
            print(f"epoch {epoch}: loss {float(loss):.4f}, test accuracy {accuracy(model, 5):.3f}")

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "lenet")
            fluid.save_dygraph(model.state_dict(), path)
            twin = LeNet()
            twin.set_dict(fluid.load_dygraph(path)[0])
            print(f"loaded again: test accuracy {accuracy(twin, 5):.3f}")


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    main(*(numbers + [2, None][len(numbers) :]))
