"""Compiling CUDA C++ for the CPU, and keeping the results in a folder of the user's for the next run."""

import contextlib
import ctypes
import functools
import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

from .errors import CompileException

HERE = Path(__file__).parent
BOUNDS = r"(?:__launch_bounds__\s*\([^()]*\)\s*)?"
KERNEL = re.compile(rf"__global__\s+{BOUNDS}(?:static\s+|inline\s+)*void\s+{BOUNDS}(\w+)\s*\(")
DYNAMIC = re.compile(
    r"extern\s+__shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s*|alignas\s*\(\s*\d+\s*\)\s*)?([^;]*?)\s*\b(\w+)\s*\[\s*\]\s*;"
)
LIMIT = re.compile(r"__launch_bounds__\s*\(\s*(\d+)")
# Has every access to memory checked by functions of ours, without the run-time libraries of the sanitizers.
CHECKED = (
    "-fsanitize=kernel-address,alignment,null,integer-divide-by-zero",
    "-fno-sanitize-recover=alignment,null,integer-divide-by-zero",
    "--param=asan-instrumentation-with-call-threshold=0",
    "--param=asan-stack=0",
    "--param=asan-globals=0",
    "-nodefaultlibs",
)
# Kernels run on a few elements: compiling them takes longer than running them.
COMMON = ("-fPIC", "-w", "-O0", "-fno-strict-aliasing", "-ffp-contract=off")
PREDEFINED = ("-D__CUDACC__", "-D__CUDACC_RTC__", "-D__CUDA_ARCH__=900", "-DNDEBUG_SIM")


def cache_folder() -> Path:
    """Where compiled kernels are kept."""
    folder = os.environ.get("FLUIDLITE_SIMULATED_CUDA_CACHE") or Path(
        tempfile.gettempdir(), f"simulated-cuda-{os.getuid()}"
    )
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(folder)


def run(command: list[str], text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def built(source: str, flags: list[str]) -> Path:
    """The shared library of a C++ source, built now or earlier.

    Raises:
        RuntimeError: the compiler's messages.
    """
    target = cache_folder() / f"{digest(source, *flags)}.so"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
            made = Path(folder, "made.so")
            command = [
                "g++", "-x", "c++", "-shared", *COMMON, *flags, "-Wl,-Bsymbolic", f"-I{header(*flags)}",
            ]  # fmt: skip
            done = run([*command, "-", "-o", str(made), "-lm", "-lc"], source)
            if done.returncode:
                raise RuntimeError(done.stderr)
            made.replace(target)
    return target


@functools.cache
def header(*flags: str) -> Path:
    """A folder with the header of all kernels, compiled: reading it is half of the work for a small kernel."""
    target = cache_folder() / f"{digest(*flags)}.headers"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
            text = Path(folder, "made", "cuda_on_cpu.h")
            text.parent.mkdir()
            text.write_text(headers()[0])
            done = run(["g++", "-x", "c++-header", *COMMON, *flags, str(text), "-o", f"{text}.gch"], "")
            if done.returncode:
                raise RuntimeError(done.stderr)
            with contextlib.suppress(OSError):  # another process was quicker
                text.parent.rename(target)
    return target


def digest(*texts: str) -> str:
    """What a compiled file is called that comes of these texts."""
    return hashlib.sha256("\0".join([*texts, *COMMON, *headers()]).encode()).hexdigest()[:32]


@functools.cache
def headers() -> tuple[str, ...]:
    return tuple((HERE / name).read_text() for name in ("cuda_on_cpu.h", "cuda_on_cpu.cc"))


@functools.cache
def scheduler() -> ctypes.CDLL:
    """The library that runs blocks of threads."""
    library = ctypes.CDLL(str(built(headers()[1], ["-std=c++17", "-O2"])), mode=ctypes.RTLD_GLOBAL)
    library.sim_launch.restype = ctypes.c_char_p
    library.sim_launch.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint64,
        ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p,
    ]  # fmt: skip
    return library


class Compiled:
    """A compiled module: its kernels, by the names that `get_function` takes."""

    def __init__(self, library: ctypes.CDLL, kernels: dict[str, tuple[str, int | None]]) -> None:
        self.library, self.kernels = library, kernels
        self.shared = library.sim_shared_start()
        self.shared_size = library.sim_shared_size()
        self.memory = library.sim_module_start(), library.sim_module_end()

    def parameters(self, name: str) -> list[tuple[str, int]]:
        """(kind, size) of each parameter of a kernel: pointer, float, integer or struct."""
        kinds, sizes = ctypes.create_string_buffer(256), (ctypes.c_int * 256)()
        number = getattr(self.library, f"sim_describe_{self.kernels[name][0]}")(kinds, sizes)
        return [(kinds.raw[i : i + 1].decode(), sizes[i]) for i in range(number)]

    def entry(self, name: str) -> int:
        """The address of the function that calls a kernel for one thread."""
        function = getattr(self.library, f"sim_call_{self.kernels[name][0]}")
        return ctypes.cast(function, ctypes.c_void_p).value or 0


@functools.lru_cache(maxsize=1024)
def compile_module(code: str, options: tuple[str, ...], names: tuple[str, ...]) -> Compiled:
    """Compile CUDA C++ as NVRTC would.

    Args:
        code: the source.
        options: those of NVRTC; macros, the language and folders count.
        names: kernels that are made of templates, such as "scale<float>".

    Raises:
        CompileException: with the compiler's messages.
    """
    flags = [each for each in options if each.startswith(("-D", "-U", "-I"))]
    standard = next((each for each in options if each.startswith("-std=")), "-std=c++17")
    try:
        text, kernels = rewritten(expanded(code, standard, *PREDEFINED, *flags), names)
        path = built(text, [standard, *CHECKED])
    except RuntimeError as error:
        raise CompileException(str(error), code, "simulated.cu", options, "nvrtc") from None
    scheduler()
    library = ctypes.CDLL(str(path))
    library.sim_shared_start.restype = ctypes.c_void_p
    library.sim_shared_size.restype = ctypes.c_uint
    library.sim_module_start.restype = library.sim_module_end.restype = ctypes.c_void_p
    return Compiled(library, kernels)


def expanded(code: str, *flags: str) -> str:
    """The source after the preprocessor, kept as well: the package puts its headers into the source itself.

    Raises:
        RuntimeError: the preprocessor's messages.
    """
    target = cache_folder() / f"{digest(code, *flags)}.ii"
    if target.exists():
        return target.read_text()
    done = run(["g++", "-E", "-P", "-x", "c++", *flags, "-"], code)
    if done.returncode:
        raise RuntimeError(done.stderr)
    made = target.with_suffix(f".{os.getpid()}")
    made.write_text(done.stdout)
    made.replace(target)
    return done.stdout


def rewritten(text: str, names: tuple[str, ...]) -> tuple[str, dict[str, tuple[str, int | None]]]:
    """C++ for the host with a way to call every kernel, and the kernels: name -> (its symbol, most threads)."""
    text = DYNAMIC.sub(r"\1 *const \2 = (\1 *)sim_dynamic_shared;", text)
    kernels: dict[str, tuple[str, int | None]] = {}
    calls = []
    for i, found in enumerate(KERNEL.finditer(text)):
        name = found[1]
        before = text[: found.start()]
        start = max(before.rfind(mark) for mark in ";}{") + 1
        head = before[start:]
        if "template" in head or not ('extern "C"' in head or in_extern_c(text, found.start())):
            continue
        bound = LIMIT.search(found[0])
        kernels[name] = (str(i), int(bound[1]) if bound else None)
        calls.append((str(i), f"simk_{name}"))
    renamed = KERNEL.sub(lambda each: each[0][: each.start(1) - each.start()] + f"simk_{each[1]}(", text)
    for i, expression in enumerate(names):
        kernels[expression] = (f"x{i}", None)
        calls.append((f"x{i}", f"simk_{expression.strip()}"))
    parts = ['#include "cuda_on_cpu.h"\nnamespace {\n', renamed, "\n}\n"]
    for symbol, name in calls:
        parts.append(f'extern "C" void sim_call_{symbol}(void **a) {{ sim_call({name}, a); }}\n')
        parts.append(
            f'extern "C" int sim_describe_{symbol}(char *k, int *s) {{ return sim_describe({name}, k, s); }}\n'
        )
    parts.append(
        'extern "C" char *sim_module_start() { return __ehdr_start; }\n'
        'extern "C" char *sim_module_end() { return _end; }\n'
        'extern "C" char *sim_shared_start() { return __start_simshared; }\n'
        'extern "C" unsigned sim_shared_size() { return (unsigned)(__stop_simshared - __start_simshared); }\n'
    )
    return "".join(parts), kernels


def in_extern_c(text: str, position: int) -> bool:
    """Whether a position is in a block `extern "C" { ... }`."""
    for found in re.finditer(r'extern\s+"C"\s*\{', text[:position]):
        depth = 1 + text.count("{", found.end(), position) - text.count("}", found.end(), position)
        if depth > 0:
            return True
    return False
