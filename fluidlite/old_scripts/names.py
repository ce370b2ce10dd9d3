"""Tables of removed names: for each module, the target of a name (`module:attribute`) and today's spelling.

`docs/old_scripts.md` has them as tables. A name is put back only where it is missing, so that the tables serve all
versions; what has no name of its own today is in `substitutes.py` and `removed_modules.py`.
"""

from __future__ import annotations

from typing import NamedTuple

_OURS = "fluidlite.old_scripts"
_SUBSTITUTES = f"{_OURS}.substitutes"
_SHORT = {"numpy": "np", "builtins": ""}


class Old(NamedTuple):
    """A removed name."""

    target: str
    """Where its value is: `module:attribute`, or a module."""
    instead: str
    """Today's spelling."""


def _as(module: str, **names: str) -> dict[str, Old]:
    """Names (keywords) that are now called otherwise in `module`."""
    short = _SHORT.get(module, module)
    return {old: Old(f"{module}:{new}", f"{short}.{new}".lstrip(".")) for old, new in names.items()}


def _same(module: str, names: str) -> dict[str, Old]:
    """Names that are now in `module`."""
    return _as(module, **{name: name for name in names.split()})


def _ours(module: str, **names: str) -> dict[str, Old]:
    """Names without a replacement: their value is in our `module`, the suggested spelling is given."""
    return {old: Old(f"{module}:{old}", instead) for old, instead in names.items()}


NAMES: dict[str, dict[str, Old]] = {
    "numpy": {
        **_as(
            "builtins", float="float", int="int", bool="bool", object="object", str="str", complex="complex"
        ),
        **_as("builtins", long="int", unicode="str"),
        **_as(
            "numpy", float_="float64", complex_="complex128", cfloat="complex128", singlecomplex="complex64"
        ),
        **_as("numpy", longfloat="longdouble", longcomplex="clongdouble", clongfloat="clongdouble"),
        **_as("numpy", string_="bytes_", bytes0="bytes_", unicode_="str_", str0="str_", object0="object_"),
        **_as("numpy", bool8="bool_", void0="void", int0="intp", uint0="uintp"),
        **_as("numpy", Inf="inf", Infinity="inf", infty="inf", PINF="inf", NaN="nan", typeDict="sctypeDict"),
        **_as("numpy", product="prod", cumproduct="cumprod", alltrue="all", sometrue="any", rank="ndim"),
        **_as("numpy", row_stack="vstack", trapz="trapezoid", mat="asmatrix", round_="round"),
        **_as("numpy", issubsctype="issubdtype"),
        **_same("numpy.exceptions", "AxisError ComplexWarning ModuleDeprecationWarning TooHardError"),
        **_same("numpy.exceptions", "RankWarning VisibleDeprecationWarning"),
        **_same("numpy.lib.array_utils", "byte_bounds"),
        **_same("numpy.lib.npyio", "DataSource"),
        **_same("numpy.rec", "format_parser"),
        **_as("ast", safe_eval="literal_eval"),
        **_ours(
            _SUBSTITUTES, NINF="-np.inf", PZERO="0.0", NZERO="-0.0", in1d="np.isin", asscalar="array.item()"
        ),
        **_ours(_SUBSTITUTES, msort="np.sort(array, axis=0)", asfarray="np.asarray(array, dtype=float)"),
        **_ours(_SUBSTITUTES, alen="len(array)", sctypes="np.dtype", cast="np.asarray(array).astype(dtype)"),
        **_ours(_SUBSTITUTES, find_common_type="np.result_type or np.promote_types"),
        **_ours(_SUBSTITUTES, issubclass_="issubclass", issctype="isinstance(name, type)"),
        **_ours(_SUBSTITUTES, obj2sctype="np.dtype(name).type", sctype2char="np.dtype(name).char"),
        "math": Old("math", "import math"),
    },
    "numpy.lib": _same("numpy", "pad"),
    "numpy.linalg": {"linalg": Old("numpy.linalg", "np.linalg")},
    "collections": _same(
        "collections.abc",
        "AsyncGenerator AsyncIterable AsyncIterator Awaitable ByteString Callable Collection Container Coroutine "
        "Generator Hashable ItemsView Iterable Iterator KeysView Mapping MappingView MutableMapping "
        "MutableSequence MutableSet Reversible Sequence Set Sized ValuesView",
    ),
    "time": _as("time", clock="process_time"),
    "inspect": _ours(_SUBSTITUTES, getargspec="inspect.getfullargspec or inspect.signature"),
    "fractions": _same("math", "gcd"),
    "os": {"errno": Old("errno", "import errno")},
    "sys": _ours(
        _SUBSTITUTES, setcheckinterval="sys.setswitchinterval", getcheckinterval="sys.getswitchinterval"
    ),
    "platform": _ours(
        _SUBSTITUTES,
        linux_distribution="platform.freedesktop_os_release",
        dist="platform.freedesktop_os_release",
    ),
    "cgi": _ours(_SUBSTITUTES, escape="html.escape"),
    "imghdr": _ours(_SUBSTITUTES, what="PIL.Image.open(path).format"),
    "asyncio": {"coroutine": Old("types:coroutine", "async def")},
    "locale": _as("locale", format="format_string"),
    "base64": _as("base64", encodestring="encodebytes", decodestring="decodebytes"),
    "configparser": _as("configparser", SafeConfigParser="ConfigParser"),
    "importlib": _ours(_SUBSTITUTES, find_loader="importlib.util.find_spec"),
    "pkgutil": {
        **_ours(_SUBSTITUTES, find_loader="importlib.util.find_spec"),
        "get_loader": Old(f"{_SUBSTITUTES}:find_loader", "importlib.util.find_spec"),
    },
    "urllib.request": _ours(
        f"{_OURS}.removed_modules",
        URLopener="urllib.request.urlretrieve",
        FancyURLopener="urllib.request.urlretrieve",
    ),
    "unittest": _ours(_SUBSTITUTES, makeSuite="unittest.defaultTestLoader.loadTestsFromTestCase"),
    "pipes": _same("shlex", "quote"),
    "imp": {
        **_ours(f"{_OURS}.removed_modules", load_source="importlib.util.spec_from_file_location"),
        **_ours(
            f"{_OURS}.removed_modules",
            find_module="importlib.util.find_spec",
            load_module="importlib.import_module",
        ),
        **_same("importlib", "reload"),
        **_as("types", new_module="ModuleType"),
    },
    "distutils": {},
    "distutils.util": _ours(_SUBSTITUTES, strtobool="a function of your own"),
    "distutils.version": _ours(
        f"{_OURS}.removed_modules",
        LooseVersion="packaging.version.Version",
        StrictVersion="packaging.version.Version",
    ),
    "distutils.spawn": {"find_executable": Old("shutil:which", "shutil.which")},
    "distutils.dir_util": _ours(
        _SUBSTITUTES,
        copy_tree="shutil.copytree(dirs_exist_ok=True)",
        mkpath="os.makedirs",
        remove_tree="shutil.rmtree",
    ),
    "distutils.file_util": {"copy_file": Old("shutil:copy2", "shutil.copy2")},
    "distutils.sysconfig": {
        **_same("sysconfig", "get_config_var get_config_vars"),
        **_ours(_SUBSTITUTES, get_python_lib="sysconfig.get_path('purelib')"),
        **_ours(_SUBSTITUTES, get_python_inc="sysconfig.get_path('include')"),
    },
    "scipy": _same(
        "numpy",
        "absolute arange argmax argmin array asarray concatenate cos dot empty exp eye linspace log log10 mean ones "
        "pi random sin sqrt std sum tan vstack where zeros",
    ),
    "scipy.integrate": _as(
        "scipy.integrate", trapz="trapezoid", simps="simpson", cumtrapz="cumulative_trapezoid"
    ),
    "scipy.linalg": _as("scipy.linalg", pinv2="pinv"),
    "scipy.signal": _same("scipy.signal.windows", "blackman gaussian hamming hann kaiser triang"),
    "scipy.misc": {
        **_same("scipy.special", "comb factorial logsumexp"),
        **_ours(
            f"{_OURS}.removed_modules",
            imread="np.asarray(PIL.Image.open(path))",
            imsave="PIL.Image.fromarray(a).save",
        ),
        **_ours(
            f"{_OURS}.removed_modules",
            imresize="PIL.Image.fromarray(a).resize",
            toimage="PIL.Image.fromarray",
        ),
        **_ours(
            f"{_OURS}.removed_modules",
            imrotate="PIL.Image.fromarray(a).rotate",
            fromimage="np.asarray(image)",
        ),
        **_ours(f"{_OURS}.removed_modules", bytescale="array operations of your own"),
    },
    "PIL": {name: Old("PIL:__version__", "PIL.__version__") for name in ("PILLOW_VERSION", "VERSION")},
    "PIL.Image": {
        **_as("PIL.Image", ANTIALIAS="LANCZOS", LINEAR="BILINEAR", CUBIC="BICUBIC"),
        **{name: Old("PIL:__version__", "PIL.__version__") for name in ("PILLOW_VERSION", "VERSION")},
    },
    "pandas": {
        "datetime": Old("datetime:datetime", "datetime.datetime"),
        "np": Old("numpy", "import numpy as np"),
    },
    "matplotlib.cm": _as("matplotlib.pyplot", get_cmap="get_cmap"),
}

MODULES: dict[str, str] = {
    "dummy_threading": "threading",
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.externals.joblib": "joblib",
    "sklearn.externals.six": "six",
    "sklearn.grid_search": "sklearn.model_selection",
    "sre_compile": "re._compiler",
    "sre_constants": "re._constants",
    "sre_parse": "re._parser",
    "xml.etree.cElementTree": "xml.etree.ElementTree",
}
"""Removed modules and their replacements. Modules without one, such as `imp`, have only their rows in NAMES."""

EMPTY = frozenset(
    name for name in NAMES if name.partition(".")[0] in ("imp", "distutils", "pipes", "cgi", "imghdr")
) | {"scipy.misc"}
"""Removed modules that are restored with the names above only."""


def _pandas(**targets: str) -> dict[str, Old]:
    """Methods of pandas' classes, which older releases have in other modules."""
    modules = {"DataFrame": ("pandas", "pandas.core.frame"), "Series": ("pandas", "pandas.core.series")}
    rows = {cls: Old(target, target.rpartition(".")[2]) for cls, target in targets.items()}
    return {f"{module}.{cls}": old for cls, old in rows.items() for module in modules[cls]}


METHODS: dict[str, dict[str, Old]] = {
    "tostring": {
        "numpy.ndarray": Old("numpy:ndarray.tobytes", "tobytes"),
        "numpy.generic": Old("numpy:generic.tobytes", "tobytes"),
        "array.array": Old("array:array.tobytes", "tobytes"),
        "PIL.Image.Image": Old("PIL.Image:Image.tobytes", "tobytes"),
    },
    "fromstring": {"array.array": Old("array:array.frombytes", "frombytes")},
    "itemset": {"numpy.ndarray": Old(f"{_SUBSTITUTES}:itemset", "array[index] = value")},
    "newbyteorder": {
        "numpy.ndarray": Old(f"{_SUBSTITUTES}:newbyteorder", "array.view(array.dtype.newbyteorder())")
    },
    "ptp": {"numpy.ndarray": Old("numpy:ptp", "np.ptp(array)")},
    "isAlive": {"threading.Thread": Old("threading:Thread.is_alive", "is_alive")},
    "getchildren": {"xml.etree.ElementTree.Element": Old("builtins:list", "list(element)")},
    "getiterator": {
        "xml.etree.ElementTree.Element": Old("xml.etree.ElementTree:Element.iter", "iter"),
        "xml.etree.ElementTree.ElementTree": Old("xml.etree.ElementTree:ElementTree.iter", "iter"),
    },
    "load_module": {
        cls: Old(f"{_OURS}.removed_modules:load_by", "importlib.util.spec_from_file_location")
        for cls in ("_frozen_importlib_external.FileLoader", "zipimport.zipimporter")
    },
    "unescape": {"html.parser.HTMLParser": Old(f"{_SUBSTITUTES}:unescape", "html.unescape")},
    **{
        old: {"unittest.case.TestCase": Old(f"unittest:TestCase.{new}", new)}
        for old, new in {
            "assertEquals": "assertEqual",
            "assertNotEquals": "assertNotEqual",
            "assertAlmostEquals": "assertAlmostEqual",
            "assertNotAlmostEquals": "assertNotAlmostEqual",
            "assertRegexpMatches": "assertRegex",
            "assertRaisesRegexp": "assertRaisesRegex",
            "assert_": "assertTrue",
        }.items()
    },
    "getsize": {
        f"PIL.ImageFont.{name}": Old(f"{_OURS}.removed_modules:getsize", "getbbox")
        for name in ("ImageFont", "FreeTypeFont", "TransposedFont")
    },
    "textsize": {"PIL.ImageDraw.ImageDraw": Old(f"{_OURS}.removed_modules:textsize", "textbbox")},
    "iteritems": _pandas(DataFrame="pandas:DataFrame.items", Series="pandas:Series.items"),
    "as_matrix": _pandas(DataFrame="pandas:DataFrame.to_numpy", Series="pandas:Series.to_numpy"),
    "append": {
        cls: Old(f"{_SUBSTITUTES}:append", "pandas.concat") for cls in _pandas(DataFrame="", Series="")
    },
}
"""Removed methods by name and class, each with a function of the object and the arguments."""
