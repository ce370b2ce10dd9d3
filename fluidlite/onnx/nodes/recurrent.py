"""LSTM and GRU over sequences, top-k, sorting, and best paths."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from ...base.dtypes import VarType, to_numpy
from ..exporting import padded, sequences, unpadded
from ..graph import Exported, Graph, element_type, exports
from .math import scalar
from .tensors import size_of

_ACTIVATIONS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu"}


def _array(o: Exported, slot: str) -> np.ndarray:
    found = o.given(o.names(slot)[0])
    if found is None:
        raise o.fail(f"has computed weights in {slot}")
    return found


def _activations(o: Exported, *names: str) -> list[str]:
    kinds = [o.attr(name) for name in names]
    if any(kind not in _ACTIVATIONS for kind in kinds):
        raise o.fail(f"has activations {kinds}")
    return [_ACTIVATIONS[kind] for kind in kinds]


def _start(o: Exported, slot: str) -> str:
    """The first state, [1, B, D], or nothing."""
    return o.node("Unsqueeze", o.input(slot), o.ints(0)) if o.has(slot) else ""


def _run(o: Exported, kind: str, size: int, weights: list[Any], states: list[str], **attrs: Any) -> str:
    """The states of all steps of a recurrent node, as rows."""
    lengths = o.lengths("Input")
    parts = sequences(o, lengths)
    held = [o.constant(array[None]) for array in weights]
    as_int = o.node("Cast", lengths, to=6)
    inputs = [padded(o, o.input("Input"), parts), *held[:3], as_int, *states, *held[3:]]
    direction = "reverse" if o.attr("is_reverse") else "forward"
    made = o.node(kind, *inputs, hidden_size=size, direction=direction, **attrs)
    return unpadded(o, o.node("Squeeze", made, o.ints(1)), parts)


@exports("lstm")
def _lstm(o: Exported) -> None:
    """Gates are candidate, input, forget, output in Fluid and input, output, forget, candidate in ONNX."""
    if o.wants("Cell") and o.op.outputs["Cell"][0] in o.read_later():
        raise o.fail("returns the cell states of all steps")
    weight, bias = _array(o, "Weight"), _array(o, "Bias").reshape(-1)
    size = weight.shape[0]
    order = np.concatenate([np.arange(size) + size * gate for gate in (1, 3, 2, 0)])
    both = np.concatenate([bias[: 4 * size][order], np.zeros(4 * size, bias.dtype)])
    weights = [np.eye(4 * size, dtype=weight.dtype)[order], np.ascontiguousarray(weight.T[order]), both]
    if o.attr("use_peepholes"):
        into, forgetting, showing = np.split(bias[4 * size :], 3)
        weights.append(np.concatenate([into, showing, forgetting]))
    kinds = _activations(o, "gate_activation", "candidate_activation", "cell_activation")
    hidden = _run(o, "LSTM", size, weights, [_start(o, "H0"), _start(o, "C0")], activations=kinds)
    o.out("Hidden", hidden, o.lengths("Input"))


@exports("gru")
def _gru(o: Exported) -> None:
    """Update, reset, candidate in both. Where the update gate is the share of the candidate, its sum is negated."""
    weight = _array(o, "Weight")
    size = weight.shape[0]
    bias = _array(o, "Bias").reshape(-1) if o.has("Bias") else np.zeros(3 * size, weight.dtype)
    # The weights of the update and reset gates come before those of the candidate.
    flat = weight.reshape(-1)
    gates, candidate = (
        flat[: 2 * size * size].reshape(size, 2 * size),
        flat[2 * size * size :].reshape(size, size),
    )
    sign = np.ones((3 * size, 1), weight.dtype)
    kinds = _activations(o, "gate_activation", "activation")
    if not o.attr("origin_mode"):
        if kinds[0] != "Sigmoid":
            raise o.fail(f"has gates of {o.attr('gate_activation')}")
        sign[:size] = -1
    recurrent = np.concatenate([gates, candidate], axis=1).T
    both = np.concatenate([bias * sign[:, 0], np.zeros(3 * size, bias.dtype)])
    weights = [np.eye(3 * size, dtype=weight.dtype) * sign, np.ascontiguousarray(recurrent * sign), both]
    hidden = _run(o, "GRU", size, weights, [_start(o, "H0")], activations=kinds, linear_before_reset=0)
    o.out("Hidden", hidden, o.lengths("Input"))


@exports("lstm_unit")
def _lstm_unit(o: Exported) -> None:
    """One step whose gates, [rows, 4 * size], are input, forget, output and candidate."""
    (size,) = o.static("C_prev", 1)
    into, forget, out, candidate = o.nodes("Split", o.input("X"), o.ints(*[size] * 4), count=4, axis=1)
    if o.attr("forget_bias"):
        forget = o.node("Add", forget, scalar(o, o.attr("forget_bias")))
    kept = o.node("Mul", o.node("Sigmoid", forget), o.input("C_prev"))
    cell = o.node("Add", kept, o.node("Mul", o.node("Sigmoid", into), o.node("Tanh", candidate)))
    o.out("C", cell)
    o.out("H", o.node("Mul", o.node("Sigmoid", out), o.node("Tanh", cell)))


@exports("gru_unit")
def _gru_unit(o: Exported) -> None:
    """One step; the weights of the update and reset gates come before the candidate's."""
    (size,) = o.static("HiddenPrev", 1)
    before, given = o.input("HiddenPrev"), o.input("Input")
    if o.has("Bias"):
        given = o.node("Add", given, o.node("Reshape", o.input("Bias"), o.ints(1, -1)))
    flat = o.node("Reshape", o.input("Weight"), o.ints(-1))
    gates, last = o.nodes("Split", flat, o.ints(2 * size * size, size * size), count=2, axis=0)
    both, own = o.nodes("Split", given, o.ints(2 * size, size), count=2, axis=1)
    kinds = [
        ("Identity", "Sigmoid", "Tanh", "Relu")[o.attr(name)] for name in ("gate_activation", "activation")
    ]
    inner = o.node("MatMul", before, o.node("Reshape", gates, o.ints(size, 2 * size)))
    both = o.node(kinds[0], o.node("Add", both, inner))
    update, reset = o.nodes("Split", both, o.ints(size, size), count=2, axis=1)
    kept = o.node("Mul", reset, before)
    own = o.node("Add", own, o.node("MatMul", kept, o.node("Reshape", last, o.ints(size, size))))
    candidate = o.node(kinds[1], own)
    old, new = (candidate, before) if o.attr("origin_mode") else (before, candidate)
    o.out("Gate", o.node("Concat", both, candidate, axis=1))
    o.out("ResetHiddenPrev", kept)
    o.out("Hidden", o.node("Add", old, o.node("Mul", update, o.node("Sub", new, old))))


@exports("top_k")
def _top_k(o: Exported) -> None:
    count = (
        o.cast(o.node("Reshape", o.input("K"), o.ints(1)), VarType.INT64)
        if o.has("K")
        else o.ints(o.attr("k"))
    )
    values, places = o.nodes("TopK", o.input("X"), count, count=2, axis=-1)
    o.out("Out", values)
    o.out("Indices", places)


@exports("argsort")
def _argsort(o: Exported) -> None:
    axis, x = o.attr("axis") % o.rank("X"), o.input("X")
    values, places = o.nodes(
        "TopK", x, size_of(o, x, axis), count=2, axis=axis, largest=int(o.attr("descending"))
    )
    o.out("Out", values)
    o.out("Indices", places)


@exports("arg_max", "arg_min")
def _arg(o: Exported) -> str:
    kind = "ArgMax" if o.op.type == "arg_max" else "ArgMin"
    value = o.node(kind, o.input("X"), axis=o.attr("axis"), keepdims=int(bool(o.attr("keepdims"))))
    if o.attr("dtype") not in (None, -1, VarType.INT64):
        value = o.cast(value, VarType(o.attr("dtype")))
    if o.rank("X") == 1 and not o.attr("keepdims"):
        value = o.node("Reshape", value, o.ints(1))
    return value


@exports("crf_decoding")
def _crf_decoding(o: Exported) -> None:
    """The best path of tags: its cost step by step, and then backwards from where it ends."""
    if o.has("Length"):
        raise o.fail("takes padded sequences")
    lengths = o.lengths("Emission")
    parts = sequences(o, lengths)
    kind, (tags,) = to_numpy(o.dtype("Emission")), o.static("Emission", 1)
    transition = o.input("Transition")
    first, last, between = (
        o.node("Slice", transition, o.ints(begin), o.ints(end))
        for begin, end in ((0, 1), (1, 2), (2, tags + 2))
    )
    steps, rest = padded(o, o.input("Emission"), parts), (o.ints(1), o.ints(np.iinfo(np.int64).max))
    start = o.node("Add", o.node("Gather", steps, o.constant(0)), first)
    forward = _forward_step(o, between, tags, kind)
    scores, came_from = o.nodes(
        "Scan", start, o.node("Slice", steps, *rest), o.node("Slice", parts.inside, *rest),
        count=2, body=forward, num_scan_inputs=2,
    )  # fmt: skip
    end = o.node("ArgMax", o.node("Add", scores, last), axis=1, keepdims=1)
    begin, path = o.nodes(
        "Scan", end, came_from, count=2, body=_backward_step(o), num_scan_inputs=1,
        scan_input_directions=[1], scan_output_directions=[1],
    )  # fmt: skip
    found = o.node("Concat", o.node("Unsqueeze", begin, o.ints(0)), path, axis=0)
    result = unpadded(o, found, parts)
    if o.has("Label"):
        result = o.cast(o.node("Equal", result, o.input("Label")), VarType.INT64)
    o.out("ViterbiPath", result, lengths)


def _forward_step(o: Exported, between: str, tags: int, kind: np.dtype) -> object:
    """Map scores [B, tags] and the emissions of a step to new scores and back-pointers; ended sequences keep theirs."""
    body = Graph(o.graph.block, o.graph)
    scores, given, inside = (body.fresh(hint) for hint in ("scores", "given", "inside"))
    inputs = [
        helper.make_tensor_value_info(scores, element_type(kind), None),
        helper.make_tensor_value_info(given, element_type(kind), None),
        helper.make_tensor_value_info(inside, element_type("bool"), None),
    ]
    every = body.node("Add", [body.node("Unsqueeze", [scores, o.ints(2)]), between])
    best = body.node("ReduceMax", [every], axes=[1], keepdims=0)
    goes_on = body.node("Unsqueeze", [inside, o.ints(1)])
    after = body.node("Where", [goes_on, body.node("Add", [best, given]), scores])
    stays = o.constant(np.arange(tags))
    before = body.node("Where", [goes_on, body.node("ArgMax", [every], axis=1, keepdims=0), stays])
    outputs = [
        helper.make_tensor_value_info(after, element_type(kind), None),
        helper.make_tensor_value_info(before, element_type("int64"), None),
    ]
    return helper.make_graph(body.nodes, body.root.fresh("forward"), inputs, outputs)


def _backward_step(o: Exported) -> object:
    """Map the tag [B, 1] of a step and the back-pointers of the step to the tag before it."""
    body = Graph(o.graph.block, o.graph)
    tag, came_from = body.fresh("tag"), body.fresh("came_from")
    inputs = [helper.make_tensor_value_info(name, element_type("int64"), None) for name in (tag, came_from)]
    made = body.node("GatherElements", [came_from, tag], axis=1), body.node("Identity", [tag])
    outputs = [helper.make_tensor_value_info(name, element_type("int64"), None) for name in made]
    return helper.make_graph(body.nodes, body.root.fresh("backward"), inputs, outputs)


@exports("multiclass_nms", "multiclass_nms2")
def _multiclass_nms(o: Exported) -> None:
    """Non-maximum suppression by class, then the best boxes of each image; zero rows if there are none."""
    if not o.attr("normalized") or o.attr("nms_eta") != 1 or o.rank("Scores") != 3 or o.wants("Index"):
        raise o.fail("has boxes in pixels, of each class, or with indices, or a threshold that changes")
    boxes, scores = o.input("BBoxes"), o.input("Scores")
    kind = to_numpy(o.dtype("Scores"))
    least = o.constant(np.finfo(kind).min, kind)
    background, most, kept = o.attr("background_label"), o.attr("nms_top_k"), o.attr("keep_top_k")
    (classes,) = o.static("Scores", 1)
    if 0 <= background < classes:
        nothing = np.arange(classes).reshape(-1, 1) == background
        scores = o.node("Where", o.constant(nothing), least, scores)
    count = size_of(o, boxes, 1)
    if most > -1:
        _, places = o.nodes("TopK", scores, o.node("Min", count, o.ints(most)), count=2, axis=-1)
        none = o.node("Expand", o.constant([False]), o.node("Shape", scores))
        chosen = o.node("Expand", o.constant([True]), o.node("Shape", places))
        scores = o.node("Where", o.node("ScatterElements", none, places, chosen, axis=-1), scores, least)
    limits = (
        o.constant([o.attr("nms_threshold")], "float32"),
        o.constant([o.attr("score_threshold")], "float32"),
    )
    found = o.node("NonMaxSuppression", boxes, scores, count, *limits)
    image, label, box = (o.node("Slice", found, o.ints(i), o.ints(i + 1), o.ints(1)) for i in range(3))
    score = o.node("Unsqueeze", o.node("GatherND", scores, found), o.ints(1))
    if kept > -1:
        # The number of boxes of the same image that score higher, or equal and come earlier.
        transposed = o.node("Transpose", score, perm=[1, 0])
        number = o.node("Range", o.constant(0), o.node("Squeeze", size_of(o, found, 0)), o.constant(1))
        before = o.node("Less", number, o.node("Unsqueeze", number, o.ints(1)))
        better = o.node(
            "Or",
            o.node("Greater", transposed, score),
            o.node("And", o.node("Equal", transposed, score), before),
        )
        same = o.node("Equal", o.node("Transpose", image, perm=[1, 0]), image)
        rank = o.node("ReduceSum", o.cast(o.node("And", same, better), VarType.INT64), o.ints(1), keepdims=0)
        best = o.node("Less", rank, o.constant(kept))
        image, label, box, score = (
            o.node("Compress", part, best, axis=0) for part in (image, label, box, score)
        )
    corners = o.node("GatherND", boxes, o.node("Concat", image, box, axis=1))
    images = o.node("Range", o.constant(0), o.node("Squeeze", size_of(o, boxes, 0)), o.constant(1))
    lengths = o.node(
        "ReduceSum", o.cast(o.node("Equal", image, images), VarType.INT64), o.ints(0), keepdims=0
    )
    o.out("Out", o.node("Concat", o.cast(label, o.dtype("Scores")), score, corners, axis=1), lengths)


@exports("gather_tree")
def _gather_tree(o: Exported) -> str:
    """Follow the parents of the hypotheses backwards from the last step."""
    kind = element_type(o.dtype("Ids"))
    body = Graph(o.graph.block, o.graph)
    places, ids, parents = (body.fresh(hint) for hint in ("places", "ids", "parents"))
    inputs = [helper.make_tensor_value_info(name, kind, [None, None]) for name in (places, ids, parents)]
    before = body.node("GatherElements", [parents, places], axis=1)
    found = body.node("GatherElements", [ids, places], axis=1)
    outputs = [helper.make_tensor_value_info(name, kind, [None, None]) for name in (before, found)]
    step = helper.make_graph(body.nodes, body.root.fresh("step"), inputs, outputs)
    first = o.node("Gather", o.input("Ids"), o.constant(0), axis=0)
    ones = o.cast(o.node("Expand", o.constant(1), o.node("Shape", first)), o.dtype("Ids"))
    start = o.node("CumSum", ones, o.constant(1), exclusive=1)
    _, out = o.nodes(
        "Scan", start, o.input("Ids"), o.input("Parents"), count=2, body=step, num_scan_inputs=2,
        scan_input_directions=[1, 1], scan_output_directions=[1],
    )  # fmt: skip
    return out
