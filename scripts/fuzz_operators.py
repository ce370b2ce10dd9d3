#!/usr/bin/env python
"""Runs random cases of operators in every way there is and reports what differs; see docs/fuzzing.md.

    python scripts/fuzz_operators.py --examples 20 --seed 1 [--only REGEX] [--programs 1000] [--real PYTHON]

`--examples`: cases of each operator. `--real`: the interpreter of a Python with Paddle 1.8.5, which then computes the
same cases.
"""

from __future__ import annotations

import argparse
import faulthandler
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.ops.fuzz import compare, open_variants, recipes, sizes, ways
from tests.ops.fuzz.cases import RECIPES, Case, Chooser, drawn, from_json, to_json
from tests.ops.fuzz.graphs import Graph

REAL = Path(recipes.__file__).with_name("real.py")


def on_real(python: str, cases: list[Case]) -> list[dict]:
    """The results of Paddle; a process that dies is started again behind the case that killed it."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "cases"), Path(folder, "results")
        given.write_text("".join(json.dumps(to_json(case)) + "\n" for case in cases))
        while _runs(python, given, made) != 0:
            if not Path(f"{made}.began").exists():
                raise SystemExit(f"{python} cannot run the cases")
        return [from_json(json.loads(line)) for line in made.read_text().splitlines()]


def _runs(python: str, given: Path, made: Path) -> int:
    """One process of Paddle, ended when a case takes longer than half a minute."""
    process = subprocess.Popen([python, str(REAL), str(given), str(made)], stderr=subprocess.DEVNULL)
    size = -1
    while True:
        try:
            return process.wait(30)
        except subprocess.TimeoutExpired:
            before, size = size, made.stat().st_size if made.exists() else 0
            if size == before:
                process.kill()


def steps(graph: Graph, engine: str, fetches: list[str]) -> dict:
    return {"steps": graph.run(engine, fetches)}


def programs(numbers: range) -> None:
    """Run these random programs by interpreter and plan, and print what differs."""
    different = 0
    for number in numbers:
        rng = np.random.default_rng([77, number])
        graph = Graph(Chooser(lambda low, high: int(rng.integers(low, high + 1))))  # noqa: B023
        fetches = graph.build()
        found = [ways.attempt(partial(steps, graph, engine, fetches)) for engine in ("interpret", "plan")]
        told = compare.differences(*({k: v for k, v in one.items() if k != "steps"} for one in found))
        for want, got in zip(*(one.get("steps", []) for one in found), strict=False):
            told = told or compare.differences(want, got, rtol=1e-3)
        if told:
            different += 1
            print(f"program {number}: {'; '.join(told)[:500]}", flush=True)
    print(f"{len(numbers)} programs, {different} differ")


def at_sizes(only: str, numbers: range, graphs: range) -> None:
    """Run these cases of each operator, and these programs, at other sizes than they are made for."""
    different = several = 0
    for op in sorted(RECIPES):
        if not re.fullmatch(only or ".*", op):
            continue
        for number in numbers:
            case = drawn(op, number)
            for how in (sizes.by_rows, sizes.by_every_axis):
                found = sizes.check(case, how)
                told = found.differences + open_variants.check(drawn(op, number), how)[0]
                different += bool(told)
                for text in told[:1]:
                    print(f"{op} {number} [{how.__name__}]: {text[:700]}\n    {case!r:.700}", flush=True)
                if how is sizes.by_rows and found.plans > 1:
                    several += 1
                    print(f"{op} {number}: {found.plans} plans for {found.sizes} sizes: {found.guards}")
    for number in graphs:
        found = sizes.check_program(number)
        different += bool(found.differences)
        for text in found.differences[:1]:
            print(f"program {number}: {text[:700]}", flush=True)
    print(f"{different} differ, {several} have several plans")


def without_texts(real: dict) -> dict:
    """A result as it is recorded: of an error only the class."""
    if "error" in real:
        return {"error": real["error"]}
    return {key: without_texts(value) if key == "@GRAD" else value for key, value in real.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", default="", help="a regular expression: operators to try; none if nothing matches"
    )
    parser.add_argument(
        "--programs", type=int, default=0, help="random programs of several operators to try as well"
    )
    parser.add_argument(
        "--sizes",
        action="store_true",
        help="compare plans with the interpreter, and open variants of eager operators with exact ones, at other sizes",
    )
    parser.add_argument("--real")
    parser.add_argument(
        "--keep", type=Path, help="file for what Paddle computed, which is then not computed again"
    )
    parser.add_argument(
        "--record", type=Path, help="file for some small cases that agree with Paddle, for the tests"
    )
    parser.add_argument("--show", type=int, default=3, help="differences of a kind to print in full")
    options = parser.parse_args()
    faulthandler.enable()
    numbers, graphs = (
        range(options.seed * n, (options.seed + 1) * n) for n in (options.examples, options.programs)
    )
    if options.sizes:
        at_sizes(options.only, numbers, graphs)
        return
    found: Counter[tuple[str, str]] = Counter()
    recorded: Counter[str] = Counter()
    lines: list[str] = []
    cases, results, errors = [], [], Counter()

    def report(op: str, number: int, way: str, case: Case, told: list[str]) -> None:
        found[op, way] += 1
        if found[op, way] <= options.show:
            print(f"{op} {number} [{way}]: {'; '.join(told)[:700]}\n    {case!r:.700}", flush=True)

    last = Path(tempfile.gettempdir(), "fuzz_operators.last")
    for op in sorted(RECIPES):
        if not re.fullmatch(options.only or ".*", op):
            continue
        for number in numbers:
            case = drawn(op, number)
            last.write_text(f"{op} {number}\n")  # what a crash leaves behind
            want = ways.complete(case)
            errors[op] += "error" in want
            for way, got in ways.all_ways(case, number + 1):
                told = compare.differences(want, got)
                if told:
                    report(op, number, way, case, told)
            cases.append((number, case))
            results.append(want)
    programs(graphs)
    if options.real:
        known = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
        new = [(f"{case.op} {number}", case) for number, case in cases if f"{case.op} {number}" not in known]
        if new:
            made = on_real(options.real, [case for _, case in new])
            known.update((key, to_json(result)) for (key, _), result in zip(new, made, strict=True))
            if options.keep:
                options.keep.write_text(json.dumps(known))
        for (number, case), want in zip(cases, results, strict=True):
            real = from_json(known[f"{case.op} {number}"])
            told = compare.differences(real, want, classes=False)
            if (
                not told
                and recorded[case.op] < 3
                and sum(a.size for s in case.inputs.values() for a in s) <= 40
            ):
                recorded[case.op] += 1
                lines.append(json.dumps([to_json(case), to_json(without_texts(real))]))
            if told:
                stricter = "error" in want or "error" in want.get("@GRAD", {})
                laxer = "error" in real or "crash" in real or "error" in real.get("@GRAD", {})
                kind = "laxer" if laxer else "stricter" if stricter else "real"
                if kind == "real" and all(compare.NOT_FINITE in text for text in told):
                    kind = "not finite"
                report(case.op, number, kind, case, told)
    if options.record:
        options.record.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    print(f"{len(cases)} cases, {len(RECIPES)} operators, {sum(errors.values())} raise")
    print("mostly errors:", {op: n for op, n in errors.items() if n > 0.6 * options.examples})
    for (op, way), count in sorted(found.items()):
        print(f"{count:5d} {op} [{way}]")


if __name__ == "__main__":
    main()
