"""Make docs/img/draw.png and docs/img/profile.png: what `fluidlite draw` and `fluidlite profile` show of a LeNet.

usage: python scripts/pictures.py [FOLDER]    (docs/img without one)

Needs Chromium, and says so where there is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT = 800, 600
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# What a reader of the picture would have clicked.
CHOOSE = '<script>choose(nodes.find(node => node.op && node.op.type === "conv2d"));</script>'


def page(command: str, folder: Path, after: str = "") -> Path:
    """The page that `fluidlite COMMAND lenet.py` writes in `folder`, without the folder's name."""
    made = folder / f"{command}.html"
    subprocess.run(
        [sys.executable, "-m", "fluidlite", command, "-o", str(made), "lenet.py"],
        cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    text = made.read_text(encoding="utf8")
    for above in (folder, ROOT):
        text = text.replace(f"{above}/", "")
    made.write_text(text + after, encoding="utf8")
    return made


def picture(browser: str, shown: Path, target: Path) -> None:
    """Write a page as a PNG of WIDTH x HEIGHT pixels, in light colours."""
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
         "--blink-settings=preferredColorScheme=1", f"--user-data-dir={shown.with_suffix('')}",
         f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={target}", shown.as_uri()],
        check=True, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def main() -> int:
    """Make both pictures; the exit status."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"pictures need a browser, and none is here: {', '.join(BROWSERS)}", file=sys.stderr)
        return 1
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "img").resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ROOT / "examples" / "lenet.py", folder)
        for command, after in (("draw", CHOOSE), ("profile", "")):
            picture(browser, page(command, folder, after), target / f"{command}.png")
            print(target / f"{command}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
