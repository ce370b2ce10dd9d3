"""The CPU kernels: C functions of the type in `abi.h`, found by name. `docs/kernels.md` lists what each expects.

Every kernel is compiled for several instruction sets, of which the best that the machine has is used, or the one that
FLUIDLITE_ISA names. Convolutions come from the `dnn` extension, which is loaded when the first of them is asked for.
"""
import ctypes
import importlib.util
import os

import numpy as np
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libcpp.vector cimport vector

from . import dnn
from .arity import Arity, ChainArity
from .engine import KernelFailure
from .threads import functions as thread_functions

cnp.import_array()


include "vectors.pxi"


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


cdef extern from "kernels/topics.h" namespace "fl":
    vector[int] list_targets "fl::targets"() except +
    const vector[fl_entry] *all_kernels_of "&fl::kernels_of"(int target) except +


cdef extern from "kernels/blas.h" namespace "fl":
    void set_blas "fl::set_blas"(void *sgemm, void *dgemm)


cdef extern from "kernels/fresh_seed.h" namespace "fl":
    void set_seeds "fl::seeds_from"(uint64_t number)


cdef extern from "parallel.h" namespace "fl":
    void set_threads "fl::set_threads"(void *found)


def _find_blas():
    """Hand over the products of the BLAS that SciPy brings, which is told to compute in one thread, if it is OpenBLAS.

    Importing `scipy.linalg` takes longer than NumPy and all of fluidlite: the library is opened without it where it is
    SciPy's own build of OpenBLAS, whose functions have names that nobody else uses.
    """
    cdef uintptr_t sgemm, dgemm
    package = importlib.util.find_spec("scipy")
    library = None
    for folder in (package and package.submodule_search_locations) or ():
        folder = os.path.join(folder, "linalg")
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.startswith("cython_blas.") and name.endswith((".so", ".pyd")):
                library = ctypes.CDLL(os.path.join(folder, name))
    products = [getattr(library, f"scipy_{name}_", None) for name in ("sgemm", "dgemm")]
    if None in products:
        from scipy.linalg import cython_blas

        library = ctypes.CDLL(cython_blas.__file__)
        sgemm, dgemm = [_in_capsule(cython_blas.__pyx_capi__[name]) for name in ("sgemm", "dgemm")]
    else:
        sgemm, dgemm = [ctypes.cast(product, ctypes.c_void_p).value for product in products]
    set_blas(<void *> sgemm, <void *> dgemm)
    for prefix in ("scipy_openblas", "openblas"):
        setter = getattr(library, f"{prefix}_set_num_threads", None)
        if setter is not None:
            setter(1)
            return


cdef uintptr_t _in_capsule(capsule):
    return <uintptr_t> PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


set_threads(PyCapsule_GetPointer(thread_functions(), "fluidlite.threads"))
_find_blas()

_TARGET_NAMES = {2: "avx512", 1: "avx2", 0: "baseline"}
_targets = {_TARGET_NAMES[target]: target for target in list_targets()}
if not _targets:
    raise ImportError("fluidlite was built for the processor of another machine alone (FLUIDLITE_NATIVE=1), which has instructions that this one lacks: build it here, or without FLUIDLITE_NATIVE")
_tables = {}
_takes = {}  # name -> what a call must have, as `abi.h` says, and what was made of it when it was asked for first
_names = []  # of the kernels, in the order that all instruction sets have


cdef dict _own_table(str target):
    """Name -> address of the kernels of this extension for one instruction set."""
    cdef const vector[fl_entry] *found
    cdef size_t k
    if target not in _tables:
        if target not in _targets:
            raise ValueError(f"this machine cannot run {target!r}, or this build has none of its kernels; there are those of {', '.join(_targets)}")
        found = all_kernels_of(_targets[target])  # not a copy, for which there may be no memory
        made = {}
        for k in range(found.size()):
            made[found.at(k).name.decode()] = <uintptr_t> found.at(k).run
            _takes.setdefault(found.at(k).name.decode(), found.at(k).takes.decode())
        _tables[target] = made
        _names[:] = made
    return _tables[target]


def _check_step(number, operands, ints, floats, sizes):
    check(_names[number], operands, ints, floats, sizes)


def check(str name, operands, ints=(), floats=(), sizes=None) -> None:
    """Verify that a call has what its kernel takes, before anything is run with it.

    Args:
        name: the kernel.
        operands: for each operand whether there is an address; false for one left out.
        ints: the integer arguments.
        floats: the real arguments.
        sizes: for each operand how many bytes there are at its address; None: not verified.

    Raises:
        KeyError: there is no such kernel.
        ValueError: the number of operands, integers or real numbers is another than the kernel needs, an operand is left
            out that it reads or writes, has fewer bytes than it reads or writes, or an integer is outside what it can
            work with.
    """
    arity = _takes.get(name)
    if isinstance(arity, (str, type(None))):
        address(name)
        arity = _takes[name] = ChainArity(name, _check_step) if name.startswith("chain.") else Arity(name, _takes[name])
    wrong = arity.problem(operands, ints, floats, sizes)
    if wrong is not None:
        raise ValueError(f"kernel {name!r} was given {wrong}")


_used = next(iter(_targets))


def targets() -> tuple:
    """Names of the instruction sets that this machine can run and this build has, best first, out of `avx512`, `avx2` and
    `baseline`."""
    return tuple(_targets)


def used() -> str:
    """The name of the instruction set whose kernels are taken."""
    return _used


def use(str target) -> str:
    """Take kernels of another instruction set from now on; plans and eager calls made before keep theirs.

    FLUIDLITE_ISA in the environment names the one to begin with. For comparing results: all sets give the same numbers
    but for the order of sums.

    Args:
        target: one of `targets()`.

    Returns:
        The one used so far.

    Raises:
        ValueError: this machine cannot run it, this build does not have it, or there is no such set.
    """
    global _used
    _own_table(target)
    before, _used = _used, target
    return before


def seeds_from(uint64_t number) -> None:
    """Have random kernels that are given no seed draw seeds that follow from `number`; 0: unpredictable ones again.

    A call that a plan or an eager operator keeps has drawn its seed when it first ran.
    """
    set_seeds(number)


def table(target=None) -> dict:
    """Every kernel this build and machine have, name -> address.

    Args:
        target: one of `targets()`; the one in use by default.
    """
    return {**_own_table(target or _used), **_convolutions()}


_known = {}  # address -> names, for `verify`


def verify(uintptr_t address, operands, ints, floats, sizes) -> None:
    """`check` for the kernel at an address, of any instruction set; what is none of these kernels is left alone."""
    if not _known:
        for found in (*map(_own_table, _targets), _convolutions()):
            for name, place in found.items():
                _known.setdefault(place, []).append(name)
    names = _known.get(address, ())
    for k, name in enumerate(names):
        try:
            return check(name, operands, ints, floats, sizes)
        except ValueError:
            if k == len(names) - 1:
                raise


def _convolutions():
    """The kernels of the `dnn` extension."""
    found = dnn.table()
    for name in found:
        if name not in _takes:
            _takes[name] = dnn.takes(name)
    return found


def available(str name) -> bool:
    """Whether there is a kernel of this name; for convolutions that needs the oneDNN library."""
    return name in _own_table(_used) or (name.startswith("conv") and name in _convolutions())


def address(str name) -> int:
    """The address of a kernel.

    Raises:
        KeyError: there is none of that name, or oneDNN, which it needs, is missing.
    """
    found = _own_table(_used).get(name)
    if found is None and name.startswith("conv"):
        found = _convolutions().get(name)
    if found is None:
        raise KeyError(f"there is no kernel {name!r} in this build")
    return found


def number(str name) -> int:
    """The place of a kernel among those of this extension, by which steps of chains name it; ValueError if there is none."""
    address(name)
    return _names.index(name)


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
    cdef vector[int64_t] integers
    cdef vector[double] reals
    cdef fl_call arguments
    cdef uintptr_t where = address(name) if target is None else table(target)[name]
    cdef fl_kernel run = <fl_kernel> where
    cdef int code
    for array in arrays:
        if array is None:
            operands.push_back(NULL)
        elif isinstance(array, np.ndarray) and array.flags.c_contiguous:
            operands.push_back(cnp.PyArray_DATA(<cnp.ndarray> array))
        else:
            raise ValueError(f"kernel {name!r} wants C-contiguous numpy arrays, got {type(array).__name__}")
    sizes = [0 if array is None else array.nbytes for array in arrays]
    check(name, [array is not None for array in arrays], ints, floats, sizes)
    take_integers(integers, ints)
    take_reals(reals, floats)
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
    try:
        use(os.environ["FLUIDLITE_ISA"])
    except ValueError as error:
        raise ValueError(f"the environment variable FLUIDLITE_ISA: {error}") from None
