"""A convolutional network on handwritten digits: trains it, tests it, saves it and loads it again.

usage: python -m fluidlite examples/lenet.py [EPOCHS] [STEPS_PER_EPOCH]

Exercises:
1. Leave `clone(for_test=True)` out and test with the training program. What does `batch_norm`
   compute then, and which variables do the tests change?
2. Run it with `fluidlite profile`. Which operator takes most of the time? What does
   `loader.summary()` say of reading?
3. Save with `fluid.io.save_inference_model` instead, and load the folder with Paddle 1.8.5 or,
   after `fluidlite export`, as an ONNX model.
"""

import itertools
import os
import sys
import tempfile

import numpy as np
import paddle
import paddle.fluid as fluid


def network():
    """Build the network; returns (inputs, loss, accuracy)."""
    image = fluid.data(name="image", shape=[None, 784], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    hidden = fluid.layers.reshape(image, [-1, 1, 28, 28])
    for filters in (20, 50):
        hidden = fluid.layers.conv2d(hidden, num_filters=filters, filter_size=5)
        hidden = fluid.layers.batch_norm(hidden, act="relu")
        hidden = fluid.layers.pool2d(hidden, pool_size=2, pool_stride=2)
    hidden = fluid.layers.fc(hidden, size=128, act="relu")
    predicted = fluid.layers.fc(hidden, size=10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(predicted, label))
    return [image, label], loss, fluid.layers.accuracy(predicted, label)


def test(exe, program, feeder, accuracy, batches):
    """The mean accuracy on `batches` of test digits."""
    reader = paddle.batch(paddle.dataset.mnist.test(), 250)
    found = [
        exe.run(program, feed=feeder.feed(batch), fetch_list=[accuracy])[0]
        for batch in itertools.islice(reader(), batches)
    ]
    return float(np.mean(found))


def main(epochs, steps):
    """Train for `epochs` epochs of at most `steps` steps; None stands for all of them."""
    inputs, loss, accuracy = network()
    # What batch_norm does differs between training and testing: clone before the optimizer adds its part.
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Momentum(learning_rate=0.02, momentum=0.9).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=inputs, place=fluid.CPUPlace())
    loader = fluid.io.DataLoader.from_generator(feed_list=inputs, capacity=16)
    loader.set_sample_list_generator(
        paddle.batch(paddle.reader.shuffle(paddle.dataset.mnist.train(), 10000), 100),
        places=fluid.cpu_places(1),
    )
    for epoch in range(epochs):
        for step, feed in enumerate(itertools.islice(loader(), steps)):
            value, right = exe.run(feed=feed, fetch_list=[loss, accuracy])
            if step % 20 == 0:
                print(f"epoch {epoch}, step {step}: loss {value.item():.4f}, accuracy {right.item():.3f}")
        print(
            f"epoch {epoch}: accuracy on test digits {test(exe, test_program, feeder, accuracy, steps):.4f}"
        )

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lenet")
        fluid.save(fluid.default_main_program(), path)
        before = test(exe, test_program, feeder, accuracy, steps)
        exe.run(fluid.default_startup_program())
        fluid.load(fluid.default_main_program(), path, exe)
        after = test(exe, test_program, feeder, accuracy, steps)
        print(
            f"accuracy after saving and loading: {after:.4f} ({'the same' if after == before else 'different!'})"
        )


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    main(numbers[0] if numbers else 1, numbers[1] if len(numbers) > 1 else None)
