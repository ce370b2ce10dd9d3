"""The C++ queue under ThreadSanitizer: a program without Python that hammers it (`queue_stress.cc`)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXT = HERE.parent.parent / "fluidlite" / "_ext"
QUEUE = EXT / "queue" / "bounded_queue.cc"


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_the_queue_has_no_races(sanitizer: str, tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None or not QUEUE.exists():
        pytest.skip("needs a C++ compiler and the sources of the extension")
    flags = ["-std=c++17", "-O1", "-g", f"-fsanitize={sanitizer}", "-pthread"]
    probe = tmp_path / "probe.cc"
    probe.write_text("int main() { return 0; }\n")
    built = subprocess.run(
        [compiler, *flags, probe, "-o", tmp_path / "probe"], capture_output=True, check=False
    )
    if built.returncode or subprocess.run([tmp_path / "probe"], capture_output=True, check=False).returncode:
        pytest.skip(f"the compiler has no working -fsanitize={sanitizer}")
    program = tmp_path / "queue_stress"
    subprocess.run([compiler, *flags, f"-I{EXT}", HERE / "queue_stress.cc", QUEUE, "-o", program], check=True)
    ran = subprocess.run([program, "20"], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "ok"), ran.stderr[-4000:]
    assert "WARNING" not in ran.stderr
