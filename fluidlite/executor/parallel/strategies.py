"""`BuildStrategy` and `ExecutionStrategy`: options of data parallel programs (`fluid.compiler`)."""

from __future__ import annotations

import copy
import math
from enum import Enum, IntEnum
from typing import Any

from ...framework.serialization.passes import PassBuilder


class ReduceStrategy(IntEnum):
    """How the gradients of several places are summed; the sums are the same.

    With `Reduce` places of the host share the variables that the forward pass writes (moving averages, counts of
    metrics); with `AllReduce` each has its own.
    """

    AllReduce = 0
    Reduce = 1
    _NoReduce = 2

    __str__ = Enum.__str__


class GradientScaleStrategy(IntEnum):
    """The scale of each place's gradients before they are summed: 1 / places, 1, or as fed in `loss@GRAD`."""

    CoeffNumDevice = 0
    One = 1
    Customized = 2

    __str__ = Enum.__str__


class Options:
    """Options as attributes, which the class declares with their defaults; setting any other raises AttributeError."""

    def __init__(self) -> None:
        for name in self._options():
            object.__setattr__(self, name, copy.copy(getattr(type(self), name)))

    def __repr__(self) -> str:
        options = {name: getattr(self, name) for name in self._options()}
        changed = (
            f"{name}={value!r}" for name, value in options.items() if value != getattr(type(self), name)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    @classmethod
    def _options(cls) -> list[str]:
        return [name for each in cls.__mro__[-2::-1] for name in each.__annotations__]

    def __setattr__(self, name: str, value: Any) -> None:
        options = self._options()
        if name not in options:
            raise AttributeError(f"{type(self).__name__} has no option {name!r}; it has {', '.join(options)}")
        object.__setattr__(self, name, value)


class BuildStrategy(Options):
    """Options of building a parallel program (`fluid.BuildStrategy`).

    `gradient_scale_strategy`, `reduce_strategy` and `num_trainers` have an effect; the switches for graph passes are
    accepted and change no results. Of the passes in `_finalize_strategy_and_create_passes()`, `multi_batch_merge_pass`
    has one: an update takes the mean gradients of `num_repeats` batches.
    """

    reduce_strategy: ReduceStrategy = ReduceStrategy.AllReduce
    gradient_scale_strategy: GradientScaleStrategy = GradientScaleStrategy.CoeffNumDevice
    debug_graphviz_path: str = ""
    enable_sequential_execution: bool = False
    fuse_elewise_add_act_ops: bool = False
    fuse_bn_act_ops: bool = False
    fuse_relu_depthwise_conv: bool = False
    fuse_broadcast_ops: bool = True
    fuse_all_optimizer_ops: bool = False
    fuse_all_reduce_ops: bool = True
    enable_auto_fusion: bool = False
    sync_batch_norm: bool = False
    memory_optimize: bool | None = None
    enable_inplace: bool = True
    enable_backward_optimizer_op_deps: bool = True
    remove_unnecessary_lock: bool = True
    cache_runtime_context: bool = False
    num_trainers: int = 1
    trainer_id: int = 0
    trainers_endpoints: list[str] = []
    is_distribution: bool = False
    async_mode: bool = False
    nccl_comm_num: int = 1
    use_hierarchical_allreduce: bool = False
    hierarchical_allreduce_inter_nranks: int = 0
    mkldnn_enabled_op_types: set[str] = set()
    _passes: PassBuilder | None = None

    ReduceStrategy = ReduceStrategy
    GradientScaleStrategy = GradientScaleStrategy

    def _finalize_strategy_and_create_passes(self) -> PassBuilder:
        """The passes of these options, to which others can be appended; the same object in every call."""
        if self._passes is None:
            self._passes = PassBuilder()
            for name in self._names_of_passes():
                self._passes.append_pass(f"{name}_pass")
        return self._passes

    def _names_of_passes(self) -> list[str]:
        """The names of the passes in Fluid's order, without `_pass`."""
        alone = not (self.async_mode or self.is_distribution)
        reduces = self.reduce_strategy == ReduceStrategy.Reduce
        together = alone and not reduces
        if alone:
            devices = "reduce_mode_multi_devices" if reduces else "all_reduce_mode_multi_devices"
        else:
            devices = "async_multi_devices" if self.async_mode else "dist_multi_devices"
        updates = together and self.fuse_all_optimizer_ops
        gradients = together and self.fuse_all_reduce_ops
        drawn, trained_together = bool(self.debug_graphviz_path), self.num_trainers > 1
        listed = [
            (drawn, "graph_viz"),
            (self.enable_sequential_execution, "sequential_execution"),
            (self.sync_batch_norm, "sync_batch_norm"),
            (self.fuse_relu_depthwise_conv, "fuse_relu_depthwise_conv"),
            (self.fuse_bn_act_ops, "fuse_bn_act"),
            (self.fuse_elewise_add_act_ops, "fuse_elewise_add_act"),
            (gradients, "coalesce_grad_tensor"),
            (updates, "fuse_adam_op"),
            (updates, "fuse_sgd_op"),
            (updates, "fuse_momentum_op"),
            (drawn, "graph_viz"),
            (True, "add_reader_dependency"),
            (True, devices),
            (gradients, "fuse_all_reduce_op"),
            (drawn, "multi_devices_print"),
            (not reduces or (trained_together and not self.enable_sequential_execution), "all_reduce_deps"),
            (alone and trained_together, "backward_optimizer_op_deps"),
            (self.cache_runtime_context, "runtime_context_cache"),
            (self.remove_unnecessary_lock, "modify_op_lock_and_record_event"),
            (True, "multi_devices_check"),
        ]
        return [name for wanted, name in listed if wanted]

    def _batches(self) -> int:
        """The number of batches of an update; EnforceNotMet if a multi_batch_merge_pass has no `num_repeats`."""
        passes = self._passes.all_passes() if self._passes is not None else []
        return math.prod(
            each._needed("num_repeats") for each in passes if each.type() == "multi_batch_merge_pass"
        )


class ExecutionStrategy(Options):
    """Options of running a parallel program (`fluid.ExecutionStrategy`); they are accepted and change no results."""

    num_threads: int = 0
    use_cuda: bool = True
    allow_op_delay: bool = False
    num_iteration_per_drop_scope: int = 100
    num_iteration_per_run: int = 1
    use_thread_barrier: bool = False
    use_experimental_executor: bool = True
    _dry_run: bool = False

    ExecutorType = IntEnum("ExecutorType", ["Default", "Experimental"], start=0)
