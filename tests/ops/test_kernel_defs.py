"""Declarations of kernels say what the tables of the native kernels do, and calls of operators keep to them."""

import re
from collections import defaultdict

import pytest

from fluidlite._ext import dnn, kernels
from fluidlite.ops.kernels.kernel_def import declared

REPEATED = re.compile(r"\([^()]*\)")


def tables() -> dict[tuple[str, bool], dict[str, str]]:
    """What the native tables say that calls take, by kernel and element type."""
    found: dict[tuple[str, bool], dict[str, str]] = defaultdict(dict)
    for full in kernels.table():
        name, dot, kind = full.partition(".")
        takes = kernels._takes.get(full) or dnn.takes(full)
        found[name, bool(dot)][kind] = takes if isinstance(takes, str) else getattr(takes, "text", "||")
    return found


TABLES = tables()
WITHOUT_LIBRARY = {
    key for key in declared() if key[0].startswith(("conv2d", "conv3d")) and "plain" not in key[0]
}


def counts(text: str) -> tuple[int, int, bool]:
    """The least and most numbers of values that a table says, and whether more are repeated; a rank is one."""
    repeats = "(" in text
    text = REPEATED.sub("", text)
    optional = sum(len(part) for part in re.findall(r"\[(\w+)\]", text))
    most = len(re.sub(r"[^a-z]", "", text))
    return most - optional, most, repeats


def declared_counts(text: str) -> tuple[int, int, bool]:
    """The same of names in a declaration."""
    single = [word for word in text.split() if not word.endswith("*")]
    return len(single) - sum(word.endswith("?") for word in single), len(single), "*" in text


def test_every_kernel_is_declared_once():
    assert set(TABLES) - set(declared()) == set()
    assert set(declared()) - set(TABLES) <= WITHOUT_LIBRARY


@pytest.mark.parametrize("key", sorted(TABLES), ids=lambda key: key[0] + (".*" if key[1] else ""))
def test_declarations_are_as_in_the_tables(key):
    kernel = declared()[key]
    assert set(TABLES[key]) - {""} == set(kernel.types.split())
    if kernel.name == "chain":
        return  # the numbers of its steps follow from its integers
    parts = [takes.split("|") for takes in TABLES[key].values()]
    for operands, *_ in parts:
        optional = [word.endswith("?") for word in re.sub(r"[()*]", "", kernel.operands).split()]
        assert optional == [mark == "n" for mark in re.sub(r"[^xn]", "", operands)], operands
        assert ("*" in kernel.operands) == ("(" in operands), operands
    for names, takes in ((kernel.ints, [p[1] for p in parts]), (kernel.floats, [p[2] for p in parts])):
        least, most, repeats = zip(*map(counts, takes), strict=True)
        assert declared_counts(names) == (min(least), max(most), any(repeats)), (names, takes)


@pytest.mark.parametrize("kernel", declared().values(), ids=lambda kernel: kernel.name)
def test_names_are_of_operands_integers_and_reals(kernel):
    operands = set(kernel.places)
    assert set(kernel.made) <= operands
    for out, source in kernel.aliases:
        assert out in kernel.made and source in operands and source not in kernel.made, (out, source)
    end = kernel.epilogue
    if end is not None:
        names = {end.activation, *end.channels} - {""}
        assert names <= set(kernel.int_places) and {end.accumulates} - {""} <= set(kernel.float_places)
        assert {end.bias} - {""} <= operands
        for other in {end.normalized, end.logarithm} - {""}:
            assert (other, True) in declared()
