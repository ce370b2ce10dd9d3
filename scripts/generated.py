"""Files that scripts write: written anew, or, with --check, compared."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def write(texts: Mapping[Path, str]) -> int:
    """Write the files that do not hold their text; with --check name them instead, and return 1 if there are any."""
    late = [
        path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf8") != text
    ]
    for path in late:
        if "--check" in sys.argv:
            print(f"{path} is out of date: run scripts/{Path(sys.argv[0]).name}", file=sys.stderr)
        else:
            path.write_text(texts[path], encoding="utf8")
    return int(bool(late) and "--check" in sys.argv)
