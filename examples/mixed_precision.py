"""Training in mixed precision: float16 where it is safe, a scaled loss, float32 parameters.

Each picture is noise with a bright bar, lying, standing or slanting.

usage: python -m fluidlite examples/mixed_precision.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

SIZE = 12


def pictures(random, count):
    """`count` pictures [1, SIZE, SIZE] with what they show: 0 lying, 1 standing, 2 slanting."""
    images = random.normal(0, 0.3, (count, 1, SIZE, SIZE)).astype("float32")
    shown = random.randint(0, 3, (count, 1)).astype("int64")
    for image, (kind,) in zip(images, shown, strict=True):
        row, column = random.randint(0, SIZE - 6, 2)
        for step in range(6):
            image[0, row + step * (kind > 0), column + step * (kind != 1)] += 1
    return images, shown


def main(steps):
    """Train, and print how the scale of the loss moves and how many new pictures are recognised."""
    fluid.default_startup_program().random_seed = 1
    image = fluid.data("image", [None, 1, SIZE, SIZE], "float32")
    label = fluid.data("label", [None, 1], "int64")
    hidden = fluid.layers.conv2d(image, num_filters=8, filter_size=3, act="relu")
    hidden = fluid.layers.pool2d(hidden, pool_size=2, pool_stride=2)
    logits = fluid.layers.fc(fluid.layers.fc(hidden, 32, act="relu"), 3)
    loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, label))
    accuracy = fluid.layers.accuracy(fluid.layers.softmax(logits), label)
    test = fluid.default_main_program().clone(for_test=True)

    # The scale begins far too large: its gradients are infinite in float16, and these steps train nothing.
    optimizer = fluid.contrib.mixed_precision.decorate(
        fluid.optimizer.Adam(0.003),
        init_loss_scaling=2.0**20,
        incr_every_n_steps=50,
        decr_every_n_nan_or_inf=1,
        decr_ratio=0.5,
    )
    optimizer.minimize(loss)
    halves = [op for op in fluid.default_main_program().global_block().ops if op.type == "cast"]
    print(f"{len(halves)} casts between float32 and float16")

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    random = np.random.RandomState(1)
    for step in range(steps):
        images, shown = pictures(random, 64)
        value, scale = exe.run(
            feed={"image": images, "label": shown}, fetch_list=[loss, optimizer.get_loss_scaling()]
        )
        if step % 25 == 0 or step == steps - 1:
            print(f"step {step}: loss {value[0]:.3f}, times {scale[0]:.0f}")
    images, shown = pictures(random, 500)
    (found,) = exe.run(test, feed={"image": images, "label": shown}, fetch_list=[accuracy])
    print(f"recognised {found[0]:.3f} of new pictures")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
