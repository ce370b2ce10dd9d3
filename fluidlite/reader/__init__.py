"""Reading data: decorators of readers, `DataFeeder`, loaders (`fluid.reader`, `fluid.data_feeder`,
`paddle.reader`).
"""

from ..base import missing
from .creator import np_array, recordio, text_file
from .decorators import ComposeNotAligned, batch, cache, chain, compose, firstn, map_readers, shuffle
from .feeder import DataFeeder
from .leaks import leaks
from .loader import DataLoader
from .pipeline import LoaderError, State
from .processes import multiprocess_reader
from .py_reader import PyReader
from .threaded import buffered, xmap_readers

__all__ = [
    "ComposeNotAligned",
    "DataFeeder",
    "DataLoader",
    "LoaderError",
    "PyReader",
    "State",
    "batch",
    "buffered",
    "cache",
    "chain",
    "compose",
    "firstn",
    "leaks",
    "map_readers",
    "multiprocess_reader",
    "np_array",
    "recordio",
    "shuffle",
    "text_file",
    "xmap_readers",
]

__getattr__ = missing.reporter(__name__)
