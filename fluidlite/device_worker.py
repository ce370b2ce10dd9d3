"""`fluid.device_worker`: how threads of trainers work, for scripts that describe trainers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import missing
from .base.errors import NotSupportedError

if TYPE_CHECKING:
    from .trainer_desc import TrainerMessage

__all__ = ["DeviceWorker", "DownpourSGD", "DownpourSGDOPT", "Hogwild", "Section"]


class DeviceWorker:
    """The base class of workers (`fluid.device_worker.DeviceWorker`)."""

    def __init__(self) -> None:
        self._program: Any = None
        self._infer: bool | None = None
        self._fleet_desc: Any = None

    def _set_infer(self, infer: bool = False) -> None:
        self._infer = infer

    def _set_fleet_desc(self, fleet_desc: Any) -> None:
        self._fleet_desc = fleet_desc

    def _set_program(self, program: Any) -> None:
        self._program = program

    def _gen_worker_desc(self, trainer_desc: TrainerMessage) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not describe a worker: use Hogwild")


class Hogwild(DeviceWorker):
    """Threads that update the same parameters without waiting: what `train_from_dataset` does."""

    def _gen_worker_desc(self, trainer_desc: TrainerMessage) -> None:
        """Say so in the description of a trainer."""
        trainer_desc.device_worker_name = "HogwildWorker"
        if self._infer:
            trainer_desc.hogwild_param.skip_ops.append("feed")


class _OfServers(DeviceWorker):
    """Workers that need other processes; NotSupportedError when they are to be described."""

    def _gen_worker_desc(self, trainer_desc: TrainerMessage) -> None:
        raise NotSupportedError(
            f"{type(self).__name__} works with parameter servers or pipelines, which fluidlite does not have: use "
            "Hogwild, in one process"
        )


class DownpourSGD(_OfServers):
    """Not here; see `_gen_worker_desc`."""


class DownpourSGDOPT(_OfServers):
    """Not here; see `_gen_worker_desc`."""


class Section(_OfServers):
    """Not here; see `_gen_worker_desc`."""


class DeviceWorkerFactory:
    """Makes workers by name (`fluid.device_worker.DeviceWorkerFactory`)."""

    def _create_device_worker(self, worker_type: str) -> DeviceWorker:
        """A worker of the class whose name is `worker_type` with only its first letter large; KeyError for another."""
        kinds = {"Hogwild": Hogwild, "Section": Section}
        return kinds[worker_type.capitalize()]()


__getattr__ = missing.reporter(__name__)
