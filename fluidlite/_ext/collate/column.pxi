# Included by collate.pyx: the part of a batch that belongs to one variable.

cdef class Block:
    """Memory from `memory` or else the pool; arrays on it keep it, and it goes back when the last of them is gone."""
    cdef char* data
    cdef size_t size
    cdef bint borrowed   # from `memory`
    cdef Py_buffer lent

    def __cinit__(self, size_t size, memory):
        lender = None if memory is None else memory.block(size)
        if lender is not None:
            PyObject_GetBuffer(lender, &self.lent, PyBUF_WRITABLE)
            self.borrowed = True
            self.data, self.size = <char*> self.lent.buf, self.lent.len
            return
        self.size = BlockPool.block_size(size)
        self.data = <char*> block_pool().acquire(self.size)
        if self.data == NULL:
            raise MemoryError(f"no memory for a batch of {size} bytes")

    def __dealloc__(self):
        if self.borrowed:
            PyBuffer_Release(&self.lent)
        elif self.data != NULL:
            block_pool().release(self.data, self.size)


cdef class Spec:
    """What one variable takes: `name`, `dtype` (NumPy), `shape` with the batch first and -1 unknown, `lod_level`.

    An empty shape takes samples of any one shape. `checked`: whether the shape is to be taken at its word (`fluid.data`);
    otherwise (`fluid.layers.data`) the samples of a batch may have other sizes, all the same.
    """
    cdef readonly str name
    cdef readonly object dtype
    cdef readonly tuple shape
    cdef readonly int lod_level
    cdef readonly bint checked
    cdef int type_num
    cdef Element element
    cdef size_t itemsize
    cdef bint open            # whether the variable leaves the shape of a row open

    def __init__(self, str name, dtype, shape, int lod_level=0, bint checked=True):
        self.name = name
        self.dtype = np.dtype(dtype)
        self.shape = tuple([int(n) for n in shape])
        self.lod_level = lod_level
        self.checked = checked
        self.type_num = (<cnp.dtype> self.dtype).type_num
        self.itemsize = self.dtype.itemsize
        self.element = {"float32": Element.kFloat32, "float64": Element.kFloat64, "int32": Element.kInt32,
                        "int64": Element.kInt64}.get(self.dtype.name, Element.kOther)
        self.open = not self.shape or min(self.shape[1:], default=0) < 0

    def __reduce__(self):
        """Readers go to worker processes, and know what variables take."""
        return type(self), (self.name, self.dtype, self.shape, self.lod_level, self.checked)

    def takes(self, cnp.ndarray array):
        """Whether a batch is just as the variable wants it: its type, in native byte order, and its shape."""
        cdef int i, rank = cnp.PyArray_NDIM(array)
        cdef Py_ssize_t wanted
        if cnp.PyArray_TYPE(array) != self.type_num or not cnp.PyArray_ISNOTSWAPPED(array) or rank != len(self.shape):
            return False
        for i in range(rank):
            wanted = <object> PyTuple_GET_ITEM(self.shape, i)
            if wanted != -1 and wanted != cnp.PyArray_DIM(array, i):
                return False
        return True


@cython.final
cdef class Column:
    """One variable's part of the batch that is being put together."""
    cdef Spec spec
    cdef int type_num
    cdef Element element
    cdef size_t itemsize
    cdef bint open            # whether the variable leaves the shape of a row open
    cdef bint known           # whether the shape of a row is known
    cdef tuple row            # the shape of a row, if known
    cdef Py_ssize_t row_items
    cdef vector[cnp.npy_intp] row_dims
    cdef Py_ssize_t per_sample  # how many rows a sample of another rank than a row has
    cdef object memory        # see Collator
    cdef Block block
    cdef size_t used
    cdef size_t room          # the size of the block, if rows can be appended without a further look
    cdef Py_ssize_t expected  # how many rows to make room for in the beginning
    cdef Py_ssize_t before    # how many rows the last batch had
    cdef Levels levels

    def __cinit__(self, Spec spec, memory):
        self.spec = spec
        self.memory = memory
        self.type_num, self.itemsize = spec.type_num, spec.itemsize
        self.element, self.open = spec.element, spec.open
        self.levels = Levels(spec.lod_level)

    cdef begin(self, Py_ssize_t expected):
        self.known = False
        if not self.open:
            self.set_row(self.spec.shape[1:])
        self.drop()
        self.used = 0
        self.per_sample = 1
        self.expected = expected if not self.spec.lod_level else max(expected, self.before)
        self.levels.begin(expected)

    cdef drop(self):
        """Let the block go."""
        self.block = None
        self.room = 0

    cdef int count(self, list samples, Py_ssize_t field, Py_ssize_t fields) except -1:
        """Learn from all samples how many rows their sequences have, to have room for no more and no less."""
        cdef Py_ssize_t i = 0, rows = 0
        if not self.spec.lod_level:
            return 0
        while i < len(samples):
            rows += _count_rows(_field(<object> PyList_GET_ITEM(samples, i), field, fields), self.spec.lod_level)
            i += 1
        self.expected = rows
        return 0

    cdef set_row(self, tuple row):
        cdef Py_ssize_t items = 1
        for n in row:
            items *= n
        self.row, self.row_items, self.known = row, items, True
        self.row_dims.clear()
        for n in row:
            self.row_dims.push_back(n)

    cdef int reserve(self, Py_ssize_t rows) except -1:
        """Have room for `rows` more rows."""
        cdef size_t need = self.used + <size_t> rows * self.row_items * self.itemsize
        cdef size_t want
        cdef Block bigger
        if self.block is None or need > self.block.size:
            if self.block is None:
                want = <size_t> (self.expected * self.row_items) * self.itemsize
            else:
                want = 2 * self.block.size
            bigger = Block(need if need > want else want, self.memory)
            if self.used:
                memcpy(bigger.data, self.block.data, self.used)
            self.block = bigger
        self.room = self.block.size if self.per_sample == 1 and not self.spec.lod_level else 0
        return 0

    cdef int copy(self, const void* source, size_t size) except -1:
        cdef char* to = self.block.data + self.used
        if size < LONG_COPY:
            memcpy(to, source, size)
        else:
            with nogil:
                memcpy(to, source, size)
        self.used += size
        return 0

    cdef bint is_row(self, cnp.ndarray array) noexcept:
        """Whether the elements of `array` are a row as they are."""
        cdef size_t i, rank = self.row_dims.size()
        if cnp.PyArray_TYPE(array) != self.type_num or <size_t> cnp.PyArray_NDIM(array) != rank:
            return False
        for i in range(rank):
            if cnp.PyArray_DIM(array, <int> i) != self.row_dims[i]:
                return False
        return cnp.PyArray_ISCARRAY_RO(array)

    cdef bint take(self, object value) noexcept:
        """Append one sample's value if it is as nearly all are: a row, or a number that is one, and there is room."""
        cdef size_t size = self.row_items * self.itemsize
        cdef char* to
        if self.room < size or self.room - size < self.used:
            return False
        to = self.block.data + self.used
        if self.row_items == 1 and not self.open and self.store(to, value):
            pass
        elif cnp.PyArray_Check(value) and size < LONG_COPY and self.is_row(<cnp.ndarray> value):
            copy_row(to, cnp.PyArray_DATA(<cnp.ndarray> value), size)
        elif self.row_items == 1 and not self.open and self.is_my_scalar(value):
            cnp.PyArray_ScalarAsCtype(value, to)
        else:
            return False
        self.used += size
        return True

    cdef bint is_my_scalar(self, object value) noexcept:
        """Whether `value` is one of NumPy's numbers, of this variable's type."""
        if cnp.PyArray_Check(value) or not cnp.PyArray_CheckScalar(value):
            return False
        return cnp.PyArray_DescrFromScalar(value).type_num == self.type_num

    cdef int add(self, object value) except -1:
        """Append one sample's value."""
        if self.spec.lod_level:
            return self.add_sequence(value, 0)
        if not cnp.PyArray_Check(value):
            if not self.open and self.per_sample == 1 and self.add_numbers(value, False):
                return 0
            value = self.to_array(value)
        cdef cnp.ndarray array = self.of_my_type(<cnp.ndarray> value)
        self.fit(array, 0)
        cdef Py_ssize_t items = self.row_items * self.per_sample
        if (cnp.PyArray_SIZE(array) != items or self.lies_otherwise(array)) and not self.has_rows(array):
            self.resize(array, 0, f"expected shape {list(self.row)}, got {_shape(array)}{self.hint(array)}")
        self.reserve(self.per_sample)
        return self.copy(cnp.PyArray_DATA(array), self.row_items * self.per_sample * self.itemsize)

    cdef int add_sequence(self, object value, int level) except -1:
        """Append a sequence, which is nested as deep as levels are left, and its length."""
        cdef Py_ssize_t length = 0
        if level < self.spec.lod_level - 1:
            if not isinstance(value, (list, tuple, np.ndarray)):
                raise TypeError(f"expected {self.kind()}, got {_brief(value)} at depth {level}")
            for part in value:
                self.add_sequence(part, level + 1)
                length += 1
        else:
            length = self.add_rows(value)
        return self.levels.add(level, length)

    cdef Py_ssize_t add_rows(self, object value) except -1:
        """Append each element of a sequence as a row; returns how many."""
        cdef Py_ssize_t rows
        if not cnp.PyArray_Check(value):
            if not self.open and self.row_items == 1 and self.add_numbers(value, True):
                return len(value)
            value = self.to_array(value)
        cdef cnp.ndarray array = <cnp.ndarray> value
        if cnp.PyArray_NDIM(array) == 0:
            raise TypeError(f"expected a sequence (lod_level is {self.spec.lod_level}), got {_brief(value)}")
        rows = cnp.PyArray_DIM(array, 0)
        if rows == 0:
            return 0
        array = self.of_my_type(array)
        self.fit(array, 1)
        if cnp.PyArray_SIZE(array) != rows * self.row_items:
            self.resize(array, 1, f"expected a sequence with elements of shape {list(self.row)}, "
                                  f"got shape {_shape(array)}")
        self.reserve(rows)
        self.copy(cnp.PyArray_DATA(array), rows * self.row_items * self.itemsize)
        return rows

    cdef bint add_numbers(self, object value, bint sequence) except -1:
        """Append a plain number, or a list or tuple of them, without NumPy; False (nothing added) if that
        cannot be.

        `sequence`: `value` has any number of rows of one element; else it is one row.
        """
        cdef Py_ssize_t i, count
        cdef bint is_list = PyList_CheckExact(value)
        if is_list or PyTuple_CheckExact(value):
            count = len(value)
            if not sequence and count != self.row_items:
                return False
            self.reserve(count if sequence else 1)
            for i in range(count):
                item = <object> PyList_GET_ITEM(value, i) if is_list else <object> PyTuple_GET_ITEM(value, i)
                if not self.store(self.block.data + self.used + i * self.itemsize, item):
                    return False
            self.used += count * self.itemsize
            return True
        if sequence or self.row_items != 1:
            return False
        self.reserve(1)
        if not self.store(self.block.data + self.used, value):
            return False
        self.used += self.itemsize
        return True

    cdef bint store(self, char* to, object number) noexcept:
        cdef int overflow = 0
        cdef long long whole
        if PyFloat_CheckExact(number):
            return store_real(self.element, to, PyFloat_AS_DOUBLE(number))
        if PyLong_CheckExact(number):
            whole = PyLong_AsLongLongAndOverflow(number, &overflow)
            return not overflow and store_whole(self.element, to, whole)
        return False

    cdef object to_array(self, object value):
        try:
            return np.asarray(value)
        except ValueError:
            raise ValueError(f"expected {self.kind()}, got a ragged list: {_brief(value)}{self.hint(None)}") from None

    cdef str kind(self):
        """What a sample's value has to be, in words."""
        numbers = f"{self.spec.dtype} numbers"
        return f"{numbers} in lists nested {self.spec.lod_level} deep (its lod_level)" if self.spec.lod_level else numbers

    cdef str hint(self, array):
        """What to do if samples differ in length and the variable knows of no sequences."""
        if self.spec.lod_level or (array is not None and array.ndim != len(self.row)):
            return ""
        return "; its lod_level is 0: sequences of any length need a variable with lod_level=1"

    cdef cnp.ndarray of_my_type(self, cnp.ndarray array):
        """`array` itself if it is contiguous and of the right type, a converted copy otherwise."""
        if cnp.PyArray_TYPE(array) == self.type_num and cnp.PyArray_ISCARRAY_RO(array):
            return array
        if array.dtype.kind in "OUS":
            return self.parsed(array)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"expected {self.spec.dtype} numbers, got {_brief(array)} of type {array.dtype}")
        if self.spec.dtype.kind not in "iu" or np.can_cast(array.dtype, self.spec.dtype):
            return array.astype(self.spec.dtype, order="C")
        try:
            with np.errstate(invalid="raise"):
                whole = array.astype(self.spec.dtype, order="C")
        except FloatingPointError:
            raise ValueError(f"{_brief(array)} holds numbers that {self.spec.dtype} cannot") from None
        if array.dtype.kind in "iu" and not np.array_equal(whole, array):
            raise ValueError(f"{_brief(array)} holds numbers that {self.spec.dtype} cannot")
        return whole

    cdef cnp.ndarray parsed(self, cnp.ndarray array):
        """The numbers that strings and Python objects stand for: "7" is 7 and None is not a number, as in Fluid."""
        try:
            return array.astype(self.spec.dtype, order="C")
        except (TypeError, ValueError, OverflowError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            problem = f"expected {self.spec.dtype} numbers, got {_brief(array)} of type {array.dtype}"
            raise kind(problem) from None

    cdef int fit(self, cnp.ndarray array, int skip) except -1:
        """Where the variable leaves the shape of rows open, take it from the first; the others have to be
        like it.
        """
        if not self.open:
            return 0
        cdef list row = _shape(array)[skip:]
        if self.known:
            if row != list(self.row):
                raise ValueError(f"expected shape {list(self.row)} as in the samples before it, got {row}"
                                 f"{self.hint(array)}")
            return 0
        cdef list tail = list(self.spec.shape[1:])
        if self.spec.shape and not (len(row) == len(tail) and all([n in (-1, m) for n, m in zip(tail, row)])):
            raise ValueError(f"expected shape {tail} (-1: any), got {row}")
        self.set_row(tuple(row))
        return 0

    cdef bint lies_otherwise(self, cnp.ndarray array):
        """Whether an array has as many dimensions as a row, but not the same: only one of another rank is reshaped."""
        cdef int i, rank = cnp.PyArray_NDIM(array)
        if rank < 2 or rank != len(self.row):
            return False
        for i in range(rank):
            if cnp.PyArray_DIM(array, i) != <Py_ssize_t> self.row[i]:
                return True
        return False

    cdef bint has_rows(self, cnp.ndarray array):
        """Whether a batch's first sample has another rank than a row and makes several of them, as all have to then."""
        cdef Py_ssize_t items = cnp.PyArray_SIZE(array)
        if self.used or self.open or not items or not self.row_items or items % self.row_items:
            return False
        if cnp.PyArray_NDIM(array) == <int> len(self.row) or self.spec.shape[0] >= 0:
            return False
        self.per_sample = items // self.row_items
        return True

    cdef int resize(self, cnp.ndarray array, int skip, str problem) except -1:
        """Have rows of the size of `array`'s in this batch, if the variable's shape is not binding; ValueError if it is."""
        cdef list row = _shape(array)[skip:]
        if self.spec.checked or self.used or len(row) != len(self.row):
            raise ValueError(problem)
        self.set_row(tuple(row))
        return 0

    cdef object finish(self, Py_ssize_t samples, object wrap):
        """The batch as a tensor made by `wrap(array, lod)`."""
        if not self.known:
            self.set_row(tuple([max(n, 0) for n in self.spec.shape[1:]]))
        self.reserve(0)
        self.before = self.levels.rows(samples) * self.per_sample
        array = _array((self.before, *self.row), self.type_num, self.block)
        self.drop()
        return wrap(array, self.levels.arrays())


cdef list _shape(cnp.ndarray array):
    cdef int i
    return [cnp.PyArray_DIM(array, i) for i in range(cnp.PyArray_NDIM(array))]


cdef str _brief(object value):
    if isinstance(value, np.ndarray):
        return f"an array of shape {list(value.shape)}" if value.ndim else repr(value.item())
    return f"{value!r:.80} ({type(value).__name__})"


cdef cnp.ndarray _array(tuple shape, int type_num, Block block):
    """An array over a block, which it keeps."""
    cdef vector[cnp.npy_intp] dims
    for n in shape:
        dims.push_back(n)
    cdef int rank = <int> dims.size()
    cdef cnp.ndarray array = cnp.PyArray_SimpleNewFromData(rank, dims.data(), type_num, block.data)
    Py_INCREF(block)  # PyArray_SetBaseObject takes over a reference
    cnp.PyArray_SetBaseObject(array, block)
    return array
