"""Docstrings as Markdown: their sections as lists, their samples as highlighted code."""

from __future__ import annotations

import re

# Google's headings, as the package uses them.
SECTIONS = ("Args", "Arguments", "Attributes", "Returns", "Yields", "Raises", "Example", "Examples", "Note")

_HEADING = re.compile(rf"^({'|'.join(SECTIONS)}):[ ]*(.*)$")
_ENTRY = re.compile(r"^([*\w.]+(?:, [*\w.]+)*):(?: (.*))?$")


def markdown(text: str) -> str:
    """The Markdown of a docstring as `inspect.getdoc` returns it."""
    parts: list[str] = []
    heading, lines = "", list[str]()
    for line in [*text.splitlines(), None]:
        found = _HEADING.match(line) if line is not None else None
        if line is not None and not found and (not heading or not line or line.startswith(" ")):
            lines.append(line)
            continue
        parts.append(_section(heading, lines))
        heading, lines = (found[1], [f"    {found[2]}"] if found[2] else []) if found else ("", [line or ""])
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(text: str) -> str:
    """The first sentence, in one line, without the name that stands behind many."""
    first = re.sub(r" \(`(?:fluid|paddle|fluidlite)\.[\w.]+`\)", "", " ".join(text.split("\n\n")[0].split()))
    return _escaped(re.split(r"(?<=[\w)`]\.) (?=[A-Z`])", first)[0])


def _section(heading: str, lines: list[str]) -> str:
    lines = _dedented(lines) if heading else lines
    if not any(line.strip() for line in lines):
        return ""
    if heading in ("Args", "Arguments", "Attributes", "Raises") and (entries := _entries(lines)):
        rows = [f"`{name}`\n:   {_prose(body, indent=4)}" for name, body in entries]
        return f"**{heading}**\n\n" + "\n\n".join(rows)
    return f"**{heading}**\n\n{_prose(lines)}" if heading else _prose(lines)


def _entries(lines: list[str]) -> list[tuple[str, list[str]]]:
    """The names that a section describes, each with its lines; nothing if it is prose."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if match := _ENTRY.match(line):
            found.append((match[1], [match[2] or ""]))
        elif found and (not line or line.startswith(" ")):
            found[-1][1].append(line.removeprefix("    "))
        else:
            return []
    return found


def _prose(lines: list[str], indent: int = 0) -> str:
    """Paragraphs; samples and what is indented become code."""
    blocks: list[str] = []
    for block in re.split(r"\n{2,}", "\n".join(lines).strip("\n")):
        if block.lstrip().startswith(">>>"):
            code = "\n".join(_dedented(block.splitlines()))
            if blocks and blocks[-1].startswith("```pycon"):
                blocks[-1] = blocks[-1].removesuffix("\n```") + f"\n\n{code}\n```"
            else:
                blocks.append(f"```pycon\n{code}\n```")
        elif block.startswith("    "):
            code = "\n".join(_dedented(block.splitlines()))
            blocks.append(f"```text\n{code}\n```")
        else:
            blocks.append(_listed(block))
    return "\n\n".join(blocks).replace("\n", "\n" + " " * indent).replace(" " * indent + "\n", "\n")


def _listed(block: str) -> str:
    """A paragraph, with what Markdown would take for its own marks escaped; a list that begins below a line of text
    needs an empty line before it."""
    return re.sub(r"(?m)(?<!^)(?<=\n)(?=[*-] )", "\n", _escaped(block), count=1)


def _escaped(text: str) -> str:
    """Prose without HTML, links and emphasis: brackets are shapes, `*` and `_` belong to formulas and names."""
    pieces = re.split(r"(`[^`]+`)", text)
    for place in range(0, len(pieces), 2):
        piece = re.sub(r"(?m)(?<!^)([*])", r"\\\1", pieces[place])
        pieces[place] = re.sub(r"([\[\]_|])", r"\\\1", piece).replace("<", "&lt;")
    return "".join(pieces)


def _dedented(lines: list[str]) -> list[str]:
    filled = [line for line in lines if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in filled), default=0)
    return [line[margin:] for line in lines]
