"""Reading strips of strokes without knowing where one sign ends and the next one begins.

A strip shows 2 to 6 signs from left to right. Each is a pattern of its own, smeared over a few columns in noise, with
gaps between them; only the signs are told, not their places.

usage: python -m fluidlite examples/ctc.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid

SIGNS, HEIGHT = 5, 8
BLANK = SIGNS
PATTERNS = np.random.RandomState(7).rand(SIGNS, HEIGHT) > 0.5


def strips(random, count):
    """`count` pairs of columns [width, HEIGHT] and the signs on them."""
    made = []
    for _ in range(count):
        signs = random.randint(0, SIGNS, random.randint(2, 7))
        columns = [np.zeros((1, HEIGHT))]
        for sign in signs:
            columns.append(np.tile(PATTERNS[sign], (random.randint(2, 5), 1)))
            columns.append(np.zeros((random.randint(1, 4), HEIGHT)))
        shown = np.concatenate(columns)
        noise = random.normal(0, 0.2, shown.shape)
        made.append(((shown + noise).astype("float32"), signs.reshape(-1, 1)))
    return made


def main(steps):
    """Train, and return the mean edit distance per sign of new strips."""
    columns = fluid.data("columns", [None, HEIGHT], "float32", lod_level=1)
    signs = fluid.data("signs", [None, 1], "int64", lod_level=1)
    around = fluid.layers.sequence_conv(columns, num_filters=32, filter_size=3, act="relu")
    logits = fluid.layers.fc(around, size=SIGNS + 1)
    cost = fluid.layers.mean(fluid.layers.warpctc(logits, fluid.layers.cast(signs, "int32"), blank=BLANK))
    read = fluid.layers.ctc_greedy_decoder(fluid.layers.softmax(logits), blank=BLANK)
    distance, count = fluid.layers.edit_distance(read, signs)
    testing = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(learning_rate=0.02).minimize(cost)

    fluid.default_startup_program().random_seed = 1
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=[columns, signs], place=fluid.CPUPlace())
    random = np.random.RandomState(0)
    for step in range(steps):
        (value,) = exe.run(feed=feeder.feed(strips(random, 32)), fetch_list=[cost])
        if step % 50 == 0:
            print(f"step {step}, cost {value.item():.3f}")
    wrong = fluid.metrics.EditDistance("signs")
    wrong.update(*exe.run(testing, feed=feeder.feed(strips(random, 500)), fetch_list=[distance, count]))
    return wrong.eval()[0].item()


if __name__ == "__main__":
    print(f"edit distance per sign {main(int(sys.argv[1]) if len(sys.argv) > 1 else 200):.3f}")
