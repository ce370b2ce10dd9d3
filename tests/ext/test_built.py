"""A checkout whose extensions are not built for this Python says so, and what to do."""

import shutil
import sys
from pathlib import Path

import pytest

import fluidlite
from fluidlite._ext import _check_built

EXT = Path(fluidlite.__file__).parent / "_ext"


@pytest.fixture
def checkout(tmp_path):
    """The package without extensions, in a folder of its own."""
    shutil.copytree(
        EXT.parent, tmp_path / "fluidlite", ignore=shutil.ignore_patterns("*.so", "*.cpp", "__pycache__")
    )
    (tmp_path / "setup.py").touch()
    return tmp_path


@pytest.mark.parametrize("how", [("-c", "import fluidlite"), ("-m", "fluidlite", "script.py")])
def test_not_built(python, checkout, how):
    done = python(*how, env={"PYTHONPATH": str(checkout)})
    last = done.stderr.splitlines()[-1]
    version = "{}.{}".format(*sys.version_info)
    assert last == (
        f"ImportError: the extensions of fluidlite in {checkout}/fluidlite/_ext are not built for Python {version}: "
        f"build them with {sys.executable} -m pip install --editable {checkout}"
    )


def test_built_for_another_python_or_in_part(checkout):
    ext = checkout / "fluidlite/_ext"
    for stub in ext.glob("*.pyi"):
        (ext / f"{stub.stem}.cpython-39-x86_64-linux-gnu.so").touch()
    with pytest.raises(ImportError, match=r"\(but for cpython-39-x86_64-linux-gnu\): build them"):
        _check_built(ext)
    (checkout / "setup.py").unlink()
    with pytest.raises(ImportError, match="pip install --force-reinstall"):
        _check_built(ext)
    _check_built(EXT)
