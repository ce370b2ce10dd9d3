# Included by collate.pyx: batches that are ready, taken over from whoever made them.
from collections.abc import Mapping
from weakref import getweakrefcount

cdef extern from *:
    """
    // Whether nobody else has this reference's object. A build without the GIL counts in another way.
    static inline int fl_sole_reference(PyObject *object) {
    #ifdef Py_GIL_DISABLED
      (void)object;
      return 0;
    #else
      return Py_REFCNT(object) == 1;
    #endif
    }
    """
    bint fl_sole_reference(PyObject* object)

cdef extern from "Python.h":
    PyObject* PyObject_CallNoArgs(PyObject* function) except NULL
    void Py_DECREF(PyObject* object)
    int PyDict_Next(PyObject* mapping, Py_ssize_t* position, PyObject** key, PyObject** value)


cdef class Handover:
    """Takes over arrays that somebody else made, so that nobody but the new owner can write them.

    `memory`: where copies are made, see `Collator`. `passing`: nothing is copied, for who copies it himself before the
    maker goes on.
    """
    cdef object memory
    cdef bint passing
    cdef readonly double reading  # seconds spent in `produce`

    def __init__(self, memory=None, bint passing=False):
        self.memory = memory
        self.passing = passing
        self.reading = 0.0

    def take(self, produce):
        """What `produce()` returns with arrays of numbers that are nobody else's, contiguous and in native byte order.

        Lists and tuples become lists, dicts new dicts; other things stay as they are. An array is copied unless it owns
        its memory and the only reference to it is that of the result, or of a list, tuple or dict to which the same
        applies: then no variable, view, buffer or thread can reach it.
        """
        cdef double begin = seconds()
        cdef PyObject* made
        try:
            made = PyObject_CallNoArgs(<PyObject*> produce)
        finally:
            self.reading += seconds() - begin
        try:
            return self.owned(made, fl_sole_reference(made))
        finally:
            Py_DECREF(made)

    def copy(self, cnp.ndarray array):
        """A copy of an array as `take` makes them; the array itself when nothing is copied.

        Contiguous arrays are copied with the GIL: other threads of Python write them before or after, not meanwhile.
        """
        return self.array(array, False, True)

    cdef object owned(self, PyObject* item, bint sole):
        """`sole`: whether the only reference to `item` is one that nobody else can reach. (Looked at before `item` is
        made an object here, which takes a reference.)
        """
        cdef object value = <object> item
        cdef Py_ssize_t i = 0
        cdef PyObject* part
        cdef PyObject* key
        cdef list parts
        if cnp.PyArray_Check(value):
            return self.array(<cnp.ndarray> value, sole)
        if PyList_CheckExact(value):
            parts = []
            while i < len(<list> value):
                part = PyList_GET_ITEM(value, i)
                parts.append(self.owned(part, sole and fl_sole_reference(part)))
                i += 1
            return parts
        if PyTuple_CheckExact(value):
            parts = []
            for i in range(len(<tuple> value)):
                part = PyTuple_GET_ITEM(value, i)
                parts.append(self.owned(part, sole and fl_sole_reference(part)))
            return parts
        if type(value) is dict and sole:
            found = {}
            while PyDict_Next(item, &i, &key, &part):
                found[<object> key] = self.owned(part, fl_sole_reference(part))
            return found
        if isinstance(value, (list, tuple)):
            return [self.owned(<PyObject*> inner, False) for inner in value]
        if isinstance(value, Mapping):
            return {name: self.owned(<PyObject*> inner, False) for name, inner in dict(value).items()}
        return value

    cdef cnp.ndarray array(self, cnp.ndarray array, bint sole, bint at_once=False):
        cdef int type_num = _native_type(array)
        cdef bint plain = type_num == cnp.PyArray_TYPE(array) and cnp.PyArray_ISCARRAY_RO(array)
        if type_num < 0:
            return array if self.passing else array.copy()
        if self.passing and plain:
            return array if cnp.PyArray_CheckExact(array) else array.view(np.ndarray)
        if (sole and plain and cnp.PyArray_CheckExact(array) and cnp.PyArray_CHKFLAGS(array, cnp.NPY_ARRAY_OWNDATA)
                and cnp.PyArray_BASE(array) == NULL and getweakrefcount(array) == 0):
            return array
        cdef size_t size = cnp.PyArray_NBYTES(array)
        cdef Block block = Block(size, self.memory)
        cdef cnp.ndarray made = _array(tuple(_shape(array)), type_num, block)
        if not plain:
            cnp.PyArray_CopyInto(made, array)
        elif at_once or size < LONG_COPY:
            memcpy(block.data, cnp.PyArray_DATA(array), size)
        else:
            _copy_long(block.data, cnp.PyArray_DATA(array), size)
        return made


cdef int _native_type(cnp.ndarray array):
    """The type number that arrays of this type of numbers have here (several may stand for one type); -1 for others."""
    cdef int type_num = cnp.PyArray_TYPE(array)
    if type_num == cnp.NPY_LONGLONG:
        return cnp.NPY_INT64
    if type_num == cnp.NPY_ULONGLONG:
        return cnp.NPY_UINT64
    if cnp.PyTypeNum_ISNUMBER(type_num) or type_num == cnp.NPY_BOOL:
        return type_num
    return -1
