"""Messages between trainers and servers: what comes back is what was sent, and damaged bytes are refused."""

import numpy as np
import pytest

from fluidlite.base.errors import FormatError
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.distributed.rpc import Message


def message():
    arrays = {
        "x": np.arange(6, dtype="float32").reshape(2, 3),
        "n": np.array([True, False, True]),
        "none": np.zeros((0, 4), "int64"),
        "number": np.float64(2.5),
        "rows": SelectedRows(np.array([4, 0, 4]), np.arange(6, dtype="float32").reshape(3, 2), 5),
    }
    return Message("send", 3, {"step": 7}, arrays)


def test_what_comes_back_is_what_was_sent():
    sent = message()
    got = Message.decode(sent.encode())
    assert (got.command, got.trainer, got.info, list(got.arrays)) == (
        "send",
        3,
        {"step": 7},
        list(sent.arrays),
    )
    for name in ("x", "n", "none", "number"):
        assert got.arrays[name].dtype == sent.arrays[name].dtype and got.arrays[name].flags.carray
        np.testing.assert_array_equal(got.arrays[name], sent.arrays[name])
    rows = got.arrays["rows"]
    assert rows.height == 5 and rows.rows.tolist() == [4, 0, 4]
    np.testing.assert_array_equal(rows.values, sent.arrays["rows"].values)


def test_damaged_messages_are_refused():
    data = message().encode()
    for cut in (0, 3, 7, 20, len(data) - 1):
        with pytest.raises(FormatError):
            Message.decode(data[:cut])
    with pytest.raises(FormatError, match="1 bytes more"):
        Message.decode(data + b"x")
    with pytest.raises(FormatError, match="cannot have a header"):
        Message.decode(data[:4] + b"\xff\xff\xff\x7f" + data[8:])
    with pytest.raises(FormatError, match="type 'object'"):
        Message.decode(data.replace(b'"float64"', b'"object" '))
    with pytest.raises(FormatError, match="rows from 0 to 4 of 3"):
        Message.decode(data.replace(b"[3, 2], 5]", b"[3, 2], 3]"))


def test_any_byte_may_be_damaged():
    data = message().encode()
    rng = np.random.RandomState(0)
    for _ in range(300):
        damaged = bytearray(data)
        damaged[rng.randint(len(data))] ^= 1 << rng.randint(8)
        try:
            Message.decode(bytes(damaged))
        except FormatError:
            continue
