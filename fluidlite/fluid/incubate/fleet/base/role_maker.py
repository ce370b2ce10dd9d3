"""Role makers determine the role and index of a process (`fluid.incubate.fleet.base.role_maker`)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .....distributed import Communicator, environment, world

__all__ = [
    "GeneralRoleMaker",
    "MPISymetricRoleMaker",
    "PaddleCloudRoleMaker",
    "Role",
    "RoleMakerBase",
    "UserDefinedCollectiveRoleMaker",
    "UserDefinedRoleMaker",
]


class Role:
    """The roles of processes: WORKER trains, SERVER keeps parameters."""

    WORKER = 1
    SERVER = 2


class MockBarrier:
    """Collective operations of a single process."""

    def barrier(self) -> None:
        """Without effect."""

    def barrier_all(self) -> None:
        """Without effect."""

    def all_reduce(self, obj: Any) -> Any:
        """`obj` itself."""
        return obj

    def all_gather(self, obj: Any) -> list[Any]:
        """`obj` alone."""
        return [obj]


class RoleMakerBase:
    """Base of role makers: addresses of workers and servers, and collective operations."""

    def __init__(self) -> None:
        self._worker_endpoints: list[str] = []
        self._server_endpoints: list[str] = []
        self._role_is_generated = False
        self._role: int | None = None
        self._current_id = -1

    def generate_role(self) -> None:
        """Determine the role of this process, once."""
        self._role_is_generated = True

    def is_worker(self) -> bool:
        """True if this process is a worker."""
        raise self._unknown("is_worker")

    def is_server(self) -> bool:
        """True if this process is a server."""
        raise self._unknown("is_server")

    def is_first_worker(self) -> bool:
        """True for worker 0."""
        raise self._unknown("is_first_worker")

    def worker_num(self) -> int:
        """The number of workers."""
        raise self._unknown("worker_num")

    def worker_index(self) -> int:
        """The index of this worker."""
        raise self._unknown("worker_index")

    def server_index(self) -> int:
        """The index of this server."""
        raise self._unknown("server_index")

    def _unknown(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not implement {name}")

    def get_trainer_endpoints(self) -> list[str]:
        """The addresses of the workers."""
        return self._worker_endpoints

    def get_pserver_endpoints(self) -> list[str]:
        """The addresses of the servers."""
        return self._server_endpoints

    def to_string(self) -> str:
        """The role, index and addresses as text."""
        return (
            f"role: {self._role}, current_id: {self._current_id}, worker_endpoints: {self._worker_endpoints}, "
            f"server_endpoints: {self._server_endpoints}"
        )

    def _workers(self) -> Communicator:
        """The communicator of the workers."""
        return world()

    def all_gather(self, input: Any) -> list[Any]:
        """Gather numbers, or arrays of one shape, of all workers, by rank."""
        array = np.asarray(input)
        gathered = self._workers().all_gather(array.reshape(1, *array.shape))
        return [part if array.ndim else part.item() for part in gathered]

    def all_reduce_worker(self, input: Any, output: Any, mode: str = "sum") -> None:
        """Write the sum, max or min over all workers of `input` to `output`, an array or list of the same shape."""
        reduced = self._workers().all_reduce(np.asarray(input), mode)
        if isinstance(output, list):
            output[:] = reduced.tolist()
        else:
            np.copyto(output, reduced)

    def barrier_worker(self) -> None:
        """Wait for all workers."""
        self._workers().barrier()

    def barrier_all(self) -> None:
        """Wait for all processes."""
        self._workers().barrier()


class _FromEnvironment(RoleMakerBase):
    """A role maker that reads its role from the environment on first use."""

    def is_worker(self) -> bool:
        self.generate_role()
        return self._role == Role.WORKER

    def is_server(self) -> bool:
        self.generate_role()
        return self._role == Role.SERVER

    def is_first_worker(self) -> bool:
        return self.is_worker() and self._current_id == 0

    def worker_index(self) -> int:
        self.generate_role()
        return self._current_id

    server_index = worker_index


class MPIRoleMaker(RoleMakerBase):
    """Base of role makers for processes started by mpiexec."""

    def _world(self) -> Communicator:
        environment.adopt()
        return world()

    def _get_rank(self) -> int:
        return self._world().rank

    def _get_size(self) -> int:
        return self._world().size

    def _all_gather(self, obj: Any) -> list[Any]:
        return self.all_gather(obj)

    def _worker_gather(self, obj: Any) -> list[Any]:
        return self.all_gather(obj)

    def _barrier_all(self) -> None:
        self.barrier_all()

    def _finalize(self) -> None:
        """Without effect: MPI ends with the process."""

    def get_local_ip(self) -> str:
        """The address of this machine."""
        return environment.trainer().endpoint.partition(":")[0] or "127.0.0.1"

    def generate_role(self) -> None:
        raise self._unknown("generate_role")


class MPISymetricRoleMaker(_FromEnvironment, MPIRoleMaker):
    """Processes of mpiexec are servers (even ranks) and workers (odd ranks), as in Fluid.

    A run of a single process has one worker and no server.
    """

    def __init__(self) -> None:
        super().__init__()
        self._node_type: int | None = None

    def generate_role(self) -> None:
        """Determine the role of this process, and the addresses of the servers."""
        if self._role_is_generated:
            return
        rank, size = self._get_rank(), self._get_size()
        self._node_type = 1 if size == 1 or rank % 2 else 0
        self._role = Role.WORKER if self._node_type else Role.SERVER
        self._current_id = rank // 2
        listed = environment.trainer().endpoints or environment.default_endpoints(size)
        self._server_endpoints = listed[0::2] if size > 1 else []
        self._worker_endpoints = listed[1::2] if size > 1 else listed
        self._role_is_generated = True

    def worker_num(self) -> int:
        self.generate_role()
        return max(1, self._get_size() // 2)

    def server_num(self) -> int:
        """The number of servers."""
        self.generate_role()
        return len(self._server_endpoints)


class PaddleCloudRoleMaker(_FromEnvironment):
    """The role in environment variables of `paddle.distributed.launch`, `fluidlite launch` and PaddleCloud.

    Args:
        is_collective: True for workers only (PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM, PADDLE_TRAINER_ENDPOINTS,
            PADDLE_CURRENT_ENDPOINT); then `is_worker` and `is_first_worker` are False in all of them, as in Fluid, and
            `worker_index` distinguishes them. False for workers and servers (TRAINING_ROLE,
            PADDLE_PSERVERS_IP_PORT_LIST, and for a server POD_IP and PADDLE_PORT).

    Raises:
        ValueError: from `generate_role`, if a variable is missing or invalid.
    """

    def __init__(self, is_collective: bool = False) -> None:
        super().__init__()
        self._is_collective = is_collective

    def generate_role(self) -> None:
        """Read the environment."""
        if self._role_is_generated:
            return
        environment.adopt()
        if self._is_collective:
            here = environment.trainer()
            self._current_id = here.rank
            self._training_role = os.getenv("PADDLE_TRAINING_ROLE", "TRAINER")
            self._worker_endpoints = here.endpoints or environment.default_endpoints(here.count)
            self._current_endpoint = here.endpoint or self._worker_endpoints[here.rank]
            self._trainers_num = len(self._worker_endpoints)
        else:
            self._read_servers()
        self._role_is_generated = True

    def _read_servers(self) -> None:
        role = os.environ.get("TRAINING_ROLE", "TRAINER")
        if role not in ("TRAINER", "PSERVER"):
            raise ValueError(f"TRAINING_ROLE must be PSERVER or TRAINER, got {role!r}")
        listed = os.environ.get("PADDLE_PSERVERS_IP_PORT_LIST", "")
        try:
            self._trainers_num = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
            self._server_endpoints = [endpoint for endpoint in listed.split(",") if endpoint]
            if role == "TRAINER":
                self._role, self._current_id = Role.WORKER, int(os.environ.get("PADDLE_TRAINER_ID", "0"))
            else:
                own = f"{os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}"
                self._role, self._current_id = Role.SERVER, self._server_endpoints.index(own)
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"invalid environment of a {role}: {error}; see PADDLE_TRAINERS_NUM, "
                "PADDLE_TRAINER_ID, PADDLE_PSERVERS_IP_PORT_LIST, POD_IP, PADDLE_PORT"
            ) from None

    def worker_num(self) -> int:
        self.generate_role()
        return self._trainers_num


class GeneralRoleMaker(PaddleCloudRoleMaker):
    """`PaddleCloudRoleMaker` with servers and barriers.

    Args:
        kwargs: `path`, `init_timeout_seconds`, `run_timeout_seconds` etc. for Fluid's rendezvous (Gloo, over files or
            HTTP); accepted and without effect: MPI is used.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._options = kwargs

    def generate_role(self) -> None:
        """Read the environment."""
        if self._role_is_generated:
            return
        super().generate_role()
        listed = environment.trainer().endpoints
        self._worker_endpoints = listed or environment.default_endpoints(self._trainers_num)

    def server_num(self) -> int:
        """The number of servers."""
        self.generate_role()
        return len(self._server_endpoints)

    def get_local_endpoint(self) -> str:
        """The address of this process."""
        self.generate_role()
        listed = self._worker_endpoints if self.is_worker() else self._server_endpoints
        return listed[self._current_id]

    def get_trainer_endpoints(self) -> list[str]:
        self.generate_role()
        return self._worker_endpoints

    def get_pserver_endpoints(self) -> list[str]:
        self.generate_role()
        return self._server_endpoints


class UserDefinedRoleMaker(RoleMakerBase):
    """A role given by the script.

    Args:
        current_id: the index of this worker or server; 0 or more.
        role: `Role.WORKER` or `Role.SERVER`.
        worker_num: the number of workers; 1 or more.
        server_endpoints: the addresses of the servers, without duplicates.

    Raises:
        TypeError: an argument is of a wrong type.
        ValueError: an argument is out of range.
    """

    def __init__(
        self,
        current_id: int = 0,
        role: int = Role.WORKER,
        worker_num: int = 0,
        server_endpoints: list[str] | None = None,
    ) -> None:
        super().__init__()
        self._server_endpoints = _endpoints("server_endpoints", server_endpoints)
        if role not in (Role.WORKER, Role.SERVER):
            raise TypeError(f"role must be as Role, Role.WORKER or Role.SERVER, got {role!r}")
        _check_id(current_id)
        if role == Role.SERVER and current_id >= len(self._server_endpoints):
            raise ValueError(
                "if role is Role.SERVER, current_id must be less than or equal to len(server_endpoints) - 1, "
                f"{len(self._server_endpoints) - 1}, got {current_id}"
            )
        if not isinstance(worker_num, int):
            raise TypeError(f"worker_num must be as int, got {type(worker_num).__name__}")
        if worker_num <= 0:
            raise ValueError(f"worker_num must be greater than 0, got {worker_num}")
        self._role, self._current_id, self._worker_num = role, current_id, worker_num

    def is_worker(self) -> bool:
        return self._role == Role.WORKER

    def is_server(self) -> bool:
        return self._role == Role.SERVER

    def is_first_worker(self) -> bool:
        return self._role == Role.WORKER and self._current_id == 0

    def worker_index(self) -> int:
        return self._current_id

    server_index = worker_index

    def worker_num(self) -> int:
        return self._worker_num


class UserDefinedCollectiveRoleMaker(RoleMakerBase):
    """A worker of a collective run, given by the script.

    Args:
        current_id: the index of this worker; 0 or more.
        worker_endpoints: the addresses of the workers, without duplicates.

    Raises:
        TypeError: an argument is of a wrong type.
        ValueError: an argument is out of range.
    """

    def __init__(self, current_id: int = 0, worker_endpoints: list[str] | None = None) -> None:
        super().__init__()
        self._worker_endpoints = _endpoints("worker_endpoints", worker_endpoints)
        _check_id(current_id)
        if current_id >= len(self._worker_endpoints):
            raise ValueError(
                "current_id must be less than or equal to len(worker_endpoints) - 1, "
                f"{len(self._worker_endpoints) - 1}, got {current_id}"
            )
        self._current_id = current_id
        self._worker_num = len(self._worker_endpoints)

    def is_worker(self) -> bool:
        return True

    def is_first_worker(self) -> bool:
        return self._current_id == 0

    def worker_index(self) -> int:
        return self._current_id

    def worker_num(self) -> int:
        return self._worker_num


def _endpoints(name: str, endpoints: Any) -> list[str]:
    """Check an argument with addresses and return it."""
    if not isinstance(endpoints, list):
        raise TypeError(f"{name} must be as string list, got {type(endpoints).__name__}")
    if not endpoints:
        raise ValueError(f"the length of {name} list must be greater than 0")
    for endpoint in endpoints:
        if not isinstance(endpoint, str):
            raise TypeError(f"every element in {name} list must be as string, got {endpoint!r}")
    if len(set(endpoints)) != len(endpoints):
        raise ValueError(f"{name} can't have duplicate elements, got {endpoints}")
    return endpoints


def _check_id(current_id: Any) -> None:
    if not isinstance(current_id, int):
        raise TypeError(f"current_id must be as int, got {type(current_id).__name__}")
    if current_id < 0:
        raise ValueError(f"current_id must be greater than or equal to 0, got {current_id}")
