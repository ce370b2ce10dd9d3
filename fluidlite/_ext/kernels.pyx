"""The CPU kernels: C functions of the type in `abi.h`, found by name. `docs/kernels.md` lists what each expects.

Every kernel is compiled for several instruction sets, of which the best that the machine has is used, or the one that
FLUIDLITE_ISA names. Convolutions come from the `dnn` extension, which is loaded when the first of them is asked for.
"""
import ctypes
import os
import re

import numpy as np
import scipy.linalg.cython_blas as cython_blas_module
cimport numpy as cnp
cimport scipy.linalg.cython_blas as cython_blas
from libc.stdint cimport int64_t, uintptr_t
from libcpp.vector cimport vector

from . import dnn
from .engine import KernelFailure

cnp.import_array()


cdef extern from "abi.h":
    ctypedef struct fl_call:
        void **p
        const int64_t *i
        const double *f
        int n_p
        int n_i
        int n_f
        void *state
        void (*free_state)(void *state) noexcept nogil
        int64_t err[4]
    ctypedef int (*fl_kernel)(fl_call *call) noexcept nogil
    ctypedef struct fl_entry:
        const char *name
        fl_kernel run
        const char *takes
    enum:
        FL_MAX_RANK


cdef extern from "kernels/topics.h" namespace "fl":
    vector[int] list_targets "fl::targets"()
    vector[fl_entry] kernels_of(int target)


cdef extern from "kernels/blas.h" namespace "fl":
    void set_blas "fl::set_blas"(void *sgemm, void *dgemm)
    void set_blas_threads "fl::set_blas_threads"(void *set_threads, int most)


set_blas(<void *> cython_blas.sgemm, <void *> cython_blas.dgemm)


def _find_thread_switch():
    """Hand over OpenBLAS's switch for the number of threads, if that is the BLAS that SciPy brings."""
    cdef uintptr_t switch
    library = ctypes.CDLL(cython_blas_module.__file__)
    for prefix in ("scipy_openblas", "openblas"):
        setter = getattr(library, f"{prefix}_set_num_threads", None)
        getter = getattr(library, f"{prefix}_get_num_threads", None)
        if setter is not None and getter is not None:
            switch = ctypes.cast(setter, ctypes.c_void_p).value
            set_blas_threads(<void *> switch, getter())
            return


_find_thread_switch()

_TARGET_NAMES = {2: "avx512", 1: "avx2", 0: "baseline"}
_targets = {_TARGET_NAMES[target]: target for target in list_targets()}
_tables = {}
_takes = {}  # name -> what a call must have, as `abi.h` says, and what was made of it when it was asked for first


cdef dict _own_table(str target):
    """Name -> address of the kernels of this extension for one instruction set."""
    if target not in _tables:
        if target not in _targets:
            raise ValueError(f"this machine cannot run {target!r}; it can run {', '.join(_targets)}")
        _tables[target] = {entry.name.decode(): <uintptr_t> entry.run for entry in kernels_of(_targets[target])}
        _takes.update({entry.name.decode(): entry.takes.decode() for entry in kernels_of(_targets[target])})
    return _tables[target]


_GROUP = re.compile(r"(r?)\((\w+)\)")
_MOST = {"z": (0, 2**63 - 1), "d": (1, 2**63 - 1), "m": (0, 2**31 - 1), "r": (0, FL_MAX_RANK), "i": (-2**63, 2**63 - 1)}


class _Arity:
    """What calls of one kernel must have; `text` is its `takes` in the table of kernels."""

    def __init__(self, text):
        operands, ints, floats = text.split("|")
        pattern = operands.replace("n", "[xn]")
        for old, new in ((")", ")+"), ("[[xn]]", "[xn]?"), ("[x]", "x?")):
            pattern = pattern.replace(old, new)
        self.operands = re.compile(pattern)
        group = _GROUP.search(operands)
        self.group = len(group[2]) if group else 0
        self.others = len(operands) - len(group[0]) if group else 0
        repeated = _GROUP.search(ints)
        self.before = ints[: repeated.start()] + repeated[1] if repeated else ints.replace("[", "").replace("]", "")
        self.least = len(self.before) - ("[" in ints)
        self.repeated = repeated[2] if repeated else ""
        self.by_rank = bool(repeated and repeated[1])
        self.floats = (len(floats.strip("[]")) - ("[" in floats), len(floats.strip("[]")))

    def problem(self, operands, ints, floats):
        """What is wrong with a call, or None; `operands`: for each whether it is there."""
        if self.operands.fullmatch("".join(["x" if there else "n" for there in operands])) is None:
            return f"{len(operands)} operands, of which it lacks {[k for k, there in enumerate(operands) if not there]}"
        kinds = self.before
        if self.repeated:
            times = (len(operands) - self.others) // self.group if self.group else 0
            if self.by_rank and len(ints) >= len(kinds):
                times = ints[len(kinds) - 1]
                if not 0 <= times <= FL_MAX_RANK:
                    return f"a rank of {times}, which must be in [0, {FL_MAX_RANK}]"
            kinds += self.repeated * times
            if len(ints) != len(kinds):
                return f"{len(ints)} integers, which must be {len(kinds)}"
        elif not self.least <= len(ints) <= len(kinds):
            return f"{len(ints)} integers, which must be {self.least} to {len(kinds)}"
        for place, (kind, number) in enumerate(zip(kinds, ints)):
            least, most = _MOST[kind]
            if not least <= number <= most:
                return f"the integer {number} at position {place}, which must be in [{least}, {most}]"
        if not self.floats[0] <= len(floats) <= self.floats[1]:
            return f"{len(floats)} real numbers, which must be {self.floats[0]} to {self.floats[1]}"
        return None


def check(str name, operands, ints=(), floats=()) -> None:
    """Verify that a call has what its kernel takes, before anything is run with it.

    Args:
        name: the kernel.
        operands: for each operand whether there is an address; false for one left out.
        ints: the integer arguments.
        floats: the real arguments.

    Raises:
        KeyError: there is no such kernel.
        ValueError: the number of operands, integers or real numbers is another than the kernel needs, an operand is left
            out that it reads or writes, or an integer is outside what it can work with.
    """
    arity = _takes.get(name)
    if not isinstance(arity, _Arity):
        address(name)
        arity = _takes[name] = _Arity(_takes[name])
    wrong = arity.problem(operands, ints, floats)
    if wrong is not None:
        raise ValueError(f"kernel {name!r} was given {wrong}")


_used = next(iter(_targets))


def targets() -> tuple:
    """Names of the instruction sets this machine can run, best first, out of `avx512`, `avx2` and `baseline`."""
    return tuple(_targets)


def use(str target) -> str:
    """Take kernels of another instruction set from now on; plans and eager calls made before keep theirs.

    FLUIDLITE_ISA in the environment names the one to begin with. For comparing results: all sets give the same numbers
    but for the order of sums.

    Args:
        target: one of `targets()`.

    Returns:
        The one used so far.

    Raises:
        ValueError: this machine cannot run it, or there is no such set.
    """
    global _used
    _own_table(target)
    before, _used = _used, target
    return before


def table(target=None) -> dict:
    """Every kernel this build and machine have, name -> address.

    Args:
        target: one of `targets()`; the one in use by default.
    """
    return {**_own_table(target or _used), **_convolutions()}


def _convolutions():
    """The kernels of the `dnn` extension."""
    found = dnn.table()
    for name in found:
        if name not in _takes:
            _takes[name] = dnn.takes(name)
    return found


def available(str name) -> bool:
    """Whether there is a kernel of this name; for convolutions that needs the oneDNN library."""
    return name in _own_table(_used) or (name.startswith("conv2d") and name in _convolutions())


def address(str name) -> int:
    """The address of a kernel.

    Raises:
        KeyError: there is none of that name, or oneDNN, which it needs, is missing.
    """
    found = _own_table(_used).get(name)
    if found is None and name.startswith("conv2d"):
        found = _convolutions().get(name)
    if found is None:
        raise KeyError(f"there is no kernel {name!r} in this build")
    return found


def call(str name, arrays, ints=(), floats=(), target=None) -> None:
    """Run one kernel once on NumPy arrays.

    Args:
        name: the kernel.
        arrays: its operands in order, C-contiguous arrays of the types it expects; None for one left out.
        ints: its integer arguments.
        floats: its real arguments.
        target: the instruction set, one of `targets()`; the one in use by default.

    Raises:
        KeyError: there is no such kernel.
        ValueError: an operand is not a C-contiguous array, or the call does not have what `check` asks for.
        KernelFailure: the kernel reported a problem.
    """
    cdef vector[void *] operands
    cdef vector[int64_t] integers = ints
    cdef vector[double] reals = floats
    cdef fl_call arguments
    cdef uintptr_t where = address(name) if target is None else table(target)[name]
    cdef fl_kernel run = <fl_kernel> where
    cdef int code
    check(name, [array is not None for array in arrays], ints, floats)
    for array in arrays:
        if array is None:
            operands.push_back(NULL)
        elif isinstance(array, np.ndarray) and array.flags.c_contiguous:
            operands.push_back(cnp.PyArray_DATA(<cnp.ndarray> array))
        else:
            raise ValueError(f"kernel {name!r} wants C-contiguous numpy arrays, got {type(array).__name__}")
    arguments.p = operands.data()
    arguments.i = integers.data()
    arguments.f = reals.data()
    arguments.n_p = operands.size()
    arguments.n_i = integers.size()
    arguments.n_f = reals.size()
    arguments.state = NULL
    arguments.free_state = NULL
    with nogil:
        code = run(&arguments)
    if arguments.state != NULL:
        arguments.free_state(arguments.state)
    if code:
        raise KernelFailure(0, code, tuple([arguments.err[k] for k in range(4)]))


if os.environ.get("FLUIDLITE_ISA"):
    use(os.environ["FLUIDLITE_ISA"])
