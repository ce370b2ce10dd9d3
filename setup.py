"""Builds the Cython and C++ extensions of fluidlite; everything else stands in pyproject.toml.

Every `fluidlite/_ext/NAME.pyx`, with the C++ files in the folder `NAME` beside it, becomes the extension
`fluidlite._ext.NAME`.

environment:
  FLUIDLITE_DEBUG=1   bounds checks in Cython code, debug symbols, little optimisation
  FLUIDLITE_SANITIZE=address,undefined  these sanitizers of the compiler (see scripts/sanitize.sh)
  FLUIDLITE_WERROR=1  compiler warnings are errors
  FLUIDLITE_NATIVE=1  kernels for this machine's instruction set alone: for a build that nobody takes elsewhere
  FLUIDLITE_ONLY=kernels  these extensions alone, separated by commas, while one is worked on
  FLUIDLITE_OBJECTS=FOLDER  what scripts/compiling.py has compiled there, of the same files, with FLUIDLITE_NATIVE=1
"""

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

sys.path.append("scripts")
import compiling  # noqa: E402
from compiling import EXT  # noqa: E402


def switch(name: str) -> bool:
    """Whether an environment variable is set to something else than 0."""
    return os.environ.get(name, "0") not in ("", "0")


def onednn_headers() -> list[str]:
    """The folder of oneDNN's C header, if its development package is installed; without it `dnn` builds
    empty."""
    try:
        files = distribution("onednn-devel-cpu-gomp").files or []
    except PackageNotFoundError:
        return []
    return [
        str(Path(file.locate()).resolve().parent)
        for file in files
        if file.parts[-2:] == ("include", "dnnl.h")
    ]


DEBUG = switch("FLUIDLITE_DEBUG")
SANITIZE = os.environ.get("FLUIDLITE_SANITIZE", "")
OBJECTS = os.environ.get("FLUIDLITE_OBJECTS", "")
SANITIZERS = [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all"] if SANITIZE else []

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": DEBUG,
    "initializedcheck": DEBUG,
    "cdivision": not DEBUG,
    # An argument of a class written in C whose attributes are read would be read from None as well.
    "allow_none_for_extension_args": False,
    # Nobody asks functions for their signatures or code, and few classes are pickled: those say so themselves.
    "binding": False,
    "auto_pickle": False,
    "emit_code_comments": DEBUG,
}

# Where values of variables are at each instruction takes minutes to find out for loops that are unrolled.
LITTLE = {"-g0": ["-g", "-fno-var-tracking"]} if DEBUG or SANITIZE else {}
FLAGS = [
    *[own for flag in compiling.FLAGS for own in LITTLE.get(flag, [flag])],
    *SANITIZERS,
    *(["-Werror"] if switch("FLUIDLITE_WERROR") else []),
]

# What Cython makes is for the most part calls of Python's interface, which more than this makes no faster, only twice
# as long to compile; the extensions named have loops of their own, others have them in C++ files.
GLUE = ["-Og"]
WITH_LOOPS = {"collate": ["-O3"], "eager": ["-O2"]}


def level(source: Path) -> list[str]:
    """The flags that say how much a file is optimised."""
    if DEBUG or SANITIZE:
        return ["-O1"]
    return WITH_LOOPS.get(source.stem, GLUE) if source.suffix == ".cpp" else compiling.optimised(source)


# Classes get members with each Python; what Cython does not name is zero.
UNSET = ["-Wno-missing-field-initializers"]

# What single extensions need beyond the common flags.
OPTIONS: dict[str, dict[str, Any]] = {
    "dnn": {"include_dirs": onednn_headers(), "libraries": ["dl"] if sys.platform == "linux" else []},
    "kernels": {
        "flags": compiling.KERNELS,
        "macros": compiling.sets_left_out() if switch("FLUIDLITE_NATIVE") else [],
    },
}


# Where kernels are called: they verify what varies, too.
VERIFY = [("FL_VERIFY", "1")] if DEBUG or SANITIZE else []


def extension(pyx: Path) -> Extension:
    """The extension that `pyx` describes."""
    options = OPTIONS.get(pyx.stem, {})
    return Extension(
        f"fluidlite._ext.{pyx.stem}",
        # First what is optimised: a linker takes the first copy of a function in a header.
        [*sorted(str(source) for source in (EXT / pyx.stem).glob("*.cc")), str(pyx)],
        depends=[str(header) for header in EXT.rglob("*.h")],
        include_dirs=[str(EXT), np.get_include(), *options.get("include_dirs", [])],
        libraries=options.get("libraries", []),
        extra_compile_args=[*FLAGS, *options.get("flags", [])],
        extra_link_args=SANITIZERS,
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"), *options.get("macros", []), *VERIFY],
        language="c++",
    )


class BuildAtOnce(build_ext):
    """Compiles the files of all extensions beside each other, and not those of one extension one by one: half of the
    work are the kernels.
    """

    def flags_note(self, extension: Extension) -> str:
        """The path of a file that holds the flags of an extension, and is new when these have changed."""
        note = Path(self.build_temp, f"{extension.name}.flags")
        levels = [level(Path(name)) for name in ("x.cpp", "x.cc")]
        flags = repr(
            (self.compiler.compiler_so, levels, extension.extra_compile_args, extension.define_macros)
        )
        is_first = not note.exists()
        if is_first or note.read_text(encoding="utf8") != flags:
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(flags, encoding="utf8")
            if is_first:  # what there is may be from another folder of objects
                os.utime(note, (0, 0))
        return str(note)

    def build_extensions(self) -> None:
        compiler = self.compiler
        for extension in self.extensions:
            extension.depends.append(self.flags_note(extension))
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:

            def compile_all(sources, output_dir=None, macros=None, include_dirs=None, debug=0, extra_preargs=None,
                            extra_postargs=None, depends=None):  # fmt: skip
                """`compiler.compile`, the largest files first."""
                macros, objects, flags, options, build = compiler._setup_compile(
                    output_dir, macros, include_dirs, sources, depends, extra_postargs
                )
                arguments = compiler._get_cc_args(options, debug, extra_preargs)

                def compile_one(made: str) -> None:
                    source, kind = build[made]
                    own = [*level(Path(source)), *flags, *(UNSET if kind == ".cpp" else [])]
                    if kind == ".cpp" or not OBJECTS:
                        how = [*compiler.compiler_so, *arguments, *own]
                        if self.force or not compiling.is_current(made, how):
                            own += compiling.noting(made)
                            compiler._compile(made, source, kind, arguments, own, options)
                            compiling.note(made, how)
                        return
                    shared = compiling.object_of(source, OBJECTS)
                    with compiling.claimed(shared):
                        if not shared.exists():
                            compiler._compile(str(shared), source, kind, arguments, own, options)
                    shutil.copy(shared, made)

                largest = sorted(build, key=lambda made: -os.path.getsize(build[made][0]))
                for done in [pool.submit(compile_one, made) for made in largest]:
                    done.result()
                return objects

            compiler.compile = compile_all
            self.parallel = len(
                self.extensions
            )  # also where pip builds, which loses what is given to `setup`
            super().build_extensions()


def extensions() -> list[Extension]:
    """All of them, translated by Cython unless it is only asked what there is."""
    only = os.environ.get("FLUIDLITE_ONLY", "").split(",")
    found = [extension(pyx) for pyx in sorted(EXT.glob("*.pyx")) if only == [""] or pyx.stem in only]
    if {"egg_info", "dist_info", "sdist"} & set(sys.argv):
        return found
    return cythonize(  # type: ignore[no-any-return]
        found,
        compiler_directives=DIRECTIVES,
        # Cython does not see that directives have changed.
        force=DEBUG,
        nthreads=os.cpu_count() or 1,
    )


if __name__ == "__main__":  # and not in the processes that translate, which may read this file
    setup(
        packages=[*find_packages(include=["fluidlite*"]), "paddle-stubs"],
        cmdclass={"build_ext": BuildAtOnce},
        ext_modules=extensions(),
    )
