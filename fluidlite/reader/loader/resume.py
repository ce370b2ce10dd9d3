"""The state of a loader, from which another one goes on in the middle of an epoch."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any


def checked_state(state: Mapping[str, Any], more: Sequence[str] = ()) -> dict[str, Any]:
    """The state that a loader's `state_dict` gave: `epoch` and `batches` as ints of at least 0, and the keys `more`.

    Raises ValueError for anything else, saying what is wrong.
    """
    wanted = ("epoch", "batches", *more)
    if not isinstance(state, Mapping) or any(key not in state for key in wanted):
        got = f"the keys {sorted(map(str, state))}" if isinstance(state, Mapping) else type(state).__name__
        raise ValueError(
            f"this is not the state of such a loader: expected a dict with {list(wanted)}, got {got}"
        )
    found = {key: state[key] for key in wanted}
    for key in ("epoch", "batches"):
        try:
            found[key] = operator.index(found[key])
        except TypeError:
            raise ValueError(
                f"the state of a loader needs a whole number {key!r}, got {found[key]!r}"
            ) from None
        if found[key] < 0:
            raise ValueError(f"the state of a loader needs {key!r} of at least 0, got {found[key]}")
    return found
