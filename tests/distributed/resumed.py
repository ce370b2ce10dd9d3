"""Workers that save how far they are; one of them is killed in the middle of the first run."""

import os
import signal
import sys
from pathlib import Path

import networks

import fluidlite as fluid
from fluidlite.incubate.fleet.base import role_maker
from fluidlite.incubate.fleet.collective import TrainStatus, fleet

folder = Path(sys.argv[1])
died = folder.with_suffix(".died")
fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
rank, count = fleet.worker_index(), fleet.worker_num()
fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 7
loss = networks.BUILT["lenet"](fleet.distributed_optimizer)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
status = fleet.load_check_point(exe, str(folder), rank)
for step in range(status.next() if status is not None else 0, 5):
    (value,) = exe.run(fleet.main_program, networks.batch("lenet", step, (rank, count)), [loss.name])
    print("LOSS", step, float(value.item()), flush=True)
    if rank == 0:
        fleet.save_check_point(exe, str(folder), TrainStatus(step))
    if rank == 1 and step == 2 and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
