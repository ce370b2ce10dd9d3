# Arrays for results, whose memory large ones have from each other.

from libc.string cimport strcpy

cdef Handler _memory
strcpy(_memory.name, "fluidlite results")
_memory.version = 1
_memory.allocator.ctx = NULL
_memory.allocator.malloc = take_result
_memory.allocator.calloc = take_zeros
_memory.allocator.realloc = resize_result
_memory.allocator.free = give_result_back
cdef object _handler = PyCapsule_New(&_memory, "mem_handler", NULL)
cdef int64_t MOST_BYTES = 2**63 - 1


cdef object new_array(int ndim, cnp.npy_intp *shape, int type_num, int64_t item):
    """An array with whatever is in its memory; `item`: bytes of an element."""
    cdef int64_t count = cnp.PyArray_OverflowMultiplyList(shape, ndim)  # -1 for too many
    if 0 <= count < <int64_t> RESULT_FROM // item:
        return cnp.PyArray_EMPTY(ndim, shape, type_num, 0)
    # Not by PyDataMem_SetHandler: it sets a variable of the context, for which the collector may run, and finalisers that
    # set one as well then crash Python 3.11 and older.
    cdef void *data = NULL
    if 0 <= count <= MOST_BYTES // item:
        data = take_result(NULL, count * item)
    if data == NULL:
        return cnp.PyArray_EMPTY(ndim, shape, type_num, 0)  # or the error that says how much there is not
    try:
        made = cnp.PyArray_SimpleNewFromData(ndim, shape, type_num, data)
    except BaseException:
        give_result_back(NULL, data, count * item)
        raise
    Py_INCREF(_handler)
    (<Fields *> <PyObject *> made).mem_handler = <PyObject *> _handler
    cnp.PyArray_ENABLEFLAGS(<cnp.ndarray> made, cnp.NPY_ARRAY_OWNDATA)
    return made


cdef object sum_of(cnp.ndarray a, cnp.ndarray b):
    """The sum of two arrays."""
    if (cnp.PyArray_NBYTES(a) < <int64_t> RESULT_FROM or cnp.PyArray_TYPE(a) != cnp.PyArray_TYPE(b)
            or not cnp.PyArray_SAMESHAPE(a, b) or not is_plain(a)):
        return a + b
    return np.add(a, b, out=new_array(a.ndim, a.shape, cnp.PyArray_TYPE(a), cnp.PyArray_ITEMSIZE(a)))


def result_memory() -> tuple:
    """Bytes of the large results that there are, and of the memory that is kept for the next ones."""
    return ResultMemory.here().live(), ResultMemory.here().kept()


def let_result_memory_go() -> None:
    """Give all that is kept to the system."""
    ResultMemory.here().let_go()
