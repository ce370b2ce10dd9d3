"""The feeds of a step divided over places, and the fetched values of all places put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...backend import to_host
from ...base.errors import EnforceNotMet
from ...base.lod import Lod, freeze
from ...base.place import Place
from ...framework import Program
from ..feeding import Feed, as_feed, check
from ..lod_tensor import LoDTensor, LoDTensorArray
from ..plan_cache import as_results, or_empty


def scatter(feed: Any, program: Program, places: list[Place], every: bool) -> list[dict[str, LoDTensor]]:
    """The feed of each place: the items of a list, or parts of one feed.

    Without `every` a small batch may leave the last places without a feed. Raises EnforceNotMet if there is too little
    for the places, IndexError if there are too many feeds, TypeError for a feed that is no mapping.
    """
    if isinstance(feed, (list, tuple)):
        parts = [as_feed(program, part) for part in _checked(feed, len(places), every)]
    elif feed is None or isinstance(feed, Mapping):
        parts = _divided(feed or {}, program, places, every)
    else:
        raise TypeError(
            f"feed must be a dict, or a list of dicts for several devices, got {type(feed).__name__}"
        )
    return [{name: LoDTensor.wrap(array, lod) for name, (array, lod) in part.items()} for part in parts]


def _checked(feed: Sequence[Any], count: int, every: bool) -> Sequence[Mapping[str, Any]]:
    for part in feed:
        if not isinstance(part, Mapping):
            raise TypeError(f"Each element of feed list should be a dict, got {type(part).__name__}")
    if len(feed) > count:
        raise IndexError(f"feed is a list for {len(feed)} devices, but the program has {count} places")
    if not feed or (len(feed) < count and every):
        raise EnforceNotMet(
            f"The feed data number {len(feed)} does not match the device number {count}. A DataLoader "
            "with drop_last=True leaves out incomplete sets of batches; CPU_NUM sets the number of CPU devices"
        )
    return feed


def _divided(feed: Mapping[str, Any], program: Program, places: list[Place], every: bool) -> list[Feed]:
    """Parts of one feed; a persistable variable with fewer rows than places, such as a rate, goes to all of them."""
    block = program.global_block()
    whole = as_feed(program, feed, checked=False)
    common = {
        name: (array, lod)
        for name, (array, lod) in whole.items()
        if (array.ndim == 0 or len(array) < len(places)) and block._is_persistable(name)
    }
    try:
        divided = {name: value for name, value in whole.items() if name not in common}
        parts = _split(divided, places, every=every)
    except ValueError as error:
        raise EnforceNotMet(f"{error}; CPU_NUM sets the number of CPU devices") from None
    for part in parts:
        part.update(common)
        for name, (array, lod) in part.items():
            check(block.var(name), array, lod)
    return parts


def _split(feed: Feed, places: list[Place], every: bool = True) -> list[Feed]:
    """One feed divided along the first dimension over the places as Fluid does: the last places get the smaller parts.

    With `every` each place gets a part, otherwise a small batch may leave the last places without one. Raises
    ValueError if there are too few rows for that, or if the variables fill different numbers of places.
    """
    shares = {}
    for name, (array, lod) in feed.items():
        rows = len(lod[0]) - 1 if lod else len(array)
        if rows < (len(places) if every else 1):
            raise ValueError(
                f"variable {name!r} was fed with {rows} {'sequences' if lod else 'rows'} for {len(places)} devices: "
                "every device needs at least one"
            )
        shares[name] = _shares(rows, len(places), every)
    used = {name: len(sizes) for name, sizes in shares.items()}
    if len(set(used.values())) > 1:
        raise ValueError(f"the variables were fed with rows for different numbers of devices: {used}")
    parts: list[Feed] = [{} for _ in range(max(used.values(), default=len(places)))]
    for name, (array, lod) in feed.items():
        begin = 0
        for part, size in zip(parts, shares[name], strict=True):
            part[name] = _rows(array, lod, begin, begin + size)
            begin += size
    return parts


def _shares(rows: int, count: int, every: bool) -> list[int]:
    """How many of the rows each of at most `count` places gets."""
    step = -(-rows // count)
    sizes = [min(step, rows - begin) for begin in range(0, rows, step)]
    if every and len(sizes) < count:
        # Fluid refuses these batches, though there is a row for every place.
        least, extra = divmod(rows, count)
        sizes = [least + (index < extra) for index in range(count)]
    return sizes


def _rows(array: np.ndarray, lod: Lod, begin: int, end: int) -> tuple[np.ndarray, Lod]:
    """Rows, or top-level sequences, from `begin` to `end`."""
    if not lod:
        return array[begin:end], ()
    levels = []
    for level in lod:
        levels.append(freeze(level[begin : end + 1] - level[begin]))
        begin, end = int(level[begin]), int(level[end])
    return np.ascontiguousarray(array[begin:end]), tuple(levels)


def gather(name: str, values: list[Any], return_numpy: bool, merged: bool) -> Any:
    """The fetched values of a variable: concatenated, tensor by tensor for a tensor array, or a list unless `merged`.

    Raises EnforceNotMet for values that cannot be concatenated.
    """
    if merged:
        return as_results([_concatenated(name, values)], [name], return_numpy)[0]
    return as_results(values, [name] * len(values), return_numpy)


def _concatenated(name: str, values: list[Any]) -> Any:
    if isinstance(values[0], LoDTensorArray):
        sizes = {len(value) for value in values}
        if len(sizes) > 1:
            raise _refusal(name, f"{[len(value) for value in values]} tensors")
        return LoDTensorArray(_concatenated(name, list(tensors)) for tensors in zip(*values, strict=True))
    arrays = [np.atleast_1d(to_host(or_empty(value).array)) for value in values]
    if len({(array.shape[1:], array.dtype) for array in arrays}) > 1:
        raise _refusal(name, f"values of {' and '.join(f'{a.dtype} {list(a.shape)}' for a in arrays)}")
    return LoDTensor.wrap(
        np.concatenate(arrays), _concatenated_lod(name, [value.offsets for value in values])
    )


def _concatenated_lod(name: str, parts: list[Lod]) -> Lod:
    """The offsets of tensors that are concatenated."""
    depths = [len(levels) for levels in parts]
    if len(set(depths)) > 1:
        raise _refusal(name, f"{depths} levels of sequences")
    lod = []
    for levels in zip(*parts, strict=True):
        starts = np.cumsum([0, *(level[-1] for level in levels)])
        ends = [level[1:] + start for level, start in zip(levels, starts, strict=False)]
        lod.append(freeze(np.concatenate([levels[0][:1], *ends])))
    return tuple(lod)


def _refusal(name: str, what: str) -> EnforceNotMet:
    return EnforceNotMet(
        f"variable {name!r} has {what} on the devices, which cannot be put together; fetch it with return_merged=False"
    )
