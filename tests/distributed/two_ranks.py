"""Runs collective operations and trainings in two processes; the first one prints the results as JSON."""

import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.append("..")  # with what simulates GPUs

import networks
import numpy as np

import fluidlite as fluid
from fluidlite.distributed import DistributedError, environment, world
from fluidlite.transpiler import collective

environment.adopt()
run = world()
found = {}


def together(name, value):
    """Keep what both found, by rank."""
    text = np.frombuffer(json.dumps(value).encode(), np.uint8)
    sizes = run.all_gather(np.array([len(text)]))
    ends = np.cumsum(sizes)
    joined = run.all_gather(text)
    found[name] = [json.loads(joined[e - n : e].tobytes()) for n, e in zip(sizes, ends, strict=True)]


def refusal(call):
    try:
        call()
    except (DistributedError, ValueError) as error:
        return str(error)


def exchanging():
    rank = run.rank
    x = np.arange(6, dtype=np.float32).reshape(2, 3) + rank
    for reduction in ("sum", "prod", "max", "min"):
        together(reduction, run.all_reduce(x, reduction).tolist())
    together("half", run.all_reduce(np.float16([1.5, 2]) * (rank + 1)).tolist())
    together("truth", run.all_reduce(np.array([True, False, rank == 1])).tolist())
    together("number", run.all_reduce(np.array(2 + rank)).tolist())
    together("strided", run.all_reduce(x.T).tolist())
    together("empty", run.all_reduce(np.zeros((0, 3), np.float32)).shape)
    together("broadcast", run.broadcast(x, 1).tolist())
    together("ragged", run.all_gather(np.full((2 * rank, 2), rank, np.int64)).tolist())
    together("shares", run.reduce_scatter(x).tolist())
    together("exchange", [p.tolist() for p in run.exchange([np.arange(rank + 1), np.arange(3) + 10 * rank])])
    together("other size", refusal(lambda: run.all_reduce(np.zeros(2 + rank))))
    together("other type", refusal(lambda: run.all_reduce(np.zeros(2, "f4" if rank else "f8"))))
    together("other call", refusal(run.barrier if rank else lambda: run.all_reduce(np.zeros(2))))
    together("other root", refusal(lambda: run.broadcast(np.zeros(2), rank)))
    together("no root", refusal(lambda: run.broadcast(np.zeros(2), 2)))
    before = run.stats()
    for _ in range(3):
        time.sleep(0.3 * rank)
        run.barrier()
    after = run.stats()
    together(
        "stats", [before["messages"], after["messages"], after["waited"], after["slowest"], after["host"]]
    )
    together("objects", refusal(lambda: run.all_reduce(np.array(["a"]))))
    together("not to be shared", refusal(lambda: run.reduce_scatter(np.zeros(3))))


def training():
    ends = environment.trainer().endpoints
    for way, names in {"GradAllReduce": networks.BUILT, "LocalSGD": ["ctr"]}.items():
        for name in names:

            def change(main, startup, way=way):
                getattr(collective, way)().transpile(startup, main, run.rank, ends, ends[run.rank], False)

            losses = networks.train(name, change, part=(run.rank, run.size))
            together(f"{way} {name}", losses)


def operators():
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main):
        x = fluid.data("x", [2, 2])
        outs = [
            fluid.layers.collective._c_allgather(x, 2),
            fluid.layers.collective._c_reducescatter(x, 2),
            fluid.layers.collective._allreduce(x, reduce_type="min"),
            fluid.layers.collective._c_broadcast(fluid.layers.scale(x, 1.0), root=1),
        ]
        fed = {"x": np.arange(4, dtype=np.float32).reshape(2, 2) + 10 * run.rank}
        exe = fluid.Executor(fluid.CPUPlace())
        for second in range(2):
            values = exe.run(main, fed, outs if run.rank or second else [])
        together("operators", [value.tolist() for value in values])


def fleet():
    """Programs that fleet compiles for all workers, and those with operators that exchange."""
    from fluidlite.incubate.fleet.base import role_maker
    from fluidlite.incubate.fleet.collective import DistributedStrategy
    from fluidlite.incubate.fleet.collective import fleet as workers

    workers.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    together("split_files", workers.split_files(list("abcde")))
    together("workers", [workers.worker_index(), workers.worker_num(), workers.worker_endpoints(True)])
    total = np.zeros(2)
    workers.all_reduce_worker(np.array([1.0, run.rank]), total)
    together("all_reduce_worker", total.tolist())
    together("all_gather", workers._role_maker.all_gather(run.rank + 5))
    pair = role_maker.MPISymetricRoleMaker()
    pair.generate_role()
    together(
        "pair",
        [
            pair.is_server(),
            pair.is_worker(),
            pair.worker_num(),
            pair.server_num(),
            pair.server_index() if pair.is_server() else pair.worker_index(),
            pair.get_pserver_endpoints(),
            pair.get_trainer_endpoints(),
        ],
    )
    workers.barrier_worker()
    for mode, options in {
        "nccl2": {},
        "collective": {"mode": "collective", "collective_mode": "grad_allreduce"},
    }.items():
        for name in ["lenet", "ctr"] if mode == "nccl2" else ["lstm"]:
            strategy = DistributedStrategy()
            for option, value in options.items():
                setattr(strategy, option, value)

            def optimizer(made, strategy=strategy):
                return workers.distributed_optimizer(made, strategy)

            def main_program(main, startup):
                return workers.main_program

            # The workers start from other parameters: those of the first count.
            losses = networks.train(
                name, main_program, (run.rank, run.size), optimizer=optimizer, seed=7 + run.rank
            )
            together(f"fleet {mode} {name}", losses)


def buckets():
    """Gradients that travel in several messages while others are made; forward passes that are made twice."""
    from fluidlite.executor import executor
    from fluidlite.executor.parallel import compiler
    from fluidlite.framework.gradients import exchange
    from fluidlite.incubate.fleet.collective import DistributedStrategy
    from fluidlite.incubate.fleet.collective import fleet as workers

    for size in (1, 300):
        compiler.exchange_gradients = partial(exchange.exchange_gradients, bucket=size)
        for name in networks.BUILT:

            def recomputing(made):
                strategy = DistributedStrategy()
                strategy.forward_recompute = True
                strategy.recompute_checkpoints = [networks.middle()]
                return workers.distributed_optimizer(made, strategy)

            def merging(made):
                """Each update takes a batch two times, which is as if it took it once."""
                strategy = DistributedStrategy()
                passes = strategy._finalize_strategy_and_create_passes()
                passes.append_pass("multi_batch_merge_pass").set("num_repeats", 2)
                return workers.distributed_optimizer(made, strategy)

            for way, optimizer in {"recompute": recomputing, "merging": merging}.items():
                losses = networks.train(
                    name, lambda *_: workers.main_program, (run.rank, run.size), optimizer=optimizer
                )
                together(f"fleet {size}-byte buckets {way} {name}", losses)
    compiler.exchange_gradients = exchange.exchange_gradients
    executor.in_messages = partial(exchange.in_messages, bucket=300)
    ends = environment.trainer().endpoints
    for way, name in (("GradAllReduce", "lenet"), ("GradAllReduce", "ctr"), ("LocalSGD", "ctr")):

        def transpile(main, startup, way=way):
            getattr(collective, way)().transpile(startup, main, run.rank, ends, ends[run.rank], False)

        together(f"{way} 300-byte {name}", networks.train(name, transpile, part=(run.rank, run.size)))
    executor.in_messages = exchange.in_messages

    def parallel(main, startup):
        """As models of 2019 do."""
        t = fluid.DistributeTranspiler(config=fluid.DistributeTranspilerConfig())
        t.config.mode = "nccl2"
        t.transpile(
            run.rank,
            trainers=",".join(ends),
            current_endpoint=ends[run.rank],
            program=main,
            startup_program=startup,
        )
        loss = next(op.output("Out")[0] for op in main.global_block().ops if op.type == "mean")
        one = fluid.ParallelExecutor(False, loss, main, num_trainers=run.size, trainer_id=run.rank)
        return one._compiled

    losses = networks.train("lenet", parallel, (run.rank, run.size), seed=7 + run.rank)
    together("ParallelExecutor lenet", losses)


def gpus():
    """Simulated GPUs, one for each process."""
    from simulated_cuda import simulated

    from fluidlite.incubate.fleet.collective import DistributedStrategy
    from fluidlite.incubate.fleet.collective import fleet as workers

    def optimizer(made):
        return workers.distributed_optimizer(made, DistributedStrategy())

    os.environ["FLAGS_selected_gpus"] = str(run.rank)  # as paddle.distributed.launch has it
    with simulated(devices=2):
        place = fluid.CUDAPlace(run.rank)
        for name in ("lenet", "ctr"):
            part = run.rank, run.size
            losses = networks.train(
                name, lambda *_: workers.main_program, part, optimizer=optimizer, place=place
            )
            together(f"fleet gpus {name}", losses)


def dygraph():
    """Fluid's way with scale_loss and apply_collective_grads, and that of Paddle 2.0."""
    for way in ("fluid", "hooks"):
        for name in ("dense", "sparse"):
            together(f"dygraph {way} {name}", networks.train_eager(name, way, (run.rank, run.size)))
    import fluidlite.paddle as paddle
    from fluidlite.paddle import distributed

    distributed.init_parallel_env()
    rank = distributed.get_rank()
    tensors = {name: paddle.to_tensor(np.float32([1 + rank, 2])) for name in "abcd"}
    distributed.all_reduce(tensors["a"])
    distributed.all_reduce(tensors["b"], distributed.ReduceOp.MAX)
    distributed.broadcast(tensors["c"], 1)
    distributed.reduce(tensors["d"], 0)
    parts = []
    distributed.all_gather(parts, tensors["d"])
    out = paddle.to_tensor(np.float32([0]))
    distributed.scatter(out, [paddle.to_tensor(np.float32([k])) for k in (4, 5)] if rank == 0 else None, 0)
    distributed.barrier()
    results = [tensors[name].numpy().tolist() for name in "abcd"]
    together(
        "paddle.distributed", [*results, [part.numpy().tolist() for part in parts], out.numpy().tolist()]
    )


def shuffling():
    """Samples go to other processes, none is lost."""
    from fluidlite.incubate.fleet.collective import fleet as workers

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "samples")
        lines = [
            f"{1 + k % 2} {' '.join([str(k + 100 * run.rank)] * (1 + k % 2))} 1 {k / 3}\n" for k in range(20)
        ]
        path.write_text("".join(lines))
        data = fluid.DatasetFactory().create_dataset("InMemoryDataset")
        with fluid.program_guard(fluid.Program()):
            ids = fluid.data("ids", [-1, 1], "int64", lod_level=1)
            data.set_use_var([ids, fluid.data("x", [-1, 1])])
        data.set_batch_size(1)
        data.set_filelist([str(path)])
        data.load_into_memory()
        before = data.get_memory_data_size(workers)
        data.global_shuffle(workers)
        feeds = list(data._feeds())
    results = [[np.array(feed["ids"]).ravel().tolist(), np.array(feed["x"]).item()] for feed in feeds]
    together("shuffled", [before, results])


for what in sys.argv[1:]:
    globals()[what]()
if run.rank == 0:
    print("FOUND " + json.dumps(found))
