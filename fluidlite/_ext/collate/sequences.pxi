# Included by collate.pyx: the offsets of the sequences in a batch that is being put together.

@cython.final
cdef class Levels:
    """The offsets of one variable's sequences, for each level of detail, outermost first."""
    cdef vector[vector[int64_t]] offsets

    def __cinit__(self, size_t levels):
        self.offsets.resize(levels)

    cdef begin(self, Py_ssize_t expected):
        """Start a batch of about so many samples."""
        cdef size_t level
        for level in range(self.offsets.size()):
            self.offsets[level].clear()
            self.offsets[level].reserve(expected + 1)
            self.offsets[level].push_back(0)

    cdef int add(self, size_t level, int64_t length) except -1:
        """Append a sequence of `length` parts."""
        self.offsets[level].push_back(self.offsets[level].back() + length)
        return 0

    cdef tuple arrays(self):
        """The offsets in read-only int64 arrays of their own."""
        cdef list made = []
        cdef size_t level, size
        cdef cnp.npy_intp count
        cdef cnp.ndarray array
        for level in range(self.offsets.size()):
            size = self.offsets[level].size()
            count = size
            array = cnp.PyArray_SimpleNew(1, &count, cnp.NPY_INT64)
            memcpy(cnp.PyArray_DATA(array), self.offsets[level].data(), size * sizeof(int64_t))
            cnp.PyArray_CLEARFLAGS(array, cnp.NPY_ARRAY_WRITEABLE)
            made.append(array)
        return tuple(made)

    cdef Py_ssize_t rows(self, Py_ssize_t samples):
        """How many rows the batch has: one for each of `samples`, or those of the last level's sequences."""
        return self.offsets.back().back() if self.offsets.size() else samples


cdef Py_ssize_t _count_rows(object value, int levels) except -1:
    """How many rows a value nested `levels` deep has, as far as that can be seen without converting it."""
    cdef Py_ssize_t rows = 0, i
    cdef int axis
    if cnp.PyArray_Check(value):
        if cnp.PyArray_NDIM(<cnp.ndarray> value) < levels:
            return 0
        rows = 1
        for axis in range(levels):
            rows *= cnp.PyArray_DIM(<cnp.ndarray> value, axis)
        return rows
    if PyList_CheckExact(value):
        if levels == 1:
            return len(<list> value)
        i = 0
        while i < len(<list> value):
            rows += _count_rows(<object> PyList_GET_ITEM(value, i), levels - 1)
            i += 1
    elif PyTuple_CheckExact(value):
        if levels == 1:
            return len(<tuple> value)
        for i in range(len(<tuple> value)):
            rows += _count_rows(<object> PyTuple_GET_ITEM(value, i), levels - 1)
    return rows
