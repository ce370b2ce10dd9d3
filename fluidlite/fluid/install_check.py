"""`fluid.install_check`: whether the package works on this machine."""

from __future__ import annotations

import numpy as np

from ..base.place import CPUPlace, CUDAPlace, Place, cpu_places, cuda_device_count
from ..base.unique_name import guard as names
from ..executor import Executor, Scope, scope_guard
from ..executor.parallel.compiler import CompiledProgram
from ..framework import Program, program_guard
from .dygraph import Layer, Linear, guard, to_variable
from .layers import data, fc, reduce_sum
from .optimizer import SGD

__all__ = ["run_check"]


class SimpleLayer(Layer):
    """A fully connected layer, `input_size` to 3, whose results are added up."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self._linear1 = Linear(input_size, 3)

    def forward(self, inputs: object) -> object:
        return reduce_sum(self._linear1(inputs))


def run_check() -> None:
    """Train a small network on one device, on two CPU places, and in dygraph mode, and say that it works.

    Raises what fails. Nothing of the caller's programs, names and scopes is touched.
    """
    place: Place = CUDAPlace(0) if cuda_device_count() else CPUPlace()
    batch = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
    main, startup = Program(), Program()
    with program_guard(main, startup), names(), scope_guard(Scope()):
        loss = reduce_sum(fc(data("inp", [2], dtype="float32"), 3))
        SGD(0.01).minimize(loss)
        exe = Executor(place)
        exe.run(startup)
        exe.run(main, feed={"inp": batch}, fetch_list=[loss])
        two = CompiledProgram(main).with_data_parallel(loss.name, places=cpu_places(2))
        Executor(CPUPlace()).run(two, feed={"inp": np.repeat(batch, 2, 0)}, fetch_list=[loss])
    with guard(place), names():
        SimpleLayer(2)(to_variable(batch)).backward()  # type: ignore[attr-defined]
    print(f"fluidlite works on {place!r}: programs, data parallelism and dygraph mode.")
