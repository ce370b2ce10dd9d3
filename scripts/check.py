"""Checks a change: formatting, lint and types of the tree, and the tests of the files that have changed.

usage: python scripts/check.py [BASE]     # `make check`; BASE is a commit, otherwise where the branch left origin/main

Tests of `fluidlite/X/Y.py`: those of `tests/X` that import the module or have its name, otherwise all of that folder.
Without a change the tree alone is checked.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
EVERYWHERE = ["test_imports.py::test_every_folder_and_module_is_listed", "test_docs.py"]
"""What a new or moved file breaks first."""
FOLDERS = {"_ext": "ext"}
"""Folders of the package with another name in `tests`."""


def git(*words: str) -> list[str]:
    """The lines that git prints; none if it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def changed(base: str | None) -> list[Path]:
    """The files that have changed since `base`, committed or not, and are there."""
    since = base or next(iter(git("merge-base", "HEAD", "origin/main")), "HEAD")
    names = git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard")
    return [ROOT / name for name in names if (ROOT / name).exists()]


def tests_of(path: Path) -> set[Path]:
    """The files of tests for one changed file."""
    if path.is_relative_to(TESTS):
        return {path} if re.match(r"test_.*\.py", path.name) else tests_in(path.parent)
    if not path.is_relative_to(ROOT / "fluidlite"):
        return set()
    module = path.relative_to(ROOT).with_suffix("").as_posix().removesuffix("/__init__").replace("/", ".")
    folder = TESTS.joinpath(
        *(FOLDERS.get(part, part) for part in path.parent.relative_to(ROOT / "fluidlite").parts)
    )
    while not folder.is_dir():
        folder = folder.parent
    names = {module, module.replace("fluidlite.fluid.", "fluidlite.")}
    imports = re.compile("|".join(rf"{re.escape(name)}\b" for name in names))
    beside = tests_in(folder) | set(TESTS.glob(f"test_{path.stem}.py"))
    exact = {
        test for test in beside if path.stem in test.stem or imports.search(test.read_text(encoding="utf8"))
    }
    return exact or (beside if folder != TESTS else set())


def tests_in(folder: Path) -> set[Path]:
    """The files of tests in a folder itself."""
    return set(folder.glob("test_*.py"))


def main(base: str | None) -> int:
    """Run the checks, the quick ones first; returns 0 if all pass."""
    tests = sorted({str(test.relative_to(ROOT)) for path in changed(base) for test in tests_of(path)})
    checks = [
        ["ruff", "format", "--check", "."],
        ["ruff", "check", "."],
        ["pytest", "-q", *(f"tests/{name}" for name in EVERYWHERE), *tests],
        ["mypy"],
    ]
    for check in checks:
        start = time.monotonic()
        code = subprocess.run([sys.executable, "-m", *check], cwd=ROOT, check=False).returncode
        print(
            f"== {' '.join(check[:2])}: {'passed' if code == 0 else 'failed'} ({time.monotonic() - start:.0f} s)"
        )
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or [None]))
