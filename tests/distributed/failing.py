"""One of two processes ends in the way that the argument says, while the other waits for it."""

import os
import signal
import sys
import time

import numpy as np

from fluidlite.distributed import world

run = world()
print(f"rank {run.rank} of {run.size}: {os.environ['PADDLE_CURRENT_ENDPOINT']} {sys.argv[1]}")
for _ in range(3):
    run.begin_step()
    run.all_reduce(np.ones(2))
run.begin_step()
if sys.argv[1] == "interrupted":
    print("waiting")
    signal.pause()
if run.rank == 1:
    if sys.argv[1] == "raises":
        raise ValueError("this one is wrong")
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "stopped":
        print("stops at", time.monotonic(), flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    sys.exit(0)
if sys.argv[1] == "stopped":
    try:
        run.barrier()
    finally:
        print("heard at", time.monotonic())
if sys.argv[1] == "leaves, beside":
    run.begin_sums([np.ones(2)])()
run.barrier()
