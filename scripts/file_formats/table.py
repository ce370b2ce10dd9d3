"""Which saved models go from which program to which: writes the table of docs/compatibility.md.

    python scripts/file_formats/table.py --fluid PYTHON [--paddle3 PYTHON] [--check]

PYTHON are interpreters with Paddle 1.8.5 and Paddle 3. Every network of `nets.py` and its neighbours is trained and
saved by either side in every form, and read by the other (`exchange.py`, `paddle3.py`). A cell says for how many
networks predictions, or the losses that follow, are the writer's (rtol 1e-4, atol 1e-5), of how many that could be
saved. What is not is printed. `--check` without Paddle 3 compares the other columns.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "compatibility.md"
BEGIN, END = "<!-- table of scripts/file_formats/table.py -->\n", "<!-- end of the table -->\n"


def run(command: list[str]) -> dict[str, dict[str, str]]:
    """The results that a script prints, by form and network."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if command[0] == sys.executable:
        environment["PYTHONPATH"] = str(HERE.parent.parent)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")
    found: dict[str, dict[str, str]] = {}
    for line in done.stdout.splitlines():
        parts = line.split(" | ", 2)
        if len(parts) == 3:
            found.setdefault(parts[0], {})[parts[1]] = parts[2]
    if not found:
        raise SystemExit(f"{' '.join(command)} printed no results:\n{done.stderr[-2000:]}")
    return found


def cell(written: dict[str, str], read: dict[str, str] | None, what: str) -> str:
    """`8 of 8`, of the networks that could be written; prints what went wrong."""
    nets = [net for net, result in written.items() if result == "ok"]
    if read is None:
        return "-"
    for net in nets:
        if read[net] != "ok":
            print(f"{what}: {net}: {read[net]}")
    return f"{sum(read[net] == 'ok' for net in nets)} of {len(nets)}"


def table(fluid: str, paddle3: str | None) -> str:
    exchange, ours = str(HERE / "exchange.py"), [sys.executable, "-m", "fluidlite"]
    with tempfile.TemporaryDirectory() as folder:
        here, there = f"{folder}/here", f"{folder}/there"
        to_here = (run([fluid, exchange, "write", there]), run([*ours, exchange, "read", there]))
        to_there = (run([*ours, exchange, "write", here]), run([fluid, exchange, "read", here]))
        in_3 = run([paddle3, str(HERE / "paddle3.py"), here]) if paddle3 else {}
    rows = [
        "| saved by | 1.8.5 to fluidlite | fluidlite to 1.8.5 | fluidlite to Paddle 3 |",
        "|---|---|---|---|",
    ]
    for form in to_here[0]:
        cells = [
            cell(to_here[0][form], to_here[1][form], f"1.8.5 to here, {form}"),
            cell(to_there[0][form], to_there[1][form], f"here to 1.8.5, {form}"),
            cell(to_there[0][form], in_3.get(form), f"here to Paddle 3, {form}"),
        ]
        rows.append(f"| {form} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _columns(text: str, paddle3: str | None) -> list[list[str]]:
    """The cells of a table; those about Paddle 3 only where there is one to ask."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return rows if paddle3 else [row[:-1] for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fluid", required=True, help="an interpreter with Paddle 1.8.5")
    parser.add_argument("--paddle3", help="an interpreter with Paddle 3")
    parser.add_argument("--check", action="store_true", help="compare with the page instead of writing it")
    options = parser.parse_args()
    page = PAGE.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    made = table(options.fluid, options.paddle3)
    if options.check:
        return int(_columns(page[begin:end], options.paddle3) != _columns(made, options.paddle3))
    PAGE.write_text(page[:begin] + made + page[end:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
