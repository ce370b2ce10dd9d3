"""The price of a house from thirteen figures about it: linear regression, tested on a clone, saved for inference.

usage: python -m fluidlite examples/book/c01_fit_a_line.py [STEPS]
"""

import sys
import tempfile

import numpy as np
import paddle.fluid as fluid

FIGURES = 13


def houses(random, count):
    """Figures between -1 and 1, [count, 13], and prices, [count, 1]."""
    figures = random.uniform(-1, 1, (count, FIGURES)).astype("float32")
    worth = np.linspace(-6, 6, FIGURES, dtype="float32").reshape(-1, 1)
    return figures, figures.dot(worth) + 22.5 + random.uniform(-1, 1, (count, 1)).astype("float32")


def main(steps):
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 90
    figures = fluid.data(name="figures", shape=[None, FIGURES], dtype="float32")
    price = fluid.data(name="price", shape=[None, 1], dtype="float32")
    guess = fluid.layers.fc(input=figures, size=1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(input=guess, label=price))
    testing = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(learning_rate=0.05).minimize(loss)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    random = np.random.RandomState(1)
    samples = list(zip(*houses(random, 400)))  # noqa: B905 - Python 3.8 runs it, too
    reader = fluid.io.batch(lambda: iter(samples), batch_size=20)
    feeder = fluid.DataFeeder(feed_list=[figures, price], place=place)
    step = 0
    while step < steps:
        for batch in reader():
            (value,) = exe.run(feed=feeder.feed(batch), fetch_list=[loss])
            if step % (steps // 10) == 0:
                print(f"step {step}: loss {value.item():.6f}")
            step += 1
    (value,) = exe.run(testing, feed=feeder.feed(list(zip(*houses(random, 100)))), fetch_list=[loss])  # noqa: B905
    print(f"new houses: loss {value.item():.6f}")
    with tempfile.TemporaryDirectory() as folder:
        fluid.io.save_inference_model(folder, ["figures"], [guess], exe)
        with fluid.scope_guard(fluid.Scope()):
            model, feeds, fetches = fluid.io.load_inference_model(folder, exe)
            given, prices = houses(random, 3)
            (told,) = exe.run(model, feed={feeds[0]: given}, fetch_list=fetches)
    for found, true in zip(told[:, 0], prices[:, 0]):  # noqa: B905
        print(f"price {found:.3f}, true one {true:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
