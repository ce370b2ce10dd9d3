"""The network of Fluid's guide to asynchronous reading, with a line for each epoch; `make demo` runs it.

The same script runs on Paddle 1.8.5. Seeds are fixed and samples keep their order, so both compute the same: the last
lines compare with what Paddle reached on the same digits.

usage: python -m fluidlite examples/demo.py [EPOCHS]
"""

import sys
import time

import numpy as np
import paddle.dataset.mnist as mnist
import paddle.fluid as fluid

BATCH = 512
OF_PADDLE = {
    (10000, 2000): (0.3439, 0.8840),
    (60000, 10000): (0.3141, 0.8941),
}
"""The mean loss of the tenth epoch and the accuracy on test digits after it with Paddle 1.8.5, by number of digits."""


def network():
    """Softmax regression; returns (inputs, loss, accuracy)."""
    image = fluid.data(name="image", dtype="float32", shape=[None, 784])
    label = fluid.data(name="label", dtype="int64", shape=[None, 1])
    scores = fluid.layers.fc(image, size=10)
    loss, predicted = fluid.layers.softmax_with_cross_entropy(scores, label, return_softmax=True)
    return [image, label], fluid.layers.reduce_mean(loss), fluid.layers.accuracy(predicted, label)


def loader_of(inputs, reader):
    """A loader that a thread fills with batches of `reader`."""
    loader = fluid.io.DataLoader.from_generator(feed_list=inputs, capacity=64)
    loader.set_sample_list_generator(fluid.io.batch(reader, BATCH), places=fluid.cpu_places(1))
    return loader


def run(exe, program, loader, fetches):
    """Run an epoch; returns (mean loss, mean accuracy, number of samples)."""
    counts, values = [], []
    for feed in loader():
        values.append([value.item() for value in exe.run(program, feed=feed, fetch_list=fetches)])
        counts.append(np.array(feed[0]["label"]).shape[0])
    loss, accuracy = np.average(values, axis=0, weights=counts)
    return loss, accuracy, sum(counts)


def main(epochs):
    """Train and test; returns (mean loss of the last epoch, accuracy on test digits)."""
    program = fluid.default_main_program()
    program.random_seed = fluid.default_startup_program().random_seed = 1
    inputs, loss, accuracy = network()
    test_program = program.clone(for_test=True)
    fluid.optimizer.Adam(learning_rate=0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())

    train, test = loader_of(inputs, mnist.train()), loader_of(inputs, mnist.test())
    for epoch in range(1, epochs + 1):
        start = time.time()
        mean, _, count = run(exe, program, train, [loss, accuracy])
        rate = count / (time.time() - start)
        _, right, tested = run(exe, test_program, test, [loss, accuracy])
        print(f"epoch {epoch:2}: loss {mean:.4f}, accuracy on test digits {right:.4f}, {rate:,.0f} images/s")
    if hasattr(train, "summary"):
        print(train.summary())
    if epochs == 10 and (count, tested) in OF_PADDLE:
        print(
            "Paddle 1.8.5 on the same digits: loss {:.4f}, accuracy {:.4f}".format(*OF_PADDLE[count, tested])
        )
    return mean, right


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
