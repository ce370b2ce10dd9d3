"""Quantization-aware training: a network that learns with rounded numbers, and then computes with integers of 8 bits.

A point in the plane belongs to one of three interleaved spirals.

usage: python -m fluidlite examples/quantization_aware.py [STEPS]
"""

import sys

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.contrib.slim import quantization

PLACE = fluid.CPUPlace()


def points(random, count):
    """`count` points and the spirals that they are on."""
    spiral = random.randint(0, 3, (count, 1))
    way = random.rand(count, 1)
    angle = 2 * np.pi / 3 * spiral + 4 * way + random.normal(0, 0.1, (count, 1))
    return (way * np.hstack([np.cos(angle), np.sin(angle)])).astype("float32"), spiral.astype("int64")


def network():
    """Build the network; returns loss and accuracy."""
    point, spiral = fluid.data("point", [None, 2], "float32"), fluid.data("spiral", [None, 1], "int64")
    hidden = fluid.layers.fc(fluid.layers.fc(point, 32, act="relu"), 32, act="relu")
    predicted = fluid.layers.fc(hidden, 3, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(predicted, spiral))
    return loss, fluid.layers.accuracy(predicted, spiral)


def main(steps):
    """Train with rounding, freeze, and print what both programs recognise."""
    train, test, startup = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(train, startup), fluid.unique_name.guard():
        loss, _ = network()
        fluid.optimizer.Adam(0.01).minimize(loss)
    with fluid.program_guard(test, fluid.Program()), fluid.unique_name.guard():
        _, accuracy = network()
    exe, scope = fluid.Executor(PLACE), fluid.global_scope()
    exe.run(startup)

    graphs = []
    for program, for_test in ((train, False), (test, True)):
        graph = fluid.framework.IrGraph(fluid.core.Graph(program.desc), for_test=for_test)
        quantization.QuantizationTransformPass(
            scope=scope, place=PLACE, activation_quantize_type="moving_average_abs_max"
        ).apply(graph)
        graphs.append(graph)
    rounding = graphs[0].to_program()
    random = np.random.RandomState(3)
    for step in range(steps):
        given, spiral = points(random, 128)
        (value,) = exe.run(rounding, feed={"point": given, "spiral": spiral}, fetch_list=[loss.name])
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step}: loss {value[0]:.3f}")

    given, spiral = points(random, 1000)
    feed = {"point": given, "spiral": spiral}
    (before,) = exe.run(graphs[1].to_program(), feed=feed, fetch_list=[accuracy.name])
    quantization.QuantizationFreezePass(scope, PLACE).apply(graphs[1])
    (after,) = exe.run(graphs[1].to_program(), feed=feed, fetch_list=[accuracy.name])
    weight = np.array(scope.find_var("fc_1.w_0").get_tensor())
    print(f"recognised {before[0]:.3f} with rounding, {after[0]:.3f} with integers")
    print(f"parameters are integers from {weight.min():.0f} to {weight.max():.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 600)
