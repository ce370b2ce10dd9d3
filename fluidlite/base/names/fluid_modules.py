"""Modules of Fluid 1.8 and the modules here that have their role, and names for messages."""

from __future__ import annotations

_LAYERS = [
    "io",
    "learning_rate_scheduler",
    "metric_op",
    "ops",
    "rnn",
    "sequence_lod",
]

ALIASES = {
    "paddle": "fluidlite.paddle",
    "paddle.dataset": "fluidlite.dataset",
    "fluid": "fluidlite",
    "fluid.core.op_proto_and_checker_maker": "fluidlite.core.roles",
    "fluid.dataloader.dataloader_iter": "fluidlite.reader.watchdog",
    "fluid.dataset": "fluidlite.reader.slots.datasets",
    "fluid.data_feed_desc": "fluidlite.reader.slots.feed_description",
    "fluid.dygraph.dygraph_to_static.program_translator": "fluidlite.dygraph.jit.translator",
    **{f"fluid.layers.{name}": "fluidlite.layers" for name in _LAYERS},
}
"""Modules of Fluid with another name here."""


ADVICE = {
    "paddle.amp": "everything is computed in the types that it is in; leave auto_cast and GradScaler away",
    "paddle.distributed.fleet": "paddle.distributed has init_parallel_env, spawn and all_reduce; see also "
    "fluid.incubate.fleet.collective",
    "paddle.distribution": "paddle.normal, uniform, bernoulli and multinomial draw numbers",
    "paddle.hub": "put the source of the network into your script",
    "paddle.inference": "paddle.jit.load and paddle.static.load_inference_model run saved models",
    "paddle.linalg": "its functions are those of paddle and Tensor, such as paddle.norm",
    "paddle.onnx": "paddle.jit.save writes models as programs",
    "paddle.text": "read the texts in a paddle.io.Dataset of your own",
    "paddle.vision.models": "put the source of the network into your script",
    "paddle.vision.ops": "put what you need of it into your script",
}
"""Advice for modules of later Paddle that are missing here."""


def real_name(name: str) -> str:
    """The module of this package that would have the role of `name` in Fluid, whether it exists or not.

    `name` is `paddle...`, `paddle.fluid...` or, for short, `fluid...`: `paddle.fluid.io` gives
    `fluidlite.io`.
    """
    short = name.removeprefix("paddle.") if name.startswith("paddle.fluid") else name
    tail = ""
    while short not in ALIASES:
        short, _, last = short.rpartition(".")
        tail = f".{last}{tail}"
    return ALIASES[short] + tail


def fluid_name(module: str) -> str:
    """Fluid's name of a module of this package: `fluid.io` for `fluidlite.io`, `paddle` for `fluidlite.paddle`."""
    for prefix, name in (
        ("fluidlite.paddle", "paddle"),
        ("fluidlite.dataset", "paddle.dataset"),
        ("fluidlite", "fluid"),
    ):
        if module == prefix or module.startswith(prefix + "."):
            return name + module[len(prefix) :]
    return module
