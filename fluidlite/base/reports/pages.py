"""Pages to look at: one HTML file each, with its data, that needs no server and no network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_HEAD = Path(__file__).with_name("page.html")


def filled(template: Path, data: Any) -> str:
    """The page of `template`, after the common head, with `data` as JSON in its script."""
    # No text in the data can end the script element.
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    body = template.read_text(encoding="utf-8").replace("/*DATA*/null", text)
    return _HEAD.read_text(encoding="utf-8") + body
