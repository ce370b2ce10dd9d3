"""Pages in headless Chromium."""

import shutil
import subprocess
from pathlib import Path

import pytest

needs_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="no headless browser")


def drawn(page: Path) -> str:
    """The DOM of `page` after its script has run. Fails if the script does."""
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--enable-logging=stderr",
         f"--user-data-dir={page.with_suffix('.profile')}", page.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "Uncaught" not in done.stderr, done.stderr
    return done.stdout
