"""`Message`: a command with named arrays, as bytes.

    magic 'FLP1' | header: the size of a JSON text (uint32), the text | the elements of each array, one after the other

The text holds the command, the sender, and each array's name, type, shape and, for rows of a table, its height. Sizes
are checked against the number of bytes before anything is read.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from ..base.errors import EnforceNotMet, FormatError, public
from ..base.selected_rows import SelectedRows

_MAGIC = b"FLP1"
_TYPES = frozenset("bool int8 uint8 int16 int32 int64 float16 float32 float64".split())


@public
class RpcError(EnforceNotMet, RuntimeError):
    """A request between trainer and parameter server has failed."""


@public
class ServerLost(RpcError):
    """A parameter server has ended while a trainer needs it; the message names both, and the last step."""


@public
class TrainerLost(RpcError):
    """A trainer has ended unexpectedly; the message names it, and its last step."""


@dataclass
class Message:
    """A command (`send`, `get`, ...), the index of the trainer, options, and arrays or SelectedRows by name."""

    command: str
    trainer: int = 0
    info: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The message as bytes."""
        listed, data = [], []
        for name, value in self.arrays.items():
            if isinstance(value, SelectedRows):
                rows = np.ascontiguousarray(value.rows, "<i8")
                values = np.ascontiguousarray(value.values)
                listed.append([name, values.dtype.name, list(values.shape), value.height])
                data += [rows.tobytes(), values.tobytes()]
            else:
                array = np.ascontiguousarray(value)
                listed.append([name, array.dtype.name, list(np.shape(value)), None])
                data.append(array.tobytes())
        head = json.dumps([self.command, self.trainer, self.info, listed]).encode()
        return b"".join([_MAGIC, struct.pack("<I", len(head)), head, *data])

    @classmethod
    def decode(cls, data: bytes) -> Message:
        """Parse a message. Raises FormatError if it is malformed."""
        if data[:4] != _MAGIC or len(data) < 8:
            raise FormatError(f"a message of fluidlite begins with {_MAGIC!r}, got {data[:4]!r}")
        (size,) = struct.unpack_from("<I", data, 4)
        if size > len(data) - 8:
            raise FormatError(f"a message of {len(data)} bytes cannot have a header of {size}")
        try:
            command, trainer, info, listed = json.loads(data[8 : 8 + size])
            layouts = [
                (str(n), str(t), tuple(map(int, s)), h if h is None else int(h)) for n, t, s, h in listed
            ]
            message = cls(str(command), int(trainer), dict(info))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise FormatError(f"the header of a message cannot be read: {error}") from None
        at = 8 + size
        for name, kind, shape, height in layouts:
            if kind not in _TYPES or any(n < 0 for n in shape):
                raise FormatError(
                    f"{name!r} has elements of type {kind!r} and shape {list(shape)} in a message"
                )
            if height is None:
                message.arrays[name], at = _taken(data, at, kind, shape, name)
                continue
            if not shape:
                raise FormatError(f"{name!r} are rows without a shape in a message")
            rows, at = _taken(data, at, "int64", shape[:1], name)
            values, at = _taken(data, at, kind, shape, name)
            if len(rows) and not 0 <= rows.min() <= rows.max() < height:
                raise FormatError(
                    f"{name!r} has rows from {rows.min()} to {rows.max()} of {height} in a message"
                )
            message.arrays[name] = SelectedRows(rows, values, height)
        if at != len(data):
            raise FormatError(f"a message has {len(data) - at} bytes more than its header says")
        return message


def _taken(data: bytes, at: int, kind: str, shape: tuple[int, ...], name: str) -> tuple[np.ndarray, int]:
    dtype = np.dtype(kind)
    count = prod(shape)
    end = at + count * dtype.itemsize
    if end > len(data):
        raise FormatError(f"a message ends before the {count} elements of {name!r}")
    return np.frombuffer(data, dtype, count, at).reshape(shape).copy(), end  # aligned, and may be written to
