"""The names of Paddle 2.0: a function that starts itself in several processes.

usage: python -m fluidlite examples/distributed/paddle2_spawn.py [PROCESSES]
"""

import sys

import numpy as np
import paddle
import paddle.distributed as dist


def train(steps):
    dist.init_parallel_env()
    paddle.seed(1)
    model = paddle.DataParallel(paddle.nn.Linear(3, 1))
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    draw = np.random.RandomState(dist.get_rank())  # each process has samples of its own
    for _ in range(steps):
        inputs = draw.rand(16, 3).astype("float32")
        targets = inputs @ np.float32([[1], [2], [3]])
        loss = paddle.mean((model(paddle.to_tensor(inputs)) - paddle.to_tensor(targets)) ** 2)
        loss.backward()  # leaves the mean of the gradients of all processes
        optimizer.step()
        optimizer.clear_grad()
    dist.all_reduce(loss)
    if dist.get_rank() == 0:
        print(f"mean loss of {dist.get_world_size()} processes {loss.item() / dist.get_world_size():.6f}")


if __name__ == "__main__":
    dist.spawn(train, args=(200,), nprocs=int(sys.argv[1]) if len(sys.argv) > 1 else 2)
