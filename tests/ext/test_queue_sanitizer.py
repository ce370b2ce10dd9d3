"""The queue and the ring of messages under ThreadSanitizer: programs without Python that hammer them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXT = HERE.parent.parent / "fluidlite" / "_ext"
QUEUE = EXT / "queue" / "bounded_queue.cc"
PROGRAMS = {"queue_stress.cc": ([QUEUE], "20"), "ring_stress.cc": ([], "20000")}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_there_are_no_races(program: str, sanitizer: str, tmp_path: Path) -> None:
    sources, rounds = PROGRAMS[program]
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None or not QUEUE.exists():
        pytest.skip("needs a C++ compiler and the sources of the extension")
    flags = ["-std=c++17", "-O0", "-g1", f"-fsanitize={sanitizer}", "-pthread"]
    probe = tmp_path / "probe.cc"
    probe.write_text("int main() { return 0; }\n")
    built = subprocess.run(
        [compiler, *flags, probe, "-o", tmp_path / "probe"], capture_output=True, check=False
    )
    if built.returncode or subprocess.run([tmp_path / "probe"], capture_output=True, check=False).returncode:
        pytest.skip(f"the compiler has no working -fsanitize={sanitizer}")
    built_at = tmp_path / "stress"
    subprocess.run([compiler, *flags, f"-I{EXT}", HERE / program, *sources, "-o", built_at], check=True)
    ran = subprocess.run([built_at, rounds], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "ok"), ran.stderr[-4000:]
    assert "WARNING" not in ran.stderr
