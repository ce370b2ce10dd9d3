"""Convolutions from oneDNN.

The library is opened at run time, so the rest of the package works without it; `table()` is empty then.
"""
import os
import sys
from contextlib import contextmanager
from pathlib import Path

from libc.stdint cimport uintptr_t
from libcpp.vector cimport vector


cdef extern from "abi.h":
    ctypedef struct fl_call:
        pass
    ctypedef int (*fl_kernel)(fl_call *call) noexcept nogil
    ctypedef struct fl_entry:
        const char *name
        fl_kernel run
        const char *takes


cdef extern from "dnn/convolution.h" namespace "fl":
    bint load_onednn(const char *path)
    void release_threads()
    vector[fl_entry] convolutions()


_table = None


def _libraries():
    """Where the library may be, the likeliest place first."""
    if not sys.platform.startswith("linux"):
        return
    name = "libdnnl.so.3"
    beside = Path(sys.prefix) / "lib" / name
    if beside.exists():
        yield str(beside)
    from importlib.metadata import PackageNotFoundError, distribution  # takes as long to import as half of NumPy

    try:
        files = distribution("onednn-cpu-gomp").files or []
    except PackageNotFoundError:
        files = []
    for file in files:
        if file.name == name:
            yield str(Path(file.locate()).resolve())
    yield name


@contextmanager
def _patient_threads():
    """Lets the OpenMP library that oneDNN brings start with threads that wait asleep rather than spinning.

    It spins for milliseconds by default, which stalls both sides when data-reading threads share the processors. It
    reads its settings once, while it is loaded; users' own settings of them are respected.
    """
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "1000"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def table() -> dict:
    """Name -> address of the convolution kernels; empty if oneDNN cannot be loaded or was not there at build time."""
    global _table
    if _table is None:
        _table = {}
        with _patient_threads():
            for path in _libraries():
                if load_onednn(path.encode()):
                    _table = {entry.name.decode(): <uintptr_t> entry.run for entry in convolutions()}
                    break
        if _table:
            # The child of a fork has only the thread that forked: it would wait for the other ones for ever.
            os.register_at_fork(before=_release_threads)
    return _table


def takes(str name) -> str:
    """What calls of a convolution kernel must have, as `abi.h` says."""
    return {entry.name.decode(): entry.takes.decode() for entry in convolutions()}[name]


def _release_threads():
    release_threads()
