"""Calls and methods of the user's code that would be errors today, and everything else unchanged."""

import array
import ast
import io
import json
import math
import random
import re
import sys
import threading
import unittest
import warnings
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from fluidlite.base.syntax import copied
from fluidlite.old_scripts import OldNameWarning, notes, rewriting


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(notes, "_used", {})


def namespace(**names):
    modules = {
        "np": np,
        "math": math,
        "json": json,
        "random": random,
        "io": io,
        "re": re,
        "threading": threading,
    }
    return {**modules, "ElementTree": ElementTree, "HTMLParser": HTMLParser, "arrays": array, **names}


def run(text, **names):
    """The value of the last line of the user's `text`, which is called `result`."""
    found = namespace(**names)
    *lines, last = text.splitlines()
    exec(rewriting.compiled("\n".join([*lines, f"result = {last}"]), "old.py"), found)
    return found["result"]


ONE, ONES = np.array([2.25]), np.array([[2.25]])

OLD = [
    ("float(ONE)", 2.25, "float of an array [1]: "),
    ("int(ONES)", 2, "int of an array [1, 1]: "),
    ("complex(ONE)", 2.25 + 0j, "complex of an array [1]: "),
    ("math.sqrt(ONE)", 1.5, "math of an array [1]: "),
    ("'%.1f' % ONE", "2.2", "'%f' % an array [1]: "),
    ("'%s %d %% %*.1f' % (ONE, ONE, 6, ONES)", "[2.25] 2 %    2.2", "'%d' % an array [1]: "),
    ("form = '%d/%d'\nform % (ONE, 3)", "2/3", "'%d' % an array [1]: "),
    ("a = np.zeros(2)\na[1] = ONE\na.tolist()", [0, 2.25], "array[i] = an array [1]: "),
    (
        "a = np.zeros((2, 2))\na[1, 0] += ONES\na.tolist()",
        [[0, 0], [2.25, 0]],
        "array[i] = an array [1, 1]: ",
    ),
    (
        "a, j = [np.zeros(2)], 1\na[0][j] = ONE\na[0][0] -= ONE\na[0].tolist()",
        [-2.25, 2.25],
        "array[i] = an array [1]: ",
    ),
    ("np.array([[1], [1, 2]]).tolist()", [[1], [1, 2]], "np.array of rows of different length: "),
    ("np.asarray([np.zeros(2), None]).dtype.kind", "O", "np.asarray of rows of different length: "),
    ("np.array([1, 2], copy=False).tolist()", [1, 2], "np.array(copy=False) that copies: "),
    ("np.array([300, -1], dtype='uint8').tolist()", [44, 255], "np.array of integers out of range: "),
    ("int(np.uint8(-1)), int(np.int8(200))", (255, -56), "np.uint8 of a number out of range: "),
    ("np.fromstring(b'\\1\\2', np.uint8).tolist()", [1, 2], "np.fromstring of bytes: "),
    ("np.fromstring('\\1\\2', np.uint8, 1).tolist()", [1], "np.fromstring of bytes: "),
    ("np.vstack(r for r in [[1], [2]]).tolist()", [[1], [2]], "np.vstack of an iterator: "),
    ("np.reshape([1, 2], newshape=(2, 1)).shape", (2, 1), "np.reshape(newshape=): "),
    ("float(np.percentile([1, 2], 50, interpolation='lower'))", 1.0, "np.percentile(interpolation=): "),
    ("np.histogram([1, 2], 2, normed=True)[0].tolist()", [1, 1], "np.histogram(normed=): "),
    ("json.loads('[1]', encoding='utf8')", [1], "json.loads(encoding=): "),
    ("from json import load\nload(io.StringIO('1'), encoding='utf8')", 1, "json.load(encoding=): "),
    ("sorted(random.sample({1, 2}, 2))", [1, 2], "random.sample of a set: "),
    ("x = [0, 1, 2]\nrandom.shuffle(x, lambda: 0.5)\nx", [0, 2, 1], "random.shuffle(x, random): "),
    ("np.zeros(1, 'f4').tostring()", bytes(4), "ndarray.tostring: "),
    ("np.float32(0).tostring()", bytes(4), "generic.tostring: "),
    ("arrays.array('b', [1]).tostring()", b"\1", "array.tostring: "),
    (
        "a = np.zeros((2, 2))\na.itemset(3, 1)\na.itemset((0, 1), 2)\na.tolist()",
        [[0, 2], [0, 1]],
        "ndarray.itemset: ",
    ),
    ("np.array([1], '<i2').newbyteorder().tolist()", [256], "ndarray.newbyteorder: "),
    ("float(np.arange(3.0).ptp())", 2.0, "ndarray.ptp: "),
    ("threading.Thread().isAlive()", False, "Thread.isAlive: "),
    ("len(ElementTree.fromstring('<a><b/></a>').getchildren())", 1, "Element.getchildren: "),
    ("len(list(ElementTree.fromstring('<a><b/></a>').getiterator()))", 2, "Element.getiterator: "),
    ("HTMLParser().unescape('&lt;')", "<", "HTMLParser.unescape: "),
    ("np.sum(x for x in [1, 2])", 3, "np.sum of a generator: "),
    ("int(np.cross([1, 2], [3, 4]))", -2, "np.cross of vectors of two elements: "),
    ("np.cross([[1, 2]], [3, 4, 5]).tolist()", [[10, -5, -2]], "np.cross of vectors of two elements: "),
    (
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('-x', default=3, help='5% %(default)s, 1%% or 5%').help",
        "5%% %(default)s, 1%% or 5%%",
        "'%' in a help text of argparse: ",
    ),
    ("re.findall('b(?i)', 'bBa')", ["b", "B"], "flags in the middle"),
    ("re.compile(b'(?s).(?i)b').sub(b'c', b'\\nBab')", b"cc", "flags in the middle"),
    ("exec('r = float(ONE)')\nr", 2.25, "float of an array [1]: "),
    ("exec(compile('r = float(ONE)', 'x.py', 'exec'))\nr", 2.25, "float of an array [1]: "),
    (
        "own = {}\nexec('def f(x): return float(x)', {}, own)\nown.pop('f')(ONE), own",
        (2.25, {}),
        "float of an",
    ),
    (
        "def f():\n    exec('def g(x): return float(x)\\nr = g(ONE)')\n    return locals()['r']\nf()",
        2.25,
        "float of an array [1]: ",
    ),
]


@pytest.mark.parametrize("text, value, warning", OLD, ids=[text for text, _, _ in OLD])
def test_old_meaning(text, value, warning):
    if ".random" in text and not hasattr(random, "sample"):
        pytest.skip("the name is gone")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(text, namespace(ONE=ONE, ONES=ONES))
    except Warning:
        pytest.skip("a warning with these versions")
    except Exception:
        pass  # as expected of today's versions
    else:
        pytest.skip("not an error with these versions")
    with pytest.warns(OldNameWarning) as found:
        assert run(text, ONE=ONE, ONES=ONES) == value
    assert str(found[0].message).startswith(warning)
    assert found[0].filename == ("x.py" if "x.py" in text else "<string>" if "exec('" in text else "old.py")


@pytest.mark.parametrize(
    "body, value",
    [
        ("exec('b = 3'); return locals()['b'], eval('b + a'), eval('b')", (3, 4, 3)),
        ("exec('a = 2; b = 3'); return a, locals()['a'], vars()['b']", (1, 1, 3)),
        (
            "found = locals(); found['b'] = 5; return 'b' in locals(), eval('b'), found is locals()",
            (True, 5, True),
        ),
        ("exec('def b(): return a'); del a; return sorted(set(locals())), eval('b.__name__')", (["b"], "b")),
        ("exec('import math'); exec('b = math.pi > a'); return eval('b'), eval('b', {'b': 7})", (True, 7)),
        (
            "g = lambda: a; exec('b = g()'); return eval('b'), [eval('a', {'a': i}) for i in (4, 5)]",
            (1, [4, 5]),
        ),
        ("locals = dict; eval = str; return locals(), eval('a')", ({}, "a")),
        ("class C:\n  exec('b = 9')\n  c = locals()['b'], eval('b')\n return C.b, C.c", (9, (9, 9))),
    ],
)
def test_code_shares_the_variables_of_a_function(body, value):
    """`exec`, `eval` and `locals` of a function use one dictionary, which Python has ended with 3.13."""
    assert run(f"def f(a):\n {body}\nf(1)") == value


def test_methods_of_test_cases():
    class Case(unittest.TestCase):
        pass

    if hasattr(Case, "assertEquals"):
        pytest.skip("not gone in this Python")
    with pytest.warns(OldNameWarning, match="assertEquals: "):
        run("case.assertEquals(1, 1)", case=Case())


def test_open_with_universal_newlines(tmp_path):
    (tmp_path / "f").write_bytes(b"a\r\nb")
    with pytest.warns(OldNameWarning, match="open"):
        assert run("with open(path, 'rU') as file: text = file.read()\ntext", path=tmp_path / "f") == "a\nb"


def test_yaml_without_a_loader():
    yaml = pytest.importorskip("yaml")
    with pytest.warns(OldNameWarning, match=r"yaml.load\(stream\).*yaml.full_load\(stream\)"):
        assert run("yaml.load('a: 1')", yaml=yaml) == {"a": 1}
    assert run("yaml.load('a: 1', yaml.FullLoader)", yaml=yaml) == {"a": 1}
    with pytest.warns(OldNameWarning):
        assert (
            run("\n\nyaml.load(stream='!!python/tuple [1]')", yaml=yaml)
            == (1,)
            == yaml.full_load("!!python/tuple [1]")
        )
    with pytest.raises(yaml.constructor.ConstructorError), pytest.warns(OldNameWarning):
        run("\nyaml.load('!!python/object/apply:os.getcwd []')", yaml=yaml)


def test_pictures():
    image = pytest.importorskip("PIL.Image")
    draw, font = pytest.importorskip("PIL.ImageDraw"), pytest.importorskip("PIL.ImageFont")
    text = "draw.textsize('ab', font), font.getsize('ab'), picture.tostring()"
    picture, plain = image.new("L", (2, 1)), font.load_default()
    with pytest.warns(OldNameWarning):
        size, same, data = run(text, draw=draw.Draw(picture), font=plain, picture=picture)
    assert size == same and min(size) > 0 and data == bytes(2)


def test_rows_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1]})
    with pytest.warns(OldNameWarning, match="DataFrame.append"):
        found = run("import pandas\nframe.append({'a': 2}, ignore_index=True).append(frame)", frame=frame)
    assert found["a"].tolist() == [1, 2, 1]
    with pytest.warns(OldNameWarning, match="DataFrame.iteritems"):
        assert [name for name, _ in run("frame.iteritems()", frame=frame)] == ["a"]
    assert run("import pandas\nx = []\nx.append(1)\nx") == [1]


UNCHANGED = """\
'''doc'''
from __future__ import annotations
class C:
    __slots__ = ('tostring',)
    def isAlive(self): return 'own'
def f(x: undefined) -> 'text': return int(x) % 3, '%s' % (x,), '%r' % ONE, '%(a)d' % {'a': 1}
a = np.zeros((2, 1)); a[1] = ONE; d = {}; d['x'] = ONE; o = np.array([None]); o[0] = ONE
b = np.zeros(3); b[1:2] = ONE; b[np.array([True, False, False])] = 1
"""


def test_what_works_today_is_unchanged():
    found = namespace(ONE=ONE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(rewriting.compiled(UNCHANGED, "old.py"), found)
        assert found["__doc__"] == "doc" and found["f"](7) == (1, "7", "array([2.25])", "1")
        assert found["C"]().isAlive() == "own" and found["a"].tolist() == [[0], [2.25]]
        assert found["d"]["x"] is ONE and found["o"][0] is ONE and found["b"].tolist() == [1, 2.25, 0]


@pytest.mark.parametrize(
    "text, error, message",
    [
        ("float(np.zeros(2))", TypeError, "can be converted"),
        ("np.array([[1], [1, 2]], dtype='float32')", ValueError, "inhomogeneous"),
        ("np.reshape([1, 2], newshape=(3, 1))", ValueError, "cannot reshape"),
        ("json.loads('[1]', no_such=1)", TypeError, "no_such"),
        ("np.zeros(1).no_such()", AttributeError, "no_such"),
        ("(1).tostring()", AttributeError, "'int' object has no attribute 'tostring'"),
        ("'%d %d' % ONE", TypeError, "not enough arguments"),
        ("exec('x = (')", SyntaxError, "never closed"),
        ("np.array(10**400, dtype='no such')", TypeError, "no such"),
        ("random.randint(1.5, 2)", (TypeError, ValueError), ""),
        ("np.sum(x for x in ['a'])", TypeError, ""),
        ("np.cross([1, 2, 3, 4], [1, 2])", ValueError, "dimension"),
        (
            "import argparse\nargparse.ArgumentParser().add_argument('--x', nargs=2, metavar=('a',), help='5%')",
            ValueError,
            "metavar",
        ),
    ],
)
def test_errors_stay(text, error, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=message):
            run(text, ONE=ONE)


def test_lines_stay_and_only_what_needs_it_is_rewritten():
    found = {}
    exec(rewriting.compiled("'''d'''\nx = [1]\ndef f():\n    return x[5]\n", "old.py"), found)
    assert rewriting.HELPER not in found
    exec(rewriting.compiled("\n\ndef f(x):\n    y = int(x)\n    return y / 0\n", "old.py"), found)
    assert rewriting.HELPER in found
    with pytest.raises(ZeroDivisionError) as caught:
        found["f"]("3")
    last = caught.traceback[-1]
    assert (str(last.path), last.lineno + 1, last.name) == ("old.py", 5, "f")


def test_code_for_numba_and_very_deep_code_is_left_alone():
    with pytest.raises(TypeError):
        exec(rewriting.compiled("def f():\n    import numba\nfloat(ONE)", "old.py"), namespace(ONE=ONE))
    deep = "x = " + "+".join(["1"] * 1500) + "\ny = int('2')"
    found = {}
    exec(rewriting.compiled(deep, "deep.py"), found)
    assert (found["x"], found["y"]) == (1500, 2)
    assert run(f"exec(compile({deep!r}, 'x.py', 'exec'))\nx") == 1500


def test_code_of_exec_inherits_and_trees_are_not_rewritten():
    text = "from __future__ import annotations\nexec('def f(x: no_such): return float(x)')\nf"
    assert run(text).__annotations__ == {"x": "no_such"}
    text = "import ast\nast.unparse(compile('float(x)', 'x.py', 'exec', ast.PyCF_ONLY_AST))"
    assert run(text) == "float(x)"


def test_what_other_tools_attach_to_syntax_trees_is_left_alone():
    """They attach a node's parent to it, also to those that Python shares among all trees."""
    shared = ast.parse("x").body[0].value.ctx
    other = ast.Call(ast.Name("float"), [ast.Name("x")], [])
    shared.parent = other
    try:
        rewriting.compiled("x = [1]\ny = x[0]", "old.py")
        assert ast.unparse(other) == "float(x)"
        tree = ast.parse("x[0] + y")
        assert not any(hasattr(node, "parent") for node in ast.walk(copied(tree)))
        assert ast.dump(copied(tree), include_attributes=True) == ast.dump(tree, include_attributes=True)
    finally:
        del shared.parent


def test_each_name_warns_once(monkeypatch):
    monkeypatch.setattr(notes, "_used", {})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        exec(
            rewriting.compiled("for _ in range(3):\n    float(ONE)\nfloat(ONE)", "old.py"), namespace(ONE=ONE)
        )
    assert [each.lineno for each in found] == [2] and [line for _, _, line in notes._used] == [2, 3]


USER = "import numpy\nx = float(numpy.ones(1))\nname = __name__\n"


@pytest.mark.parametrize(
    "load",
    [
        "import importlib.util as util\nspec = util.spec_from_file_location('of_user', path)\n"
        "m = util.module_from_spec(spec)\nspec.loader.exec_module(m)\nm",
        "import importlib.machinery\nimportlib.machinery.SourceFileLoader('of_user', path).load_module()",
    ],
    ids=["spec", "load_module"],
)
def test_files_that_the_user_loads(tmp_path, load):
    if "load_module" in load and sys.version_info < (3, 15):
        pytest.skip("load_module is not gone in this Python")
    (tmp_path / "file.py").write_text(USER)
    with pytest.warns(OldNameWarning):
        module = run(load, path=str(tmp_path / "file.py"))
    assert (module.x, module.name) == (1.0, "of_user")
