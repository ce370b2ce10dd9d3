"""Kernels that work element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.sizes import SymFloat, SymInt
from ..op_view import Call
from .fusion import Epilogue, Operand, Repeated, Step, Steps
from .kernel_def import INTEGER, NUMERIC, KernelDef, declare
from .layouts import SameLayout, bias_grad_in_blocks, bias_in_blocks

_CASTS = ("f32", "f64", "i32", "i64", "u8", "b1")

ACTIVATIONS = {1: "relu", 2: "sigmoid", 3: "tanh"}
"""The activations that kernels can end with, by number."""


def per_element(kernel: KernelDef, call: Call) -> Steps:
    """One step, whose first integer is the number of elements."""
    made = [call.operands[kernel.places[name]] for name in kernel.made]
    names = tuple([name for name in made if name is not None])
    step = Step(call.kernel, tuple(call.operands), names, tuple(call.ints[1:]), tuple(call.floats))
    return Steps(call.ints[0], (step,))


def _broadcast_middle(whole: str) -> Callable[[KernelDef, Call], Steps | None]:
    """Y meets the middle axis of X: the kernel `whole` on a repeated Y, and the activation that the call ends with."""

    def steps(kernel: KernelDef, call: Call) -> Steps | None:
        if "DY" in kernel.places and kernel.operand(call, "DY") is not None:
            return None  # the gradient of Y is a sum
        pre, n, post, *act = call.ints
        y, out = kernel.operand(call, "Y"), kernel.operand(call, kernel.made[0])
        assert out is not None
        operands: list[Operand] = list(call.operands)
        operands[kernel.places["Y"]] = None if y is None else Repeated(y, n, post)
        made = [Step(f"{whole}.{call.type}", tuple(operands), (out,))]
        if act and act[0]:
            made.append(Step(f"{ACTIVATIONS[act[0]]}.{call.type}", (out, out), (out,)))
        return Steps(pre * n * post, tuple(made))

    return steps


def _unless_divided(kernel: KernelDef, call: Call) -> Steps | None:
    """Costs of each element, unless they are divided by how many count."""
    return None if call.ints[kernel.int_places["normalize"]] else per_element(kernel, call)


def _repeated_fill(kernel: KernelDef, call: Call) -> Steps | None:
    """The gradient of a sum over all axes before, or behind, those that stay."""
    source, out = call.operands
    pre, n, post = call.ints
    assert source is not None and out is not None
    if isinstance(post, int) and post == 1:
        layout = Repeated(source, pre, n)
    elif isinstance(pre, int) and pre == 1:
        layout = Repeated(source, post, 1)
    else:
        return None
    step = Step(f"scale.{call.type}", (layout, out), (out,), (1,), (call.floats[0], 0.0))
    return Steps(pre * n * post, (step,))


def _sum_of_one(kernel: KernelDef, call: Call) -> Sequence[tuple[str, str]]:
    return [("Out", "X")] if len(call.operands) == 2 else []


def _scaled_by_one(kernel: KernelDef, call: Call) -> Sequence[tuple[str, str]]:
    is_number = not isinstance(call.floats[0], SymFloat | SymInt)
    return [("Out", "X")] if is_number and list(call.floats) == [1, 0] else []


def _gradients_of_sums(*results: str) -> Callable[[KernelDef, Call], Sequence[tuple[str, str]]]:
    return lambda kernel, call: [(name, "DOut") for name in results if kernel.operand(call, name) is not None]


_DX = {"elementwise_add": _gradients_of_sums("DX"), "elementwise_sub": _gradients_of_sums("DX")}
_DX_AND_DY = {**_DX, "elementwise_add": _gradients_of_sums("DX", "DY")}
_GRADS = "X? Y? Out? DOut DX? DY?"


def _named(pattern: str, functions: str) -> str:
    """The names of kernels of several functions."""
    return " ".join(map(pattern.format, functions.split()))


_ARITHMETIC = "add sub mul div max min pow"
declare(
    _named("elementwise_{}", _ARITHMETIC),
    "X Y Out",
    ints="n",
    types=NUMERIC,
    alias="Out=X Out=Y",
    elementwise=per_element,
)
for _name in _ARITHMETIC.split():
    _op, _adds = f"elementwise_{_name}", _name == "add"
    declare(
        f"{_op}_mid",
        "X Y Out",
        ints="pre n post act?",
        types=NUMERIC,
        alias="Out=X",
        elementwise=_broadcast_middle(_op),
        epilogue=Epilogue(activation="act") if _adds else None,
        images=SameLayout("X Out", bias_in_blocks, last_act=0) if _adds else None,
    )
    declare(
        f"{_op}_grad",
        _GRADS,
        "DX DY",
        ints="n",
        alias="DX=DOut DY=DOut",
        elementwise=per_element,
        copies=_DX_AND_DY.get(_op),
    )
    declare(
        f"{_op}_mid_grad",
        _GRADS,
        "DX DY",
        ints="pre n post",
        alias="DX=DOut",
        elementwise=_broadcast_middle(f"{_op}_grad"),
        images=SameLayout("DOut DX", bias_grad_in_blocks) if _adds else None,
        copies=_DX.get(_op),
    )
    declare(
        f"{_op}_dims_grad", _GRADS, "DX DY", ints="rank sizes* stands*", alias="DX=DOut", copies=_DX.get(_op)
    )
_DIMS: dict[str, Any] = {"ints": "rank sizes* stands*", "alias": "Out=X"}
declare(_named("elementwise_{}_dims", _ARITHMETIC), "X Y Out", types=NUMERIC, **_DIMS)

_WHOLE = "mod floordiv"
declare(_named("elementwise_{}", _WHOLE), "X Y Out", ints="n", types=INTEGER, alias="Out=X Out=Y")
declare(_named("elementwise_{}_mid", _WHOLE), "X Y Out", ints="pre n post act?", types=INTEGER, alias="Out=X")
declare(_named("elementwise_{}_dims", _WHOLE), "X Y Out", types=INTEGER, **_DIMS)

_COMPARISONS = "equal not_equal less_than less_equal greater_than greater_equal"
declare(_COMPARISONS, "X Y Out", ints="n", types=NUMERIC)
declare(_named("{}_mid", _COMPARISONS), "X Y Out", ints="pre n post", types=NUMERIC)
declare("logical_and logical_or logical_xor", "X Y Out", ints="n", types="u8", alias="Out=X Out=Y")
declare("logical_not", "X Out", ints="n", types="u8", alias="Out=X")

_KEPT = {"Out": "X? Out DOut DX", "X": "X Out? DOut DX", "": "X? Out? DOut DX"}
"""The operands of gradients by what they need."""

_FUNCTIONS = {
    "relu sigmoid tanh exp sqrt rsqrt reciprocal": ("", "Out"),
    "selu": ("scale alpha", "Out"),
    "relu6": ("threshold", "Out"),
    "log square abs softsign softplus logsigmoid tanh_shrink sin cos erf silu": ("", "X"),
    "sign floor ceil": ("", ""),
    "leaky_relu elu": ("alpha", "X"),
    "pow": ("factor", "X"),
    "swish": ("beta", "X"),
    "stanh": ("scale_a scale_b", "X"),
    "hard_sigmoid": ("slope offset", "Out"),
    "clip brelu": ("min max", "X"),
    "softshrink": ("lambda", "X"),
    "hard_shrink thresholded_relu mish": ("threshold", "X"),
    "hard_swish": ("threshold scale offset", "X"),
    "gelu": ("approximate", "X"),
    "round": ("", ""),
}
"""Functions of one array: their reals, and what the gradient needs."""

_PER_ELEMENT: dict[str, Any] = {"ints": "n", "alias": "Out=X", "elementwise": per_element}
for _number, _name in ACTIVATIONS.items():
    declare(_name, "X Out", activation=_number, **_PER_ELEMENT)
declare("round", "X Out", types="f32 f64 f32.f16", **_PER_ELEMENT)
_DECLARED_ABOVE = {*ACTIVATIONS.values(), "round"}
for _names, (_floats, _needs) in _FUNCTIONS.items():
    _others = [name for name in _names.split() if name not in _DECLARED_ABOVE]
    declare(" ".join(_others), "X Out", floats=_floats, **_PER_ELEMENT)
    declare(
        _named("{}_grad", _names),
        _KEPT[_needs],
        ints="n",
        floats=_floats,
        alias="DX=DOut DX=X DX=Out",
        elementwise=per_element,
    )

declare(
    "scale",
    "X Out",
    ints="n bias_after_scale",
    floats="scale bias",
    types=NUMERIC,
    alias="Out=X",
    elementwise=per_element,
    copies=_scaled_by_one,
)
declare("increment", "X Out", ints="n", floats="step", types=NUMERIC, alias="Out=X")
declare("sum", "X* Out", ints="n", types=NUMERIC, alias="Out=X", elementwise=per_element, copies=_sum_of_one)
declare("fill", "Out", ints="n value?", floats="value?", types="f32 f64 i32 i64 u8")
declare("range", "start step Out", ints="n", types=NUMERIC)
declare(
    "cast",
    "X Out",
    ints="n",
    types=" ".join([*(f"{one}.{other}" for one in _CASTS for other in _CASTS), "f16.f32", "f32.f16"]),
)
declare("isfinite", "X* Out", ints="n*")
declare("chain", "operands*", ints="n operands temporaries steps program*", floats="reals*")
declare(
    "sigmoid_cross_entropy_with_logits",
    "X Label Out",
    ints="n ignore_index normalize",
    alias="Out=X",
    elementwise=_unless_divided,
)
declare(
    "sigmoid_cross_entropy_with_logits_grad",
    "X Label DOut DX",
    ints="n ignore_index normalize",
    alias="DX=DOut DX=X",
    elementwise=_unless_divided,
)
declare("reduce_fill", "DOut DX", ints="pre n post", floats="scale", elementwise=_repeated_fill)
