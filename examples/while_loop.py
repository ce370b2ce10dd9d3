"""Loops that decide when to stop: in how many years does money double, and which rate makes it double in ten?

usage: python -m fluidlite examples/while_loop.py [STEPS]

Exercises:
1. `FLUIDLITE_PRINT_PHASES=1` prints the program after each phase of the compiler. Find the loop:
   which variables are carried from one iteration to the next, and what is stashed for the gradient?
2. Write the same loop with `fluid.layers.While`. What does the program have more, and do the
   gradients agree?
"""

import sys

import numpy as np
import paddle.fluid as fluid

layers = fluid.layers


def years_to_double():
    """A program that adds interest until there is twice as much: nobody knows beforehand how often."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        rate = fluid.data("rate", [1])
        years, amount = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "float32", 1.0)

        def too_little(years, amount):
            return amount < 2.0

        def next_year(years, amount):
            return years + 1, amount + amount * rate

        years, amount = layers.while_loop(too_little, next_year, [years, amount])
    return program, years, amount


def rate_to_learn():
    """A program that learns the rate: gradients go back through all turns of the loop."""
    program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(program, startup):
        limit = fluid.data("limit", [1], "int64")
        one_percent = fluid.initializer.Constant(0.01)
        rate = layers.create_parameter([1], "float32", name="rate", default_initializer=one_percent)
        start = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "float32", 1.0)
        start[
            1
        ].stop_gradient = False  # constants have no gradients otherwise, nor what a loop puts in their place
        _, amount = layers.while_loop(
            lambda year, amount: year < limit,
            lambda year, amount: [year + 1, amount + amount * rate],
            list(start),
        )
        loss = layers.mean(layers.square(amount - 2.0))
        fluid.optimizer.Adam(0.001).minimize(loss)
    return program, startup, rate, loss


def main(steps=200):
    exe = fluid.Executor(fluid.CPUPlace())

    program, years, amount = years_to_double()
    for rate in (0.02, 0.05, 0.1):
        found = exe.run(program, feed={"rate": np.array([rate], "float32")}, fetch_list=[years, amount])
        print(f"at {rate:.0%} there is {found[1][0]:.3f} times as much after {found[0][0]} years")

    program, startup, rate, loss = rate_to_learn()
    exe.run(startup)
    for step in range(steps):
        (now,) = exe.run(program, feed={"limit": np.array([10])}, fetch_list=[loss])
        if step % 50 == 0:
            print(f"step {step}, loss {now[0]:.6f}")
    learned = np.array(fluid.global_scope().find_var("rate").get_tensor())[0]
    print(f"money doubles in ten years at {learned:.4f}; it should be {2**0.1 - 1:.4f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
