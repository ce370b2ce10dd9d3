"""What a step computes and moves at least, and how fast this machine does either: for floors below a step's time.

Counted while the reference interpreter runs the step, in all its blocks and turns: multiplications and additions of
products and convolutions, without those by the zeros beside an image, a sequence or its first state; and bytes of feeds
and parameters, once read and, if they are updated, once written, of tables the rows that are looked up. Only fluidlite
counts, for all sides.
"""

import json
import os
import threading

import numpy as np
import timing

WIDEST = [(512, 512, 512), (682, 128, 192), (1024, 1024, 1024), (2048, 1024, 512)]
COPIED = [1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26]
REPEATS = int(os.environ.get("BENCHMARK_REPEATS", "12"))


def inside(size, window, stride, before, dilation, results):
    """How many pairs of a result and a tap of its window meet an image of `size` in one direction."""
    places = np.arange(results)[:, None] * stride - before + np.arange(window) * dilation
    return int(((places >= 0) & (places < size)).sum())


def convolution(op, shape, lod):
    images, results = shape("Input"), shape("Output", "Output@GRAD")
    if "transpose" in op.type:
        images, results = results, images
    where = slice(1, -1) if op.attr("data_format").endswith("C") else slice(2, None)
    channels, depth, *windows = shape("Filter")
    sizes, pads = images[where], op.attr("paddings")
    pads = pads if len(pads) == len(sizes) else pads[::2]
    steps = zip(sizes, windows, op.attr("strides"), pads, op.attr("dilations"), results[where])
    return images[0] * channels * depth * np.prod([inside(*step) for step in steps], dtype=np.int64)


def windows(op, shape, lod):
    starts, length = op.attr("contextStart"), op.attr("contextLength")
    taps = sum(inside(n, length, 1, -starts, 1, n) for n in np.diff(lod("X")[-1]))
    return taps * shape("X")[1] * shape("Filter")[1]


def recurrent(op, shape, lod):
    offsets = lod("Input", "Hidden")
    first = 0 if op.input("H0") else len(offsets[-1]) - 1
    return (shape("Hidden")[0] - first) * np.prod(shape("Weight"))


def batched(op, shape, lod):
    deep = shape("X")[-2 if op.attr("transpose_X") else -1]
    return np.prod(shape("Out", "Out@GRAD")) * deep


def product(op, shape, lod):
    return np.prod(shape("X")) * np.prod(shape("Y")[op.attr("y_num_col_dims") :])


PRODUCTS = {
    "mul": product,
    "matmul": batched,
    "conv2d": convolution,
    "conv2d_transpose": convolution,
    "conv3d": convolution,
    "depthwise_conv2d": convolution,
    "sequence_conv": windows,
    "lstm": recurrent,
    "gru": recurrent,
}
FACTORS = ("X", "Y", "Input", "Filter")
STATES = ("lstm", "gru")
"""Their gradient multiplies for the states and for the weight, and no more for what comes in."""


def counting(program, scope, feed):
    """Run a step; returns what it multiplies and adds, and the bytes it moves."""
    from fluidlite.base.selected_rows import SelectedRows
    from fluidlite.executor.feeding import as_feed
    from fluidlite.executor.interpreter.interpreter import Interpreter

    fed = as_feed(program, feed)
    read = {name for block in program.blocks for op in block.ops for name in op.input_arg_names}

    class Counting(Interpreter):
        def __init__(self):
            self.flops, self.moved = 0, {}
            super().__init__(program, scope, fed)

        def run_op(self, op, environment):
            super().run_op(op, environment)
            values = {name: environment.find(name) for name in (*op.input_arg_names, *op.output_arg_names)}
            named = {**op.inputs, **op.outputs}

            def shape(*slots):
                return next(values[named[slot][0]].shape for slot in slots if named.get(slot))

            def lod(*slots):
                return next(filter(None, (environment.lod_of(named[s][0]) for s in slots if named.get(s))))

            kind = op.type.replace("_grad", "")
            if kind in PRODUCTS:
                times = 1
                if kind != op.type and kind in STATES:
                    times = 2
                elif kind != op.type:
                    wanted = [op.outputs.get(factor + "@GRAD", []) for factor in FACTORS]
                    times = sum(names != [] and (op.block.idx > 0 or names[0] in read) for names in wanted)
                self.flops += 2 * times * int(PRODUCTS[kind](op, shape, lod))
            if "lookup_table" in op.type:
                rows = 0 if op.type.endswith("_grad") else len(np.unique(values[op.input("Ids")[0]]))
            else:
                grads = [values[name] for name in op.inputs.get("Grad", ())]
                sparse = grads and isinstance(grads[0], SelectedRows)
                few = sparse and (op.type == "sgd" or op.attrs.get("lazy_mode"))
                rows = len(np.unique(grads[0].rows)) if few else None
            for way, names in (("read", op.input_arg_names), ("written", op.output_arg_names)):
                for name in set(names):
                    var = op.block._find_var_recursive(name)
                    if var is not None and var.persistable and isinstance(values[name], np.ndarray):
                        size = values[name].nbytes
                        if rows is not None and len(values[name]) > rows:
                            size = size // len(values[name]) * rows
                        self.moved[way, name] = max(size, self.moved.get((way, name), 0))

    run = Counting()
    run.run()
    return run.flops, sum(run.moved.values()) + sum(
        array.nbytes for array, _ in as_feed(program, feed).values()
    )


def shortest(call):
    """The smallest of some times that `call` takes, in seconds."""
    found = timing.each(lambda _: call(), range(REPEATS), 2)
    return min(found) / 1e3


def product_rate():
    """The most flops a second of any product that we or the BLAS make."""
    from paddle import fluid

    rates = []
    with fluid.dygraph.guard(fluid.CPUPlace()), fluid.dygraph.no_grad():
        for m, n, k in WIDEST:
            a, b = (np.ones(shape, "float32") for shape in ((m, k), (k, n)))
            x, y, out = (
                fluid.dygraph.to_variable(a),
                fluid.dygraph.to_variable(b),
                np.empty((m, n), "float32"),
            )
            for call in (lambda: fluid.layers.matmul(x, y), lambda: np.dot(a, b, out)):
                rates.append(2 * m * n * k / shortest(call))
    return max(rates)


def copy_rate(size, threads):
    """Bytes read and written in a second when `size` bytes are copied, by so many threads."""
    from_, to = np.ones(size, "uint8"), np.ones(size, "uint8")
    parts = [slice(size * k // threads, size * (k + 1) // threads) for k in range(threads)]

    def copy(part):
        for _ in range(max(1, (1 << 22) // size)):
            np.copyto(to[part], from_[part])

    def call():
        helpers = [threading.Thread(target=copy, args=(part,)) for part in parts[1:]]
        for helper in helpers:
            helper.start()
        copy(parts[0])
        for helper in helpers:
            helper.join()

    return 2 * size * max(1, (1 << 22) // size) / shortest(call)


class Work:
    """What the steps of a script take at least; nothing where no one asks."""

    def __init__(self):
        self.wanted = "BENCHMARK_FLOOR" in os.environ
        self.steps = {}

    def count(self, name, program, feeds):
        """Count steps that have been measured, in their scope; of several feeds the mean."""
        if self.wanted:
            from paddle import fluid

            found = [counting(program, fluid.global_scope(), feed) for feed in feeds]
            self.steps[name] = np.mean(found, axis=0).tolist()

    def result(self, metrics):
        """`timing.result`, with a line that says what the steps take at least, and the rates of this machine."""
        if self.wanted:
            threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
            copies = [[size, copy_rate(size, threads)] for size in COPIED]
            print("WORK " + json.dumps({"steps": self.steps, "products": product_rate(), "copies": copies}))
        timing.result(metrics)
