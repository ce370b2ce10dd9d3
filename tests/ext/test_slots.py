"""Slot files in C++: numbers as the C library reads them, lines across reads, records across blocks, random orders."""

import ctypes
import locale
import os
import shutil
import subprocess

import numpy as np
import pytest

from fluidlite._ext.slots import PROBLEMS, Engine, Parser, Records


def parsed(tmp_path, text, reals, widths=None, records=1 << 40, skip=0, sparse=None):
    path = tmp_path / "part"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    parser = Parser(reals, widths or [-1] * len(reals), skip, sparse)
    parser.begin()
    file = os.open(path, os.O_RDONLY)
    try:
        ended = parser.read(file, records)
    finally:
        os.close(file)
    return parser, ended


def test_zeros_of_sparse_slots_are_left_out_but_for_one(tmp_path):
    text = (
        "1 word 3 0 5 0 2 0 1.5 2 0 3\n"
        "1 word 2 0 0 3 1e-7 -9e-7 -0.0 2 0 0\n"
        "1 word 2 -7 0 4 1.1e-6 -1e-5 1e-6 nan 2 4 0\n"
    )
    parser, ended = parsed(
        tmp_path, text, [False, True, False], [-1, -1, 2], skip=1, sparse=[True, True, False]
    )
    assert ended and len(parser) == 3
    (ids, at), (reals, places), (dense, _) = parser.take(3)
    assert ids.tolist() == [5, 0, -7] and at.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(reals, np.array([1.5, 0, 1.1e-6, -1e-5, np.nan], "float32"))
    assert not np.signbit(reals[1]) and places.tolist() == [0, 1, 2, 5]
    assert dense.tolist() == [0, 3, 0, 0, 4, 0]
    with pytest.raises(ValueError, match="2 types of slots, 2 widths, 1 of whether zeros stay"):
        Parser([True, False], [1, 1], 0, [True])


def test_reals_are_the_nearest_floats(tmp_path):
    rng = np.random.default_rng(0)
    words = [
        "0", "-0", "+1.5", ".5", "5.", "1e3", "1E-3", "nan", "inf", "-inf", "1e999", "0x1p3", "16777217",
        "1e-46",
    ]  # fmt: skip
    words += [
        "3.4028235e38",
        "1.17549435e-38",
        "0.000000000000000000000000000000000001",
        "340282356779733661637539395458142568448",
    ]
    words += [repr(float(v)) for v in rng.normal(size=300)]
    words += [f"{v:.4f}" for v in rng.normal(size=300)]
    # Half way between two floats, just above and just below.
    floats = rng.uniform(0.5, 8, 200).astype("float32")
    middles = (floats.astype("float64") + np.nextafter(floats, np.float32(9)).astype("float64")) / 2
    words += [f"{m:.{digits}f}" for m in middles for digits in (12, 14, 24, 30)]
    parser, ended = parsed(tmp_path, f"{len(words)} {' '.join(words)}\n", [True])
    assert ended and parser.fault is None
    values = parser.take(1)[0][0]
    strtof = ctypes.CDLL(None).strtof
    strtof.restype, strtof.argtypes = ctypes.c_float, [ctypes.c_char_p, ctypes.c_void_p]
    expected = np.array([strtof(word.encode(), None) for word in words], "float32")
    np.testing.assert_array_equal(values.view("int32"), expected.view("int32"))


def test_reals_have_a_point_in_every_country(tmp_path, monkeypatch):
    """`strtof` reads what the locale of the process says, and numbers of many digits are left to the C library."""
    builder, source = shutil.which("localedef"), tmp_path / "source"
    if builder is None:
        pytest.skip("needs localedef")
    source.write_text('LC_NUMERIC\ndecimal_point "<U002C>"\nthousands_sep ""\ngrouping -1\nEND LC_NUMERIC\n')
    command = [builder, "-c", "-f", "ANSI_X3.4-1968", "-i", source, tmp_path / "comma"]
    subprocess.run(command, capture_output=True, check=False)
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    before = locale.setlocale(locale.LC_NUMERIC)
    try:
        locale.setlocale(locale.LC_NUMERIC, "comma")
    except locale.Error:
        pytest.skip("needs a locale with a comma")
    try:
        assert locale.localeconv()["decimal_point"] == ","
        parser, _ = parsed(tmp_path, "3 0.12345678901234567 1.5e-3 0x1.8p1\n", [True])
        assert parser.fault is None
        np.testing.assert_array_equal(parser.take(1)[0][0], np.float32([0.12345678901234567, 1.5e-3, 3.0]))
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


def test_whole_numbers_keep_their_bits(tmp_path):
    words = ["0", "-5", "+7", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
             "18446744073709551615", "18446744073709551616", "99999999999999999999999", "00012"]  # fmt: skip
    parser, _ = parsed(tmp_path, f"{len(words)} {' '.join(words)}", [False])
    expected = [0, -5, 7, 2**63 - 1, -(2**63), -(2**63), -1, -1, -1, 12]  # as strtoull has them
    assert parser.take(1)[0][0].tolist() == expected


def test_lines_of_any_length_go_on_across_reads(tmp_path):
    rng = np.random.default_rng(1)
    rows = [
        rng.integers(0, 10**9, n).tolist()
        for n in (*rng.integers(1, 9, 20000), 300000, *rng.integers(1, 9, 2000))
    ]
    text = "".join(f"{len(row)}\t{' '.join(map(str, row))}\r\n" for row in rows)[:-2]
    parser, ended = parsed(tmp_path, text, [False])
    assert ended and len(parser) == len(rows)
    got = []
    while len(parser):
        numbers, offsets = parser.take(997)[0]
        assert not offsets.flags.writeable and offsets[0] == 0 and offsets[-1] == len(numbers)
        got += [numbers[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    assert got == rows


def test_reading_comes_back_when_enough_records_are_held(tmp_path):
    parser, ended = parsed(tmp_path, "1 5 1 .5\n" * 10, [False, True], records=3)
    assert not ended and len(parser) == 3
    (ids, _), (reals, places) = parser.take(2)
    assert ids.tolist() == [5, 5] and reals.tolist() == [0.5, 0.5] and places.tolist() == [0, 1, 2]
    assert len(parser) == 1 and [len(column[0]) for column in parser.take(9)] == [1, 1]
    assert parser.take(4)[0][1].tolist() == [0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", (2, 0, "count", 1, 0, b"")),
        ("1 1 1 0.5 0", (2, 2, "count", 1, 0, b"0")),
        ("1 1 1 0.5 -4 1", (2, 2, "count", 1, -4, b"-4")),
        ("1 1 1 x", (2, 1, "number", 0, 0, b"x")),
        ("1 1.0 1 2", (2, 0, "number", 0, 0, b"1.0")),
        ("1 1 2 2 3 1 1", (2, 1, "width", 1, 2, b"2")),
        ("1 1 1 2 3 1 1", (2, 2, "short", 3, 2, b"3")),
        ("1 1 1 2\0 3 1 1", (2, 1, "number", 0, 0, b"2\0")),
        ("- 1", (2, 0, "number", 0, 0, b"-")),
    ],
)
def test_what_is_wrong_with_a_line(tmp_path, line, expected):
    parser, ended = parsed(tmp_path, f"1 1 1 1 1 1\n{line}\n1 1 1 1 1 1\n", [False, True, False], [-1, 1, -1])
    number, slot, problem, wanted, found, word, text = parser.fault
    assert ended and len(parser) == 1  # what stands before the line is there
    assert (number, slot, wanted, found, word) == (*expected[:2], *expected[3:])
    assert problem == PROBLEMS[expected[2]] and text == line.encode()


def test_slots_of_text_are_left_out(tmp_path):
    parser, _ = parsed(tmp_path, "1 first 2 a b 1 7\n1 9 1 c 1 8\n", [False], skip=2)
    assert parser.take(2)[0][0].tolist() == [7, 8]


def records(values, reals=(False,)):
    out = Records(reals)
    read, write = os.pipe()
    with os.fdopen(write, "w") as file:
        file.write("".join("".join(f"1 {v} " for _ in reals) + "\n" for v in values))
    parser = Parser(reals, [-1] * len(reals))
    parser.begin()
    assert parser.read(read, 1 << 40)
    os.close(read)
    out.take(parser)
    assert len(parser) == 0
    return out


def test_orders_are_those_of_fluid():
    values = [*range(17), *range(20, 23)]
    held, engine = records(values), Engine()
    held.shuffle(engine)
    # Recorded on Paddle 1.8.5: InMemoryDataset.local_shuffle once, and twice, in a new process.
    once = [21, 6, 4, 5, 11, 3, 12, 22, 0, 16, 10, 13, 20, 1, 7, 14, 8, 9, 15, 2]
    twice = [14, 4, 11, 7, 10, 9, 16, 5, 13, 3, 1, 20, 15, 22, 21, 2, 6, 12, 8, 0]
    assert held.batch(0, 99)[0][0].tolist() == once
    held.shuffle(engine)
    assert held.batch(0, 20)[0][0].tolist() == twice


def test_mixed_slots_are_those_of_fluid():
    held = records([*range(17), *range(20, 23)], reals=(False, True, False))
    mixed = held.mixed([False, True, True], 1000, Engine())
    kept, reals, drawn = (column[0].tolist() for column in mixed.batch(0, 20))
    assert kept == reals == [*range(17), *range(20, 23)]  # reals are never mixed
    # Recorded on Paddle 1.8.5: slots_shuffle in a new process.
    assert drawn == [0, 1, 2, 2, 0, 2, 2, 6, 8, 9, 6, 5, 11, 6, 12, 7, 6, 7, 8, 12]
    few = held.mixed([False, False, True], 3, Engine()).batch(0, 20)[2][0].tolist()
    assert len(set(few)) > 3 and set(few) <= {*range(17), *range(20, 23)}
    with pytest.raises(ValueError, match="1 slots chosen of 3"):
        held.mixed([True], 3, Engine())


def test_records_of_several_files_are_one(tmp_path):
    held = records([1, 2])
    held.join(records([3]))
    held.join(records([]))
    held.join(records([4, 5]))
    assert held.batch(1, 4)[0][0].tolist() == [2, 3, 4] and len(held) == 5
    assert held.batch(5, 9)[0][0].tolist() == [] and held.batch(7, 2)[0][1].tolist() == [0]


def test_records_take_over_what_has_the_same_slots(tmp_path):
    parser, _ = parsed(tmp_path, "1 5\n1 6\n", [False])
    own, reals = Records([False]), Records([True])
    for call, error in (
        (lambda: own.take(None), TypeError),
        (lambda: own.join(None), TypeError),
        (lambda: own.shuffle(None), TypeError),
        (lambda: own.mixed([True], 1, None), TypeError),
        (lambda: reals.take(parser), ValueError),
        (lambda: own.join(reals), ValueError),
        (lambda: own.join(own), ValueError),
    ):
        with pytest.raises(error):
            call()
    own.take(parser)
    assert len(own) == 2 and own.batch(0, 2)[0][0].tolist() == [5, 6]


def test_a_parser_that_was_stopped_reads_no_more(tmp_path):
    parser, _ = parsed(tmp_path, "1 1\n", [False])
    parser.stop()
    parser.begin()
    assert parser.read(0, 9) and len(parser) == 1
    with pytest.raises(OSError, match="Bad file descriptor"):
        Parser([False], [-1]).read(12345, 1)
    with pytest.raises(ValueError, match="1 types of slots, 2 widths"):
        Parser([False], [1, 2])
