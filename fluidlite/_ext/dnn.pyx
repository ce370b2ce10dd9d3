"""Convolutions from oneDNN.

The library is opened at run time, so the rest of the package works without it; `table()` is empty then.
"""
import sys
from pathlib import Path

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport uintptr_t
from libcpp.vector cimport vector

from .threads import functions


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
    vector[fl_entry] convolutions() except +


cdef extern from "parallel.h" namespace "fl":
    void set_threads "fl::set_threads"(void *found)


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


def table() -> dict:
    """Name -> address of the convolution kernels; empty if oneDNN cannot be loaded or was not there at build time."""
    global _table
    if _table is None:
        _table = {}
        set_threads(PyCapsule_GetPointer(functions(), "fluidlite.threads"))
        for path in _libraries():
            if load_onednn(path.encode()):
                _table = {entry.name.decode(): <uintptr_t> entry.run for entry in convolutions()}
                break
    return _table


def takes(str name) -> str:
    """What calls of a convolution kernel must have, as `abi.h` says."""
    return {entry.name.decode(): entry.takes.decode() for entry in convolutions()}[name]
