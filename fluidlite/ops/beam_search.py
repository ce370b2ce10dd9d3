"""Beam search: a step of it, whole hypotheses from all steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.dtypes import VarType
from ..base.lod import as_lod, from_lengths
from .hosting import hosted
from .ranges import require_in_range
from .registry import LodArray, OpDef, OperatorError, OpView, register


def _kept(candidates: list[tuple[float, int, int]], width: int) -> list[tuple[float, int, int]]:
    """The `width` best of (score, row, token), best first. Of equal scores those of later rows are better.

    Where equal candidates of one row meet the limit, the last one that came has the last place, as in Fluid.
    """
    best: list[tuple[float, int, int]] = []
    for candidate in candidates:
        rank = candidate[:2]
        if len(best) < width:
            best.append(candidate)
        elif rank < best[-1][:2]:
            continue
        place = len(best) - 1
        while place and best[place - 1][:2] < rank:
            best[place] = best[place - 1]
            place -= 1
        best[place] = candidate
    return best


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
    sources = _sources(lod["scores"][0], level, len(scores))
    before, totals = pre_ids.reshape(-1).tolist(), pre_scores.reshape(-1).tolist()
    if not is_accumulated:
        scores = pre_scores.reshape(-1, 1) + np.log(scores)
    values = scores.tolist()
    tokens = [list(range(scores.shape[1]))] * len(values) if ids is None else ids.tolist()
    chosen: list[tuple[float, int, int]] = []
    for begin, end in zip(sources[:-1], sources[1:], strict=True):
        candidates = []
        for row in range(begin, end):
            if before[row] == end_id:
                candidates.append((totals[row], row, end_id))
            else:
                candidates += [
                    (score, row, token) for score, token in zip(values[row], tokens[row], strict=True)
                ]
        best = _kept(candidates, beam_size)
        if all(token == end_id and before[row] == end_id for _, row, token in best):
            continue  # nothing of this source goes on
        chosen += sorted(best, key=lambda candidate: candidate[1])
    rows = [row for _, row, _ in chosen]
    counts = np.bincount(np.array(rows, "int64"), minlength=len(values))
    levels = as_lod([sources, from_lengths(counts)])
    made = np.array([token for _, _, token in chosen], "int64").reshape(-1, 1)
    best_scores = np.array([score for score, _, _ in chosen], scores.dtype).reshape(-1, 1)
    return LodArray(made, levels), LodArray(best_scores, levels), np.array(rows, "int32")


def _sources(levels: Any, level: int, rows: int) -> list[int]:
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
    found: list[int] = offsets.tolist()
    return found


def _search_infer(op: OpView) -> None:
    if len(op.shape("scores")) != 2:
        raise op.fail(f"scores must be of shape [hypotheses, candidates], got {list(op.shape('scores'))}")
    if op.attr("beam_size") < 1:
        raise op.fail(f"beam_size must be positive, got {op.attr('beam_size')}")
    if op.has("ids") and len(op.shape("ids")) != 2:
        raise op.fail(f"ids must be of shape [hypotheses, candidates], got {list(op.shape('ids'))}")
    op.set("selected_ids", (-1, 1), op.dtype("pre_ids"))
    op.set("selected_scores", (-1, 1), op.dtype("pre_scores"))
    op.set("parent_idx", (-1,), VarType.INT32)


register(
    OpDef(
        "beam_search",
        inputs=("pre_ids", "pre_scores", "ids?", "scores"),
        outputs=("selected_ids", "selected_scores", "parent_idx?"),
        attrs={"level": 0, "beam_size": 1, "end_id": 0, "is_accumulated": True},
        infer=_search_infer,
        kernel=_search,
        lod=True,
        lod_from=None,
        frozen=("selected_ids", "selected_scores", "parent_idx"),
        doc="The beam_size best continuations of the hypotheses of each source, in the order of the hypotheses.",
    )
)


@hosted
def _whole(xp: Any, Ids: Any, Scores: Any, end_id: int, lod: Any) -> tuple[Any, Any]:
    steps = list(Ids)
    if not steps or len(steps) != len(Scores):
        raise OperatorError(
            f"operator beam_search_decode: Ids and Scores must have the same steps, got {len(steps)} and {len(Scores)}"
        )
    count = len(steps[0][1][0]) - 1
    found = [_of_source(Ids, Scores, source, end_id) for source in range(count)]
    hypotheses = [one for source in found for one in source]
    levels = as_lod(
        [from_lengths([len(source) for source in found]), from_lengths([len(one) for one in hypotheses])]
    )
    tokens = [token for one in hypotheses for token, _ in reversed(one)]
    scores = [score for one in hypotheses for _, score in reversed(one)]
    dtype = Scores.arrays[0].dtype
    return (
        LodArray(np.array(tokens, "int64"), levels),
        LodArray(np.array(scores, dtype), levels),
    )


def _of_source(ids: Any, scores: Any, source: int, end_id: int) -> list[list[tuple[int, float]]]:
    """The hypotheses of a source, best first, each the last token first: from its last step back to the first."""
    hypotheses: list[list[tuple[int, float]]] = []
    rows = np.zeros(0, np.int64)  # where in the step at hand each of them is
    for step in range(len(ids) - 1, -1, -1):
        tokens, (sources, prefixes) = ids.arrays[step].reshape(-1), ids.lods[step]
        values = scores.arrays[step].reshape(-1)
        begin, end = prefixes[sources[source]], prefixes[sources[source + 1]]
        if not hypotheses:
            rows = np.arange(begin, end)
            hypotheses = [[] for _ in rows]
        for one, row in zip(hypotheses, rows.tolist(), strict=True):
            if tokens[row] != end_id or not one:  # finished ones have repeated their end
                one.append((int(tokens[row]), float(values[row])))
        rows = np.searchsorted(prefixes, rows, side="right") - 1
    return sorted(hypotheses, key=lambda one: -one[0][1])


def _whole_infer(op: OpView) -> None:
    op.set("SentenceIds", (-1,) if op.exact else (), VarType.INT64)
    op.set("SentenceScores", (-1,) if op.exact else (), op.dtype("Scores"))


register(
    OpDef(
        "beam_search_decode",
        inputs=("Ids", "Scores"),
        outputs=("SentenceIds", "SentenceScores"),
        attrs={"beam_size": 1, "end_id": 0},
        infer=_whole_infer,
        kernel=_whole,
        lod_from=None,
        lod=True,
        frozen=("SentenceIds", "SentenceScores"),
        doc="Whole hypotheses of each source, best first, from what beam_search has selected in all steps.",
    )
)


def _tree_infer(op: OpView) -> None:
    shape, parents = op.shape("Ids"), op.shape("Parents")
    if (
        len(shape) != 3
        or len(parents) != 3
        or any(m != n and min(m, n) >= 0 for m, n in zip(shape, parents, strict=True))
    ):
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
    OpDef(
        "gather_tree",
        inputs=("Ids", "Parents"),
        infer=_tree_infer,
        kernel=_tree,
        frozen=("Out",),
        doc="Whole hypotheses from the tokens that each step has added and the hypotheses that these continue.",
    )
)
