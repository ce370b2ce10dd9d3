"""`make check` runs the tests of the files that have changed."""

import importlib

import pytest

from .test_docs import ROOT, source_tree

pytestmark = source_tree


@pytest.fixture
def check(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("check")


@pytest.mark.parametrize(
    "changed, tests",
    [
        ("fluidlite/fluid/clip.py", {"tests/fluid/test_clip.py"}),  # by its name, of those of its folder
        ("fluidlite/base/lod.py", {"tests/test_lod.py"}),
        (
            "fluidlite/executor/compile.py",
            {"tests/executor/test_compile.py", "tests/executor/test_growth.py"},
        ),
        ("fluidlite/_ext/kernels/product.cc", {"tests/ext/test_engine.py"}),
        ("tests/reader/conftest.py", {"tests/reader/test_feeder.py"}),
        ("tests/fluid/test_clip.py", {"tests/fluid/test_clip.py"}),
    ],
)
def test_tests_of_a_file(check, changed, tests):
    found = {path.relative_to(ROOT).as_posix() for path in check.tests_of(ROOT / changed)}
    assert tests <= found and "tests/test_hook.py" not in found


def test_pages_and_lists_have_no_tests_of_their_own(check):
    assert not check.tests_of(ROOT / "docs" / "gpu.md") and not check.tests_of(ROOT / "pyproject.toml")
