"""Recorded texts: files of several, each after a line `== NAME`."""

import re


def sections(path):
    """The texts of a file by name."""
    found = re.split(r"^== (.+)\n", path.read_text(encoding="utf8"), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))
