"""A model of clicks whose table stays on parameter servers, fed with made-up clicks.

    python -m fluidlite -m paddle.distributed.launch_ps --worker_num 2 --server_num 2 served_clicks.py

Options: --rows of the table, --width of a row, --steps, --batch, and --strategy (sync, half_async, async or geo).
"""

import argparse
import resource
import time

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

FIELDS = 10

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rows", type=int, default=100000)
parser.add_argument("--width", type=int, default=8)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--strategy", default="sync", choices=["sync", "half_async", "async", "geo"])
options = parser.parse_args()

fleet.init(role_maker.PaddleCloudRoleMaker())

ids = fluid.data("ids", [None, FIELDS], "int64")
clicked = fluid.data("clicked", [None, 1], "float32")
rows = fluid.embedding(
    ids,
    [options.rows, options.width],
    is_sparse=True,
    param_attr=fluid.ParamAttr("table", initializer=fluid.initializer.Constant(0.01)),
)
hidden = layers.fc(layers.reshape(rows, [-1, FIELDS * options.width]), 32, act="relu")
score = layers.fc(hidden, 1)
loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(score, clicked))

strategy = getattr(StrategyFactory, f"create_{options.strategy}_strategy")()
fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)


def megabytes():
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def batches(worker):
    """People click when the first two of the ids are of the same half of the table."""
    rng = np.random.RandomState(worker)
    for _ in range(options.steps):
        drawn = rng.randint(0, options.rows, (options.batch, FIELDS))
        halves = drawn[:, :2] * 2 // options.rows
        yield {"ids": drawn, "clicked": (halves[:, :1] == halves[:, 1:]).astype("float32")}


if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    print(f"server {fleet.server_index()}: {megabytes():.0f} MB at most")
else:
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    losses, begin = [], time.perf_counter()
    for feed in batches(fleet.worker_index()):
        losses.append(float(exe.run(fleet.main_program, feed=feed, fetch_list=[loss])[0].item()))
        if len(losses) == 5:
            begin = time.perf_counter()  # programs have been planned
    rate = (len(losses) - 5) * options.batch / (time.perf_counter() - begin) if len(losses) > 5 else 0
    print(
        f"worker {fleet.worker_index()}: loss {losses[0]:.4f}, then {losses[-1]:.4f}; {rate:.0f} samples/s, "
        f"{megabytes():.0f} MB at most"
    )
    fleet.stop_worker()
