"""How C++ files are compiled, for `setup.py`.

    python scripts/compiling.py FOLDER

compiles into FOLDER those that need no package, while packages are installed, as a build with FLUIDLITE_NATIVE=1 does.
If FLUIDLITE_OBJECTS names FOLDER, such a build takes them from there, waits for those that are in the making, and makes
the others. What fails here is left to it, and told there.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

EXT = Path("fluidlite/_ext")
NEED_PACKAGES = {"dnn"}

FLAGS = [
    "-std=c++17",
    # The same numbers from every processor, whether it can fuse multiply-adds or not: the random streams are Fluid's
    # bit for bit. Kernels may.
    "-ffp-contract=off",
    # Python's own flags ask for debug symbols: a third of the time to compile and two thirds of the size.
    "-g0",
    "-Wall",
    "-Wextra",
    # Kernels run on threads of the user's, whose stacks may be as small as 128 KB.
    "-Wframe-larger-than=32768",
]

# Loops vectorise only when floating-point traps and errno do not matter; results stay IEEE.
KERNELS = ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fopenmp-simd"]

# Files of kernels with loops of few turns, which -O3 makes faster: without it a loop over 8x8 matrices takes a fifth
# longer.
SPECIAL_CASES = frozenset(
    "binary by_rows chain fill found gemm move pool product reduce resize sequence_pool softmax unary".split()
)


@functools.cache
def predefined(*flags: str) -> set[str]:
    """The words of the macros that the compiler defines with these flags; none for a compiler that cannot be asked."""
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    command = [*compiler, *flags, "-dM", "-E", "-x", "c++", os.devnull]
    try:
        return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    except (OSError, subprocess.CalledProcessError):
        return set()


def optimised(source: Path) -> list[str]:
    """The flags for the loops of a file. What GCC's -O3 adds to these, for the most part copies of loops for special
    cases, takes a third of the time to compile; the kernels of few files run faster for it."""
    is_gcc = "__GNUC__" in predefined() and "__clang__" not in predefined()
    if not is_gcc or (source.parent.name == "kernels" and source.stem in SPECIAL_CASES):
        return ["-O3"]
    return ["-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic"]


def sets_left_out() -> list[tuple[str, str]]:
    """Macros that keep kernels from being compiled for the instruction sets which this machine does not use, as its
    compiler knows it; none for a compiler that cannot be asked."""
    known = predefined("-march=native")
    if not known:
        return []

    def has(*parts: str) -> bool:
        return all(f"__{part}__" in known for part in parts)

    avx2 = has("AVX2", "FMA", "BMI", "BMI2")
    avx512 = avx2 and has("AVX512F", "AVX512VL", "AVX512BW", "AVX512DQ")
    sets = {"FL_AVX512": avx512, "FL_AVX2": avx2, "FL_BASELINE": True}  # best first
    used = next(name for name in sets if sets[name])
    return [(name, "0") for name in sets if name != used]


def noting(made: str) -> list[str]:
    """The flags with which the compiler notes what files an object is made of; what is noted of an earlier one goes, as
    the compiler may be killed."""
    Path(f"{made}.how").unlink(missing_ok=True)
    return ["-MMD", "-MF", f"{made}.d"]


def note(made: str, how: list[str]) -> None:
    """Note by what command an object has been made."""
    Path(f"{made}.how").write_text(shlex.join(how), encoding="utf8")


def is_current(made: str, how: list[str]) -> bool:
    """Whether an object is there, made by the same command, and newer than all files that it is made of."""
    try:
        same = Path(f"{made}.how").read_text(encoding="utf8") == shlex.join(how)
        _, *files = shlex.split(Path(f"{made}.d").read_text(encoding="utf8").replace("\\\n", " "))
        made_at = os.path.getmtime(made)
        return same and all(os.path.getmtime(file) < made_at for file in files)
    except OSError:
        return False


@contextlib.contextmanager
def claimed(made: Path, wait: bool = True) -> Iterator[bool]:
    """Holds the object `made` against other processes; false if one has it and `wait` is."""
    import fcntl  # which not every system has; those do without

    made.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{made}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def object_of(source: str | Path, folder: str | Path) -> Path:
    """Where in `folder` the object of a C++ file is."""
    return Path(folder, source).with_suffix(".o")


def compile_ahead(source: Path, folder: str, macros: list[str]) -> None:
    """Make the object of a C++ file, unless it is there or in the making."""
    made = object_of(source, folder)
    of_python = [shlex.split(sysconfig.get_config_var(name) or "") for name in ("CXX", "CFLAGS", "CCSHARED")]
    of_python[0] = shlex.split(os.environ.get("CXX", "")) or of_python[0]
    own = [*KERNELS, *macros] if source.parent.name == "kernels" else []
    partial = made.with_suffix(".part.o")
    with claimed(made, wait=False) as mine:
        if mine and not made.exists():
            flags = [*optimised(source), *FLAGS, *own]
            command = [*sum(of_python, []), f"-I{EXT}", "-c", str(source), "-o", str(partial), *flags]
            if subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0:
                partial.replace(made)


def main(folder: str) -> None:
    os.nice(5)  # what is installed meanwhile is waited for
    macros = [f"-D{name}={value}" for name, value in sets_left_out()]
    sources = [source for source in EXT.glob("*/*.cc") if source.parent.name not in NEED_PACKAGES]
    sources.sort(key=lambda source: -source.stat().st_size)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done in [pool.submit(compile_ahead, source, folder, macros) for source in sources]:
            done.result()


if __name__ == "__main__":
    main(sys.argv[1])
