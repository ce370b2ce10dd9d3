"""Declarations of kernels say what the tables of the native kernels do, and calls of operators keep to them."""

import re
from collections import defaultdict
from pathlib import Path

from fluidlite._ext import dnn, kernels
from fluidlite.ops.kernels.kernel_def import DECLARED

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
    key for key in DECLARED if key[0].startswith(("conv2d", "conv3d")) and "plain" not in key[0]
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
    assert set(TABLES) - set(DECLARED) == set()
    assert set(DECLARED) - set(TABLES) <= WITHOUT_LIBRARY


def test_declarations_are_as_in_the_tables():
    for key, table in TABLES.items():
        kernel = DECLARED[key]
        assert set(table) - {""} == set(kernel.types.split()), key
        if kernel.name == "chain":
            continue  # the numbers of its steps follow from its integers
        parts = [takes.split("|") for takes in table.values()]
        for operands, *_ in parts:
            optional = [word.endswith("?") for word in re.sub(r"[()*]", "", kernel.operands).split()]
            assert optional == [mark == "n" for mark in re.sub(r"[^xn]", "", operands)], (key, operands)
            assert ("*" in kernel.operands) == ("(" in operands), (key, operands)
        for names, takes in ((kernel.ints, [p[1] for p in parts]), (kernel.floats, [p[2] for p in parts])):
            least, most, repeats = zip(*map(counts, takes), strict=True)
            assert declared_counts(names) == (min(least), max(most), any(repeats)), (key, names, takes)


def test_names_are_of_operands_integers_and_reals():
    for kernel in DECLARED.values():
        operands = set(kernel.places)
        assert set(kernel.made) <= operands, kernel.name
        for out, source in kernel.aliases:
            assert out in kernel.made and source in operands - set(kernel.made), (kernel.name, out, source)
        end = kernel.epilogue
        if end is not None:
            names = {end.activation, *end.channels} - {""}
            assert names <= set(kernel.int_places), kernel.name
            assert {end.accumulates} - {""} <= set(kernel.float_places), kernel.name
            assert {end.bias} - {""} <= operands, kernel.name
            assert all((other, True) in DECLARED for other in {end.normalized, end.logarithm} - {""})


NAME = re.compile(r"(\**)([A-Z]\w*)\??(\**)( \([^()]*\)\??)?")


def described() -> list[tuple[str, list[str], set[str], set[tuple[str, str]]]]:
    """Of the rows of kernels.md that name one kernel and its operands: these, the results and what may alias."""
    rows, columns = [], []
    for line in (Path(__file__).parents[2] / "docs" / "kernels.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "kernel":
            columns = cells
        elif not line.startswith("|"):
            columns = []
        row = dict(zip(columns, cells, strict=False))
        kernel = re.fullmatch(r"`([a-z]\w*)`", row.get("kernel", ""))
        names = [NAME.fullmatch(one) for one in re.split(r", (?![^()]*\))", row.get("operands", ""))]
        if not line.startswith("| `") or kernel is None or not all(names):
            continue
        pairs = [pair.split(": ") for pair in row.get("may alias", "").split("; ") if ": " in pair]
        aliases = {(out, source) for out, sources in pairs for source in sources.split(", ")}
        rows.append((kernel[1], [n[2] for n in names], {n[2] for n in names if n[1]}, aliases))
    return rows


def test_the_document_names_the_same_operands():
    rows = described()
    assert len(rows) > 130
    for name, operands, results, aliases in rows:
        found = [DECLARED[key] for key in ((name, True), (name, False)) if key in DECLARED]
        kernel = next((each for each in found if [*each.places] == operands), None)
        assert kernel is not None, f"{name}: {operands}, declared are {[[*each.places] for each in found]}"
        assert results == set(kernel.made), name
        assert aliases <= set(kernel.aliases), f"{name}: {aliases}"
