"""A multilayer perceptron on handwritten digits with the API of Paddle 2.0.

Once as a loop over a `DataLoader` with a worker process, once with `paddle.Model`.

usage: python -m fluidlite examples/paddle2_mlp.py [EPOCHS] [DIGITS]
"""

import itertools
import sys

import numpy as np
import paddle
import paddle.nn.functional as F


class Digits(paddle.io.Dataset):
    """The first `count` digits as (image [784], label [1])."""

    def __init__(self, reader, count):
        self.items = list(itertools.islice(reader(), count))

    def __getitem__(self, index):
        image, label = self.items[index]
        return image, np.array([label], "int64")

    def __len__(self):
        return len(self.items)


def network():
    """784 - 128 - 10, with relu and dropout between."""
    return paddle.nn.Sequential(
        paddle.nn.Linear(784, 128), paddle.nn.ReLU(), paddle.nn.Dropout(0.2), paddle.nn.Linear(128, 10)
    )


def by_hand(train, test, epochs):
    """The training loop, written out."""
    model = network()
    schedule = paddle.optimizer.lr.StepDecay(learning_rate=0.002, step_size=1, gamma=0.7)
    adam = paddle.optimizer.Adam(learning_rate=schedule, parameters=model.parameters())
    loader = paddle.io.DataLoader(train, batch_size=64, shuffle=True, drop_last=True, num_workers=1)
    for epoch in range(epochs):
        model.train()
        for images, labels in loader():
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            adam.step()
            adam.clear_grad()
        schedule.step()
        model.eval()
        metric = paddle.metric.Accuracy()
        with paddle.no_grad():
            for images, labels in paddle.io.DataLoader(test, batch_size=100):
                metric.update(metric.compute(model(images), labels))
        print(f"epoch {epoch}: loss {float(loss):.4f}, test accuracy {metric.accumulate():.3f}")


def with_model(train, test, epochs):
    """The same with `paddle.Model`."""
    model = paddle.Model(network())
    adam = paddle.optimizer.Adam(learning_rate=0.002, parameters=model.parameters())
    model.prepare(adam, paddle.nn.CrossEntropyLoss(), paddle.metric.Accuracy())
    model.fit(train, epochs=epochs, batch_size=64, verbose=0)
    accuracy = model.evaluate(test, batch_size=100, verbose=0)["acc"]
    print(f"paddle.Model: test accuracy {accuracy:.3f}")


def main(epochs=3, count=5000):
    """Train on `count` digits for `epochs` epochs, both ways."""
    train = Digits(paddle.dataset.mnist.train(), count)
    test = Digits(paddle.dataset.mnist.test(), 500)
    by_hand(train, test, epochs)
    with_model(train, test, epochs)


if __name__ == "__main__":
    main(*[int(text) for text in sys.argv[1:]])
