"""What a step on several places gives back: the values of all places, one behind the other or apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend import to_host
from ...base.errors import EnforceNotMet
from ...base.lod import Lod, freeze
from ..running.results import as_results, or_empty
from ..tensors.lod_tensor import LoDTensor, LoDTensorArray


def joined(name: str, values: list[Any], return_numpy: bool, merged: bool) -> Any:
    """The values of a variable at all places; if `merged` one behind the other, tensor by tensor for arrays of them."""
    if merged:
        return as_results([_merged(name, values)], [name], return_numpy)[0]
    return as_results(values, [name] * len(values), return_numpy)


def _merged(name: str, values: list[Any]) -> Any:
    if isinstance(values[0], LoDTensorArray):
        sizes = {len(value) for value in values}
        if len(sizes) > 1:
            raise _refusal(name, f"{[len(value) for value in values]} tensors")
        return LoDTensorArray(_merged(name, list(tensors)) for tensors in zip(*values, strict=True))
    arrays = [np.atleast_1d(to_host(or_empty(value).array)) for value in values]
    if len({(array.shape[1:], array.dtype) for array in arrays}) > 1:
        raise _refusal(name, f"values of {' and '.join(f'{a.dtype} {list(a.shape)}' for a in arrays)}")
    return LoDTensor.wrap(np.concatenate(arrays), _strung([value.offsets for value in values], name))


def _strung(parts: list[Lod], name: str) -> Lod:
    """The levels of detail of tensors that are put one after the other."""
    depths = [len(levels) for levels in parts]
    if len(set(depths)) > 1:
        raise _refusal(name, f"{depths} levels of sequences")
    strung = []
    for levels in zip(*parts, strict=True):
        starts = np.cumsum([0, *(level[-1] for level in levels)])
        ends = [level[1:] + start for level, start in zip(levels, starts, strict=False)]
        strung.append(freeze(np.concatenate([levels[0][:1], *ends])))
    return tuple(strung)


def _refusal(name: str, what: str) -> EnforceNotMet:
    return EnforceNotMet(
        f"variable {name!r} has {what} on the devices, which cannot be put together; fetch it with return_merged=False"
    )
