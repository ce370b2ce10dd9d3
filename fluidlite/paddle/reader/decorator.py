"""`paddle.reader.decorator`: readers from readers."""

from ...base import missing
from ...reader import (
    ComposeNotAligned,
    buffered,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    multiprocess_reader,
    shuffle,
    xmap_readers,
)
from ...reader.threaded import XmapEndSignal

__all__ = [
    "ComposeNotAligned",
    "XmapEndSignal",
    "buffered",
    "cache",
    "chain",
    "compose",
    "firstn",
    "map_readers",
    "multiprocess_reader",
    "shuffle",
    "xmap_readers",
]

__getattr__ = missing.reporter(__name__)
