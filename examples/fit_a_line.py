"""Linear regression on made-up data: finds the line that noisy points were scattered around.

usage: python -m fluidlite examples/fit_a_line.py [EPOCHS]

Exercises:
1. `print(exe.describe())` behind the last step: which operators has the compiler joined, and for
   which sizes is its plan?
2. Feed batches of 10, 7 and 3 points in turn. How many plans are made? Why does a batch of one
   point have its own?
3. Take `MomentumOptimizer(0.03, 0.9)` in the place of `SGD`. `fluidlite draw` shows what it has
   added to the program.
"""

import sys

import numpy as np
import paddle
import paddle.fluid as fluid

WEIGHTS = np.array([[2.0], [-3.4]], "float32")
BIAS = 4.2


def points():
    """Yield (features, value), 1000 times."""
    random = np.random.RandomState(0)
    for _ in range(1000):
        features = random.standard_normal(2).astype("float32")
        yield features, features @ WEIGHTS[:, 0] + BIAS + random.normal(0, 0.01, 1).astype("float32")


def main(epochs):
    """Train, and return the weights and the bias that were found."""
    x = fluid.data(name="x", shape=[None, 2], dtype="float32")
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    predicted = fluid.layers.fc(
        x, size=1, param_attr=fluid.ParamAttr(name="w"), bias_attr=fluid.ParamAttr(name="b")
    )
    loss = fluid.layers.mean(fluid.layers.square_error_cost(predicted, y))
    fluid.optimizer.SGD(learning_rate=0.03).minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=[x, y], place=fluid.CPUPlace())
    reader = paddle.batch(paddle.reader.shuffle(points, buf_size=1000), batch_size=10)
    for epoch in range(epochs):
        for batch in reader():
            (value,) = exe.run(feed=feeder.feed(batch), fetch_list=[loss])
        print(f"epoch {epoch}, loss {value.item():.6f}")

    scope = fluid.global_scope()
    return [np.array(scope.find_var(name).get_tensor()) for name in ("w", "b")]


if __name__ == "__main__":
    weights, bias = main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    print(f"weights {weights.ravel().round(2)}, true ones {WEIGHTS.ravel()}")
    print(f"bias {bias.item():.2f}, true one {BIAS}")
