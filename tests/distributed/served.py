"""A model of clicks, or of words, for `python -m paddle.distributed.launch_ps served.py MODEL STRATEGY`."""

import os
import signal
import sys
from pathlib import Path

import numpy as np

import fluidlite as fluid
from fluidlite import layers
from fluidlite.incubate.fleet.base import role_maker
from fluidlite.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

Constant = fluid.initializer.Constant
STEPS = 5


def clicks():
    ids = layers.data("ids", [1], dtype="int64", lod_level=1)
    rows = layers.embedding(
        ids, [3000, 8], is_sparse=True, param_attr=fluid.ParamAttr("emb", initializer=Constant(0.1))
    )
    pooled = layers.sequence_pool(rows, "sum")
    return layers.fc(pooled, 16, act="tanh", param_attr=fluid.ParamAttr(initializer=Constant(0.05)))


def words():
    ids = layers.data("ids", [1], dtype="int64", lod_level=1)
    rows = layers.embedding(
        ids, [3000, 8], is_sparse=True, param_attr=fluid.ParamAttr("emb", initializer=Constant(0.1))
    )
    gates = layers.fc(rows, 32, param_attr=fluid.ParamAttr(initializer=Constant(0.03)))
    hidden, _ = layers.dynamic_lstm(gates, 32, param_attr=fluid.ParamAttr(initializer=Constant(0.02)))
    return layers.sequence_pool(hidden, "last")


def loss_of(model):
    out = layers.fc(model(), 1, param_attr=fluid.ParamAttr(initializer=Constant(0.1)))
    return layers.mean(layers.square_error_cost(out, layers.data("y", [1])))


def batches(begin, end):
    """The part of each batch of 8 that is from `begin` to `end`."""
    rng = np.random.RandomState(0)
    for _ in range(STEPS):
        ids = [rng.randint(0, 3000, (1 + k % 3, 1)) for k in range(8)][begin:end]
        lengths = [[len(one) for one in ids]]
        y = rng.rand(8, 1).astype("float32")[begin:end]
        yield {"ids": fluid.create_lod_tensor(np.concatenate(ids), lengths, fluid.CPUPlace()), "y": y}


def held_here():
    """The variables of this process by name."""
    scope = fluid.global_scope()
    names = [var.name for var in fleet.main_program.list_vars() if var.persistable]
    return [(name, np.array(scope.find_var(name).get_tensor())) for name in names if scope.find_var(name)]


def main(model, strategy, *more):
    fleet.init(role_maker.PaddleCloudRoleMaker())
    loss = loss_of({"clicks": clicks, "words": words}[model])
    made = getattr(StrategyFactory, f"create_{strategy}_strategy")(*([2] if strategy == "geo" else []))
    fleet.distributed_optimizer(fluid.optimizer.Adam(0.01, lazy_mode=True), made).minimize(loss)
    folder = Path(more[-1]) if more else Path()
    saved = max(folder.glob("step*.done"), default=None) if "resumes" in more else None
    if fleet.is_server():
        fleet.init_server(*([str(saved.with_suffix(""))] if saved else []))
        if "resumes" in more:
            folder.joinpath(f"server{fleet.server_index()}").write_text(str(os.getpid()))
            part = next(var for name, var in held_here() if name.startswith("emb.block"))
            print("BEGINS WITH", part.min())
        fleet.run_server()
        return
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    number, losses = fleet.worker_index(), []
    share = 8 // fleet.worker_num()
    for step, feed in enumerate(batches(number * share, (number + 1) * share)):
        if saved and step <= int(saved.stem[4:]):
            continue
        (value,) = exe.run(fleet.main_program, feed=feed, fetch_list=[loss])
        losses.append(float(np.ravel(value)[0]))
        print("LOSS", step, losses[-1])
        if "resumes" in more and number == 0:
            fleet.save_persistables(exe, str(folder / f"step{step}"))
            folder.joinpath(f"step{step}.done").touch()
            if step == 2 and not saved:
                os.kill(int(folder.joinpath("server0").read_text()), signal.SIGKILL)
        if "dies" in more and number == 1 and step == 2 and not Path(more[-1]).exists():
            Path(more[-1]).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    print("LOSSES", number, losses)
    if "saves" in more and fleet.is_first_worker():
        fleet.save_persistables(exe, more[-1])
    fleet.stop_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
