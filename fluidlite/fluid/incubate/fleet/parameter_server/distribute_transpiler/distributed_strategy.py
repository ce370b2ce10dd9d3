"""Strategies of workers and servers: synchronous, asynchronous, half-asynchronous and geo-SGD."""

from __future__ import annotations

import os
from typing import Any

from ......executor.parallel.strategies import BuildStrategy, ExecutionStrategy
from .....transpiler.distribute_transpiler import (
    DistributedMode,
    DistributeTranspilerConfig,
    ServerRuntimeConfig,
)

__all__ = [
    "AsyncStrategy",
    "DistributedStrategy",
    "GeoStrategy",
    "HalfAsyncStrategy",
    "StrategyFactory",
    "SyncStrategy",
    "TrainerRuntimeConfig",
]

_MERGED, _QUEUE = "communicator_max_merge_var_num", "communicator_send_queue_size"
_POOL, _WAITS = "communicator_thread_pool_size", "communicator_send_wait_times"
_OF_BARRIERS = (_MERGED, _WAITS, _POOL, _QUEUE)
_OF_GEO = (_POOL, _WAITS)


def _cpu_num() -> str:
    return os.getenv("CPU_NUM", "1")


class TrainerRuntimeConfig:
    """Options of a communicator: `runtime_configs`, texts by name, initially from FLAGS in the environment.

    `mode`: a `DistributedMode`, None for a communicator without barriers.
    """

    def __init__(self) -> None:
        self.mode: int | None = None
        defaults = {
            _MERGED: _cpu_num(),
            _QUEUE: _cpu_num(),
            "communicator_independent_recv_thread": "1",
            "communicator_min_send_grad_num_before_recv": _cpu_num(),
            _POOL: "5",
            _WAITS: "5",
            "communicator_is_sgd_optimizer": "1",
            "rpc_deadline": "180000",
            "rpc_retry_times": "3",
        }
        self.runtime_configs: dict[str, Any] = {
            name: os.getenv(f"FLAGS_{name}", value) for name, value in defaults.items()
        }

    def get_communicator_flags(self) -> dict[str, str]:
        """The `runtime_configs` that a communicator of this `mode` uses, as text.

        With barriers the number of merged gradients must be that of places (CPU_NUM); it is changed, with a warning.
        Raises ValueError for an unknown mode.
        """
        if self.mode in (DistributedMode.SYNC, DistributedMode.HALF_ASYNC):
            for name in (_MERGED, _QUEUE):
                if str(self.runtime_configs[name]) != _cpu_num():
                    print(
                        f"WARNING: In sync or half_async mode, {name} must be equal to CPU_NUM. But received, "
                        f"{name} = {self.runtime_configs[name]}, CPU_NUM = {_cpu_num()}. {name} will be set to "
                        f"{_cpu_num()}."
                    )
                    self.runtime_configs[name] = _cpu_num()
            names: Any = _OF_BARRIERS
        elif self.mode == DistributedMode.GEO:
            names = _OF_GEO
        elif self.mode is None or self.mode == DistributedMode.ASYNC:
            names = self.runtime_configs
        else:
            raise ValueError(f"Unsupported Mode {self.mode!r}: expected one of DistributedMode")
        return {name: str(self.runtime_configs[name]) for name in names}

    def display(self, configs: dict[str, Any]) -> str:
        """A table of names and values."""
        line = "-" * 50
        rows = "".join(f"{name:<45}{value!s:<5}\n" for name, value in configs.items())
        title = f"{'TrainerRuntimeConfig Overview':>36}{'Value':>13}\n"
        return f"\n{'=' * 50}\n{title}{line}\n{rows}{'=' * 50}\n"

    def __repr__(self) -> str:
        return self.display(self.get_communicator_flags())


class DistributedStrategy:
    """Base of strategies: five objects with options.

    Options are set by an object of the class or a dict of its attributes. Raises TypeError for anything else,
    ValueError for an unknown attribute.
    """

    def __init__(self) -> None:
        self._program_config = DistributeTranspilerConfig()
        self._trainer_runtime_config = TrainerRuntimeConfig()
        self._server_runtime_config = ServerRuntimeConfig()
        self._execute_strategy = ExecutionStrategy()
        self._build_strategy = BuildStrategy()
        count = int(_cpu_num())
        setattr(self._execute_strategy, "num_threads", count)  # noqa: B010
        if count > 1:
            self._build_strategy.reduce_strategy = BuildStrategy.ReduceStrategy.Reduce
        self.debug_opt: dict[str, Any] | None = None

    def set_debug_opt(self, opt_info: Any) -> None:
        """Set the variables that training from data sets dumps, a dict (`dump_fields` etc.)."""
        self.debug_opt = opt_info

    def get_debug_opt(self) -> dict[str, Any]:
        """The options of `set_debug_opt`, with defaults; {} if none were set."""
        if not isinstance(self.debug_opt, dict):
            return {}
        defaults: dict[str, Any] = {
            "dump_slot": False,
            "dump_converter": "",
            "dump_fields": [],
            "dump_file_num": 16,
            "dump_fields_path": "",
            "dump_param": [],
        }
        return {name: self.debug_opt.get(name, value) for name, value in defaults.items()}

    def set_program_config(self, config: Any) -> None:
        """Set options of the transpiler."""
        self._program_config = _configured("program_config", self._program_config, config)
        self.check_program_config()

    def check_program_config(self) -> None:
        """Set the options of the transpiler that this strategy requires."""
        raise self._unknown("check_program_config")

    def get_program_config(self) -> DistributeTranspilerConfig:
        """Options of the transpiler."""
        return self._program_config

    def set_trainer_runtime_config(self, config: Any) -> None:
        """Set options of the communicator."""
        held = self._trainer_runtime_config
        if isinstance(config, dict):
            for name, value in config.items():
                if name not in held.runtime_configs:
                    raise ValueError(f"TrainerRuntimeConfig doesn't have key: {name}")
                held.runtime_configs[name] = value
        else:
            self._trainer_runtime_config = _configured("trainer_runtime_config", held, config)
        self.check_trainer_runtime_config()

    def check_trainer_runtime_config(self) -> None:
        """Set the options of the communicator that this strategy requires."""
        raise self._unknown("check_trainer_runtime_config")

    def get_trainer_runtime_config(self) -> TrainerRuntimeConfig:
        """Options of the communicator."""
        return self._trainer_runtime_config

    def set_server_runtime_config(self, config: Any) -> None:
        """Set the numbers of threads of servers."""
        self._server_runtime_config = _configured(
            "server_runtime_config", self._server_runtime_config, config
        )
        self.check_server_runtime_config()

    def check_server_runtime_config(self) -> None:
        """Set the options of servers that this strategy requires."""
        raise self._unknown("check_server_runtime_config")

    def get_server_runtime_config(self) -> ServerRuntimeConfig:
        """The numbers of threads of servers."""
        return self._server_runtime_config

    def set_execute_strategy(self, config: Any) -> None:
        """Set options for running compiled programs."""
        self._execute_strategy = _configured("execute_strategy", self._execute_strategy, config)
        self.check_execute_strategy()

    def check_execute_strategy(self) -> None:
        """Set the options for running compiled programs that this strategy requires."""
        raise self._unknown("check_execute_strategy")

    def get_execute_strategy(self) -> ExecutionStrategy:
        """Options for running compiled programs."""
        return self._execute_strategy

    def set_build_strategy(self, config: Any) -> None:
        """Set options for building compiled programs."""
        self._build_strategy = _configured("build_strategy", self._build_strategy, config)
        self.check_build_strategy()

    def check_build_strategy(self) -> None:
        """Set the options for building compiled programs that this strategy requires."""
        raise self._unknown("check_build_strategy")

    def get_build_strategy(self) -> BuildStrategy:
        """Options for building compiled programs."""
        return self._build_strategy

    def _unknown(self, name: str) -> NotImplementedError:
        return NotImplementedError(
            f"{name} must be implemented by derived class. You should use StrategyFactory to create "
            "DistributedStrategy."
        )


def _configured(name: str, held: Any, config: Any) -> Any:
    """`config` if it is of the class of `held`, else `held` with the attributes of the dict `config`."""
    wanted = type(held).__name__
    if isinstance(config, type(held)):
        return config
    if not isinstance(config, dict):
        raise TypeError(f"{name} only accept input type: dict or {wanted}, got {type(config).__name__}")
    for key, value in config.items():
        if not hasattr(held, key):
            raise ValueError(f"{wanted} doesn't have key: {key}")
        setattr(held, key, value)
    return held


class _WithoutSteps(DistributedStrategy):
    """Base of strategies whose programs exchange variables through a communicator."""

    _mode: int
    _thread_barrier = False

    def __init__(self) -> None:
        super().__init__()
        self.check_program_config()
        self.check_trainer_runtime_config()
        self.check_server_runtime_config()
        self.check_execute_strategy()
        self.check_build_strategy()

    def check_program_config(self) -> None:
        config = self._program_config
        config.sync_mode = False
        config.runtime_split_send_recv = True
        self._choose(config)

    def _choose(self, config: DistributeTranspilerConfig) -> None:
        """Set further options of the transpiler."""

    def check_trainer_runtime_config(self) -> None:
        self._trainer_runtime_config.mode = self._mode

    def check_server_runtime_config(self) -> None:
        """Without effect: servers may have any number of threads."""

    def check_execute_strategy(self) -> None:
        self._execute_strategy.use_thread_barrier = self._thread_barrier

    def check_build_strategy(self) -> None:
        self._build_strategy.async_mode = True


class SyncStrategy(_WithoutSteps):
    """Servers average the gradients of all workers, which wait for the update."""

    _mode = DistributedMode.SYNC
    _thread_barrier = True

    def _choose(self, config: DistributeTranspilerConfig) -> None:
        config.half_async = True
        config.completely_not_async = True


class AsyncStrategy(_WithoutSteps):
    """Servers apply gradients when they arrive; workers do not wait."""

    _mode = DistributedMode.ASYNC


class HalfAsyncStrategy(_WithoutSteps):
    """Servers apply gradients when they arrive; a worker waits for its own gradients only."""

    _mode = DistributedMode.HALF_ASYNC
    _thread_barrier = True

    def _choose(self, config: DistributeTranspilerConfig) -> None:
        config.half_async = True


class GeoStrategy(_WithoutSteps):
    """Workers update their own parameters, and exchange the differences every `update_frequency` steps."""

    _mode = DistributedMode.GEO

    def __init__(self, update_frequency: int = 100) -> None:
        super().__init__()
        self._program_config.geo_sgd_need_push_nums = update_frequency

    def _choose(self, config: DistributeTranspilerConfig) -> None:
        config.geo_sgd_mode = True


class StrategyFactory:
    """Makes strategies."""

    @staticmethod
    def create_sync_strategy() -> SyncStrategy:
        """A `SyncStrategy`."""
        return SyncStrategy()

    @staticmethod
    def create_half_async_strategy() -> HalfAsyncStrategy:
        """A `HalfAsyncStrategy`."""
        return HalfAsyncStrategy()

    @staticmethod
    def create_async_strategy() -> AsyncStrategy:
        """An `AsyncStrategy`."""
        return AsyncStrategy()

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> GeoStrategy:
        """A `GeoStrategy` that exchanges every `update_frequency` steps."""
        return GeoStrategy(update_frequency)
