"""Four kinds of coloured textures told apart by a small residual network.

usage: python -m fluidlite examples/book/c03_image_classification.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

KINDS, SIDE = 4, 16


def textures(random, count):
    """Stripes in four directions at any phase, one colour more than the others, under noise."""
    kinds = random.randint(0, KINDS, (count, 1))
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    angle = (kinds * np.pi / KINDS).reshape(-1, 1, 1)
    phase = random.uniform(0, 2 * np.pi, (count, 1, 1))
    stripes = np.sin(1.2 * (np.cos(angle) * rows + np.sin(angle) * columns) + phase)
    colours = random.uniform(0.2, 1, (count, 3, 1, 1))
    noise = random.uniform(-1, 1, (count, 3, SIDE, SIDE))
    return (stripes[:, None] * colours + 0.3 * noise).astype("float32"), kinds.astype("int64")


def convolution(image, filters, stride=1, size=3, act="relu"):
    """A convolution without bias, then batch normalization."""
    image = fluid.layers.conv2d(image, filters, size, stride, padding=size // 2, bias_attr=False)
    return fluid.layers.batch_norm(image, act=act)


def block(image, filters, stride):
    """Two convolutions beside a way around them, which changes size only where they do."""
    within = convolution(convolution(image, filters, stride), filters, act=None)
    around = convolution(image, filters, stride, size=1, act=None) if stride > 1 else image
    return fluid.layers.elementwise_add(within, around, act="relu")


def network(image):
    image = convolution(image, 8)
    for filters, stride in ((8, 1), (16, 2), (32, 2)):
        image = block(image, filters, stride)
    pooled = fluid.layers.pool2d(image, pool_type="avg", global_pooling=True)
    return fluid.layers.fc(pooled, size=KINDS, act="softmax")


def main(steps):
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 90
    image = fluid.data(name="image", shape=[None, 3, SIDE, SIDE], dtype="float32")
    kind = fluid.data(name="kind", shape=[None, 1], dtype="int64")
    chances = network(image)
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=chances, label=kind))
    right = fluid.layers.accuracy(input=chances, label=kind)
    testing = fluid.default_main_program().clone(for_test=True)
    rate = fluid.layers.piecewise_decay(boundaries=[steps // 2, steps * 3 // 4], values=[0.02, 0.01, 0.002])
    fluid.optimizer.Momentum(
        learning_rate=rate, momentum=0.9, regularization=fluid.regularizer.L2Decay(1e-4)
    ).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    random = np.random.RandomState(3)
    for step in range(steps):
        given = textures(random, 16)
        now, value = exe.run(feed={"image": given[0], "kind": given[1]}, fetch_list=[rate, loss])
        if step % (steps // 10) == 0:
            print(f"step {step}: rate {now.item():.4f}, loss {value.item():.6f}")
    given = textures(random, 200)
    told = exe.run(testing, feed={"image": given[0], "kind": given[1]}, fetch_list=[loss, right])
    print(f"new textures: loss {told[0].item():.6f}, accuracy {told[1].item():.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
