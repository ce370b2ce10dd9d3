"""Operators of the layers that Fluid keeps beside its core (`fluid.contrib.layers`)."""

from . import fused_elemwise, matching, partial, rank_attention, seq_pool, shuffle_batch, tdm, var_conv  # noqa: F401
