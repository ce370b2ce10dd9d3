"""How files are compiled (`scripts/compiling.py`): ahead of the build once each, and again if anything has changed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "compiling.py"
pytestmark = pytest.mark.skipif(
    not SCRIPT.exists() or shutil.which("g++") is None, reason="needs the source tree and a compiler"
)


@pytest.fixture
def compiling():
    spec = importlib.util.spec_from_file_location("compiling", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A folder like the package's, with one file of each kind."""
    files = {
        "kernels/one.cc": "int kernel() { return FL_X; }",
        "queue/two.cc": "int queue() { return 2; }",
        "queue/wrong.cc": "int queue() {",
        "dnn/three.cc": '#include "dnnl.h"',
    }
    for name, text in files.items():
        path = tmp_path / "fluidlite/_ext" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", "g++")
    return tmp_path


def made(tree):
    return sorted(path.name for path in tree.rglob("*.o"))


def test_what_needs_no_package_is_compiled(compiling, tree):
    done = subprocess.run([sys.executable, str(SCRIPT), "objects"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == done.stderr == ""
    assert made(tree) == ["two.o"]  # the others lack a macro, an end, and a package
    assert compiling.object_of("fluidlite/_ext/queue/two.cc", "objects").exists()


def test_kernels_are_given_the_macros(compiling, tree):
    compiling.compile_ahead(Path("fluidlite/_ext/kernels/one.cc"), "objects", ["-DFL_X=1"])
    assert made(tree) == ["one.o"]


def test_what_is_there_or_in_the_making_is_left_alone(compiling, tree):
    source = Path("fluidlite/_ext/queue/two.cc")
    target = compiling.object_of(source, "objects")
    with compiling.claimed(target) as mine:
        assert mine
        compiling.compile_ahead(source, "objects", [])
        assert made(tree) == []
        target.write_bytes(b"made by the build")
    compiling.compile_ahead(source, "objects", [])
    assert target.read_bytes() == b"made by the build"
    with compiling.claimed(target, wait=False) as mine:
        assert mine


def test_unchanged_sources_are_not_recompiled(compiling, tree):
    source, header, target = tree / "with space.cc", tree / "a header.h", str(tree / "made.o")
    header.write_text("")
    source.write_text('#include "a header.h"\n#include <cstddef>\nint one() { return 1; }')
    how = ["g++", "-c", str(source), "-o", target]

    def make():
        subprocess.run([*how, *compiling.noting(target)], check=True)
        compiling.note(target, how)
        for file in (source, header):
            os.utime(file, (0, 0))

    assert not compiling.is_current(target, how)
    make()
    assert compiling.is_current(target, how)
    assert not compiling.is_current(target, [*how, "-O2"])
    for file in (source, header):
        file.touch()
        os.utime(file, (file.stat().st_mtime + 5,) * 2)
        assert not compiling.is_current(target, how)
        make()
        assert compiling.is_current(target, how)
    compiling.noting(target)  # and then the compiler is killed
    assert not compiling.is_current(target, how)
    make()
    header.unlink()
    assert not compiling.is_current(target, how)
