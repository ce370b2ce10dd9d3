"""Five 8 x 8 fc layers with Adam, batch 4. usage: overhead_fluid.py SECONDS"""

import sys

import numpy as np
import paddle.fluid as fluid
from timing import blocks, result

x = fluid.data("x", [None, 8], "float32")
y = fluid.data("y", [None, 8], "float32")
hidden = x
for layer in range(5):
    hidden = fluid.layers.fc(hidden, 8, act="relu" if layer < 4 else None)
loss = fluid.layers.reduce_mean(fluid.layers.square_error_cost(hidden, y))
fluid.optimizer.Adam(learning_rate=0.001).minimize(loss)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
main = fluid.default_main_program()
random = np.random.RandomState(0)
feed = {"x": random.rand(4, 8).astype("float32"), "y": random.rand(4, 8).astype("float32")}

metrics = {"step": blocks(lambda: exe.run(main, feed=feed, fetch_list=[loss]), float(sys.argv[1]))}
if fluid.__name__ == "fluidlite":
    from fluidlite.executor.compile import compile_plan
    from fluidlite.executor.feeding import as_feed, expanded
    from fluidlite.executor.ir.request import Request

    plan = compile_plan(Request(main, fluid.global_scope(), expanded(as_feed(main, feed)), [loss.name]))
    plan.accepts_raw(feed)
    metrics["engine alone"] = blocks(plan.run, float(sys.argv[1]) / 4)
result(metrics)
