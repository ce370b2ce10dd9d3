"""Eager tensors, the tape they leave behind, and the loop that runs it backwards.

A `Form` is one way to call an operator (its type, slots and attributes); a `Variant` is a form for exact shapes, or for all
that guards admit, with its native kernels chosen and its gradient operators found. What they are made from stays in Python: `Form.specialise` and
`Variant.differentiate` are callables that the `eager` folder hands in.
"""
import time
from heapq import heappop, heappush

import numpy as np
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint8_t, uint32_t, uintptr_t
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

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


cdef extern from "engine/states.h" namespace "fl" nogil:
    cdef cppclass States:
        void select(fl_call &call, const int64_t *ints, int n) noexcept


cdef extern from "engine/sizes.h" namespace "fl" nogil:
    cdef cppclass CSizes "fl::Sizes":
        pass


cdef extern from "eager/variant.h" namespace "fl" nogil:
    cdef cppclass Layout:
        int type_num
        int ndim
        int64_t item
        int64_t bytes
        cnp.npy_intp shape[32]
    cdef cppclass Native:
        fl_kernel run
        fl_call call
        vector[int] places
        vector[void *] p
        vector[int64_t] i
        vector[double] f
        States states
        Native() except +
        void fix() except +
        void forget()


cdef extern from "eager/variant.h" namespace "fl" nogil:
    cdef struct VaryingAxis "fl::Opening::VaryingAxis":
        int operand
        int axis
        int64_t reg
    cdef struct Number "fl::Opening::Number":
        int call
        int position
        int64_t reg
    cdef cppclass Opening:
        CSizes sizes
        vector[VaryingAxis] ins
        vector[VaryingAxis] outs
        vector[Number] ints
        vector[Number] reals
        vector[uint32_t] free
        vector[int64_t] lengths
        Opening(const CSizes &sizes) except +
        bint holds() noexcept
        void settle(vector[Layout] &ins, vector[Layout] &outs, vector[unique_ptr[Native]] &natives) noexcept


cdef extern from "eager/result_memory.h" namespace "fl" nogil:
    cdef cppclass ResultMemory:
        @staticmethod
        ResultMemory &here()
        size_t live()
        size_t kept()
        void let_go()
    size_t RESULT_FROM "fl::ResultMemory::from"
    void *take_result(void *context, size_t bytes) noexcept
    void *take_zeros(void *context, size_t count, size_t bytes) noexcept
    void *resize_result(void *context, void *data, size_t bytes) noexcept
    void give_result_back(void *context, void *data, size_t bytes) noexcept


cdef extern from "numpy/arrayobject.h":
    ctypedef struct Allocator "PyDataMemAllocator":
        void *ctx
        void *(*malloc)(void *, size_t) noexcept nogil
        void *(*calloc)(void *, size_t, size_t) noexcept nogil
        void *(*realloc)(void *, void *, size_t) noexcept nogil
        void (*free)(void *, void *, size_t) noexcept nogil
    ctypedef struct Fields "PyArrayObject_fields":
        PyObject *mem_handler
    ctypedef struct Handler "PyDataMem_Handler":
        char name[127]
        uint8_t version
        Allocator allocator


cdef extern from *:
    """
    #if defined(FL_VERIFY)
    #define FL_VERIFIES 1
    #else
    #define FL_VERIFIES 0
    #endif
    """
    bint VERIFIES "FL_VERIFIES"  # whether calls are verified again when their sizes change: in builds for debugging


# Larger operators run without the GIL; for smaller ones giving it away costs more than it brings.
cdef int64_t RELEASE_FROM = 1 << 18

cdef object _tensor_type = None    # the Python class of results
cdef object _foreign_type = None   # variables of static programs
cdef object _recording = None      # the frames of the slot that says whether operators are recorded
cdef object _add_up = None         # adds two gradients that are not both arrays
cdef object _explain = None        # makes the error for what a native kernel reports
cdef object _plain = None          # an array that native code can read, with the elements of another
cdef bint _plain_numbers[64]       # by type number: whether elements of plain arrays have it
cdef object _settle = None         # moves arrays to the one device that some of them are on
cdef object _ambient = None        # the device where calls without arrays compute
cdef object _zeros = None          # zeros on a device
cdef object _duplicate = None      # a copy of an array of a device
cdef object _divert = None         # appends a call to the program being traced, instead of computing
cdef object _tracer = None         # says what is being traced here
cdef int64_t _traces = 0           # how many programs are being traced, in all threads
cdef object _observe = None        # told of every operator and when it began and ended, while somebody profiles
cdef int64_t _clock = 0            # numbers the nodes of the tape
cdef int64_t _runs = 0             # numbers the backward passes
cdef int64_t _serial = 0           # numbers the tensors made


def setup(tensor_type, foreign_type, recording, add_up, explain, plain, plain_numbers) -> None:
    """Say which class results have, which class marks static variables, where the recording switch is, what adds
    gradients that are not arrays, what makes errors of kernels' codes, what makes arrays plain, and which type numbers
    those have."""
    global _tensor_type, _foreign_type, _recording, _add_up, _explain, _plain
    _tensor_type, _foreign_type = tensor_type, foreign_type
    _recording, _add_up, _explain = recording, add_up, explain
    _plain = plain
    for number in range(64):
        _plain_numbers[number] = number in plain_numbers


def setup_tracing(divert, tracer) -> None:
    """Say what a form does instead of computing while a program is traced (None: it computes), and what tells whether
    that happens in this thread."""
    global _divert, _tracer
    _divert, _tracer = divert, tracer


def setup_devices(settle, ambient, zeros, duplicate) -> None:
    """Say what deals with arrays that are not NumPy's: see `eager/placing.py`, which has these four functions."""
    global _settle, _ambient, _zeros, _duplicate
    _settle, _ambient, _zeros, _duplicate = settle, ambient, zeros, duplicate


def set_observer(observe) -> None:
    """Have `observe(type, begin, end, device)` called after each operator, in nanoseconds; None: nobody."""
    global _observe
    _observe = observe


def count_traces(int64_t change) -> None:
    """A trace has begun (1) or ended (-1)."""
    global _traces
    _traces += change


def serial() -> int:
    """How many tensors were counted so far."""
    return _serial


def set_serial(int64_t number) -> None:
    """Let the count of tensors go on from `number`."""
    global _serial
    _serial = number


cpdef bint recording() except -1:
    """Whether operators are recorded now."""
    cdef list held = _recording.held
    return held[len(held) - 1].value


cdef bint is_plain(cnp.ndarray array) noexcept:
    cdef int number = cnp.PyArray_TYPE(array)
    return cnp.PyArray_ISCARRAY_RO(array) and 0 <= number < 64 and _plain_numbers[number]


include "vectors.pxi"
include "eager/results.pxi"
include "eager/tensor.pxi"
include "eager/variant.pxi"
include "eager/form.pxi"
include "eager/sweep.pxi"
