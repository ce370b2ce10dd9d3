"""Builds the site of the documents: `make docs`.

usage: python scripts/site/build.py [--pages FOLDER]    (only these pages, without the examples and without mkdocs)

The pages of docs/, the examples with what they print, and the API's reference become Markdown in build/site/pages, of
which mkdocs makes build/site/html. A link that leads nowhere, a sample that is missing or prints something else, or
an example that fails stops the build. Nothing is read from the network.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import reference
import samples

import examples
import fluidlite.as_paddle  # noqa: F401 - samples import paddle

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
PAGES = SITE / "pages"

_FENCE = re.compile(r"^(```.*?^```|<.*?)$", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"(?<!\[)`([\w./]+)`(?!\])")
_BY_FILE = re.compile(r"\[(?:docs/)?(\w+\.md)\]\((\w+\.md)\)")


def write(pages: dict[str, str], folder: Path) -> None:
    """Write pages by their paths below a folder. Other pages and names of the API in text are links."""
    reference_pages = {path[4:]: text for path, text in pages.items() if path.startswith("api/")}
    api = {name: f"api/{path}" for name, path in reference.links(reference_pages).items()}
    titles = {path: found[1] for path, text in pages.items() if (found := re.search(r"(?m)^# (.+)$", text))}
    for path, text in pages.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_linked(text, path, titles, api), encoding="utf8")
    shutil.copytree(Path(__file__).with_name("assets"), folder / "assets", dirs_exist_ok=True)
    shutil.copytree(ROOT / "docs" / "img", folder / "img", dirs_exist_ok=True)
    found = {"names": reference.names_of_modules(), "members": reference.members(reference_pages)}
    script = f"const apiNames = {json.dumps(found, separators=(',', ':'))};\n"
    (folder / "assets" / "api_names.js").write_text(script, encoding="utf8")


def _linked(text: str, path: str, titles: dict[str, str], api: dict[str, str]) -> str:
    """The text with links at names of the API, of documents (by their titles) and of examples."""
    up = "../" * path.count("/")

    def link(found: re.Match[str]) -> str:
        name = found[1]
        page = re.sub(r"^examples/(\w+)\.py$", r"examples/\1.md", name.removeprefix("docs/"))
        target = page if page in titles else api.get(name)
        if not target or target == path:
            return found[0]
        return f"[{titles[page] if '/' not in page and page in titles else f'`{name}`'}]({up}{target})"

    pieces = _FENCE.split(text)
    for place in range(0, len(pieces), 2):
        lines, code = pieces[place].split("\n"), False
        for number, line in enumerate(lines):
            # Indented by eight after an empty line is code of an item of a list.
            code = line.startswith(" " * 8) and (code or number == 0 or not lines[number - 1])
            if not line.startswith("#") and (not code or path.startswith("api/")):
                line = _BY_FILE.sub(lambda found: f"[{titles.get(found[2], found[1])}]({found[2]})", line)
                lines[number] = _NAMED.sub(link, line)
        pieces[place] = "\n".join(lines)
    return "".join(pieces)


def documents() -> dict[str, str]:
    """The pages that are kept as such: docs/, and those of the root."""
    made = {path.name: path.read_text(encoding="utf8") for path in sorted((ROOT / "docs").glob("*.md"))}
    for name, page in (("README", "index"), ("CONTRIBUTING", "contributing"), ("CHANGELOG", "changelog")):
        made[f"{page}.md"] = from_root((ROOT / f"{name}.md").read_text(encoding="utf8"))
    made = {path: coloured(listed(text)) for path, text in made.items()}
    return made | {"index.md": "---\nhide:\n  - navigation\n---\n" + made["index.md"]}


_ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def from_root(text: str) -> str:
    """The text of a page of the root whose links lead to pages of the site; those to other files become their names."""

    def link(found: re.Match[str]) -> str:
        words, target = found.groups()
        page = _ROOT_PAGES.get(target, target.removeprefix("docs/"))
        if "://" in target or page in _ROOT_PAGES.values() or page != target:
            return f"[{words}]({page})"
        return f"`{words}`" if "/" in target or target.endswith(".md") else found[0]

    return re.sub(r"\[([^\]]+)\]\(([^)#\s]+)\)", link, text)


def listed(text: str) -> str:
    """What belongs to items of lists indented by four, as Python-Markdown has it, not by the width of their marks."""
    pieces = _FENCE.split(text)
    for place in range(0, len(pieces), 2):
        lines, width = pieces[place].split("\n"), 0
        for number, line in enumerate(lines):
            if mark := re.match(r"(?:[*-]|\d+\.) +", line):
                width = mark.end()
            elif line and not line.startswith(" " * max(width, 1)):
                width = 0
            elif line and width:
                lines[number] = " " * (4 - width) + line
        pieces[place] = "\n".join(lines)
    return "".join(pieces)


def coloured(text: str) -> str:
    """Code that is indented, as it is not in lists, between fences that say what it is."""

    def fenced(found: re.Match[str]) -> str:
        code = textwrap.dedent(found[1]).strip("\n")
        return f"\n\n```{_language(code)}\n{code}\n```\n"

    pieces = _FENCE.split(text)
    for place in range(0, len(pieces), 2):
        pieces[place] = re.sub(
            r"(?<=[^\n])\n\n((?: {4}.*\n|\n(?= {4}))+)", _unless_listed(fenced), pieces[place]
        )
    return "".join(pieces)


def _unless_listed(fenced: Callable[[re.Match[str]], str]) -> Callable[[re.Match[str]], str]:
    """`fenced` of what belongs to no item of a list: the paragraph before it begins at the margin, without a mark."""

    def chosen(found: re.Match[str]) -> str:
        before = found.string[: found.start()].rpartition("\n\n")[2]
        listed = re.match(r"\s|[*-] |\d+\. |: ", before) or before.rpartition("\n")[2].startswith(" ")
        return found[0] if listed else fenced(found)

    return chosen


def _language(code: str) -> str:
    if re.match(r"(make|pip|python|fluidlite|git|cd|export|scripts/|FLAGS_|FLUIDLITE_)\b", code):
        return "sh"
    try:
        ast.parse(code)
    except SyntaxError:
        return "text"
    return "python"


def _wrong_samples(files: list[Path]) -> list[str]:
    """Samples of docstrings and of these files that fail or print something else, and names without one; printed."""
    with _quiet():
        wrong = reference.run_samples() + reference.without_sample()
        for file in files:
            wrong.extend(samples.failures(file))
    if wrong:
        print(*wrong, f"{len(wrong)} samples are missing or wrong", sep="\n", file=sys.stderr)
    return wrong


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What samples and their processes write to the error stream is shown only if an exception leaves."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as kept, contextlib.ExitStack() as stack:
        real = os.dup(2)
        stack.callback(os.close, real)
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(real, kept.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(real, 2)


def _pages() -> dict[str, str]:
    """Those of the documents and of the API."""
    return documents() | {f"api/{path}": text for path, text in reference.pages().items()}


def main() -> int:
    """Build everything; the exit status."""
    command = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    command.add_argument(
        "--pages", type=Path, metavar="FOLDER", help="write the pages only, without the examples"
    )
    folder = command.parse_args().pages
    if folder:
        if not (wrong := _wrong_samples([])):
            write(_pages(), folder)
        return int(bool(wrong))
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        print("mkdocs and its theme are needed: pip install '.[docs]'", file=sys.stderr)
        return 1
    shutil.rmtree(PAGES, ignore_errors=True)
    print("running the samples and the examples", flush=True)
    with ThreadPoolExecutor(1) as beside:  # they are processes of their own
        made = beside.submit(examples.pages, PAGES / "drawings", dict(os.environ))
        if _wrong_samples(samples.files()):
            return 1
    pages = _pages()
    pages |= {f"examples/{path}": text for path, text in made.result().items()}
    write(pages, PAGES)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],  # with --quiet nothing is counted as wrong
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    if not done.returncode:
        print(f"open {SITE / 'html' / 'index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
