"""Pages of the examples: each is run, and shown with what it printed and, if it builds programs, their drawing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Those that print a line for every batch show their ends.
LONGEST = 60


def pages(assets: Path, environment: dict[str, str]) -> dict[str, str]:
    """The text of each page, by its path below `examples/`; drawings go to `assets`. RuntimeError if a script fails."""
    scripts = sorted((ROOT / "examples").glob("*.py"))
    made = {f"{path.stem}.md": _page(path, assets, environment) for path in scripts}
    rows = [f"* [`{path.name}`]({path.stem}.md): {_title(path)}" for path in scripts]
    made["index.md"] = (
        "# Examples\n\nEach was run when this page was made. `python -m fluidlite examples/NAME.py` runs it here.\n\n"
        + "\n".join(rows)
        + "\n\nScripts for several processes are in `examples/distributed/`; "
        "`distributed.md` shows how they are started.\n"
    )
    return made


def _page(path: Path, assets: Path, environment: dict[str, str]) -> str:
    printed = _run([str(path)], path, environment)
    if len(lines := printed.splitlines()) > LONGEST:
        printed = "\n".join([*lines[:5], f"... ({len(lines) - 15} lines more)", *lines[-10:]])
    parts = [
        f"# {path.stem}\n\n{_title(path)}\n",
        f'```python title="{path.relative_to(ROOT)}"\n{path.read_text(encoding="utf8").rstrip()}\n```\n',
        f"It prints:\n\n```text\n{printed.rstrip()}\n```\n",
    ]
    if "exe.run(" in path.read_text(encoding="utf8"):
        assets.mkdir(parents=True, exist_ok=True)
        drawing = f"{path.stem}.html"
        _run(["draw", "-o", str(assets / drawing), str(path)], path, environment)
        parts.append(
            f"Its program, as `fluidlite draw` shows it ([on a page of its own](../drawings/{drawing})):\n\n"
            f'<iframe class="drawing" src="../drawings/{drawing}" title="the program" loading="lazy"></iframe>\n'
        )
    return "\n".join(parts)


def _title(path: Path) -> str:
    """The first sentence of the script's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf8"))) or path.stem
    return " ".join(text.split("\n\n")[0].split())


def _run(arguments: list[str], path: Path, environment: dict[str, str]) -> str:
    """What `fluidlite ARGUMENTS` prints, in an empty folder; its errors are shown when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        own = {**environment, "FLUIDLITE_OFFLINE": "1", "PYTHONPATH": str(ROOT), "HOME": folder}
        done = subprocess.run(
            [sys.executable, "-m", "fluidlite", *arguments],
            cwd=folder, env=own, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{path.name} failed:\n{done.stderr}")
    return re.sub(re.escape(folder), "/tmp/here", done.stdout)
