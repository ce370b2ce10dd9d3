"""Descriptions of trainers: the text and bytes that Paddle 1.8.5 gives for the same calls."""

import time

import numpy as np

from fluidlite import layers
from fluidlite.base.errors import NotSupportedError
from fluidlite.data import data
from fluidlite.device_worker import DeviceWorker, DeviceWorkerFactory, DownpourSGD, Hogwild, Section
from fluidlite.executor import FetchHandler, Scope
from fluidlite.trainer_desc import DistMultiTrainer, MultiTrainer, PipelineTrainer, TrainerDesc
from fluidlite.trainer_factory import FetchHandlerMonitor, TrainerFactory

from ..refusals import refuses


def described(trainer, infer=False):
    trainer._set_device_worker(Hogwild())
    trainer._set_infer(infer)
    trainer._gen_trainer_desc()
    return trainer


def test_new_descriptions_say_two_threads():
    for kind in (TrainerDesc, MultiTrainer, DistMultiTrainer, PipelineTrainer):
        assert str(kind()) == "thread_num: 2\n" and kind()._desc() == b"\x18\x02"


def test_generated_descriptions(programs):
    y = layers.fc(data("x", [None, 2]), 1)
    trainer = MultiTrainer()
    trainer._set_program(programs[0])
    trainer._set_thread(3)
    trainer._set_debug(True)
    trainer._set_fetch_var_and_info([y], ["y"], 10)
    assert described(trainer)._desc() == (
        b"\n\x0cMultiTrainer\x12\rHogwildWorker\x18\x030\x01:\x11\n\n" + y.name.encode() + b"\x12\x01y\x18\n"
    )
    trainer = described(MultiTrainer(), infer=True)
    assert trainer._desc() == b"\n\x0cMultiTrainer\x12\rHogwildWorker\x18\x02\xaa\x06\x06\n\x04feed"
    assert str(trainer) == (
        'class_name: "MultiTrainer"\ndevice_worker_name: "HogwildWorker"\nthread_num: 2\n'
        'hogwild_param {\n  skip_ops: "feed"\n}\n'
    )
    trainer = described(PipelineTrainer())
    trainer._set_mpi_rank(-1)
    trainer._set_debug(True)
    assert trainer._desc() == (
        b"\n\x0fPipelineTrainer\x12\rHogwildWorker\x18\x020\x01X\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    )
    refuses(lambda: MultiTrainer()._gen_trainer_desc(), AttributeError)


def test_every_setting_is_written():
    trainer = MultiTrainer()
    trainer._set_adjust_ins_weight({})
    trainer._set_scale_datanorm()
    trainer._set_use_cvm()
    trainer._set_no_cvm()
    trainer._set_fetch_var_and_info([], [], 10)
    assert trainer._desc() == (
        b"\x18\x02:\x02\x18\n@\x00U\x00\x00\x80\xbf\xa2\x01\x10\x08\x00\x12\x00\x1d\x00\x00\x00\x00%\x00\x00\x00\x00*"
        b"\x00\xa8\x01\x00"
    )
    trainer = MultiTrainer()
    trainer._set_mpi_rank(1)
    trainer._set_mpi_size(2)
    trainer._set_dump_slot(True)
    trainer._set_dump_fields(["a", "b"])
    trainer._set_dump_fields_path("p")
    trainer._set_dump_file_num(3)
    trainer._set_dump_converter("c")
    trainer._set_dump_param(["w"])
    trainer._set_thread_barrier(True)
    trainer._set_scale_datanorm(0.5)
    trainer._set_check_nan_var_names(["q"])
    trainer._set_loss_names(["l"])
    assert str(trainer) == (
        'thread_num: 2\ndump_slot: true\nscale_datanorm: 0.5\nmpi_rank: 1\ndump_fields_path: "p"\n'
        'dump_fields: "a"\ndump_fields: "b"\ndump_converter: "c"\ndump_param: "w"\nmpi_size: 2\n'
        'dump_file_num: 3\ncheck_nan_var_names: "q"\nthread_barrier: true\nloss_names: "l"\n'
    )


def test_factories():
    made = TrainerFactory()._create_trainer()
    assert type(made) is MultiTrainer and type(made._device_worker) is Hogwild
    made = TrainerFactory()._create_trainer(
        {"trainer": "DistMultiTrainer", "device_worker": "DownpourSGD", "fleet_desc": None, "mpi_size": 3}
    )
    assert type(made) is DistMultiTrainer and made._desc() == b"\x18\x02\x80\x01\x03"
    assert type(made._device_worker) is DownpourSGD
    assert type(DeviceWorkerFactory()._create_device_worker("Hogwild")) is Hogwild
    refuses(lambda: DeviceWorkerFactory()._create_device_worker("DownpourSGD"), KeyError, "Downpoursgd")
    refuses(lambda: Section()._gen_worker_desc(made.proto_desc), NotSupportedError, "parameter servers")
    refuses(lambda: DeviceWorker()._gen_worker_desc(made.proto_desc), NotImplementedError, "use Hogwild")


def test_a_monitor_looks_at_a_scope(programs):
    scope, seen = Scope(), []
    scope.var("x").get_tensor().set(np.array([1.0, 2.0]))

    class Watcher(FetchHandler):
        def handler(self, values):
            seen.append(values)

    monitor = FetchHandlerMonitor(scope, Watcher({"a": data("x", [2]), "b": data("none", [2])}, 0.005))
    monitor.start()
    while not seen:
        time.sleep(0.005)
    monitor.stop()
    count = len(seen)
    assert seen[0]["a"].tolist() == [1.0, 2.0] and seen[0]["b"] is None
    time.sleep(0.03)
    assert len(seen) == count
