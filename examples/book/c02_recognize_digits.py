"""Digits in pictures, by three networks: softmax regression, a perceptron, convolutions.

The pictures are made up: ten blurred patterns, one of which shines through noise.

usage: python -m fluidlite examples/book/c02_recognize_digits.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

SIDE = 16


def pictures(random, patterns, count):
    """`count` pictures, [count, 1, 16, 16], and their digits, [count, 1]."""
    digits = random.randint(0, 10, (count, 1))
    noise = random.uniform(-1, 1, (count, 1, SIDE, SIDE))
    return (0.5 * patterns[digits[:, 0]] + noise).astype("float32"), digits.astype("int64")


def regression(picture):
    return fluid.layers.fc(picture, size=10, act="softmax")


def perceptron(picture):
    hidden = fluid.layers.fc(picture, size=64, act="relu")
    return fluid.layers.fc(fluid.layers.fc(hidden, size=64, act="tanh"), size=10, act="softmax")


def convolutions(picture):
    for filters in (8, 16):
        picture = fluid.nets.simple_img_conv_pool(
            picture, num_filters=filters, filter_size=3, pool_size=2, pool_stride=2, act="relu"
        )
        picture = fluid.layers.batch_norm(picture)
    return fluid.layers.fc(picture, size=10, act="softmax")


def learn(network, steps):
    """Train `network` from new programs, and print what it says of new pictures."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 90
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        picture = fluid.data(name="picture", shape=[None, 1, SIDE, SIDE], dtype="float32")
        digit = fluid.data(name="digit", shape=[None, 1], dtype="int64")
        chances = network(picture)
        loss = fluid.layers.mean(fluid.layers.cross_entropy(input=chances, label=digit))
        right = fluid.layers.accuracy(input=chances, label=digit)
        testing = main.clone(for_test=True)
        fluid.optimizer.Adam(learning_rate=0.003).minimize(loss)

    random = np.random.RandomState(2)
    patterns = random.uniform(-1, 1, (10, 1, SIDE, SIDE))
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        for step in range(steps):
            given = pictures(random, patterns, 32)
            (value,) = exe.run(main, feed={"picture": given[0], "digit": given[1]}, fetch_list=[loss])
            if step % (steps // 5) == 0:
                print(f"{network.__name__}, step {step}: loss {value.item():.6f}")
        given = pictures(random, patterns, 500)
        told = exe.run(testing, feed={"picture": given[0], "digit": given[1]}, fetch_list=[loss, right])
    print(f"{network.__name__}, new pictures: loss {told[0].item():.6f}, accuracy {told[1].item():.3f}")


if __name__ == "__main__":
    for network in (regression, perceptron, convolutions):
        learn(network, int(sys.argv[1]) if len(sys.argv) > 1 else 50)
