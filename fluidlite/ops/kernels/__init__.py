"""Native kernels: one declaration each (`kernel_def.py`), by family, and what passes make of a kernel's facts."""

from . import convolution, dense, elementwise, moves, recurrent, sequences, tags  # noqa: F401 - which declare kernels
