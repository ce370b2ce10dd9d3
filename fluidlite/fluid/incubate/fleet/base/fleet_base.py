"""Base classes of `fleet` and its optimizers (`fluid.incubate.fleet.base.fleet_base`)."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from .....base.place import CPUPlace
from .....executor import Executor
from .role_maker import MPISymetricRoleMaker, RoleMakerBase

__all__ = ["DistributedOptimizer", "Fleet", "Mode"]


class Mode:
    """TRANSPILER: parameter servers; PSLIB: those of Baidu's PSLib; COLLECTIVE: workers that exchange gradients."""

    TRANSPILER = 1
    PSLIB = 2
    COLLECTIVE = 3


BUILD_MODE = Mode.TRANSPILER
"""The kind of parameter servers."""


def is_transpiler() -> bool:
    """True: servers are programs that a transpiler makes, and not those of PSLib."""
    return BUILD_MODE == Mode.TRANSPILER


class Fleet(metaclass=ABCMeta):
    """Base of `fleet`: roles, collective operations and models of the processes that train together.

    Args:
        mode: one of `Mode`.
    """

    def __init__(self, mode: int) -> None:
        self._is_initialized = False
        self._mode = mode
        self._optimizer: Any = None
        self._role_maker: Any = None
        self._executor: Executor | None = None

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        """Determine the role of this process; to be called first.

        Args:
            role_maker: a role maker; None: an `MPISymetricRoleMaker`.

        Raises:
            TypeError: `role_maker` is no role maker.
        """
        self._executor = Executor(CPUPlace())
        if role_maker is not None and not isinstance(role_maker, RoleMakerBase):
            raise TypeError(
                f"role_maker must be an instance of RoleMakerBase, got {type(role_maker).__name__}"
            )
        self._role_maker = role_maker if role_maker is not None else MPISymetricRoleMaker()
        self._role_maker.generate_role()
        self._is_initialized = True

    def _role(self) -> Any:
        if self._role_maker is None:
            raise AttributeError("fleet has no role maker: call fleet.init(role_maker) first")
        return self._role_maker

    def is_first_worker(self) -> bool:
        """True for worker 0."""
        return bool(self._role().is_first_worker())

    def worker_index(self) -> int:
        """The index of this worker."""
        return int(self._role().worker_index())

    def worker_num(self) -> int:
        """The number of workers."""
        return int(self._role().worker_num())

    def is_worker(self) -> bool:
        """True if this process is a worker."""
        return bool(self._role().is_worker())

    def worker_endpoints(self, to_string: bool = False) -> Any:
        """The addresses of the workers, as a list or as one text with commas."""
        endpoints = self._role().get_trainer_endpoints()
        return ",".join(endpoints) if to_string else endpoints

    def server_num(self) -> int:
        """The number of parameter servers."""
        return len(self._role().get_pserver_endpoints())

    def server_index(self) -> int:
        """The index of this server."""
        return int(self._role().server_index())

    def server_endpoints(self, to_string: bool = False) -> Any:
        """The addresses of the parameter servers, as a list or as one text with commas."""
        endpoints = self._role().get_pserver_endpoints()
        return ",".join(endpoints) if to_string else endpoints

    def is_server(self) -> bool:
        """True if this process is a parameter server."""
        return bool(self._role().is_server())

    def split_files(self, files: Sequence[str]) -> list[str]:
        """This worker's share of `files`: a contiguous part; the first workers get one more if needed.

        Raises TypeError if `files` is no list.
        """
        if not isinstance(files, list):
            raise TypeError(f"files should be a list of file need to be read, got {type(files).__name__}")
        own, count = self.worker_index(), self.worker_num()
        each, more = divmod(len(files), count)
        begin = own * each + min(own, more)
        return files[begin : begin + each + (own < more)]

    def barrier_worker(self) -> None:
        """Wait for all workers."""
        self._role().barrier_worker()

    def all_reduce_worker(self, input: Any, output: Any) -> None:
        """Write the sum over all workers of `input` to `output`, an array or list of the same shape."""
        self._role().all_reduce_worker(input, output)

    @abstractmethod
    def init_worker(self) -> None:
        """Initialise a worker."""

    @abstractmethod
    def init_server(self, model_dir: str | None = None) -> None:
        """Initialise a server, with the model in `model_dir` if given."""

    @abstractmethod
    def run_server(self) -> None:
        """Serve until the workers have ended."""

    @abstractmethod
    def stop_worker(self) -> None:
        """Announce the end of this worker."""

    @abstractmethod
    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> Any:
        """Wrap `optimizer` for distributed training."""

    @abstractmethod
    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str],
        target_vars: Sequence[Any],
        main_program: Any = None,
        export_for_deployment: bool = True,
    ) -> Any:
        """Save a model for inference, as `fluid.io.save_inference_model` does."""

    @abstractmethod
    def save_persistables(self, executor: Executor, dirname: str, main_program: Any = None) -> Any:
        """Save the persistable variables, as `fluid.io.save_persistables` does."""


class DistributedOptimizer(metaclass=ABCMeta):
    """A wrapper of an optimizer for several processes.

    Args:
        optimizer: an optimizer for a single process.
        strategy: options of the distributed training.
    """

    def __init__(self, optimizer: Any, strategy: Any = None) -> None:
        self._optimizer = optimizer
        self._strategy = strategy

    @abstractmethod
    def backward(
        self,
        loss: Any,
        startup_program: Any = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> Any:
        """Append the gradients of `loss`; returns pairs of parameters and gradients."""

    @abstractmethod
    def apply_gradients(self, params_grads: Any) -> Any:
        """Append the updates by these gradients."""

    @abstractmethod
    def minimize(
        self,
        losses: Any,
        scopes: Any = None,
        startup_programs: Any = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
    ) -> Any:
        """Append gradients and updates, and change the programs for all processes."""


class DelegatingOptimizer(DistributedOptimizer):
    """Delegates `backward` and `apply_gradients` to the wrapped optimizer."""

    def backward(
        self,
        loss: Any,
        startup_program: Any = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> Any:
        return self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_gradients(self, params_grads: Any) -> Any:
        return self._optimizer.apply_gradients(params_grads)
