"""Global shuffling: the processes of a run exchange samples as lines of slot files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..._ext.slots import Records
from ...distributed import world
from .files import Slot, SlotReader
from .reading import Loading


def globally_shuffled(records: Records, slots: Sequence[Slot], round_number: int) -> Records:
    """This process' samples after a global shuffle; each sample goes to a process drawn uniformly.

    `round_number`: the number of this exchange, which seeds the draws.
    """
    import tempfile

    run = world()
    lines = _lines(records, slots)
    owners = np.random.default_rng((run.rank, round_number)).integers(0, run.size, len(lines))
    parts = [
        np.frombuffer(b"".join(lines[k] for k in np.flatnonzero(owners == rank)), np.uint8)
        for rank in range(run.size)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "samples")
        path.write_bytes(b"".join(part.tobytes() for part in run.exchange(parts)))
        (found,) = Loading([SlotReader(slots, "", 0)], [str(path)]).wait()
    return found


def _lines(records: Records, slots: Sequence[Slot]) -> list[bytes]:
    """The samples as lines of a slot file: for each slot a count and the numbers."""
    words: list[list[str]] = [[] for _ in range(len(records))]
    for slot, (numbers, offsets) in zip(slots, records.batch(0, len(records)), strict=True):
        texts = [repr(float(x)) for x in numbers] if slot.real else [str(x) for x in numbers.tolist()]
        ends = offsets.tolist()
        for row, begin, end in zip(words, ends, ends[1:], strict=False):
            row += [str(end - begin), *texts[begin:end]]
    return [(" ".join(row) + "\n").encode() for row in words]
