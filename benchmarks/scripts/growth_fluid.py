"""Seconds of processor time that each stage in the life of a program takes. usage: growth_fluid.py PROGRAM SIZE"""

import sys
import time

import numpy as np
import paddle.fluid as fluid
from timing import result


def layers(size):
    """A chain of fully connected layers."""
    x = fluid.data("x", [None, 8], "float32")
    for _ in range(size):
        x = fluid.layers.fc(x, 8, act="relu")
    return fluid.layers.mean(x), {"x": np.ones([2, 8], "float32")}


def sums(size):
    """A chain of sums of two, one of which is the same everywhere."""
    x = fluid.data("x", [None, 8], "float32")
    first = now = fluid.layers.fc(x, 8)
    for _ in range(size):
        now = fluid.layers.sums([now, first])
    return fluid.layers.mean(now), {"x": np.ones([2, 8], "float32")}


def uses(size):
    """One variable that `size` operators read."""
    x = fluid.layers.fc(fluid.data("x", [None, 8], "float32"), 8)
    return fluid.layers.mean(fluid.layers.sums([fluid.layers.relu(x) for _ in range(size)])), {
        "x": np.ones([2, 8], "float32")
    }


def parameters(size):
    """Side by side: as many parameters, whose gradients are clipped by their global norm."""
    x = fluid.data("x", [None, 8], "float32")
    found = [fluid.layers.fc(x, 8, bias_attr=False) for _ in range(size)]
    return fluid.layers.mean(fluid.layers.sums(found)), {"x": np.ones([2, 8], "float32")}


def encoder(size):
    """A BERT-like encoder of `size` layers: attention of 12 heads, dropout, layer normalisation, a classifier."""
    width, heads, length = 96, 12, 8
    words = fluid.data("x", [None, length], "int64")
    places = fluid.data("p", [None, length], "int64")
    label = fluid.data("y", [None, 1], "int64")
    x = fluid.embedding(words, [100, width]) + fluid.embedding(places, [length, width])
    x = fluid.layers.dropout(fluid.layers.layer_norm(x, begin_norm_axis=2), 0.1)
    for _ in range(size):
        parts = []
        for _ in range(3):
            part = fluid.layers.fc(x, width, num_flatten_dims=2)
            part = fluid.layers.reshape(part, [0, 0, heads, width // heads])
            parts.append(fluid.layers.transpose(part, [0, 2, 1, 3]))
        query, key, value = parts
        weights = fluid.layers.matmul(query, key, transpose_y=True, alpha=(width // heads) ** -0.5)
        weights = fluid.layers.dropout(fluid.layers.softmax(weights), 0.1)
        mixed = fluid.layers.transpose(fluid.layers.matmul(weights, value), [0, 2, 1, 3])
        mixed = fluid.layers.fc(fluid.layers.reshape(mixed, [0, 0, width]), width, num_flatten_dims=2)
        x = fluid.layers.layer_norm(x + fluid.layers.dropout(mixed, 0.1), begin_norm_axis=2)
        hidden = fluid.layers.fc(x, 4 * width, num_flatten_dims=2, act="gelu")
        hidden = fluid.layers.dropout(fluid.layers.fc(hidden, width, num_flatten_dims=2), 0.1)
        x = fluid.layers.layer_norm(x + hidden, begin_norm_axis=2)
    first = fluid.layers.fc(fluid.layers.slice(x, [1], [0], [1]), width, num_flatten_dims=2, act="tanh")
    logits = fluid.layers.fc(first, 2, num_flatten_dims=2)
    loss = fluid.layers.softmax_with_cross_entropy(fluid.layers.reshape(logits, [-1, 2]), label)
    ids = np.zeros([2, length], "int64")
    return fluid.layers.mean(loss), {"x": ids, "p": ids, "y": np.zeros([2, 1], "int64")}


def main():
    name, size = sys.argv[1], int(sys.argv[2])
    ours = fluid.__name__ == "fluidlite"
    metrics = {}

    def timed(stage, work):
        begin = time.process_time()
        made = work()
        metrics[stage] = [time.process_time() - begin]
        return made

    # What is loaded when it is first needed is loaded by a small program.
    scope, warm, start = fluid.Scope(), fluid.Program(), fluid.Program()
    with fluid.scope_guard(scope), fluid.program_guard(warm, start), fluid.unique_name.guard():
        loss, feed = globals()[name](2)
        fluid.optimizer.Adam(0.001).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(start)
        exe.run(warm, feed=feed, fetch_list=[loss])
        fluid.Program.parse_from_string(warm.desc.serialize_to_string())

    clip = fluid.clip.GradientClipByGlobalNorm(1.0) if name == "parameters" else None
    loss, feed = timed("build", lambda: globals()[name](size))
    timed("minimize", lambda: fluid.optimizer.Adam(0.001, grad_clip=clip).minimize(loss))
    program = fluid.default_main_program()
    test = timed("clone", lambda: program.clone(for_test=True))
    timed("prune", lambda: program._prune([loss.name if ours else loss]))
    saved = timed("serialize", lambda: program.desc.serialize_to_string())
    timed("parse", lambda: fluid.Program.parse_from_string(saved))
    exe = fluid.Executor(fluid.CPUPlace())
    timed("startup", lambda: exe.run(fluid.default_startup_program()))
    if ours:
        from fluidlite.executor.compile import compile_plan
        from fluidlite.executor.feeding import as_feed, expanded
        from fluidlite.executor.interpreter.interpreter import Interpreter
        from fluidlite.executor.ir.request import Request

        fed = as_feed(program, feed)
        given = expanded(fed)
        timed("plan", lambda: compile_plan(Request(program, fluid.global_scope(), given, [loss.name])))
        timed("interpret", lambda: Interpreter(program, fluid.global_scope(), fed).run())
    timed("first step", lambda: exe.run(program, feed=feed, fetch_list=[loss]))
    timed("inference", lambda: exe.run(test, feed=feed, fetch_list=[loss.name]))
    metrics["operators"] = [len(program.global_block().ops)]
    result(metrics)


main()
