"""Names that are gone are there for the user's code, and for nobody else."""

import contextlib
import importlib.util
import re
import sys
import urllib.error
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

import fluidlite
from fluidlite.old_scripts import names, removed_modules
from fluidlite.old_scripts.finder import fork_by_default

HERE = Path(fluidlite.__file__).parents[1]

EVERY_NAME = """
import importlib, sys, warnings
warnings.simplefilter("ignore")
from fluidlite.old_scripts import names

for module in names.NAMES:
    top = module.partition(".")[0]
    if importlib.util.find_spec(top) is None and module not in names.EMPTY:
        continue
    try:
        there = __import__(module, fromlist=["x"])
    except ImportError:
        print("cannot import", module)
        continue
    for name in names.NAMES[module]:
        try:
            getattr(there, name)
        except Exception as error:
            print(module, name, repr(error))
print("done")
"""


def test_every_name_has_a_value(python):
    done = python("-m", "fluidlite", "-c", EVERY_NAME)
    assert done.stdout == "done\n", done.stdout + done.stderr


def test_every_name_is_in_the_table():
    page = (Path(__file__).parents[2] / "docs" / "old_scripts.md").read_text(encoding="utf8")
    words = set(re.findall(r"`([^`]+)`", page))
    for module, rows in names.NAMES.items():
        missing = rows.keys() - words
        assert not missing and (not rows or {"numpy": "np"}.get(module, module) in words), (module, missing)
    assert names.METHODS.keys() <= words and names.MODULES.keys() <= words


PACKAGE = """
import collections, time
import numpy as np
def has():
    found = [hasattr(np, "float"), hasattr(collections, "Callable"), hasattr(time, "clock")]
    try:
        from numpy import product
    except ImportError:
        found.append(False)
    return found
"""


def test_only_the_users_code_sees_them(python, tmp_path):
    """The same lines in an installed package, in the script and in a module of the script's folder."""
    installed = tmp_path / "lib/site-packages"
    installed.mkdir(parents=True)
    (installed / "theirs.py").write_text(PACKAGE)
    (tmp_path / "mine.py").write_text(PACKAGE)
    (tmp_path / "script.py").write_text(
        f"import sys; sys.path.append({str(installed)!r})\nimport theirs, mine\nimport numpy as np\n"
        "print(theirs.has(), mine.has()[:3], np.float is float, 'float' in vars(np))\n"
        "for space in ({}, {'__name__': None}, vars(mine)): exec('from numpy import float', space)\n"
        "for name in ('no_such', 'float'):\n"
        "    try: theirs.np.__getattr__(name) if name == 'no_such' else exec('np.float', vars(theirs))\n"
        "    except AttributeError as error: print(str(error).splitlines()[0])\n"
    )
    done = python("-m", "fluidlite", str(tmp_path / "script.py"))
    lines = done.stdout.splitlines()
    assert lines[0] == "[False, False, False, False] [True, True, True] True False", done.stderr
    assert lines[1] == "module 'numpy' has no attribute 'no_such'"
    assert done.stderr.count("mine.py:5: OldNameWarning: np.float: no longer in today's Python") == 1


SCRIPT = """\
import numpy as np
for _ in range(3):
    x = np.float(1), np.int(2)
y = np.float(3)
"""


def test_warnings_list_and_strict(python, tmp_path):
    script = tmp_path / "old.py"
    script.write_text(SCRIPT)
    done = python("-m", "fluidlite", str(script))
    assert done.returncode == 0 and done.stderr.count("OldNameWarning") == 2
    assert f"{script}:3: OldNameWarning: np.int: " in done.stderr and "Today's spelling: int" in done.stderr
    head, *listed = python("-m", "fluidlite", "--list-old", str(script)).stderr.splitlines()
    assert head == "old names used: 3"
    assert sorted(listed[:2]) == [f"{script}:3: np.float -> float", f"{script}:3: np.int -> int"]
    assert listed[2:] == [f"{script}:4: np.float -> float"]
    for how in (["--strict"], []):
        environment = {"FLUIDLITE_STRICT": "0" if how else "1"}
        done = python("-m", "fluidlite", *how, str(script), env=environment)
        assert (
            done.returncode == 1 and "AttributeError: module 'numpy' has no attribute 'float'" in done.stderr
        )
    done = python("-m", "fluidlite", "--strict", "--list-old", "-c", "1")
    assert done.stderr == "old names used: 0\n"


def test_script_after_as_paddle(python, tmp_path):
    """It gets names; modules of its folder get calls as well."""
    (tmp_path / "mine.py").write_text("import numpy as np\nprint(np.float(1), float(np.ones((1, 1))))\n")
    (tmp_path / "script.py").write_text(
        "import fluidlite.as_paddle\nimport numpy as np, mine\nprint(np.int(2))"
    )
    done = python(str(tmp_path / "script.py"))
    assert done.stdout == "1.0 1.0\n2\n", done.stderr


def test_processes_that_are_spawned_have_them(python, tmp_path):
    (tmp_path / "work.py").write_text(
        "import numpy as np\ndef work(x): return np.float(x), float(np.array([x]))\n"
    )
    (tmp_path / "script.py").write_text(
        "import multiprocessing, work\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(work.work, [3]))\n"
    )
    done = python("-W", "ignore", "-m", "fluidlite", str(tmp_path / "script.py"))
    assert done.stdout == "[(3.0, 3.0)]\n", done.stderr


def test_modules_that_are_gone(python, tmp_path):
    """On every Python, by a name of each kind that is gone everywhere or put into the tables here."""
    (tmp_path / "mm.py").write_text("X = 1\n")
    code = f"""
import sys
from fluidlite.old_scripts import finder, names
from importlib.machinery import PathFinder
gone = {{'imp', 'distutils', 'pipes', 'cgi', 'imghdr'}}
for name in list(sys.modules):
    if name.partition('.')[0] in gone: del sys.modules[name]
sys.meta_path = [each for each in sys.meta_path if 'Distutils' not in type(each).__name__]
find = PathFinder.find_spec
finder.PathFinder = type('Without', (), {{'find_spec': staticmethod(
    lambda name, *args: None if name.partition('.')[0] in gone else find(name, *args))}})
import imp, distutils.util, distutils, cgi, imghdr, io
from distutils.version import LooseVersion, StrictVersion
from pipes import quote
print(distutils.util.strtobool('Yes'), distutils.util.strtobool('off'), quote('a b'), cgi.escape('<"'))
print(LooseVersion('1.10') > '1.9', LooseVersion('2.0b1') == LooseVersion('2.0b1'), StrictVersion('1.2b1') < '1.2')
found = imp.find_module('mm', [{str(tmp_path)!r}])
print(imp.load_source('m1', found[1]).X, imp.load_module('m2', *found).X)
print(imghdr.what('', b'BM'), imghdr.what(io.BytesIO(b'GIF89a')), imghdr.what(found[1]))
import dummy_threading
print(dummy_threading.__name__)
try: imp.no_such
except AttributeError as error: print(error)
"""
    done = python("-W", "ignore", "-m", "fluidlite", "-c", code)
    assert done.stdout.splitlines() == [
        "1 0 'a b' &lt;\"",
        "True True True",
        "1 1",
        "bmp gif None",
        "threading",
        "module 'imp' has no attribute 'no_such'",
    ], done.stderr


def test_nothing_is_imported_for_them(python):
    code = "import sys; print({'scipy.misc', 'PIL', 'yaml', 'pandas', 'imp', 'distutils'} & set(sys.modules))"
    assert python("-m", "fluidlite", "-c", code).stdout == "set()\n"


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is not installed")
def test_sklearn_externals(python):
    code = "from sklearn.externals import joblib; from sklearn.externals.joblib import dump; print(joblib.__name__)"
    done = python("-W", "ignore", "-m", "fluidlite", "-c", code)
    assert done.stdout == "joblib\n", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")
def test_processes_are_forked(python, tmp_path):
    """Whatever the default is, from Python 3.14 on; what the user has chosen stays."""
    code = """
import multiprocessing
queue = multiprocessing.Queue()
child = multiprocessing.Process(target=lambda: queue.put(multiprocessing.get_start_method()))
child.start()
print(queue.get())
child.join()
"""
    done = python("-W", "ignore", "-m", "fluidlite", "-c", code)
    assert done.stdout == "fork\n", done.stderr
    chosen = "import multiprocessing as m\nm.set_start_method('spawn')\nprint(m.get_start_method())"
    assert python("-m", "fluidlite", "-c", chosen).stdout == "spawn\n"


@pytest.mark.parametrize(
    "default, actual, expected",
    [("forkserver", None, "fork"), ("forkserver", "spawn", "forkserver"), ("spawn", None, "spawn")],
)
def test_the_default_way_to_start_processes(default, actual, expected):
    ways = {
        way: SimpleNamespace(get_start_method=lambda way=way: way) for way in ("fork", "forkserver", "spawn")
    }
    context = SimpleNamespace(
        _default_context=SimpleNamespace(
            _default_context=ways[default], _actual_context=actual and ways[actual]
        ),
        _concrete_contexts=ways,
    )
    fork_by_default(context)
    assert context._default_context._default_context is ways[expected]


def test_urls_are_opened_and_saved(tmp_path, monkeypatch):
    (tmp_path / "page").write_bytes(bytes(10_000))
    url, progress = (tmp_path / "page").as_uri(), []
    opener = removed_modules.FancyURLopener()
    opener.addheader("X", "y")
    with opener.open(url) as page:
        assert page.read() == bytes(10_000)
    name, headers = opener.retrieve(url, str(tmp_path / "copy"), lambda *how: progress.append(how))
    assert name == str(tmp_path / "copy") and (tmp_path / "copy").read_bytes() == bytes(10_000)
    assert (
        progress == [(0, 8192, 10_000), (1, 8192, 10_000), (2, 8192, 10_000)]
        and headers["Content-Length"] == "10000"
    )
    kept, _ = opener.retrieve(url)
    assert Path(kept).read_bytes() == bytes(10_000)
    Path(kept).unlink()
    with pytest.raises(OSError, match="no such"):
        opener.open((tmp_path / "no such").as_uri())
    cut = SimpleNamespace(headers={"Content-Length": "9"}, read=BytesIO(b"12345").read)
    monkeypatch.setattr(opener, "open", lambda *given: contextlib.nullcontext(cut))
    with pytest.raises(urllib.error.ContentTooShortError, match="only 5 out of 9 bytes"):
        opener.retrieve(url, str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == bytes(10_000)
