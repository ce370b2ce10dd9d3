"""Kernels on tensor arrays and stacks."""

from __future__ import annotations

from .kernel_def import BYTES, declare

declare("stash_push", "TensorArray X", "TensorArray", ints="bytes", types=BYTES)
declare("stash_pop", "TensorArray Out", "TensorArray Out", ints="bytes", types=BYTES)
declare("array_write", "TensorArray Index X", "TensorArray", ints="bytes", types=BYTES)
declare("array_read", "TensorArray Index Out", ints="bytes", types=BYTES)
declare("array_take", "TensorArray Index Out", "TensorArray Out", ints="bytes", types=BYTES)
declare("array_add", "TensorArray Index X", "TensorArray", ints="n")
declare("array_concat", "TensorArray Out", ints="elements blocks bytes", types=BYTES)
declare("array_split_add", "TensorArray X", "TensorArray", ints="elements blocks n")
declare("array_length", "TensorArray Out", types=BYTES)
declare("array_clear", "TensorArray*", types=BYTES)
