# Included by shm.pyx: how values look on their way between two processes of the same Python: a letter for the kind of each,
# then what it consists of. Arrays that are not small stand in slots, and the message says where.

cdef size_t DEEPEST = 64  # what is nested deeper, perhaps in itself, is left to pickle


@cython.final
cdef class Writer:
    """A message that is being put together. `arena`: where big arrays go; None: into the message."""
    cdef vector[char] made
    cdef Arena arena

    def __cinit__(self, Arena arena or None):
        self.arena = arena

    cdef int raw(self, const void* data, size_t size) except -1:
        self.made.insert(self.made.end(), <const char*> data, <const char*> data + size)
        return 0

    cdef int begin(self, char kind, int64_t number) except -1:
        self.made.push_back(kind)
        return self.raw(&number, sizeof(number))

    cdef bint items(self, char kind, object items, size_t depth) except -1:
        """Append how many items there are, and these. They are counted on the way: what makes room for an array lets other
        threads run, which may change a list that is being written."""
        cdef size_t at = self.made.size() + 1
        cdef int64_t count = 0
        self.begin(kind, 0)
        for item in items:
            if not self.value(item, depth + 1):
                return False
            count += 1
        memcpy(self.made.data() + at, &count, sizeof(count))
        return True

    cdef bint value(self, object value, size_t depth) except -1:
        """Append a value; False if it is of a kind that has no letter."""
        cdef int overflow = 0
        cdef int64_t whole
        cdef double real
        cdef Py_ssize_t size = 0
        cdef const char* text
        cdef type kind = type(value)
        if value is None:
            self.made.push_back(c"n")
        elif kind is bool:
            self.made.push_back(c"T" if value else c"F")
        elif kind is int:
            whole = PyLong_AsLongLongAndOverflow(value, &overflow)
            if overflow:
                return False
            self.begin(c"i", whole)
        elif kind is float:
            real = value
            self.made.push_back(c"d")
            self.raw(&real, sizeof(real))
        elif kind is str:
            try:
                text = PyUnicode_AsUTF8AndSize(value, &size)
            except UnicodeEncodeError:
                return False
            self.begin(c"s", size)
            self.raw(text, size)
        elif kind is bytes:
            self.begin(c"b", len(<bytes> value))
            self.raw(PyBytes_AS_STRING(value), len(<bytes> value))
        elif depth == DEEPEST:
            return False
        elif kind is list or kind is tuple:
            return self.items(c"l" if kind is list else c"t", value, depth)
        elif kind is dict:
            return self.items(c"m", [part for pair in (<dict> value).items() for part in pair], depth)
        elif kind is cnp.ndarray:
            return self.array(<cnp.ndarray> value)
        else:
            return False
        return True

    cdef bint array(self, cnp.ndarray array) except -1:
        cdef int rank = cnp.PyArray_NDIM(array), type_num = cnp.PyArray_TYPE(array)
        cdef size_t size = cnp.PyArray_NBYTES(array), at = self.made.size()
        cdef bint plain = (cnp.PyTypeNum_ISNUMBER(type_num) or type_num == cnp.NPY_FLOAT16 or type_num == cnp.NPY_BOOL)
        cdef Place place
        if not plain or not cnp.PyArray_ISCARRAY_RO(array):
            return False
        self.begin(c"a", type_num)
        self.raw(&rank, sizeof(rank))
        self.raw(cnp.PyArray_DIMS(array), rank * sizeof(cnp.npy_intp))  # before `into` lets other threads run
        place = None if self.arena is None else self.arena.into(<char*> cnp.PyArray_DATA(array), size)
        if place is None:
            self.raw(cnp.PyArray_DATA(array), size)
        else:
            self.made[at] = c"A"
            self.raw(&place.at, sizeof(place.at))
        return True


def pack(Arena arena or None, tuple head, value):
    """The message (bytes) that brings `value` and `head`, and news of the arena: the slots that are gone, and its `shortage`.

    None for a value of another kind than None, numbers, strings, bytes, lists, tuples, dicts and contiguous arrays of
    numbers. Otherwise the slots of the arrays are leased, and the message has to be sent.
    """
    cdef Writer writer = Writer(arena)
    cdef bint done = False
    try:
        done = writer.value(value, 0)
    finally:
        if not done and arena is not None:
            arena.cancel()
    if not done:
        return None
    news = ([], None) if arena is None else (arena.commit()[1], arena.shortage)
    if not writer.value(head + news, 0):
        raise TypeError(f"{head!r:.80} is no heading")
    return PyBytes_FromStringAndSize(writer.made.data(), writer.made.size())


@cython.final
cdef class Reader:
    """A message that is being taken apart."""
    cdef const char* at
    cdef Window window
    cdef size_t leased

    cdef const char* raw(self, size_t size) noexcept:
        self.at += size
        return self.at - size

    cdef int64_t number(self) noexcept:
        cdef int64_t found
        memcpy(&found, self.raw(sizeof(found)), sizeof(found))
        return found

    cdef object value(self):
        cdef char kind = self.raw(1)[0]
        cdef int64_t count, i
        cdef double real
        if kind == c"n":
            return None
        if kind == c"T" or kind == c"F":
            return kind == c"T"
        if kind == c"d":
            memcpy(&real, self.raw(sizeof(real)), sizeof(real))
            return real
        count = self.number()
        if kind == c"i":
            return count
        if kind == c"s":
            return PyUnicode_DecodeUTF8(self.raw(count), count, NULL)
        if kind == c"b":
            return PyBytes_FromStringAndSize(self.raw(count), count)
        if kind == c"l":
            return [self.value() for i in range(count)]
        if kind == c"t":
            return tuple([self.value() for i in range(count)])
        if kind == c"m":
            found = {}
            for i in range(count // 2):
                key = self.value()
                found[key] = self.value()
            return found
        return self.array(<int> count, kind == c"A")

    cdef object array(self, int type_num, bint in_slot):
        cdef int rank
        cdef cnp.npy_intp[64] dims
        cdef cnp.ndarray array
        cdef PlaceInSlot at
        memcpy(&rank, self.raw(sizeof(rank)), sizeof(rank))
        memcpy(dims, self.raw(rank * sizeof(dims[0])), rank * sizeof(dims[0]))
        if not in_slot:
            array = cnp.PyArray_SimpleNew(rank, dims, type_num)
            memcpy(cnp.PyArray_DATA(array), self.raw(cnp.PyArray_NBYTES(array)), cnp.PyArray_NBYTES(array))
            return array
        memcpy(&at, self.raw(sizeof(at)), sizeof(at))
        lease = self.window.leased(at)
        self.leased += at.length
        array = cnp.PyArray_SimpleNewFromData(rank, dims, type_num, (<Lease> lease).mapping.address + at.start)
        cnp.set_array_base(array, lease)
        return array


def unpack(Window window or None, bytes message):
    """(value, head with the arena's news, bytes of arrays in slots) of what `pack` has made."""
    cdef Reader reader = Reader()
    reader.at, reader.window = PyBytes_AS_STRING(message), window
    value = reader.value()
    return value, reader.value(), reader.leased
