"""What mkdocs does to each page besides: less HTML, and samples of the API that search leaves out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Code on pages of the API is not searched: everything that a sample uses would be found there."""
    if not page.url.startswith("api/"):
        return html
    return html.replace('<div class="highlight">', '<div class="highlight" data-search-exclude>')


def on_post_page(output: str, **_: Any) -> str:
    """A page without the margins and empty lines of its template, which are a third of it, and in code without marks at
    what has the colour of text anyway."""
    output = re.sub(r'<span class="[npow]">([^<]*)</span>', r"\1", output.replace("<span></span>", ""))
    parts = re.split(r"(<pre.*?</pre>)", output, flags=re.DOTALL)
    parts[::2] = (re.sub(r"\s*\n\s*", "\n", part) for part in parts[::2])
    return "".join(parts)


def on_post_build(config: Any, **_: Any) -> None:
    """Debugging tables of the theme's scripts, and its searches in other languages, are not kept."""
    assets = Path(config.site_dir) / "assets"
    for file in [*assets.rglob("*.map"), *assets.glob("javascripts/lunr/**/*.js")]:
        file.unlink()
