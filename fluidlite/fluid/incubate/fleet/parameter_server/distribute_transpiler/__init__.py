"""Workers and parameter servers: `fleet` and its optimizer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ......executor import Executor
from ......executor.parallel.compiler import CompiledProgram
from ......framework import Program, default_main_program, default_startup_program
from ..... import io
from .....communicator import Communicator
from .....optimizer import Optimizer
from .....transpiler.details import wait_server_ready
from .....transpiler.distribute_transpiler import DistributedMode, DistributeTranspilerConfig
from .....transpiler.distribute_transpiler import DistributeTranspiler as OriginTranspiler
from .....transpiler.geo_sgd_transpiler import GeoSgdTranspiler
from ...base.fleet_base import DelegatingOptimizer, Fleet, Mode
from .distributed_strategy import (
    AsyncStrategy,
    DistributedStrategy,
    GeoStrategy,
    HalfAsyncStrategy,
    StrategyFactory,
    SyncStrategy,
    TrainerRuntimeConfig,
)

__all__ = [
    "AsyncStrategy",
    "Communicator",
    "DistributeTranspilerConfig",
    "DistributedStrategy",
    "DistributedTranspiler",
    "GeoStrategy",
    "HalfAsyncStrategy",
    "StrategyFactory",
    "SyncStrategy",
    "TrainerRuntimeConfig",
    "TranspilerOptimizer",
    "distributed_strategy",
    "fleet",
]

_KNOWN = (SyncStrategy, HalfAsyncStrategy, AsyncStrategy, GeoStrategy)


class DistributedTranspiler(Fleet):
    """The workers and parameter servers of a run.

    `main_program` and `startup_program`: this process's programs, made by `TranspilerOptimizer.minimize`.
    """

    def __init__(self) -> None:
        super().__init__(Mode.TRANSPILER)
        self._transpile_config: Any = None
        self._transpiler: OriginTranspiler | None = None
        self._origin_program: Program | None = None
        self.startup_program: Program | None = None
        self.main_program: Program | None = None
        self._communicator: Communicator | None = None

    def init_worker(self) -> None:
        """Wait for the servers and start a communicator; to be called before the startup program runs."""
        strategy = self._strategy("init_worker")
        runtime = strategy.get_trainer_runtime_config()
        print(runtime)
        mode = runtime.mode if runtime.mode is not None else DistributedMode.ASYNC
        options: dict[str, Any] | None = None
        if mode == DistributedMode.GEO:
            assert isinstance(self._transpiler, GeoSgdTranspiler)
            options = {
                "push_vars": self._transpiler._get_vars_info(),
                "trainers": self.worker_num(),
                "push_nums": strategy.get_program_config().geo_sgd_need_push_nums,
            }
        elif mode == DistributedMode.SYNC:
            options = {"pserver_endpoints": self.server_endpoints(), "trainer_id": self.worker_index()}
        wait_server_ready(self.server_endpoints())
        assert self.main_program is not None
        self._communicator = Communicator(self.main_program, mode, options, runtime.get_communicator_flags())
        if not self._communicator.is_running():
            self._communicator.start()

    def _strategy(self, name: str) -> DistributedStrategy:
        if not isinstance(self._transpile_config, DistributedStrategy):
            raise AttributeError(
                f"fleet.{name}() needs programs: call fleet.distributed_optimizer(optimizer, strategy).minimize(loss) "
                "first"
            )
        return self._transpile_config

    def init_server(self, model_dir: str | None = None) -> None:
        """Run the startup program of this server, and load the model in `model_dir` if given.

        Raises ValueError before `minimize`, or if there is no folder `model_dir`.
        """
        if self.startup_program is None:
            raise ValueError("startup_program is None, need invoke DistributedOptimizer.minimize first")
        self._ran().run(self.startup_program)
        if model_dir:
            if not os.path.isdir(model_dir):
                raise ValueError(f"There is no directory named '{model_dir}'")
            io.load_persistables(self._executor, model_dir, self.main_program)

    def run_server(self) -> None:
        """Serve until all workers have stopped. Raises ValueError before `minimize`."""
        if self.main_program is None:
            raise ValueError("main_program is None, need invoke DistributedOptimizer.minimize first")
        self._ran().run(self.main_program)

    def stop_worker(self) -> None:
        """Flush this worker's messages and announce its end to the servers."""
        if self._communicator is not None:
            self._communicator.stop()
        self._ran().close()

    def _ran(self) -> Executor:
        if self._executor is None:
            raise AttributeError("call fleet.init(role_maker) first")
        return self._executor

    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> TranspilerOptimizer:
        """Wrap `optimizer` for distributed training.

        Args:
            optimizer: an optimizer for a single process.
            strategy: one of `StrategyFactory`, or a `DistributeTranspilerConfig`; None: a `SyncStrategy`.

        Raises:
            ValueError: before `init`, or if `optimizer` is no Optimizer.
            TypeError: an unknown strategy.
        """
        if not isinstance(optimizer, Optimizer):
            raise ValueError(f"optimizer must be an instance of Optimizer, got {type(optimizer).__name__}")
        if not self._is_initialized:
            raise ValueError(
                "use fleet.init(role) to initialize the role of current node before optimizer.minimize(loss)"
            )
        self._optimizer = TranspilerOptimizer(optimizer, strategy)
        return self._optimizer

    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str],
        target_vars: Sequence[Any],
        main_program: Any = None,
        export_for_deployment: bool = True,
    ) -> Any:
        """`fluid.io.save_inference_model`, by default of the program as it was before `minimize` changed it.

        Parameters, and whole tables, come from the servers. Raises TypeError for a wrong executor or program.
        """
        self._check("save_inference_model", executor, main_program)
        program = self._origin_program if main_program is None else main_program
        wanted = (dirname, feeded_var_names, target_vars, executor, program)
        alone = main_program is None
        io.save_inference_model(*wanted, None, None, export_for_deployment, alone)
        if not alone:
            return
        program = Program.parse_from_string((Path(dirname) / "__model__").read_bytes())
        assert self.main_program is not None
        program._copy_dist_param_info_from(self.main_program)
        self.save_persistables(executor, dirname, program)

    def save_persistables(self, executor: Executor, dirname: str, main_program: Any = None) -> Any:
        """`fluid.io.save_persistables` of a program of this worker, `main_program` by default.

        Raises TypeError for a wrong executor or program, ValueError for a program that is not a worker's.
        """
        self._check("save_persistables", executor, main_program)
        program = self.main_program if main_program is None else main_program
        if program is None:
            raise AttributeError("fleet.save_persistables() needs programs: call minimize first")
        if not program._is_distributed:
            raise ValueError("main_program is for local, may not use fleet.save_persistables")
        io.save_persistables(executor, dirname, program, None)

    def _check(self, name: str, executor: Any, program: Any) -> None:
        if not isinstance(executor, Executor):
            raise TypeError(
                f"in fleet.{name}() function, executor must be as Executor type, got {type(executor).__name__}"
            )
        if isinstance(program, CompiledProgram):
            raise TypeError(
                f"in fleet.{name}() function, main_program must be as Program type, CompiledProgram is not allowed"
            )
        if program is not None and not isinstance(program, Program):
            raise TypeError(
                f"in fleet.{name}() function, main_program must be as Program type, got {type(program).__name__}"
            )

    def _transpile(self, config: DistributedStrategy) -> None:
        """Transpile the default programs to those of this process."""
        if not isinstance(config, _KNOWN):
            raise TypeError(
                f"config must be a SyncStrategy, HalfAsyncStrategy, AsyncStrategy or GeoStrategy, got {config!r}"
            )
        main, startup = default_main_program(), default_startup_program()
        options = config.get_program_config()
        self._transpile_config = config
        transpiler = (
            GeoSgdTranspiler(options) if isinstance(config, GeoStrategy) else OriginTranspiler(options)
        )
        transpiler._set_server_config(config.get_server_runtime_config())
        self._transpiler = transpiler
        self._origin_program = main.clone(for_test=False)
        servers = self.server_endpoints(to_string=True)
        worker = self.is_worker()
        transpiler.transpile(
            trainer_id=self.worker_index() if worker else self.server_index(),
            program=main,
            startup_program=startup,
            pservers=servers,
            trainers=self.worker_num(),
            sync_mode=options.sync_mode,
        )
        if worker:
            self.main_program, self.startup_program = transpiler.get_trainer_program(wait_port=False), startup
            return
        endpoint = self.server_endpoints()[self.server_index()]
        self.main_program, self.startup_program = transpiler.get_pserver_programs(endpoint)

    def _set_opt_info(self, opt_info: dict[str, Any]) -> None:
        """Store options for `train_from_dataset`."""
        self._opt_info = opt_info


fleet = DistributedTranspiler()
"""The instance that scripts use."""


class TranspilerOptimizer(DelegatingOptimizer):
    """An optimizer whose updates are made by parameter servers.

    Args:
        optimizer: an optimizer for a single process; TypeError for anything else.
        strategy: one of `StrategyFactory`, or a `DistributeTranspilerConfig`, which is converted; None: a
            `SyncStrategy`. TypeError for anything else.
    """

    def __init__(self, optimizer: Any, strategy: Any = None) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"optimizer must be an instance of Optimizer, got {type(optimizer).__name__}")
        super().__init__(optimizer, strategy)
        self.opt_info: dict[str, Any] = {}
        if strategy is None:
            self._strategy = StrategyFactory.create_sync_strategy()
        elif not isinstance(strategy, (DistributeTranspilerConfig, *_KNOWN)):
            raise TypeError(
                f"In {fleet._mode} mode, strategy must be an instance of DistributeTranspilerConfig, SyncStrategy, "
                f"HalfAsyncStrategy, AsyncStrategy, or GeoStrategy, got {type(strategy).__name__}"
            )
        if isinstance(self._strategy, DistributedStrategy):
            self.opt_info = self._strategy.get_debug_opt()
            self.opt_info["mpi_rank"] = fleet.worker_index()
            self.opt_info["mpi_size"] = fleet.worker_num()
            self.opt_info["trainer"] = "MultiTrainer"
            self.opt_info["device_worker"] = "Hogwild"
            fleet._set_opt_info(self.opt_info)

    def minimize(  # type: ignore[override]
        self,
        loss: Any,
        scopes: Any = None,
        startup_program: Any = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> tuple[Any, Any]:
        """Append gradients and updates, and make the default programs those of this worker or server.

        Run `fleet.main_program` afterwards. `scopes` is accepted and without effect. Returns the operators of the
        updates and pairs of parameters and gradients. Raises TypeError for lists of losses or programs.
        """
        if isinstance(loss, list):
            raise TypeError("DistributedTranspiler's minimize can not accept loss with list")
        if isinstance(startup_program, list):
            raise TypeError("DistributedTranspiler's minimize can not accept program with list")
        result = self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        fleet._transpile(config=self._as_strategy())
        loss.block.program._fleet_opt = self.opt_info
        return result

    def _as_strategy(self) -> DistributedStrategy:
        """The strategy, converted from a `DistributeTranspilerConfig` if needed."""
        config = self._strategy
        if not isinstance(config, DistributeTranspilerConfig):
            return config
        strategy: DistributedStrategy
        if config.sync_mode:
            strategy = SyncStrategy()
        elif config.geo_sgd_mode:
            strategy = GeoStrategy(config.geo_sgd_need_push_nums)
        elif config.runtime_split_send_recv and not config.half_async:
            strategy = AsyncStrategy()
        else:
            strategy = HalfAsyncStrategy()
        strategy.set_program_config(config)
        return strategy
