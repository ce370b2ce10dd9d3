"""What the kinds of `fleet` have in common (`fluid.incubate.fleet.base.fleet_base`)."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ....base import missing
from ....base.place import CPUPlace
from ....executor import Executor
from .mode import Mode
from .role_maker import MPISymetricRoleMaker, RoleMakerBase

__all__ = ["DistributedOptimizer", "Fleet", "Mode"]


class Fleet(metaclass=ABCMeta):
    """The processes that train together, as one of them sees them.

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
        """Say which process this is; before everything else.

        Args:
            role_maker: knows; None: an `MPISymetricRoleMaker`.

        Raises:
            TypeError: it is no role maker.
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
            raise AttributeError(
                "fleet does not know yet which process this is: call fleet.init(role_maker) first"
            )
        return self._role_maker

    def is_first_worker(self) -> bool:
        """Whether this is worker 0."""
        return bool(self._role().is_first_worker())

    def worker_index(self) -> int:
        """The number of this worker."""
        return int(self._role().worker_index())

    def worker_num(self) -> int:
        """How many workers there are."""
        return int(self._role().worker_num())

    def is_worker(self) -> bool:
        """Whether this process is a worker."""
        return bool(self._role().is_worker())

    def worker_endpoints(self, to_string: bool = False) -> Any:
        """The addresses of the workers, as a list or as one text with commas."""
        found = self._role().get_trainer_endpoints()
        return ",".join(found) if to_string else found

    def server_num(self) -> int:
        """How many parameter servers there are."""
        return len(self._role().get_pserver_endpoints())

    def server_index(self) -> int:
        """The number of this server."""
        return int(self._role().server_index())

    def server_endpoints(self, to_string: bool = False) -> Any:
        """The addresses of the parameter servers, as a list or as one text with commas."""
        found = self._role().get_pserver_endpoints()
        return ",".join(found) if to_string else found

    def is_server(self) -> bool:
        """Whether this process is a parameter server."""
        return bool(self._role().is_server())

    def split_files(self, files: Sequence[str]) -> list[str]:
        """The part of `files` that this worker reads: as many one after the other as the others, or one more.

        The first workers get one more if it does not come out even. Raises TypeError if `files` is no list.
        """
        if not isinstance(files, list):
            raise TypeError(f"files should be a list of file need to be read, got {type(files).__name__}")
        own, count = self.worker_index(), self.worker_num()
        each, more = divmod(len(files), count)
        begin = own * each + min(own, more)
        return files[begin : begin + each + (own < more)]

    def barrier_worker(self) -> None:
        """Wait until all workers are here."""
        self._role().barrier_worker()

    def all_reduce_worker(self, input: Any, output: Any) -> None:
        """Put the sum over all workers of `input` into `output`, arrays or lists of one shape."""
        self._role().all_reduce_worker(input, output)

    @abstractmethod
    def init_worker(self) -> None:
        """Get a worker ready."""

    @abstractmethod
    def init_server(self, model_dir: str | None = None) -> None:
        """Get a server ready, with the model in `model_dir` if there is one."""

    @abstractmethod
    def run_server(self) -> None:
        """Serve until the workers have ended."""

    @abstractmethod
    def stop_worker(self) -> None:
        """Say that this worker has ended."""

    @abstractmethod
    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> Any:
        """`optimizer` for all workers together."""

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
    """An optimizer for several processes, on one that is for a single one.

    Args:
        optimizer: that one.
        strategy: how the processes work together.
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
    """Calls, for the parts of a step, those of the optimizer that it is made on."""

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


__getattr__ = missing.reporter(__name__)
