# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.incubate.data_generator import (
    DataGenerator as DataGenerator,
    MultiSlotDataGenerator as MultiSlotDataGenerator,
    MultiSlotStringDataGenerator as MultiSlotStringDataGenerator,
)
