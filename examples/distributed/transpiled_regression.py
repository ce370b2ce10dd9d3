"""A line, fitted by a program with operators that add up the gradients of all processes.

usage: fluidlite launch -n 2 examples/distributed/transpiled_regression.py
"""

import os

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.transpiler.collective import GradAllReduce

rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
endpoints = os.environ.get("PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:6170").split(",")

x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1, param_attr="w"), y))
fluid.optimizer.SGD(0.1).minimize(loss)

main, startup = fluid.default_main_program(), fluid.default_startup_program()
if len(endpoints) > 1:
    GradAllReduce().transpile(startup, main, rank, endpoints, endpoints[rank], wait_port=True)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
draw = np.random.RandomState(rank)  # each process has samples of its own
for _ in range(200):
    inputs = draw.rand(16, 3).astype("float32")
    targets = inputs @ np.float32([[1], [2], [3]]) + 0.5
    (value,) = exe.run(main, feed={"x": inputs, "y": targets}, fetch_list=[loss])
weights = np.array(fluid.global_scope().find_var("w").get_tensor()).ravel()
print(f"loss {value.item():.6f}, weights {weights.round(2).tolist()}")
