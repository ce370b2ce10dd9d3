# Included by collate.pyx: one field of a list of samples -> the rows of an array.

cdef inline object _field(object sample, Py_ssize_t field, Py_ssize_t fields):
    """The item number `field` of a sample with `fields` items; None for samples of another kind or length."""
    if PyTuple_CheckExact(sample):
        return <object> PyTuple_GET_ITEM(sample, field) if len(<tuple> sample) == fields else None
    if PyList_CheckExact(sample):
        return <object> PyList_GET_ITEM(sample, field) if len(<list> sample) == fields else None
    return None


cdef inline bint _same_row(cnp.ndarray array, cnp.ndarray out):
    """Whether `array` has the element type and the shape of a row of `out`."""
    cdef int i
    cdef int rank = cnp.PyArray_NDIM(array)
    if cnp.PyArray_TYPE(array) != cnp.PyArray_TYPE(out) or rank != cnp.PyArray_NDIM(out) - 1:
        return False
    for i in range(rank):
        if cnp.PyArray_DIM(array, i) != cnp.PyArray_DIM(out, i + 1):
            return False
    return True


def fill_rows(list samples, Py_ssize_t field, Py_ssize_t fields, cnp.ndarray out):
    """Copy item `field` of each sample, a tuple or list of `fields` items, into the rows of `out`.

    With `field` -1 the samples are the items themselves. `out`: a contiguous array with at least as many rows as there
    are samples. Items are arrays like a row of `out`, NumPy numbers of its type, or plain numbers where a row is one
    int64, float64 or bool. Returns how many samples were copied: the first one that does not fit ends it.
    """
    cdef Py_ssize_t i, count = len(samples)
    cdef char* to = <char*> cnp.PyArray_DATA(out)
    cdef int type_num = cnp.PyArray_TYPE(out)
    cdef bint numbers = cnp.PyArray_NDIM(out) == 1
    cdef size_t size
    cdef object item
    if cnp.PyArray_NDIM(out) < 1 or cnp.PyArray_DIM(out, 0) < count or not cnp.PyArray_ISCARRAY(out):
        raise ValueError("fill_rows needs a contiguous array with a row for each sample")
    if count == 0:
        return 0
    size = cnp.PyArray_NBYTES(out) // cnp.PyArray_DIM(out, 0)
    for i in range(count):
        item = <object> PyList_GET_ITEM(samples, i)
        if field >= 0:
            item = _field(item, field, fields)
        if cnp.PyArray_Check(item):
            if not _same_row(<cnp.ndarray> item, out):
                return i
            if cnp.PyArray_ISCARRAY_RO(<cnp.ndarray> item):
                if size < LONG_COPY:
                    memcpy(to, cnp.PyArray_DATA(<cnp.ndarray> item), size)
                else:
                    _copy_long(to, cnp.PyArray_DATA(<cnp.ndarray> item), size)
            else:
                out[i] = item
        elif not numbers:
            return i
        elif PyFloat_CheckExact(item):
            if type_num != cnp.NPY_FLOAT64:
                return i
            (<double*> to)[0] = PyFloat_AS_DOUBLE(item)
        elif PyLong_CheckExact(item):
            if type_num != cnp.NPY_INT64 or not store_int64(to, item):
                return i
        elif item is True or item is False:
            if type_num != cnp.NPY_BOOL:
                return i
            to[0] = item is True
        elif cnp.PyArray_CheckScalar(item):
            if (<cnp.dtype> item.dtype).type_num != type_num:
                return i
            out[i] = item
        else:
            return i
        to += size
    return count


cdef _copy_long(char* to, const void* source, size_t size):
    with nogil:
        memcpy(to, source, size)


cdef bint store_int64(char* to, object number) except -1:
    cdef int overflow = 0
    cdef long long whole = PyLong_AsLongLongAndOverflow(number, &overflow)
    (<int64_t*> to)[0] = whole
    return not overflow


def empty(shape, dtype):
    """An array of any content, in memory that is used again when the last array on it is gone.

    `shape`: a tuple of ints; `dtype`: of numbers or bools. Raises MemoryError if there is no memory.
    """
    cdef cnp.dtype kind = np.dtype(dtype)
    cdef Py_ssize_t size = kind.itemsize
    for n in shape:
        size *= n
    return _array(tuple(shape), kind.type_num, Block(max(size, 1), None))
