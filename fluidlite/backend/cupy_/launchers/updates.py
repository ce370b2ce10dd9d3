"""Updates of parameters: kernels of `cuda/updates.cu`, which update many at once.

The addresses of the arrays are passed by value in the arguments of a launch, so that nothing is uploaded and graphs
may record them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import launch, library, modules
from ..device import CudaDevice

ENTRIES = 48
"""The number of parameters that one launch updates."""

_SHARE = 2048
_THREADS = 256
_WORDS = 10
_TABLE = np.dtype([("words", np.uint64, (ENTRIES * _WORDS + 1,))])

Attrs = Mapping[str, Any]


@dataclass(frozen=True)
class Rule:
    """One kind of update.

    `state`: the slots of a parameter's state, in the kernel's order; `results`: the slots whose arrays the
    operator returns, in its order; `numbers(attrs)`: the numbers that the kernel takes after its table.
    """

    state: tuple[str, ...]
    results: tuple[str, ...]
    numbers: Callable[[Attrs], tuple[Any, ...]]
    optional: tuple[str, ...] = ()
    rated: bool = True
    betas: tuple[str, ...] = ()
    tickets: bool = False
    singles: tuple[str, ...] = field(default=())
    """Slots of one element; all others are as large as the parameter."""


_ADAM = ("Moment1", "Moment2", "Beta1Pow", "Beta2Pow")
RULES: dict[str, Rule] = {
    "sgd": Rule((), ("Param",), lambda a: ()),
    "momentum": Rule(
        ("Velocity",), ("Param", "Velocity"), lambda a: (float(a["mu"]), bool(a["use_nesterov"]))
    ),
    "adam": Rule(
        _ADAM,
        ("Param", *_ADAM),
        lambda a: (
            float(a["beta1"]),
            1.0 - a["beta1"],
            float(a["beta2"]),
            1.0 - a["beta2"],
            float(a["epsilon"]),
        ),
        betas=("Beta1Tensor", "Beta2Tensor"),
        tickets=True,
        singles=("Beta1Pow", "Beta2Pow"),
    ),
    "adamax": Rule(
        ("Moment", "InfNorm", "Beta1Pow"),
        ("Param", "Moment", "InfNorm"),
        lambda a: (
            float(a["beta1"]),
            1.0 - a["beta1"],
            float(a["beta2"]),
            float(a["epsilon"]),
            float(a.get("carry", 1)),
        ),
        tickets=True,
        singles=("Beta1Pow",),
    ),
    "adagrad": Rule(("Moment",), ("Param", "Moment"), lambda a: (float(a["epsilon"]),)),
    "decayed_adagrad": Rule(
        ("Moment",),
        ("Param", "Moment"),
        lambda a: (float(a["decay"]), 1.0 - a["decay"], float(a["epsilon"])),
    ),
    "adadelta": Rule(
        ("AvgSquaredGrad", "AvgSquaredUpdate"),
        ("Param", "AvgSquaredGrad", "AvgSquaredUpdate"),
        lambda a: (float(a["rho"]), 1.0 - a["rho"], float(a["epsilon"])),
        rated=False,
    ),
    "rmsprop": Rule(
        ("Moment", "MeanSquare", "MeanGrad"),
        ("Param", "Moment", "MeanSquare", "MeanGrad"),
        lambda a: (
            float(a["decay"]),
            1.0 - a["decay"],
            float(a["momentum"]),
            float(a["epsilon"]),
            bool(a["centered"]),
        ),
        optional=("MeanGrad",),
    ),
    "ftrl": Rule(
        ("SquaredAccumulator", "LinearAccumulator"),
        ("Param", "SquaredAccumulator", "LinearAccumulator"),
        lambda a: (float(a["l1"]), float(a["l2"]), float(a["lr_power"])),
    ),
}
"""The updates that have a kernel, by operator type."""


def fits(op_type: str, entry: Mapping[str, Any], attrs: Attrs) -> bool:
    """Whether the kernel can update a parameter: the arrays of `entry` (by slot) are of one type, and contiguous."""
    rule = RULES[op_type]
    param, grad = entry["Param"], entry["Grad"]
    kept = [entry.get(slot) for slot in rule.state]
    if any(array is None for array, slot in zip(kept, rule.state, strict=True) if slot not in rule.optional):
        return False
    if attrs.get("centered") and entry.get("MeanGrad") is None:
        return False
    numbers = [array for slot in rule.betas if (array := entry.get(slot)) is not None]
    if not launch.real(param, grad, *kept, *numbers) or grad.shape != param.shape:
        return False
    if not all(array.flags.c_contiguous for array in (param, *kept) if array is not None):
        return False
    for slot, array in zip(rule.state, kept, strict=True):
        if array is not None and array.size != (1 if slot in rule.singles else param.size):
            return False
    rate = entry.get("LearningRate")
    return not rule.rated or (rate is not None and rate.size == 1 and launch.real(rate))


def update(device: CudaDevice, op_type: str, entries: Sequence[Mapping[str, Any]], attrs: Attrs) -> None:
    """Update parameters, all that `fits`, of one element type and with learning rates of one type; in place.

    `entries`: the arrays of each by slot; "Decay": a number times which the parameter is added to its gradient.
    Betas given as arrays are taken from the first entry for all. Attribute "ahead": Adam's beta powers are advanced
    before use.
    """
    rule = RULES[op_type]
    first = entries[0]
    dtype = first["Param"].dtype
    rate = first["LearningRate"].dtype if rule.rated else dtype
    numbers = rule.numbers(attrs)
    if rule.betas:
        numbers = (*numbers, *(first.get(slot) for slot in rule.betas), bool(attrs.get("ahead")))
    if rule.tickets:
        numbers = (*numbers, tickets(device))
    for start in range(0, len(entries), ENTRIES):
        grads = [launch.dense(device, entry["Grad"]) for entry in entries[start : start + ENTRIES]]
        table, blocks = _table(rule, entries[start : start + ENTRIES], grads)
        launch.grid(
            "updates", op_type, dtype, blocks, _THREADS, table, *numbers,
            macros={"RATE": modules.SCALARS[str(rate)]},
        )  # fmt: skip


def _table(rule: Rule, entries: Sequence[Mapping[str, Any]], grads: Sequence[Any]) -> tuple[np.ndarray, int]:
    """The table of a launch, and how many blocks it takes."""
    words: list[int] = []
    blocks = 0
    for entry, grad in zip(entries, grads, strict=True):
        param = entry["Param"]
        kept = [entry.get(slot) for slot in rule.state]
        pointers = [0 if array is None else array.data.ptr for array in kept]
        rate = entry["LearningRate"].data.ptr if rule.rated else 0
        decay = int(np.float64(entry.get("Decay", 0)).view(np.uint64))
        words += [param.data.ptr, grad.data.ptr, rate, *pointers, *[0] * (4 - len(pointers))]
        words += [decay, param.size, blocks]
        blocks += max(1, -(-param.size // _SHARE))
    table = np.zeros((), _TABLE)
    table["words"][: len(words)] = words
    table["words"][-1] = len(entries)
    return table, blocks


def make(op_type: str) -> Callable[..., Any]:
    """The launcher of an update operator of type `op_type`."""
    rule = RULES[op_type]

    def one(
        device: CudaDevice, Param: Any, Grad: Any, LearningRate: Any = None, Velocity: Any = None,
        Moment: Any = None, InfNorm: Any = None, Moment1: Any = None, Moment2: Any = None, Beta1Pow: Any = None,
        Beta2Pow: Any = None, Beta1Tensor: Any = None, Beta2Tensor: Any = None, AvgSquaredGrad: Any = None,
        AvgSquaredUpdate: Any = None, MeanSquare: Any = None, MeanGrad: Any = None, SquaredAccumulator: Any = None,
        LinearAccumulator: Any = None, **attrs: Any,
    ) -> Any:  # fmt: skip
        entry = {
            "Param": Param, "Grad": Grad, "LearningRate": LearningRate, "Velocity": Velocity, "Moment": Moment,
            "InfNorm": InfNorm, "Moment1": Moment1, "Moment2": Moment2, "Beta1Pow": Beta1Pow, "Beta2Pow": Beta2Pow,
            "Beta1Tensor": Beta1Tensor, "Beta2Tensor": Beta2Tensor, "AvgSquaredGrad": AvgSquaredGrad,
            "AvgSquaredUpdate": AvgSquaredUpdate, "MeanSquare": MeanSquare, "MeanGrad": MeanGrad,
            "SquaredAccumulator": SquaredAccumulator, "LinearAccumulator": LinearAccumulator,
        }  # fmt: skip
        if not fits(op_type, entry, attrs):
            return NotImplemented
        update(device, op_type, [entry], attrs)
        made = tuple(entry[slot] for slot in rule.results)
        return made if len(made) > 1 else made[0]

    return one


_made: dict[tuple[int, bool], Any] = {}


def tickets(device: CudaDevice) -> Any:
    """A counter of finished blocks for each entry; all zero between launches.

    Launches that share counters must be in order: the main stream and graphs have one set, other streams another.
    """
    key = device.number, device.aside
    found = _made.get(key)
    if found is None:
        with device.lock:
            found = _made.get(key)
            if found is None:
                found = _made[key] = device.put(np.zeros(ENTRIES, "uint32"))
    return found


@library.on_forget
def _forget() -> None:
    _made.clear()
