# distutils: language = c++
# cython: boundscheck=False, wraparound=False
"""Samples -> contiguous batches: one memcpy per sample into memory that is used again and again."""
cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

import numpy as np

cnp.import_array()

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1
    PyObject* PyIter_Next(object iterator) except? NULL

cdef extern from "collate/block_pool.h" namespace "fluidlite" nogil:
    cdef cppclass PoolCounters:
        int64_t live_blocks
        int64_t live_bytes
        int64_t cached_bytes

    cdef cppclass BlockPool:
        @staticmethod
        size_t block_size(size_t size)
        void* acquire(size_t size)
        void release(void* block, size_t size)
        void trim()
        PoolCounters counters()

    BlockPool& block_pool()

cdef extern from "collate/convert.h" namespace "fluidlite" nogil:
    cdef enum class Element(int):
        kOther
        kFloat32
        kFloat64
        kInt32
        kInt64

    cbool store_real(Element type, char* to, double value)
    cbool store_whole(Element type, char* to, int64_t value)
    void copy_row(char* to, const void* source, size_t size)

cdef extern from "clock.h" namespace "fluidlite" nogil:
    double seconds()

# Copies of at least this many bytes let other threads run meanwhile.
cdef size_t LONG_COPY = 1 << 17
# Below this `lottery` a sample is timed: one in sixteen.
cdef uint32_t TIMED = 1 << 28
# Rows to make room for before it is known how many will come.
cdef Py_ssize_t FIRST_ROWS = 4096


class FieldCountError(AssertionError, ValueError):
    """A sample or batch with a wrong number of items."""


FieldCountError.__name__ = "AssertionError"  # as `base.errors.called` does: scripts print and compare Fluid's name


include "collate/sequences.pxi"
include "collate/rows.pxi"
include "collate/column.pxi"
include "collate/handover.pxi"


cdef class Collator:
    """Puts samples together to batches.

    `specs`: a `Spec` for each variable, in the order of a sample's items. `wrap(array, lod)` makes a tensor without
    copying; `lod` is a tuple of read-only int64 arrays, the offsets of each level. Results are lists of such tensors; their memory stays valid as long as somebody holds it. `reader`: what
    messages call the generator. `memory`: where batches are put together: `memory.block(size)` gives a writable buffer of
    at least `size` bytes, or None for ordinary memory. For one epoch and one thread.
    """
    cdef list columns
    cdef Py_ssize_t fields             # how many columns
    cdef object wrap
    cdef str reader
    cdef readonly Py_ssize_t samples   # taken by `fill`
    cdef readonly Py_ssize_t batches   # made by `collate`
    cdef readonly double reading       # seconds that `fill` spent in the iterator, about
    cdef uint32_t lottery              # which samples are timed

    def __init__(self, specs, wrap, str reader="", memory=None):
        self.columns = [Column(spec, memory) for spec in specs]
        self.fields = len(self.columns)
        self.wrap = wrap
        self.reader = f" of the reader {reader}" if reader else ""
        self.reading = 0.0
        self.lottery = 1

    def collate(self, samples):
        """The batch of a list of samples: tuples, lists, rows of an array and the like, with one item for each variable.

        Raises TypeError for a sample without items, FieldCountError for a wrong number of them, and ValueError or
        TypeError naming the variable for bad ones.
        """
        cdef Py_ssize_t i = 0
        cdef str where = f" of batch {self.batches}{self.reader}" if self.reader else " of the batch"
        if not isinstance(samples, (list, tuple)):
            if not hasattr(samples, "__iter__"):
                raise TypeError(f"batch {self.batches}{self.reader} must be a list of samples, got {_brief(samples)}")
        if not PyList_CheckExact(samples):
            samples = list(samples)
        self.begin(len(samples))
        self.count(<list> samples)
        for sample in samples:
            self.add(sample, i, where)
            i += 1
        self.batches += 1
        return self.finish(i)

    def fill(self, iterator, Py_ssize_t count, bint drop_short):
        """The batch of the next `count` samples of an iterator, or None if there is none.

        `drop_short`: give None instead of a last batch with fewer samples. A sample that is no tuple is the
        item of the only variable. Errors as in `collate`.
        """
        cdef Py_ssize_t i = 0
        cdef double begin
        cdef PyObject* found
        cdef str where = self.reader or " of the reader"
        self.begin(min(count, FIRST_ROWS))
        while i < count:
            # One sample in sixteen is timed, at random: looking at the clock takes as long as some iterators do.
            self.lottery = self.lottery * 1664525u + 1013904223u
            begin = seconds() if self.lottery < TIMED else 0.0
            found = PyIter_Next(iterator)
            if found == NULL:
                break
            sample = <object> found
            Py_DECREF(found)
            if begin != 0.0:
                self.reading += 16 * (seconds() - begin)
            if not PyTuple_CheckExact(sample) and len(self.columns) == 1:
                if not isinstance(sample, (list, tuple)) or len(sample) != 1:
                    sample = (sample,)
            self.add(sample, self.samples, where)
            self.samples += 1
            i += 1
        if i == 0 or (drop_short and i < count):
            self.discard()
            return None
        return self.finish(i)

    cdef begin(self, Py_ssize_t expected):
        cdef Column column
        for column in self.columns:
            column.begin(expected)

    cdef count(self, list samples):
        cdef Py_ssize_t i
        for i in range(self.fields):
            (<Column> self.columns[i]).count(samples, i, self.fields)

    cdef finish(self, Py_ssize_t samples):
        cdef Column column
        return [column.finish(samples, self.wrap) for column in self.columns]

    cdef discard(self):
        cdef Column column
        for column in self.columns:
            column.drop()

    cdef int add(self, object sample, Py_ssize_t number, str where) except -1:
        """Append a sample, which messages call by its number and `where` it is."""
        cdef Py_ssize_t i = 0
        cdef Column column = None
        try:
            if not PyTuple_CheckExact(sample) or PyTuple_GET_SIZE(sample) != self.fields:
                sample = self.items(sample, number, where)
            while i < self.fields and (<Column> PyList_GET_ITEM(self.columns, i)).take(
                <object> PyTuple_GET_ITEM(sample, i)
            ):
                i += 1
            # The rest, which may need a conversion.
            while i < self.fields:
                column = <Column> PyList_GET_ITEM(self.columns, i)
                column.add(<object> PyTuple_GET_ITEM(sample, i))
                i += 1
        except (ValueError, TypeError, OverflowError) as error:
            self.discard()
            if column is None:
                raise
            raise self.explained(error, column, f"sample {number}{where}") from None
        except BaseException:
            self.discard()
            raise
        return 0

    cdef tuple items(self, object sample, Py_ssize_t number, str where):
        """The items of a sample: of whatever has an order and as many as there are variables, as in Fluid."""
        cdef str wanted = f"one item for each variable of feed_list ({self.names()}), as a tuple, a list or a row of an array"
        if isinstance(sample, (dict, set, frozenset)):
            raise ValueError(f"sample {number}{where} must have {wanted}, whose order says which is which: got "
                             f"{_brief(sample)}")
        try:
            iterator = iter(sample)
        except TypeError:
            raise TypeError(f"sample {number}{where} must have {wanted}, got {_brief(sample)}") from None
        items = tuple(iterator)
        if len(items) != self.fields:
            hint = "; if it is the only item, write it as a tuple, (item,)" if self.fields == 1 else ""
            raise FieldCountError(f"The number of fields ({len(items)}) in sample {number}{where} does not match "
                                  f"len(feed_list) ({self.fields}: {self.names()}){hint}")
        return items

    cdef str names(self):
        return ", ".join([repr((<Column> column).spec.name) for column in self.columns])

    cdef object explained(self, error, Column column, str where):
        kind = TypeError if isinstance(error, TypeError) else ValueError
        return kind(f"{where}, variable {column.spec.name!r}: {error}")


def counters():
    """Batch memory of this process: `live_blocks` (held by arrays), `live_bytes`, `cached_bytes` (unused)."""
    cdef PoolCounters now = block_pool().counters()
    return {"live_blocks": now.live_blocks, "live_bytes": now.live_bytes, "cached_bytes": now.cached_bytes}


def trim():
    """Give the memory that is kept for reuse back to the system."""
    block_pool().trim()
