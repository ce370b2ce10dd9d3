"""Ragged batches by DataFeeder and DataLoader. usage: ragged_fluid.py SECONDS WORK..."""

import sys

import paddle.fluid as fluid
from ragged_data import BATCH, WIDTH, measured
from timing import result

PLACE = fluid.CPUPlace()


def declared(work):
    """The variables of the samples."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        width = WIDTH if work == "vectors" else 1
        dtype = "float32" if work in ("vectors", "numbers in lists") else "int64"
        levels = 2 if work == "sentences" else 1
        return [fluid.data("x", [None, width], dtype, levels), fluid.data("label", [None, 1], "int64")]


def feeder(work):
    return fluid.DataFeeder(declared(work), PLACE).feed


def epoch(work, batches):
    loader = fluid.io.DataLoader.from_generator(declared(work), capacity=8)
    samples = [sample for batch in batches for sample in batch]
    loader.set_sample_generator(lambda: iter(samples), BATCH, places=PLACE)
    return loader


result(measured(sys.argv[2:], float(sys.argv[1]), feeder, epoch))
