"""Descriptions of trainers, for scripts that make and print them, and the thread that calls fetch handlers.

`Executor.train_from_dataset` needs none: its arguments say everything.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import NotSupportedError
from ..base.storage.messages import Message
from ..executor import FetchHandler, LoDTensor, Scope

__all__ = ["DistMultiTrainer", "MultiTrainer", "PipelineTrainer", "TrainerDesc"]


class _Fetches(Message):
    fields = ((1, "fetch_var_names", [str]), (2, "fetch_var_str_format", [str]), (3, "print_period", 100))


class _Hogwild(Message):
    fields = ((1, "skip_ops", [str]), (2, "stat_var_names", [str]))


class _InsWeight(Message):
    fields = (
        (1, "need_adjust", False),
        (2, "nid_slot", ""),
        (3, "nid_adjw_threshold", 0.0),
        (4, "nid_adjw_ratio", 0.0),
        (5, "ins_weight_slot", ""),
    )


class TrainerMessage(Message):
    """The message that describes a trainer."""

    fields = (
        (1, "class_name", ""),
        (2, "device_worker_name", ""),
        (3, "thread_num", 0),
        (4, "binding_cpu", False),
        (5, "filelist", [str]),
        (6, "debug", False),
        (7, "fetch_config", _Fetches),
        (8, "use_cvm", False),
        (9, "dump_slot", False),
        (10, "scale_datanorm", -1.0),
        (11, "mpi_rank", -1),
        (12, "dump_fields_path", ""),
        (13, "dump_fields", [str]),
        (14, "dump_converter", ""),
        (15, "dump_param", [str]),
        (16, "mpi_size", -1),
        (17, "dump_file_num", 16),
        (18, "check_nan_var_names", [str]),
        (20, "adjust_ins_weight_config", _InsWeight),
        (21, "no_cvm", False),
        (22, "thread_barrier", False),
        (23, "loss_names", [str]),
        (101, "hogwild_param", _Hogwild),
    )


class TrainerDesc:
    """A description of a trainer (`fluid.trainer_desc.TrainerDesc`); `str` of it is Fluid's text.

    `proto_desc`: the message, whose fields are attributes. Two threads unless something else is said.
    """

    def __init__(self) -> None:
        self.proto_desc = TrainerMessage()
        self.proto_desc.thread_num = 2
        self._fleet_desc: Any = None
        self._device_worker: Any = None
        self._program: Any = None
        self._infer = False

    def _set_fetch_var_and_info(
        self, fetch_vars: Sequence[Any], fetch_info: Sequence[str], print_period: int
    ) -> None:
        config = self.proto_desc.fetch_config
        config.fetch_var_names += [var.name for var in fetch_vars]
        config.fetch_var_str_format += list(fetch_info)
        config.print_period = int(print_period)

    def _set_thread(self, thread_num: int) -> None:
        self.proto_desc.thread_num = int(thread_num)

    def _set_debug(self, debug: bool) -> None:
        self.proto_desc.debug = bool(debug)

    def _set_device_worker(self, device_worker: Any) -> None:
        self._device_worker = device_worker

    def _set_infer(self, infer: bool) -> None:
        self._infer = infer

    def _set_fleet_desc(self, fleet_desc: Any) -> None:
        self._fleet_desc = fleet_desc

    def _set_program(self, program: Any) -> None:
        self._program = program

    def _set_use_cvm(self, use_cvm: bool = False) -> None:
        self.proto_desc.use_cvm = bool(use_cvm)

    def _set_no_cvm(self, no_cvm: bool = False) -> None:
        self.proto_desc.no_cvm = bool(no_cvm)

    def _set_scale_datanorm(self, scale_datanorm: float = -1) -> None:
        self.proto_desc.scale_datanorm = float(scale_datanorm)

    def _set_dump_slot(self, dump_slot: bool) -> None:
        self.proto_desc.dump_slot = bool(dump_slot)

    def _set_mpi_rank(self, mpi_rank: int) -> None:
        self.proto_desc.mpi_rank = int(mpi_rank)

    def _set_mpi_size(self, mpi_size: int) -> None:
        self.proto_desc.mpi_size = int(mpi_size)

    def _set_dump_fields(self, dump_fields: Sequence[str]) -> None:
        self.proto_desc.dump_fields += list(dump_fields)

    def _set_dump_fields_path(self, path: str) -> None:
        self.proto_desc.dump_fields_path = path

    def _set_dump_file_num(self, dump_file_num: int) -> None:
        self.proto_desc.dump_file_num = int(dump_file_num)

    def _set_dump_converter(self, converter: str) -> None:
        self.proto_desc.dump_converter = converter

    def _set_dump_param(self, dump_param: Sequence[str]) -> None:
        self.proto_desc.dump_param += list(dump_param)

    def _set_thread_barrier(self, thread_barrier: bool) -> None:
        self.proto_desc.thread_barrier = bool(thread_barrier)

    def _set_check_nan_var_names(self, check_nan_var_names: Sequence[str]) -> None:
        self.proto_desc.check_nan_var_names += list(check_nan_var_names)

    def _set_loss_names(self, loss_names: Sequence[str]) -> None:
        self.proto_desc.loss_names += list(loss_names)

    def _set_adjust_ins_weight(self, config_dict: Mapping[str, Any]) -> None:
        config = self.proto_desc.adjust_ins_weight_config
        for _, name, default in _InsWeight.fields:
            setattr(config, name, type(default)(config_dict.get(name, default)))

    def _gen_trainer_desc(self) -> None:
        """Write down the kind of trainer, and how its worker works; AttributeError if none was set."""
        self.proto_desc.class_name = type(self).__name__
        self._device_worker._set_infer(self._infer)
        self._device_worker._set_program(self._program)
        self._device_worker._gen_worker_desc(self.proto_desc)

    def _desc(self) -> bytes:
        """The message as bytes."""
        return self.proto_desc.serialized()

    def __str__(self) -> str:
        return str(self.proto_desc)


class MultiTrainer(TrainerDesc):
    """Threads of one process: what `train_from_dataset` has."""


class DistMultiTrainer(TrainerDesc):
    """Threads of many processes; it can be described."""


class PipelineTrainer(TrainerDesc):
    """Stages of a pipeline; it can be described."""


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


local_logger = logging.getLogger("paddle.fluid.trainer_factory")

# Entries of `opt_info` that setters of a trainer have the names of.
_SETTINGS = (
    "use_cvm no_cvm scale_datanorm dump_slot mpi_rank mpi_size dump_fields dump_fields_path dump_file_num "
    "dump_converter dump_param check_nan_var_names adjust_ins_weight loss_names"
).split()


class TrainerFactory:
    """Makes descriptions of trainers (`fluid.trainer_factory.TrainerFactory`)."""

    def _create_trainer(self, opt_info: Mapping[str, Any] | None = None) -> TrainerDesc:
        """A trainer of the class and with the worker that `opt_info` names: a MultiTrainer with Hogwild if it is empty.

        Its other entries, such as `mpi_size` or `dump_fields`, are put into the description.
        """
        options = opt_info or {}
        here = sys.modules[__name__]
        trainer = getattr(here, options.get("trainer", "MultiTrainer"))()
        trainer._set_device_worker(getattr(here, options.get("device_worker", "Hogwild"))())
        if "fleet_desc" in options:
            trainer._device_worker._set_fleet_desc(options["fleet_desc"])
            trainer._set_fleet_desc(options["fleet_desc"])
        for name in _SETTINGS:
            if options.get(name) is not None:
                getattr(trainer, f"_set_{name}")(options[name])
        return trainer


class FetchHandlerMonitor:
    """Calls a handler with the values of variables of a scope periodically, between `start` and `stop`."""

    def __init__(self, scope: Scope, handler: FetchHandler) -> None:
        self.fetch_instance = handler
        self._ended = threading.Event()
        self.fetch_thread = threading.Thread(
            target=self.handler_launch_func,
            args=(scope, handler),
            name="fluidlite fetch monitor",
            daemon=True,
        )

    def handler_launch_func(self, scope: Scope, handler: FetchHandler) -> None:
        """The main function of the thread."""
        while not self._ended.wait(handler.period_secs):
            handler.handler({name: _held(scope, var.name) for name, var in handler.var_dict.items()})

    def start(self) -> None:
        self.fetch_thread.start()

    def stop(self) -> None:
        """Call no more, and wait for a call that is on."""
        self._ended.set()
        if self.fetch_thread.is_alive():
            self.fetch_thread.join()


def _held(scope: Scope, name: str) -> np.ndarray | None:
    found = scope.find_var(name)
    value = None if found is None or not found.is_set() else found.get()
    return np.array(value) if isinstance(value, LoDTensor) else None
