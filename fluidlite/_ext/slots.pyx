# distutils: language = c++
"""Slot files in C++: text -> records -> batches of arrays, without the GIL; and the random orders of Fluid 1.8."""
cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

import os

import numpy as np

cnp.import_array()

cdef extern from "slots/records.h" namespace "fluidlite" nogil:
    cdef enum class Problem:
        kNone
        kCount
        kShort
        kNumber
        kWidth

    cdef cppclass Fault:
        Problem problem
        int64_t line, expected, found
        size_t slot
        string word, text

    cdef cppclass RecordsC "fluidlite::Records":
        vector[const char*] rows
        void join(RecordsC& other) except +
        void drop(size_t count, const vector[uint8_t]& real) except +

    cdef cppclass SlotParser:
        SlotParser(vector[uint8_t] real, vector[int64_t] widths, size_t skip, vector[uint8_t] sparse) except +
        void begin()
        cbool read(int file, size_t rows) except +
        vector[uint8_t] real
        RecordsC records
        Fault fault
        int error
        cppclass Flag:
            void store(cbool value)
        Flag stop

    cdef cppclass ShuffleEngine:
        uint32_t state

    void count_numbers(const char* const* rows, size_t count, size_t slots, int64_t* totals)
    void gather(const char* const* rows, size_t count, const vector[uint8_t]& real, char** values, int64_t** offsets)
    void shuffle(vector[const char*]& rows, ShuffleEngine& engine)
    void mix_slots(const vector[const char*]& rows, const vector[uint8_t]& real, const vector[uint8_t]& chosen,
                   size_t capacity, ShuffleEngine& engine, RecordsC& out) except +


include "vectors.pxi"


cdef int take_truths(vector[uint8_t] &into, items) except -1:
    """Have `into` say of each item whether it is true."""
    cdef uint8_t truth
    into.clear()
    for item in items:
        truth = 1 if item else 0
        into.push_back(truth)
    return 0


PROBLEMS = {"count": <int>Problem.kCount, "short": <int>Problem.kShort, "number": <int>Problem.kNumber,
            "width": <int>Problem.kWidth}


cdef list columns(const char* const* rows, size_t count, const vector[uint8_t]& real):
    """For each slot its numbers in these records, and the offsets where those of each record begin, read-only."""
    cdef size_t slots = real.size(), slot
    cdef vector[int64_t] totals
    cdef vector[char*] values
    cdef vector[int64_t*] offsets
    cdef cnp.ndarray numbers, places
    totals.resize(slots)
    with nogil:
        count_numbers(rows, count, slots, totals.data())
    out = []
    for slot in range(slots):
        numbers = np.empty(totals[slot], np.float32 if real[slot] else np.int64)
        places = np.empty(count + 1, np.int64)
        values.push_back(<char*>cnp.PyArray_DATA(numbers))
        offsets.push_back(<int64_t*>cnp.PyArray_DATA(places))
        out.append((numbers, places))
    with nogil:
        gather(rows, count, real, values.data(), offsets.data())
    for numbers, places in out:
        places.flags.writeable = False
    return out


cdef class Engine:
    """The random numbers by which Fluid 1.8 shuffles; a new one begins where a new process of Fluid's does."""
    cdef ShuffleEngine engine


cdef class Parser:
    """Parses slot files one after the other and holds the records that have not been taken yet.

    `reals`: for each slot whether it holds float32 (else int64). `widths`: how many numbers it must have, -1 for any.
    `skip`: how many slots of text stand before them. `sparse`: for each slot whether its zeros are left out, of which one
    stays where there is nothing else; None for no slot.
    """
    cdef SlotParser* parser

    def __cinit__(self, reals, widths, size_t skip=0, sparse=None):
        cdef vector[uint8_t] real
        cdef vector[int64_t] width
        cdef vector[uint8_t] without
        take_truths(real, reals)
        take_integers(width, widths)
        take_truths(without, [False] * len(widths) if sparse is None else sparse)
        if real.size() != width.size() or real.size() != without.size():
            raise ValueError(f"{real.size()} types of slots, {width.size()} widths, {without.size()} of whether zeros stay")
        self.parser = new SlotParser(real, width, skip, without)

    def __dealloc__(self):
        del self.parser

    def begin(self):
        """What is read next is the first line of a file."""
        self.parser.begin()

    def read(self, int file, size_t rows):
        """Read a file descriptor until `rows` records are held (False), or there is nothing more to read (True): the
        file has ended, or `stop` was called, or a line is no sample (`fault`). OSError if reading fails.
        """
        cdef cbool ended
        with nogil:
            ended = self.parser.read(file, rows)
        if self.parser.error:
            raise OSError(self.parser.error, os.strerror(self.parser.error))
        return ended

    @property
    def fault(self):
        """What is wrong with the last line: (line, slot, problem, expected, found, word, text); None if nothing is."""
        cdef Fault* fault = &self.parser.fault
        if fault.problem == Problem.kNone:
            return None
        return fault.line, fault.slot, <int>fault.problem, fault.expected, fault.found, fault.word, fault.text

    def stop(self):
        """Have `read`, now and from now on, end as soon as it can."""
        self.parser.stop.store(True)

    def __len__(self):
        return self.parser.records.rows.size()

    def take(self, size_t count):
        """The columns of the first `count` records, or of all if there are fewer, which are held no more."""
        count = min(count, self.parser.records.rows.size())
        out = columns(self.parser.records.rows.data(), count, self.parser.real)
        self.parser.records.drop(count, self.parser.real)
        return out


cdef class Records:
    """Records in memory, in an order that can be changed."""
    cdef RecordsC records
    cdef vector[uint8_t] real

    def __init__(self, reals):
        take_truths(self.real, reals)

    def take(self, Parser parser):
        """Take over the records that `parser` holds, behind those that are here."""
        if parser.parser.real != self.real:
            raise ValueError(f"a parser of {parser.parser.real.size()} slots for records of {self.real.size()}, or of other types")
        self.records.join(parser.parser.records)

    def join(self, Records other):
        """Take over the records of `other`, behind those that are here."""
        if other is self or other.real != self.real:
            raise ValueError("records take over those of other records with the same slots")
        self.records.join(other.records)

    def __len__(self):
        return self.records.rows.size()

    def shuffle(self, Engine engine):
        """Put the records into the random order into which Fluid 1.8 puts them."""
        with nogil:
            shuffle(self.records.rows, engine.engine)

    def mixed(self, chosen, size_t capacity, Engine engine):
        """New records, with the integers of the slots in `chosen` (a truth for each) from others, drawn as Fluid does."""
        cdef vector[uint8_t] wanted
        take_truths(wanted, chosen)
        if wanted.size() != self.real.size() or not capacity:
            raise ValueError(f"{wanted.size()} slots chosen of {self.real.size()}, {capacity} candidates")
        cdef Records out = Records(self.real)
        with nogil:
            mix_slots(self.records.rows, self.real, wanted, capacity, engine.engine, out.records)
        return out

    def batch(self, size_t first, size_t last):
        """The columns of the records `first` up to, but without, `last`."""
        last = min(last, self.records.rows.size())
        first = min(first, last)
        return columns(self.records.rows.data() + first, last - first, self.real)
