"""Updates of parameters: kernels of `cuda/updates.cu`, which update many at once.

The addresses of the arrays are passed by value in the arguments of a launch, so that nothing is uploaded and graphs
may record them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....base.selected_rows import SelectedRows
from .. import launch, library
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
            macros={"RATE": launch.SCALARS[str(rate)]},
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


# Updates of the rows of `SelectedRows` without a synchronization: the number of distinct rows stays on the GPU.
#
# Merged rows keep the original length, padded with row -1, as in plans on the CPU.

_MOST = 16384
"""The most rows that are merged here, by comparing each with all others."""

_WIDTH = 128


def _merged(device: CudaDevice, grad: SelectedRows) -> SelectedRows:
    """Every distinct row once, with its values added in order; padded with row -1."""
    xp = device.xp
    rows, values = launch.dense(device, grad.rows), launch.dense(device, grad.values)
    made = SelectedRows(xp.empty_like(rows), xp.empty_like(values), grad.height)
    if len(rows):
        width = values.size // len(rows)
        sizes = (len(rows), width, grad.height)
        launch.grid(
            "rows", "merge_rows", values.dtype, len(rows), _WIDTH, rows, values, made.rows, made.values, *sizes,
            macros=_macros(values.dtype),
        )  # fmt: skip
    return made


def _macros(rate: Any) -> dict[str, str]:
    return {"RATE": launch.SCALARS[str(rate)]}


def _takes(op_type: str, grad: SelectedRows, entry: dict[str, Any], attrs: dict[str, Any]) -> bool:
    """Whether the kernels can update these tables."""
    if len(grad.rows) > _MOST or grad.rows.dtype != "int64" or not launch.real(grad.values, entry["Param"]):
        return False
    like = {**entry, "Grad": entry["Param"]}  # a dense gradient of the same type and shape
    return grad.shape == entry["Param"].shape and fits(op_type, like, attrs)


def _run(kernel: str, grad: SelectedRows, rate: Any, arrays: tuple[Any, ...], *numbers: Any) -> None:
    """Launch a kernel for each value of merged rows; the first of `arrays` is the parameter."""
    size = grad.values.size
    width = size // max(1, len(grad.rows))
    param, *state = arrays
    launch.each(
        "rows", kernel, param.dtype, size, grad.rows, grad.values, param, rate, *state, size, width, *numbers,
        macros=_macros(rate.dtype),
    )  # fmt: skip


def sgd(device: CudaDevice, Param: Any, Grad: Any, LearningRate: Any) -> Any:
    """Launcher of `sgd` for SelectedRows."""
    if not _takes("sgd", Grad, {"Param": Param, "LearningRate": LearningRate}, {}):
        return NotImplemented
    _run("sgd_rows", _merged(device, Grad), LearningRate, (Param,))
    return Param


def adagrad(device: CudaDevice, Param: Any, Grad: Any, Moment: Any, LearningRate: Any, epsilon: float) -> Any:
    """Launcher of `adagrad` for SelectedRows."""
    entry = {"Param": Param, "Moment": Moment, "LearningRate": LearningRate}
    if not _takes("adagrad", Grad, entry, {}):
        return NotImplemented
    _run("adagrad_rows", _merged(device, Grad), LearningRate, (Param, Moment), float(epsilon))
    return Param, Moment


def adam(
    device: CudaDevice, Param: Any, Grad: Any, LearningRate: Any, Moment1: Any, Moment2: Any, Beta1Pow: Any,
    Beta2Pow: Any, Beta1Tensor: Any, Beta2Tensor: Any, beta1: float, beta2: float, epsilon: float, lazy_mode: bool,
) -> Any:  # fmt: skip
    """Launcher of `adam` for SelectedRows: of the rows that are named, or with zeros for the others."""
    entry = {
        "Param": Param, "LearningRate": LearningRate, "Moment1": Moment1, "Moment2": Moment2, "Beta1Pow": Beta1Pow,
        "Beta2Pow": Beta2Pow, "Beta1Tensor": Beta1Tensor, "Beta2Tensor": Beta2Tensor,
    }  # fmt: skip
    attrs = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "ahead": True}
    if not _takes("adam", Grad, entry, attrs) or (lazy_mode and not Grad.values.size):
        return NotImplemented
    grad = _merged(device, Grad)
    if lazy_mode:
        numbers = (float(beta1), 1.0 - beta1, float(beta2), 1.0 - beta2, float(epsilon))
        arrays = (Param, Moment1, Moment2, Beta1Pow, Beta2Pow)
        given = (Beta1Tensor, Beta2Tensor, tickets(device))
        _run("adam_rows", grad, LearningRate, arrays, *numbers, *given)
    else:
        table = device.xp.zeros_like(Param)
        size = grad.values.size
        sizes = (size, size // max(1, len(grad.rows)))
        macros = _macros(Param.dtype)
        launch.each(
            "rows", "spread_rows", Param.dtype, size, grad.rows, grad.values, table, *sizes, macros=macros
        )
        update(device, "adam", [{**entry, "Grad": table}], attrs)
    return Param, Moment1, Moment2, Beta1Pow, Beta2Pow


TABLE_ENTRIES = 96
"""The number of arrays that one launch takes."""

_MULTI_TENSOR_SHARE = 8192
_MULTI_TENSOR_TABLE = np.dtype([("words", np.uint64, (4 * TABLE_ENTRIES + 1,))])


def _multi_tensor_table(sources: Sequence[Any], targets: Sequence[Any]) -> tuple[np.ndarray, int]:
    """The `Table` of `many.cu`, and the number of blocks. It is passed by value, so nothing is uploaded."""
    words: list[int] = []
    blocks = 0
    for source, target in zip(sources, targets, strict=True):
        words += [source.data.ptr, 0 if target is None else target.data.ptr, source.size, blocks]
        blocks += max(1, -(-source.size // _MULTI_TENSOR_SHARE))
    table = np.zeros((), _MULTI_TENSOR_TABLE)
    table["words"][: len(words)] = words
    table["words"][-1] = len(sources)
    return table, blocks


def sums_of_squares(device: CudaDevice, arrays: Sequence[Any]) -> list[Any]:
    """The sum of the squares of each array, as arrays of one element. All are float32, or all float64."""
    found: list[Any] = []
    for start in range(0, len(arrays), TABLE_ENTRIES):
        some = [launch.dense(device, array) for array in arrays[start : start + TABLE_ENTRIES]]
        table, blocks = _multi_tensor_table(some, [None] * len(some))
        out, part = (device.xp.empty((count,), some[0].dtype) for count in (len(some), blocks))
        args = (table, part, out, tickets(device))
        launch.grid("many", "sums_of_squares", out.dtype, blocks, launch.THREADS, *args)
        found += [out[k : k + 1] for k in range(len(some))]
    return found


def scaled(device: CudaDevice, arrays: Sequence[Any], factor: Any) -> list[Any]:
    """Each array times the one element of `factor`. All are of one type, float32 or float64."""
    found: list[Any] = []
    for start in range(0, len(arrays), TABLE_ENTRIES):
        some = [launch.dense(device, array) for array in arrays[start : start + TABLE_ENTRIES]]
        made = [device.xp.empty(array.shape, array.dtype) for array in some]
        table, blocks = _multi_tensor_table(some, made)
        launch.grid("many", "scaled", factor.dtype, blocks, launch.THREADS, table, factor)
        found += made
    return found
