"""Native kernels: one declaration each (`kernel_def.py`), by family, and what passes make of a kernel's facts."""
