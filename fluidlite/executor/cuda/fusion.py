"""GPU fusion of layers, normalisations and losses, and of their gradients: patterns of operators.

layers           a product with bias and activation
normalisations   batch normalisation with the sum and the relu that follow it
losses           a softmax with the cross entropy of class numbers and the mean of that
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from ...backend.cupy_.launchers import losses, normalization, products
from ...base.dtypes import VarType
from ...base.sizes import product, rows_along
from ...ops.registry import OpView, grad_name
from ..ir.instructions import Instruction, Need
from ..passes.patterns import Match, Node, Pattern, Reader, require
from ..passes.rewriting import Replacement, fuse_matches
from .launch import Argument, fused

_Y_GRAD = grad_name("Y")
REAL = ("f32", "f64")


def operator(
    kinds: str, slots: str, numbers: Callable[[OpView], Sequence[Any] | None] = lambda view: ()
) -> Reader:
    """A reader of operators of some types, or kinds (`Planning.pattern`), as nodes of patterns.

    `slots`: those of its operands and results, `X Y -> Out`; `numbers`: None for an operator that does not fit.
    """
    operands, results = (each.split() for each in slots.replace("'", grad_name("")).split("->"))

    def read(each: Instruction) -> Node | None:
        view = each.view
        if view is None or {view.type, each.kind}.isdisjoint(kinds.split()):
            return None
        found = numbers(view)
        if found is None:
            return None
        return Node([*map(view.name_or_none, operands)], [*map(view.name_or_none, results)], found)

    return read


def replaced(
    match: Match, launcher: Callable[..., Any], /, *arguments: Any, **options: Any
) -> list[Replacement]:
    """One launch in the place of a match; see `fused`. NoMatch if its type has no kernels."""
    require(match.type in REAL)
    return [Replacement(match.parts, fused(match.parts, launcher, *arguments, **options))]


def _view(match: Match, line: str) -> OpView:
    view = match.found[line].view
    assert view is not None
    return view


def _sizes(view: OpView) -> tuple[int, int, int] | None:
    """m, n, k of a `mul` or `matmul` (or of its gradient) as [m, k] times [k, n]; None if it is not one product of
    contiguous matrices."""
    x, y = view.shape("X"), view.shape("Y")
    if "x_num_col_dims" in view.definition.attrs:
        rows, inner = view.attr("x_num_col_dims"), view.attr("y_num_col_dims")
        return math.prod(x[:rows]), math.prod(y[inner:]), math.prod(x[rows:])
    flipped = view.attr("transpose_X") or view.attr("transpose_Y")
    if len(x) < 2 or len(y) != 2 or flipped or view.attr("alpha") != 1:
        return None
    return math.prod(x[:-1]), y[1], x[-1]


def _bias(view: OpView) -> tuple[int] | None:
    """The elements of Y if `elementwise_add` (or its gradient) adds it to each row; else None."""
    x, y, axis = view.shape("X"), view.shape("Y"), view.attr("axis")
    fits = 0 < len(y) < len(x) and tuple(x[len(x) - len(y) :]) == tuple(y)
    return (math.prod(y),) if fits and axis in (-1, len(x) - len(y)) else None


_READERS: Mapping[str, Reader] = {
    "product": operator("product", "X Y -> Out", _sizes),
    "add_bias": operator("elementwise_add", "X Y -> Out", _bias),
    "activation": operator("activation", "X -> Out"),
    "product_grad": operator("product_grad", "X Y Out' -> Y' X'", _sizes),
    "add_bias_grad": operator("elementwise_add_grad", "Out' -> X' Y'", _bias),
    "activation_grad": operator("activation_grad", "Out Out' -> X'"),
}
_LAYER = Pattern("product = product(x, w | m n k) \n sum = add_bias(product, bias | n)", _READERS)
_ACTIVATION = Pattern("out = activation(sum)", _READERS)
_LAYER_GRAD = Pattern(
    "dproduct, dbias = add_bias_grad(dsum | n) \n dw, _ = product_grad(x, w, dproduct | m n k)", _READERS
)
_ACTIVATION_GRAD = Pattern("dsum = activation_grad(out, dout)", _READERS)


def _matrices(match: Match, *names: str) -> dict[str, Argument]:
    """Variables of a layer as matrices."""
    sizes = {"x": "mk", "w": "kn", "bias": "n"}
    return {
        name: (match.names.get(name), [match.numbers[size] for size in sizes.get(name, "mn")])
        for name in names
    }


def _layer(match: Match) -> list[Replacement]:
    is_activated = match.extend(_ACTIVATION, others=Need.SHAPE)
    activation = _view(match, "out").type if is_activated else None
    out = match.names["out" if is_activated else "sum"], _view(match, "sum").shape("Out")
    return replaced(match, products.layer, _matrices(match, "x", "w", "bias"), [out], activation=activation)


def _layer_grad(match: Match) -> list[Replacement]:
    activation = None
    if match.extend(_ACTIVATION_GRAD, others=Need.SHAPE):
        activation = _view(match, "dsum").type.removesuffix("_grad")
    else:
        match.names["dout"] = match.names["dsum"]
    view, add = _view(match, "dw"), _view(match, "dproduct")
    dx = view.name_or_none(grad_name("X"))
    outputs = (
        (dx, view.shape("X")),
        (match.names["dw"], view.shape("Y")),
        (match.names["dbias"], add.shape("Y")),
    )
    inputs = _matrices(match, "x", "w", "out", "dout")
    return replaced(
        match, products.layer_grad, inputs, outputs, activation=activation, wants_x=dx is not None
    )


def _alike(view: OpView) -> tuple[()] | None:
    """No numbers, if X and Y have one shape."""
    return () if view.shape("X") == view.shape("Y") else None


def _in_place(view: OpView) -> tuple[()] | None:
    """No numbers, if a normalisation updates its statistics in place."""
    pairs = (("MeanOut", "Mean"), ("VarianceOut", "Variance"))
    return () if all(view.name(out) == view.name(source) for out, source in pairs) else None


_NORM_READERS: Mapping[str, Reader] = {
    "norm": operator("batch_norm", "X -> Y", _in_place),
    "add": operator("elementwise_add", "X Y -> Out", _alike),
    "added_to": operator("elementwise_add", "Y X -> Out", _alike),
    "relu": operator("relu", "X -> Out"),
    "relu_grad": operator("relu_grad", "Out Out' -> X'"),
    "norm_grad": operator("batch_norm_grad", "Y' ->"),
}
_NORM = Pattern("y = norm(x)", _NORM_READERS)
_SUMS = [Pattern(f"sum = {add}(y, other)", _NORM_READERS) for add in ("add", "added_to")]
_RELU = Pattern("out = relu(sum)", _NORM_READERS)
_NORM_GRAD = Pattern("dy = relu_grad(out, dout) \n _ = norm_grad(dy)", _NORM_READERS)


def _arguments(view: OpView, launcher: Callable[..., Any]) -> tuple[dict[str, Argument], dict[str, Any]]:
    """The inputs of an operator that a launcher takes, and all attributes."""
    taken, slots = signature(launcher).parameters, {slot.name for slot in view.definition.input_slots}
    inputs: dict[str, Argument] = {name: (view.name_or_none(name), None) for name in taken if name in slots}
    return inputs, {name: view.attr(name) for name in view.definition.attrs}


def _norm(match: Match) -> list[Replacement]:
    names, view = match.names, _view(match, "y")
    if not any(match.extend(pattern, others=Need.SHAPE) for pattern in _SUMS):
        names["sum"] = names["y"]
    has_relu = match.extend(_RELU, others=Need.SHAPE)
    require(len(match.found) > 1 and names.get("other") != names["y"])
    inputs, options = _arguments(view, normalization.forward)
    inputs["other"] = names.get("other"), None
    rest = [view.name_or_none(slot.name) for slot in view.definition.output_slots[1:]]
    outputs = [(name, None) for name in (names["out" if has_relu else "sum"], *rest)]
    return replaced(match, normalization.forward, inputs, outputs, relu=has_relu, **options)


def _norm_grad(match: Match) -> list[Replacement]:
    view = _view(match, "_")
    inputs, options = _arguments(view, normalization.gradient)
    inputs |= {"Y_grad": (match.names["dout"], None), "relu_out": (match.names["out"], None)}
    slots = [slot.name for slot in view.definition.output_slots]
    wanted = [slot for slot in slots if view.has(slot)]
    outputs = [(view.name_or_none(slot), None) for slot in slots]
    return replaced(match, normalization.gradient, inputs, outputs, wanted=wanted, **options)


def _rows(slot: str) -> Callable[[OpView], tuple[int, int] | None]:
    """The numbers of a softmax, or of its gradient: the shape of a variable as rows."""

    def rows(view: OpView) -> tuple[int, int] | None:
        found = rows_along(tuple(view.shape(slot)), view.attr("axis"))
        return None if found is None or 0 in found else found

    return rows


def _ignored(view: OpView) -> tuple[int] | None:
    """The number of a cross entropy, or of its gradient: the label to ignore."""
    if "soft_label" in view.definition.attrs and view.attr("soft_label"):
        return None
    return (
        (int(view.attr("ignore_index")),) if view.dtype("Label") in (VarType.INT32, VarType.INT64) else None
    )


def _both(slot: str) -> Callable[[OpView], tuple[int, ...] | None]:
    """The numbers of an operator that is softmax and cross entropy."""

    def numbers(view: OpView) -> tuple[int, ...] | None:
        rows, ignored = _rows(slot)(view), _ignored(view)
        return None if rows is None or ignored is None else (*rows, *ignored)

    return numbers


_LOSS_READERS: Mapping[str, Reader] = {
    "softmax": operator("softmax", "X -> Out", _rows("X")),
    "entropy": operator("entropy", "X Label -> Y", _ignored),
    "both": operator("softmax_with_cross_entropy", "Logits Label -> Loss", _both("Logits")),
    "mean": operator("mean", "X -> Out"),
    "mean_grad": operator(
        "mean_grad",
        "Out' -> X'",
        lambda view: [product(view.shape("X"))] if product(view.shape("X")) else None,
    ),
    "entropy_grad": operator("entropy_grad", "Label Y' -> X'", _ignored),
    "softmax_grad": operator("softmax_grad", "Out Out' -> X'", _rows("Out")),
    "both_grad": operator(
        "softmax_with_cross_entropy_grad", "Softmax Label Loss' -> Logits'", _both("Softmax")
    ),
}
_SOFTMAX_LOSS = Pattern(
    "p = softmax(logits | rows columns) \n loss = entropy(p, label | ignored)", _LOSS_READERS
)
_MEAN = Pattern("mean = mean(loss)", _LOSS_READERS)
_MEAN_OF_BOTH = Pattern(
    "loss = both(logits, label | rows columns ignored) \n mean = mean(loss)", _LOSS_READERS
)
_LOSS_GRAD = Pattern(
    "dp = entropy_grad(label, dloss | ignored) \n dlogits = softmax_grad(p, dp | rows columns)", _LOSS_READERS
)
_MEAN_GRAD = Pattern("dloss = mean_grad(dmean | count)", _LOSS_READERS)
_MEAN_OF_BOTH_GRAD = Pattern(
    "dloss = mean_grad(dmean | count) \n dlogits = both_grad(p, label, dloss | rows columns ignored)",
    _LOSS_READERS,
)


def _options(match: Match, view: OpView) -> dict[str, Any]:
    numbers = match.numbers
    return {"op_type": view.type, "rows": (numbers["rows"], numbers["columns"]), "ignore": numbers["ignored"]}


def _loss(match: Match) -> list[Replacement]:
    match.extend(_MEAN)
    names, view = match.names, _view(match, "loss")
    softmax = names["p"] if "p" in match else view.name_or_none("Softmax")
    mean, probability = names.get("mean"), view.name_or_none("MatchX")
    outputs = [
        (softmax, None),
        (names["loss"], view.meta.shape(names["loss"])),
        (probability, None if probability is None else view.shape("MatchX")),
        (mean, None),
    ]
    inputs: dict[str, Argument] = {name: (names[name], None) for name in ("logits", "label")}
    options = _options(match, view) | {
        "softmax": softmax is not None,
        "match": "p" in match,
        "mean": mean is not None,
    }
    (made,) = replaced(match, losses.label_losses, inputs, outputs, **options)
    if view.has("XShape"):
        made.action = made.action.with_shapes([view.name("XShape")])
    return [made]


def _loss_grad(match: Match) -> list[Replacement]:
    names = match.names
    view = _view(match, "dp" if "dp" in match else "dlogits")
    require("dp" not in match or _follows(match, view))
    match.extend(_MEAN_GRAD, others=Need.SHAPE)
    count = match.numbers.get("count", 1)
    inputs: dict[str, Argument] = {"softmax": (names["p"], None), "label": (names["label"], None)}
    inputs["g"] = names.get("dmean", names["dloss"]), None
    outputs = [(names["dlogits"], None)]
    return replaced(
        match, losses.label_losses_grad, inputs, outputs, **_options(match, view), factor=1 / count
    )


def _follows(match: Match, view: OpView) -> bool:
    """True if `view`, the gradient of a cross entropy, is of the one that reads the softmax of the match."""
    p, uses = match.names["p"], match.uses
    if view.has("X"):
        return view.name("X") == p
    # This operator reads the probabilities of the labels only: find the softmax through their producer.
    probability = view.name("MatchX")
    maker = uses.producers.get(probability)
    return (
        maker is not None
        and maker.view is not None
        and maker.kind == "entropy"
        and maker.view.name("X") == p
        and uses.written[probability] == uses.written[p] == 1
    )


LOSSES = [
    fuse_matches(
        _LOSS_GRAD, _loss_grad
    ),  # first: it finds the softmax through the cross entropy that reads it
    fuse_matches(_MEAN_OF_BOTH_GRAD, _loss_grad),
    fuse_matches(_SOFTMAX_LOSS, _loss),
    fuse_matches(_MEAN_OF_BOTH, _loss),
]
LAYERS = [
    fuse_matches(_LAYER_GRAD, _layer_grad),
    fuse_matches(_NORM_GRAD, _norm_grad),
    fuse_matches(_LAYER, _layer),
    fuse_matches(_NORM, _norm),
]
