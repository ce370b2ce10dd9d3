"""Runs a script on real Paddle for the CPU with MNIST from $FLUIDLITE_DATA/mnist. usage: on_paddle.py SCRIPT [ARGS]"""

import os
import sys

import paddle.dataset.common

CHANGES = {"fluid.CUDAPlace(0)": "fluid.CPUPlace()", "fluid.cuda_places()": "fluid.cpu_places(1)"}


def local_file(url, module, *_):
    """Stands for `paddle.dataset.common.download`: the path of the file of that name in the data folder."""
    return os.path.join(os.environ["FLUIDLITE_DATA"], module, url.split("/")[-1])


paddle.dataset.common.download = local_file
sys.argv = sys.argv[1:]
with open(sys.argv[0], encoding="utf8") as file:
    source = file.read()
for old, new in CHANGES.items():
    source = source.replace(old, new)
exec(compile(source, sys.argv[0], "exec"), {"__name__": "__main__"})
