"""Recorded texts: files of several, each after a line `== NAME`."""

import re


def sections_of(text):
    """The texts by name."""
    found = re.split(r"^== (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def sections(path):
    """The texts of a file by name."""
    return sections_of(path.read_text(encoding="utf8"))
