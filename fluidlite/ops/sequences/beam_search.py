"""Beam search: one step, and the decoding of complete hypotheses from all steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ext import kernels
from ...base.dtypes import VarType
from ...base.lod import as_lod, from_lengths
from ..host_fallback import hosted
from ..infer import may_equal
from ..native import INTEGERS, typed, typed_call
from ..op_view import RESOLVE_SIZES
from ..registry import Call, LodArray, OperatorError, OpView, Sequences, register
from ..value_checks import require_in_range


@hosted
def _search(
    xp: Any,
    pre_ids: Any,
    pre_scores: Any,
    ids: Any,
    scores: Any,
    level: int,
    beam_size: int,
    end_id: int,
    is_accumulated: bool,
    lod: dict[str, Any],
) -> tuple[Any, Any, Any]:
    rows, candidates = scores.shape
    for slot, array, wanted in (
        ("pre_ids", pre_ids, 1),
        ("pre_scores", pre_scores, 1),
        ("ids", ids, candidates),
    ):
        if array is not None and array.size < rows * wanted:
            raise OperatorError(
                f"operator beam_search: {slot} must be of shape [{rows}, {wanted}], as scores is of "
                f"[{rows}, {candidates}], got {list(array.shape)}"
            )
    sources = _sources(lod["scores"][0], level, rows)
    room = (len(sources) - 1) * beam_size
    made, parents = np.empty((room, 1), "int64"), np.empty(room, "int32")
    best, offsets = np.empty((room, 1), scores.dtype), np.empty(rows + 1, "int64")
    operands = [pre_ids, pre_scores, ids, scores, sources, made, best, parents, offsets]
    ints = [len(sources) - 1, rows, candidates, beam_size, end_id, int(is_accumulated)]
    name = "beam_search.f64" if scores.dtype == np.float64 else "beam_search.f32"
    kernels.call(name, [None if array is None else np.ascontiguousarray(array) for array in operands], ints)
    chosen = offsets[-1]
    levels = as_lod([sources, offsets])
    return LodArray(made[:chosen], levels), LodArray(best[:chosen], levels), parents[:chosen]


def _sources(levels: Any, level: int, rows: int) -> Any:
    """The offsets, in rows, of the sequences of a level."""
    if not 0 <= level < len(levels):
        raise OperatorError(
            f"operator beam_search: scores must have sequences of level {level}, and have {len(levels)} levels"
        )
    offsets = levels[level]
    for below in levels[level + 1 :]:
        offsets = below[offsets]
    if offsets[-1] != rows:
        raise OperatorError(
            f"operator beam_search: the sequences of scores have {offsets[-1]} rows, scores {rows}"
        )
    return offsets


def _search_infer(op: OpView) -> None:
    if len(op.shape("scores")) != 2:
        raise op.fail(f"scores must be of shape [hypotheses, candidates], got {list(op.shape('scores'))}")
    if op.attr("beam_size") < 1:
        raise op.fail(f"beam_size must be positive, got {op.attr('beam_size')}")
    if op.has("ids") and len(op.shape("ids")) != 2:
        raise op.fail(f"ids must be of shape [hypotheses, candidates], got {list(op.shape('ids'))}")
    sources, most = _sources_of(op), -1
    if sources is not None:
        most = sources * op.attr("beam_size")
    found = op.data_dependent_sizes("selected_ids", [most]) if most != -1 else None
    count = -1 if found is None else found[0]
    op.set("selected_ids", (count, 1), op.dtype("pre_ids"))
    op.set("selected_scores", (count, 1), op.dtype("pre_scores"))
    op.set("parent_idx", (count,), VarType.INT32)
    if sources is None or found is None:
        return
    begins = op.lod("scores")[-1] if _is_last(op) else op.offsets("selected_ids", sources)
    made = begins, op.offsets("selected_ids", op.shape("scores")[0], 1)
    for slot, room in (("selected_ids", (most, 1)), ("selected_scores", (most, 1)), ("parent_idx", (most,))):
        op.set_max_shape(slot, room)
        if slot != "parent_idx":
            op.carry(slot, made)


def _is_last(op: OpView) -> bool:
    return op.attr("level") == len(op.lod("scores")) - 1


def _sources_of(op: OpView) -> int | None:
    """The number of source sequences of a step in a run; None if there is no native kernel for it."""
    typed_ids = op.has("ids") and op.dtype("ids") != VarType.INT64
    if op.dtype("pre_ids") != VarType.INT64 or typed_ids or op.dtype("pre_scores") != op.dtype("scores"):
        return None
    known = op.dtype("scores") in (VarType.FP32, VarType.FP64)
    deep, level = len(op.lod("scores")), op.attr("level")
    # Offsets of more levels would have to be followed one by one.
    return op.sequences("scores", level=level) if known and max(0, deep - 2) <= level < deep else None


def _search_native(op: OpView) -> list[Call] | None:
    sources = _sources_of(op)
    if sources is None or not op.lod("selected_ids"):
        return None
    begins, offsets = op.lod("selected_ids")
    rows, candidates = op.shape("scores")
    if op.has("parent_idx"):
        parents = op.name("parent_idx")
    else:
        parents = op.scratch("selected_ids", "PARENTS", (sources * op.attr("beam_size"),), VarType.INT32)
    name = typed(op, "beam_search", ("scores",))
    assert name is not None, "scores are float32 or float64"
    operands = [
        op.name("pre_ids"), op.name("pre_scores"), op.name_or_none("ids"), op.name("scores"), begins,
        op.name("selected_ids"), op.name("selected_scores"), parents, offsets,
    ]  # fmt: skip
    ints = [
        sources, rows, candidates, op.attr("beam_size"), op.attr("end_id"), int(op.attr("is_accumulated")),
    ]  # fmt: skip
    calls = [Call(name, operands, ints), Call(RESOLVE_SIZES, [offsets], [rows, op.shape("selected_ids")[0]])]
    if _is_last(op):
        return calls
    outer, inner = op.lod("scores")[-2:]
    begin = Call("gather_nd.i64", [inner, outer, begins], [sources + 1, 8, op.sequences("scores") + 1])
    return [begin, *calls]


register(
    "beam_search",
    inputs=("pre_ids", "pre_scores", "ids?", "scores"),
    outputs=("selected_ids", "selected_scores", "parent_idx?"),
    attrs={"level": 0, "beam_size": 1, "end_id": 0, "is_accumulated": True},
    infer=_search_infer,
    kernel=_search,
    no_grad=("selected_ids", "selected_scores", "parent_idx"),
    native=_search_native,
    sequences=Sequences(takes_lod=True, source=None),
    doc="The beam_size best continuations of the hypotheses of each source, in the order of the hypotheses.",
)


@hosted
def _whole(xp: Any, Ids: Any, Scores: Any, end_id: int, lod: Any) -> tuple[Any, Any]:
    if not len(Ids) or len(Ids) != len(Scores):
        raise OperatorError(
            f"operator beam_search_decode: Ids and Scores must have the same steps, got {len(Ids)} and {len(Scores)}"
        )
    # From the last step back to the first: of which source each hypothesis is, and where it is in the step at hand.
    count = len(Ids.lods[0][0]) - 1
    owner, place = np.zeros(0, np.int64), np.zeros(0, np.int64)
    begun = np.zeros(count, bool)
    steps = []
    for tokens, values, (sources, prefixes) in zip(
        reversed(Ids.arrays), reversed(Scores.arrays), reversed(Ids.lods), strict=True
    ):
        ends = prefixes[sources]  # sources that have no hypothesis yet end in this step, with all that it has
        new = np.repeat(np.arange(count), np.diff(ends))
        found = np.arange(len(new))[~begun[new]]
        fresh = np.concatenate([np.zeros(len(owner), bool), np.ones(len(found), bool)])
        owner, place = np.concatenate([owner, new[found]]), np.concatenate([place, found])
        begun[new] = True
        token, value = tokens.reshape(-1)[place], values.reshape(-1)[place]
        steps.append((token, value, fresh | (token != end_id)))  # finished ones have repeated their end
        place = np.searchsorted(prefixes, place, side="right") - 1
    return _assembled(steps, owner, count)


def _assembled(steps: list[Any], owner: Any, count: int) -> tuple[Any, Any]:
    """Hypotheses sorted by source, best first. `steps`: last step first, each with a prefix of the hypotheses."""
    total = len(owner)
    tokens = np.zeros((total, len(steps)), np.int64)
    scores = np.zeros((total, len(steps)), steps[0][1].dtype)
    kept = np.zeros((total, len(steps)), bool)
    last = np.zeros(total, scores.dtype)
    known = 0
    for step, (token, value, keep) in enumerate(steps):
        column = len(steps) - 1 - step
        tokens[: len(token), column], scores[: len(token), column] = token, value
        kept[: len(token), column] = keep
        last[known : len(token)] = value[known:]
        known = len(token)
    order = np.lexsort((-last, owner))
    kept = kept[order]
    levels = as_lod([from_lengths(np.bincount(owner, minlength=count)), from_lengths(kept.sum(axis=1))])
    return LodArray(tokens[order][kept], levels), LodArray(scores[order][kept], levels)


def _whole_infer(op: OpView) -> None:
    op.set("SentenceIds", (-1,) if op.exact else (), VarType.INT64)
    op.set("SentenceScores", (-1,) if op.exact else (), op.dtype("Scores"))


register(
    "beam_search_decode",
    inputs=("Ids", "Scores"),
    outputs=("SentenceIds", "SentenceScores"),
    attrs={"beam_size": 1, "end_id": 0},
    infer=_whole_infer,
    kernel=_whole,
    no_grad=("SentenceIds", "SentenceScores"),
    sequences=Sequences(source=None, takes_lod=True),
    doc="Whole hypotheses of each source, best first, from what beam_search has selected in all steps.",
)


def _tree_infer(op: OpView) -> None:
    shape, parents = op.shape("Ids"), op.shape("Parents")
    if len(shape) != 3 or not may_equal(shape, parents):
        raise op.fail(
            f"Ids and Parents must be [time, batch, beam] both, got {list(shape)} and {list(parents)}"
        )
    if op.dtype("Ids") != op.dtype("Parents"):
        raise op.fail(f"Parents must have the dtype of Ids ({op.dtype('Ids')}), got {op.dtype('Parents')}")
    op.set("Out", shape, op.dtype("Ids"))


def _tree(xp: Any, Ids: Any, Parents: Any) -> Any:
    require_in_range(xp, "gather_tree", "Parents", Parents.reshape(-1), Ids.shape[2], "hypotheses")
    steps, batch, width = Ids.shape
    out = xp.empty_like(Ids)
    rows = xp.arange(batch)[:, None]
    places = xp.tile(xp.arange(width), (batch, 1))
    for step in range(steps - 1, -1, -1):
        out[step] = Ids[step][rows, places]
        places = Parents[step][rows, places]
    return out


register(
    "gather_tree",
    inputs=("Ids", "Parents"),
    infer=_tree_infer,
    kernel=_tree,
    no_grad=("Out",),
    native=lambda op: typed_call(
        op, "gather_tree", ("Ids", "Parents"), ("Out",), op.shape("Ids"), types=INTEGERS
    ),
    sequences=Sequences(source=None),
    doc="Whole hypotheses from the tokens that each step has added and the hypotheses that these continue.",
)
