"""`CompiledProgram`, and the older `ParallelExecutor` (`fluid.compiler`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from ...base.errors import NotSupportedError
from ...base.place import CPUPlace, Place, cpu_places, cuda_places, resolve
from ...base.reports import profiling
from ...distributed import DistributedError, world
from ...framework import OpRole, Program, default_main_program
from ...framework.gradients.exchange import (
    exchange_gradients,
    merge_batches,
    scale_loss_gradients,
    take_loss_gradients,
)
from ...framework.serialization.ir_graph import Graph
from ...framework.verify import suggest
from ..lod_tensor import LoDTensor
from ..plan_cache import or_empty
from ..scope import Scope, global_scope
from .strategies import BuildStrategy, ExecutionStrategy, GradientScaleStrategy, ReduceStrategy

if TYPE_CHECKING:
    from ...framework import Operator
    from ..executor import Executor
    from .data_parallel import DataParallel, PlaceScopes


class CompiledProgram:
    """A program to be run on one place, or with `with_data_parallel` on several (`fluid.CompiledProgram`).

    `program_or_graph`: a Program, or the `core.Graph` of an `IrGraph`, as passes for quantisation return it, whose
    present operators become the program.
    """

    def __init__(
        self, program_or_graph: Program | Graph, build_strategy: BuildStrategy | None = None
    ) -> None:
        if isinstance(program_or_graph, Graph):
            program_or_graph = program_or_graph._to_program()
        if not isinstance(program_or_graph, Program):
            raise TypeError(
                "The type of program_to_graph parameter is wrong, expected Graph or Program, but received "
                f"{type(program_or_graph)}"
            )
        self._program = program_or_graph
        self._build_strategy = build_strategy if build_strategy is not None else BuildStrategy()
        self._exec_strategy = ExecutionStrategy()
        self._loss_name: str | None = None
        self._share_vars_from: CompiledProgram | None = None
        self._places: list[Place] | None = None
        self._is_data_parallel = False
        self._runner: DataParallel | None = None
        self._trainer_program: TrainerProgram | None = None
        self._rewritten: tuple[tuple[int, int], Program] | None = None
        self._scope: Scope | None = None
        self._place_scopes: dict[tuple[str, ...], PlaceScopes] = {}
        self._pruned: dict[Program, CompiledProgram] = {}
        self._unpruned = self

    def __repr__(self) -> str:
        count = sum(len(block.ops) for block in self._program.blocks)
        return f"<CompiledProgram of {count} operators{', data parallel' if self._is_data_parallel else ''}>"

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: CompiledProgram | None = None,
        places: Sequence[Place] | Place | None = None,
    ) -> CompiledProgram:
        """Run on every place of `places` at once, each with its own batch; returns this object.

        `loss_name` is needed when the program has a backward pass. `places` are by default the executor's GPUs, or
        CPU_NUM CPU places. `share_vars_from`: another compiled program whose parameters this one uses.
        Raises AssertionError when called twice or without a needed `loss_name`, TypeError for wrong arguments.
        """
        if self._is_data_parallel:
            raise AssertionError("Already compiled with parallel, cannot be recompiled.")
        if share_vars_from is not None and not isinstance(share_vars_from, CompiledProgram):
            raise TypeError(
                f"share_vars_from must be a CompiledProgram, got {type(share_vars_from).__name__}"
            )
        has_backward = any(
            op.attrs.get("op_role", 0) & OpRole.Backward for op in self._program.global_block().ops
        )
        if has_backward and loss_name is None:
            raise AssertionError(
                "The loss name of CompiledProgram is None. "
                "The loss name should be set if CompiledProgram contains backward part."
            )
        if isinstance(places, Place):
            places = [places]
        if places is not None and (not places or len({type(place) for place in places}) > 1):
            raise ValueError(f"places must be one or more places of the same kind, got {list(places)}")
        self._is_data_parallel = True
        self._loss_name = loss_name
        self._build_strategy = build_strategy or self._build_strategy
        self._exec_strategy = exec_strategy or self._exec_strategy
        self._share_vars_from = share_vars_from
        self._places = list(places) if places is not None else None
        return self

    def _part(
        self, names: tuple[str, ...], feeds: tuple[str, ...], updates: frozenset[Operator]
    ) -> CompiledProgram:
        """The pruned program (see `Program._part`), compiled with the same options; kept with this object."""
        program = self._program._part(names, feeds, updates)
        pruned = self._pruned.get(program)
        if pruned is None:
            pruned = self._pruned[program] = CompiledProgram(program, self._build_strategy)
            pruned._exec_strategy, pruned._loss_name = self._exec_strategy, self._loss_name
            pruned._share_vars_from, pruned._places = self._share_vars_from, self._places
            pruned._is_data_parallel, pruned._unpruned = self._is_data_parallel, self
        return pruned

    def _compile(self, scope: Scope, place: Place) -> CompiledProgram:
        """Return this object: executors compile a program when they run it for the first time."""
        return self

    def _devices(self, executor: Executor) -> list[Place]:
        if self._places is not None:
            return self._places
        if isinstance(executor.place, CPUPlace):
            return list(cpu_places())
        if isinstance(resolve(executor.place), CPUPlace):
            return [executor.place]
        return cuda_places()

    def _parallel_program(self) -> Program:
        """The program, or a rewritten copy where the strategy needs one.

        With `Customized` the gradient of the loss is fed, not computed; with multi_batch_merge_pass an update takes
        several batches.
        """
        program, strategy = self._program, self._build_strategy
        fed = strategy.gradient_scale_strategy == GradientScaleStrategy.Customized
        batches = strategy._batches()
        if not fed and batches == 1:
            return program
        key = program._version, batches
        if self._rewritten is None or self._rewritten[0] != key:
            copy = program.clone()
            if fed:
                take_loss_gradients(copy)
            if batches > 1:
                merge_batches(copy, batches)
            self._rewritten = key, copy
            self._runner = None
        return self._rewritten[1]

    def _run_compiled(
        self,
        executor: Executor,
        feed: Any,
        fetch_list: Any,
        scope: Scope,
        return_numpy: bool,
        return_merged: bool,
    ) -> list[Any]:
        """Run one step; see `Executor.run`. Raises ValueError for a fed name that the program does not have."""
        self._check_names(feed)
        program, places = self._program, [executor.place]
        if self._is_data_parallel:
            scope = self._scope = self._unpruned._scope = self._scope_with_variables(scope)
            places = self._devices(executor)
            program = self._program_of_trainers(self._parallel_program(), places, scope)
            if len(places) > 1 or not return_merged:
                runner = self._runner_of(program, places, scope)
                run = partial(runner.run, feed, fetch_list, return_numpy, return_merged)
                recorder = profiling.active
                return run() if recorder is None else recorder.timed(profiling.STEP, run)
            if isinstance(feed, (list, tuple)) and len(feed) > 1:
                raise IndexError(
                    f"feed is a list for {len(feed)} devices, but the program was compiled for one place"
                )
        if executor.place != places[0]:
            executor = type(executor)(places[0])
        return list(map(or_empty, executor._run_alone(program, feed, fetch_list, scope, return_numpy)))

    def _check_names(self, feed: Any) -> None:
        known = self._unpruned._program.global_block().vars
        for part in feed if isinstance(feed, (list, tuple)) else (feed,):
            for name in part if isinstance(part, Mapping) else ():
                if name not in known:
                    near = suggest(name, known)
                    raise ValueError(f"var {name} not in this block: the program has no such variable{near}")

    def _scope_with_variables(self, scope: Scope) -> Scope:
        """The scope of the program whose variables are shared (`share_vars_from`), or else the given one."""
        shared = self._share_vars_from
        if shared is None:
            return scope
        if shared._scope is None:
            raise ValueError(
                "The shared Program is not compiled and executed, so there is no variables to share."
            )
        return shared._scope

    def _program_of_trainers(self, program: Program, places: Sequence[Place], scope: Scope) -> Program:
        """The program, or a copy that exchanges gradients where several processes train (`num_trainers`)."""
        if self._build_strategy.num_trainers <= 1:
            return program
        if self._trainer_program is None or not self._trainer_program.fits(program, scope):
            self._trainer_program = TrainerProgram(program, self._build_strategy, len(places), scope)
        return self._trainer_program.program

    def _runner_of(self, program: Program, places: Sequence[Place], scope: Scope) -> DataParallel:
        """The runner of the last step if it still fits, else a new one."""
        from .data_parallel import DataParallel

        if len(places) > 1 and _updates_in_blocks(self._program):
            raise NotImplementedError(
                "If optimizer is used in control flow, training on multi-places is not supported now: there are "
                f"{len(places)} places, and an operator of a block updates variables"
            )
        runner = self._runner
        if runner is None or runner.scope is not scope or runner.version != program._version:
            average = self._build_strategy.gradient_scale_strategy == GradientScaleStrategy.CoeffNumDevice
            reduce = self._build_strategy.reduce_strategy == ReduceStrategy.Reduce
            shared = self._scopes_of(scope, places)
            runner = self._runner = DataParallel(program, places, shared, average, reduce)
        return runner

    def _scopes_of(self, scope: Scope, places: Sequence[Place]) -> PlaceScopes:
        """The scopes of places, common to all programs that share their variables."""
        if self._share_vars_from is not None:
            return self._share_vars_from._scopes_of(scope, places)
        from .data_parallel import scopes_of

        known, key = self._unpruned._place_scopes, tuple(map(repr, places))
        if key not in known or known[key].scope is not scope:
            known[key] = scopes_of(scope, places)
        return known[key]

    def __reduce__(self) -> Any:
        raise NotSupportedError("a CompiledProgram cannot be copied or pickled; compile the program again")


def _updates_in_blocks(program: Program) -> bool:
    """True if an optimizer updates parameters in a block of control flow."""
    return any(
        op._is_optimize_op() and op.attrs.get("op_role_var")
        for block in program.blocks[1:]
        for op in block.ops
    )


class ParallelExecutor:
    """Runs a program on all places at once (`fluid.ParallelExecutor`, older than `CompiledProgram`).

    `num_trainers`, `trainer_id`: override those of `build_strategy` unless they are 1 and 0.
    """

    def __init__(
        self,
        use_cuda: bool,
        loss_name: str | None = None,
        main_program: Program | None = None,
        share_vars_from: ParallelExecutor | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        build_strategy: BuildStrategy | None = None,
        num_trainers: int = 1,
        trainer_id: int = 0,
        scope: Scope | None = None,
    ) -> None:
        from ..executor import Executor

        self._places: list[Place] = cuda_places() if use_cuda else list(cpu_places())
        self._scope = scope if scope is not None else global_scope()
        shared: CompiledProgram | None = None
        if share_vars_from is not None:
            if not isinstance(share_vars_from, ParallelExecutor):
                raise TypeError(
                    f"share_vars_from must be a ParallelExecutor, got {type(share_vars_from).__name__}"
                )
            shared = share_vars_from._compiled
            shared._scope = share_vars_from._scope
        if num_trainers != 1 or trainer_id != 0:
            build_strategy = build_strategy if build_strategy is not None else BuildStrategy()
            build_strategy.num_trainers = num_trainers if num_trainers != 1 else build_strategy.num_trainers
            build_strategy.trainer_id = trainer_id if trainer_id != 0 else build_strategy.trainer_id
        self._compiled: CompiledProgram = CompiledProgram(
            main_program or default_main_program()
        ).with_data_parallel(loss_name, build_strategy, exec_strategy, shared, self._places)
        self._executor = Executor(self._places[0])

    def run(
        self, fetch_list: Any, feed: Any = None, feed_dict: Any = None, return_numpy: bool = True
    ) -> list[Any]:
        """One step; see `Executor.run`. `feed_dict` is an older name of `feed`."""
        feeds = feed if feed is not None else feed_dict
        return self._executor.run(
            self._compiled, feeds, fetch_list, scope=self._scope, return_numpy=return_numpy
        )

    @property
    def device_count(self) -> int:
        return len(self._places)

    def drop_local_exe_scopes(self) -> None:
        """Do nothing: plans keep no scopes between steps."""


class TrainerProgram:
    """A copy of a program that sums its gradients over all processes.

    Making one broadcasts the persistable variables of process 0, as in Fluid.

    Raises DistributedError if the run has another number of processes, NotSupportedError for several places in each.
    """

    def __init__(self, program: Program, strategy: BuildStrategy, places: int, scope: Scope) -> None:
        count: int = strategy.num_trainers
        if world().size != count:
            raise DistributedError(
                f"the program was compiled for {count} trainers, but this run has {world().size}: start it with "
                f"`fluidlite launch -n {count}`"
            )
        if places > 1:
            raise NotSupportedError(
                f"{count} processes train together, each on {places} places: give each process one place (CPU_NUM=1, "
                "or one GPU) and start more of them"
            )
        self._source, self._version, self._scope = ref(program), program._version, ref(scope)
        self.program = program.clone()
        if strategy.gradient_scale_strategy == GradientScaleStrategy.CoeffNumDevice:
            scale_loss_gradients(self.program, 1.0 / count)
        exchange_gradients(self.program)
        _broadcast(program, scope)

    def fits(self, program: Program, scope: Scope) -> bool:
        """True if it was made of this program in its present version, in this scope."""
        return self._source() is program and self._version == program._version and self._scope() is scope


def _broadcast(program: Program, scope: Scope) -> None:
    """Set the persistable variables of all processes to the values of process 0."""
    for var in program.list_vars():
        found = scope.find_var(var.name) if var.persistable else None
        value = found.get() if found is not None else None
        if isinstance(value, LoDTensor) and value.array is not None:
            value.set(world().broadcast(np.array(value)))
