"""Workers that exchange gradients: `fleet` and its optimizer (`fluid.incubate.fleet.collective`)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from .....executor import Executor
from .....executor.parallel.compiler import CompiledProgram
from .....executor.parallel.strategies import BuildStrategy, ExecutionStrategy
from .....framework import Program, default_startup_program, program_guard
from .... import io
from ....contrib.mixed_precision import decorate
from ....optimizer import RecomputeOptimizer
from ....transpiler import collective as transpiling
from ..base.fleet_base import DelegatingOptimizer, Fleet, Mode
from ..base.fleet_base import DistributedOptimizer as DistributedOptimizer
from . import checkpoints
from .checkpoints import TrainStatus

__all__: list[str] = []


class LambConfig:
    """Options of LAMB: none."""


class DistFCConfig:
    """Options of layers partitioned over the workers: none."""


class Collective(Fleet):
    """The data-parallel workers of a run, which exchange gradients.

    `main_program` and `startup_program` are what `CollectiveOptimizer.minimize` has made.
    """

    def __init__(self) -> None:
        super().__init__(Mode.COLLECTIVE)
        self._local_ip = 0
        self.startup_program: Program | None = None
        self.main_program: Program | CompiledProgram | None = None
        self._origin_program: Program | None = None
        self._transpiled_program: Program | None = None
        self._checkoint_prefix = checkpoints.PREFIX
        self._param_file_name = checkpoints.PARAMETERS

    def init_worker(self) -> None:
        """Without effect, with a warning: workers need no initialisation."""
        self._needless("init_worker")

    def run_worker(self, main_programs: Any = None, scopes: Any = None) -> None:
        """Without effect, with a warning: run the program with an executor."""
        self._needless("run_worker")

    def init_server(self, model_dir: str | None = None) -> None:
        """Without effect, with a warning: there are no servers."""
        self._needless("init_server")

    def run_server(self) -> None:
        """Without effect, with a warning: there are no servers."""
        self._needless("run_server")

    def stop_worker(self) -> None:
        """Without effect, with a warning: a worker ends with its script."""
        self._needless("stop_worker")

    def _needless(self, name: str) -> None:
        logging.warning("You should not call '%s' method for collective mode.", name)

    def distributed_optimizer(
        self, optimizer: Any, strategy: DistributedStrategy | None = None
    ) -> CollectiveOptimizer:
        """Wrap `optimizer` for distributed training, by default with a `DistributedStrategy()`."""
        self._optimizer = CollectiveOptimizer(optimizer, strategy or DistributedStrategy())
        return self._optimizer

    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str] | None = None,
        target_vars: Sequence[Any] | None = None,
        main_program: Program | None = None,
        export_for_deployment: bool = True,
    ) -> Any:
        """`fluid.io.save_inference_model`, by default of the program that was given to the optimizer.

        Raises AssertionError if `main_program` is no Program, or `executor` no Executor.
        """
        program = self._program("save_inference_model", executor, main_program)
        return io.save_inference_model(
            dirname,
            list(feeded_var_names or ()),
            list(target_vars or ()),
            executor,
            program,
            None,
            None,
            export_for_deployment,
        )

    def save_persistables(
        self,
        executor: Executor,
        dirname: str,
        main_program: Program | None = None,
        filename: str | None = None,
    ) -> None:
        """`fluid.io.save_persistables`, by default of the program that was given to the optimizer.

        Raises AssertionError if `main_program` is no Program, or `executor` no Executor.
        """
        program = self._program("save_persistables", executor, main_program)
        io.save_persistables(executor, dirname, program, filename=filename)

    def _program(self, name: str, executor: Any, program: Any) -> Program:
        if not isinstance(executor, Executor):
            raise AssertionError(
                f"In fleet.{name}() function, executor must be as Executor type, got {type(executor).__name__}"
            )
        chosen = program if program is not None else self._origin_program
        if not isinstance(chosen, Program):
            raise AssertionError(
                f"In fleet.{name}() function, main_program must be as Program type, got {type(chosen).__name__}"
            )
        return chosen

    def save_check_point(
        self,
        executor: Executor,
        path: str,
        train_status: TrainStatus,
        main_program: Program | None = None,
        fs: Any = checkpoints.LOCAL,
        local_cache_path: str = ".cache",
        remain_all_checkpoint: bool = True,
    ) -> None:
        """Save the persistable variables and the training status in a new folder below `path`, numbered from 0.

        Args:
            executor: whose program it is.
            path: created if it does not exist.
            train_status: how far the training is.
            main_program: by default that which was given to the optimizer.
            fs: where `path` is, a `paddle.distributed.fs_wrapper.FS`.
            local_cache_path: a local folder for files on their way to another file system.
            remain_all_checkpoint: whether older ones stay.
        """
        program = self._program("save_check_point", executor, main_program)
        checkpoints.save(executor, path, train_status, program, fs, local_cache_path)
        if not remain_all_checkpoint:
            self.clean_redundant_check_points(path, fs)

    def load_check_point(
        self,
        executor: Executor,
        path: str,
        trainer_id: int,
        main_program: Program | None = None,
        fs: Any = checkpoints.LOCAL,
        local_cache_path: str = ".cache",
        ignore_empty: bool = True,
    ) -> TrainStatus | None:
        """Load the newest checkpoint below `path`; returns its training status, None if there is none.

        Args:
            trainer_id: the number of this worker, for the name of its cache.

        Further arguments are those of `save_check_point`. Raises AssertionError if there is none and `ignore_empty`
        is False.
        """
        program = self._program("load_check_point", executor, main_program)
        return checkpoints.load(executor, path, trainer_id, program, fs, local_cache_path, ignore_empty)

    def clean_redundant_check_points(
        self, root_path: str, fs: Any = checkpoints.LOCAL, checkpoint_num: int = 1
    ) -> None:
        """Remove all but the newest `checkpoint_num` checkpoints below `root_path`; at least one is kept."""
        checkpoints.clean(root_path, fs, checkpoint_num)


fleet = Collective()
"""The instance that scripts use."""


class DistributedStrategy(BuildStrategy):
    """Options of collective training: those of `BuildStrategy`, and these (`fleet.collective.DistributedStrategy`).

    `mode`: "nccl2" (a `CompiledProgram` exchanges the gradients) or "collective" (operators of the program do), then by
    `collective_mode` "grad_allreduce" or "local_sgd". `use_local_sgd`: the latter two at once. `forward_recompute`,
    `recompute_checkpoints`: as `RecomputeOptimizer`. `use_amp`, `amp_loss_scaling`: as `mixed_precision.decorate`.
    """

    use_local_sgd: bool = False
    use_dist_fc: bool = False
    dist_fc_config: Any = None
    mode: str = "nccl2"
    collective_mode: str | None = None
    nccl_comm_num: int = 1
    forward_recompute: bool = False
    recompute_checkpoints: list[Any] = []
    use_amp: bool = False
    amp_loss_scaling: float = 2**15
    exec_strategy: ExecutionStrategy = ExecutionStrategy()
    _ut4grad_allreduce: bool = False


class CollectiveOpBasedOptimizer(DelegatingOptimizer):
    """An optimizer for workers that delegates to the wrapped optimizer."""

    def __init__(self, optimizer: Any, strategy: Any = None) -> None:
        if not isinstance(strategy, DistributedStrategy):
            raise AssertionError(f"strategy must be DistributedStrategy, got {type(strategy).__name__}")
        super().__init__(optimizer, strategy)


class CollectiveOptimizer(DelegatingOptimizer):
    """An optimizer that updates with the mean of all workers' gradients.

    Args:
        optimizer: one for a single process.
        strategy: how they exchange gradients.
    """

    def __init__(self, optimizer: Any, strategy: DistributedStrategy | None = None) -> None:
        strategy = strategy if strategy is not None else DistributedStrategy()
        if strategy.forward_recompute:
            if not strategy.recompute_checkpoints:
                raise ValueError(
                    "please set strategy.recompute_checkpoints when set strategy.forward_recompute as True"
                )
            optimizer = RecomputeOptimizer(optimizer)
            optimizer._set_checkpoints(strategy.recompute_checkpoints)
        super().__init__(optimizer, strategy)
        self.print_config = False

    def minimize(  # type: ignore[override]
        self,
        loss: Any,
        startup_program: Program | None = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> tuple[Any, Any]:
        """Append gradients and updates to the program of `loss`, and transform it for distributed training.

        What to run is `fleet.main_program` then. Returns the operators of the update and pairs of parameters and
        gradients. Raises ValueError for a mode that there is not, AssertionError for options that exclude each other.
        """
        strategy: DistributedStrategy = self._strategy
        self._check_collective_mode(loss.block.program, self._optimizer, strategy)
        main = loss.block.program
        startup = startup_program if startup_program is not None else default_startup_program()
        optimizer = self._optimizer
        if strategy.use_amp:
            optimizer = decorate(
                optimizer, init_loss_scaling=strategy.amp_loss_scaling, use_dynamic_loss_scaling=True
            )
        with program_guard(main, startup):
            result = optimizer.minimize(loss, startup, parameter_list, no_grad_set)
        self._loss = loss
        fleet._origin_program = main.clone(for_test=False)
        fleet._transpiled_program = main
        fleet.startup_program = startup
        fleet.main_program = self._try_to_compile(startup, main)
        return result

    def _check_collective_mode(
        self, main_program: Program, optimizer: Any, strategy: DistributedStrategy
    ) -> None:
        if strategy.use_local_sgd:
            strategy.mode, strategy.collective_mode = "collective", "local_sgd"
        if strategy.mode not in ("nccl2", "collective"):
            raise ValueError(f"mode must be 'nccl2' or 'collective', got {strategy.mode!r}")
        if strategy.mode == "collective":
            if strategy.collective_mode not in ("grad_allreduce", "local_sgd"):
                raise ValueError(
                    f"invalid collective_mode: {strategy.collective_mode}, expected 'grad_allreduce' or 'local_sgd'"
                )
        elif strategy.collective_mode in ("grad_allreduce", "local_sgd"):
            raise AssertionError("local_sgd and grad_allreduce can be used under collective mode")

    def _node_num(self) -> int:
        """The number of machines."""
        return len({endpoint.rpartition(":")[0] for endpoint in fleet.worker_endpoints()})

    def _transpile(self, startup_program: Program, main_program: Program) -> None:
        """Insert the collective operators and set the ranks in the programs."""
        strategy: DistributedStrategy = self._strategy
        endpoints, rank = fleet.worker_endpoints(), fleet.worker_index()
        if strategy.mode == "nccl2":
            transpiling.nccl2(
                rank,
                endpoints,
                startup_program,
                strategy.nccl_comm_num,
                strategy.use_hierarchical_allreduce,
                strategy.hierarchical_allreduce_inter_nranks,
            )
        elif len(endpoints) > 1:
            ways = {"grad_allreduce": transpiling.GradAllReduce, "local_sgd": transpiling.LocalSGD}
            assert strategy.collective_mode is not None
            way = ways[strategy.collective_mode](strategy.nccl_comm_num)
            way.transpile(startup_program, main_program, rank, endpoints, endpoints[rank], False)

    def _try_to_compile(self, startup_program: Program, main_program: Program) -> Program | CompiledProgram:
        """The program to run: with collective operators, or compiled for all workers."""
        strategy: DistributedStrategy = self._strategy
        if self._node_num() <= 1:
            if strategy.nccl_comm_num > 1:
                logging.warning("set nccl_comm_num=1 since you only have 1 node.")
                strategy.nccl_comm_num = 1
            if strategy.use_hierarchical_allreduce:
                logging.warning("set use_hierarchical_allreduce=False since you only have 1 node.")
                strategy.use_hierarchical_allreduce = False
        self._transpile(startup_program, main_program)
        if strategy.mode == "collective":
            return main_program
        strategy.num_trainers = fleet.worker_num()
        strategy.trainer_id = fleet.worker_index()
        strategy.trainers_endpoints = fleet.worker_endpoints()
        strategy.enable_backward_optimizer_op_deps = True
        strategy.exec_strategy.num_threads = max(2, strategy.nccl_comm_num + 1)
        return CompiledProgram(main_program).with_data_parallel(
            loss_name=self._loss.name, build_strategy=strategy, exec_strategy=strategy.exec_strategy
        )
