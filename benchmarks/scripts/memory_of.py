"""The memory of a model's steps. usage: memory_of.py SCRIPT MODEL, with SCRIPT one that measures models"""

import gc
import importlib
import runpy
import sys
import time
from pathlib import Path

import models_data
import timing


def status(name):
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":")) / 1024


def of_the_plan(metrics, model):
    """What is known of temporaries here, if this is fluidlite."""
    module = sys.modules.get("fluidlite.executor.cpu.plan")
    plans = [thing for thing in gc.get_objects() if module and type(thing) is module.Plan]
    if not plans:
        return
    from fluidlite.base.sizes import current

    plan = max(plans, key=lambda plan: len(plan.ops))
    changes = dict.fromkeys(range(len(plan.ops) + 3), 0)
    for storage in {id(storage): storage for storage in plan.assembly.storages.values()}.values():
        size = current(storage.bytes)
        changes[storage.first] += size
        changes[storage.last + 1] -= size
    alive = most = 0
    for change in changes.values():
        alive += change
        most = max(most, alive)
    parameters = sum(tensor.array.nbytes for tensor in plan._tensors().values())
    metrics[model + ", parameters"] = [parameters / 2**20]
    metrics[model + ", alive"] = [most / 2**20]
    metrics[model + ", arena"] = [plan.engine.arena_bytes / 2**20]


def some_steps(step, seconds):
    times = []
    for _ in range(6):
        begin = time.process_time()
        step()
        times.append(1e3 * (time.process_time() - begin))
    metrics[model + ", step"] = times[2:]
    of_the_plan(metrics, model)
    return [0.0]


script, model = sys.argv[1:]
if model == "bert-base":
    models_data.WIDTH, models_data.HEADS, models_data.LENGTH, models_data.TEXTS, models_data.LAYERS = (
        768,
        12,
        128,
        4,
        12,
    )
elif model == "resnet-50-224":
    models_data.IMAGES["resnet-50"] = (8, 3, 224, 224)
metrics = {}
result, timing.blocks, timing.result = timing.result, some_steps, lambda _: None
importlib.import_module("torch" if "torch" in script else "paddle.fluid")
before = status("VmRSS")
sys.argv = [script, "0", "encoder" if model == "bert-base" else model.replace("-224", "")]
runpy.run_path(str(Path(__file__).with_name(script)))
metrics[model] = [status("VmHWM") - before]
result(metrics)
