"""`fluid.trainer_factory`: trainers by their names, and the thread that calls fetch handlers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base import missing
from ..executor import FetchHandler, LoDTensor, Scope
from . import trainer_desc

__all__ = ["FetchHandler", "FetchHandlerMonitor", "TrainerFactory", "local_logger"]

local_logger = logging.getLogger("paddle.fluid.trainer_factory")

_SETTINGS = {
    "use_cvm": "_set_use_cvm",
    "no_cvm": "_set_no_cvm",
    "scale_datanorm": "_set_scale_datanorm",
    "dump_slot": "_set_dump_slot",
    "mpi_rank": "_set_mpi_rank",
    "mpi_size": "_set_mpi_size",
    "dump_fields": "_set_dump_fields",
    "dump_fields_path": "_set_dump_fields_path",
    "dump_file_num": "_set_dump_file_num",
    "dump_converter": "_set_dump_converter",
    "dump_param": "_set_dump_param",
    "check_nan_var_names": "_set_check_nan_var_names",
    "adjust_ins_weight": "_set_adjust_ins_weight",
    "loss_names": "_set_loss_names",
}


class TrainerFactory:
    """Makes descriptions of trainers (`fluid.trainer_factory.TrainerFactory`)."""

    def _create_trainer(self, opt_info: Mapping[str, Any] | None = None) -> trainer_desc.TrainerDesc:
        """A trainer of the class and with the worker that `opt_info` names: a MultiTrainer with Hogwild if it is empty.

        Its other entries, such as `mpi_size` or `dump_fields`, are put into the description.
        """
        options = opt_info or {}
        trainer = getattr(trainer_desc, options.get("trainer", "MultiTrainer"))()
        trainer._set_device_worker(getattr(trainer_desc, options.get("device_worker", "Hogwild"))())
        if "fleet_desc" in options:
            trainer._device_worker._set_fleet_desc(options["fleet_desc"])
            trainer._set_fleet_desc(options["fleet_desc"])
        for name, method in _SETTINGS.items():
            if options.get(name) is not None:
                getattr(trainer, method)(options[name])
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


__getattr__ = missing.reporter(__name__)
