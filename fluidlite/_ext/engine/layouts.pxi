cdef struct Range:
    uintptr_t begin
    uintptr_t end


cdef bint begins_before(const Range &a, const Range &b) noexcept nogil:
    return a.begin < b.begin


cdef struct Layout:
    Py_ssize_t slot
    int type_num
    int ndim
    bint written
    bint varying
    Py_ssize_t itemsize
    Py_ssize_t size
    cnp.npy_intp shape[32]
    int64_t registers[32]  # of Sizes; -1 for a dimension that stays


cdef class Layouts:
    """Slots with the element types and shapes of the arrays that stand there.

    A dimension that changes from step to step is given as `-1 - register`.
    """

    cdef Layout *items
    cdef Py_ssize_t n
    cdef bint varying

    def __cinit__(self, entries, Py_ssize_t n_slots, Py_ssize_t n_registers=0):
        self.n = len(entries)
        self.items = <Layout *> PyMem_Malloc(max(1, self.n) * sizeof(Layout))
        if self.items == NULL:
            raise MemoryError()
        for k, (slot, dtype, shape) in enumerate(entries):
            if not 0 <= slot < n_slots:
                raise IndexError(f"slot {slot} is outside the table of {n_slots} slots")
            if len(shape) > 32:
                raise ValueError(f"slot {slot}: at most 32 dimensions are supported, got {len(shape)}")
            self.items[k].slot = slot
            self.items[k].written = False
            self.items[k].type_num = np.dtype(dtype).num
            self.items[k].ndim = len(shape)
            size = self.items[k].itemsize = np.dtype(dtype).itemsize
            self.items[k].varying = False
            for axis, length in enumerate(shape):
                if -1 - length >= n_registers:
                    raise ValueError(
                        f"slot {slot}: dimension {axis} of {tuple(shape)} is neither known nor one of {n_registers} sizes")
                self.items[k].registers[axis] = -1 - length if length < 0 else -1
                self.items[k].shape[axis] = max(length, 0)
                self.items[k].varying |= length < 0
                size *= max(length, 0)
            self.items[k].size = size
            self.varying |= self.items[k].varying

    cdef int settle(self, CSizes *sizes) except -1:
        """Give the dimensions that vary their present values."""
        cdef Py_ssize_t k
        cdef int axis
        cdef Layout *item
        if not self.varying:
            return 0
        for k in range(self.n):
            item = &self.items[k]
            if not item.varying:
                continue
            item.size = item.itemsize
            for axis in range(item.ndim):
                if item.registers[axis] >= 0:
                    item.shape[axis] = sizes.get(item.registers[axis])
                item.size *= item.shape[axis]
        return 0

    def __dealloc__(self):
        PyMem_Free(self.items)


cdef bint fits(Layout *layout, object value) noexcept:
    """Whether a value is a contiguous, aligned array of the layout's type, that may be written to if it is, and has its shape
    where that does not vary."""
    cdef int axis
    if not cnp.PyArray_Check(value):
        return False
    array = <cnp.ndarray> value
    if cnp.PyArray_TYPE(array) != layout.type_num or cnp.PyArray_NDIM(array) != layout.ndim:
        return False
    if not (cnp.PyArray_ISCARRAY(array) if layout.written else cnp.PyArray_ISCARRAY_RO(array)):
        return False
    for axis in range(layout.ndim):
        if layout.registers[axis] < 0 and cnp.PyArray_DIM(array, axis) != layout.shape[axis]:
            return False
    return True


cdef cnp.ndarray aligned(Py_ssize_t size):
    """`size` bytes of uninitialised memory that begin at a multiple of 64."""
    raw = np.empty(size + 64, np.uint8)
    start = (64 - <uintptr_t> cnp.PyArray_DATA(<cnp.ndarray> raw) % 64) % 64
    return raw[start : start + size]


def address(array) -> int:
    """Where the memory of an array begins."""
    return <uintptr_t> cnp.PyArray_DATA(<cnp.ndarray?> array)


cdef int64_t *integers(array, Py_ssize_t *n) except NULL:
    """Where the n elements of an array of int64 begin, which has one dimension and is contiguous."""
    if not cnp.PyArray_Check(array):
        raise TypeError(f"an array of int64 is wanted, got {type(array).__name__}")
    if cnp.PyArray_TYPE(<cnp.ndarray> array) != cnp.NPY_INT64 or array.ndim != 1 or not cnp.PyArray_ISCARRAY_RO(array):
        raise ValueError(f"a contiguous array of int64 in one dimension is wanted, got {array.ndim} of {array.dtype}")
    n[0] = cnp.PyArray_DIM(array, 0)
    return <int64_t *> cnp.PyArray_DATA(array)


def gather(addresses, sizes, cnp.ndarray into) -> None:
    """Copy so many bytes from each address (int64) to a contiguous array, one piece behind the other, which fill it."""
    cdef Py_ssize_t k, n = 0, n_sizes = 0
    cdef const int64_t *begins = integers(addresses, &n)
    cdef const int64_t *many = integers(sizes, &n_sizes)
    cdef int64_t total = 0
    cdef char *out = <char *> cnp.PyArray_DATA(into)
    if n_sizes != n or not cnp.PyArray_ISCARRAY(into):
        raise ValueError(f"{n} addresses, but {n_sizes} sizes; or an array that is not contiguous")
    for k in range(n):
        if many[k] < 0:
            raise ValueError(f"a piece of {many[k]} bytes")
        total += many[k]
    if total != cnp.PyArray_NBYTES(into):
        raise ValueError(f"{total} bytes do not fill an array of {cnp.PyArray_NBYTES(into)}")
    with nogil:
        for k in range(n):
            memcpy(out, <const void *> <uintptr_t> begins[k], many[k])
            out += many[k]


cdef const int64_t *offsets_of(array, Py_ssize_t *sequences) except NULL:
    """The offsets of so many sequences, which go up from 0."""
    cdef Py_ssize_t k
    cdef const int64_t *offsets = integers(array, sequences)
    sequences[0] -= 1
    if sequences[0] < 0 or offsets[0] != 0:
        raise ValueError(f"offsets begin with 0, got {array[:1]}")
    for k in range(sequences[0]):
        if offsets[k + 1] < offsets[k]:
            raise ValueError(f"offsets go down after {offsets[k]}")
    return offsets


cdef int64_t *made_in(array) noexcept:
    """The elements of an array that was made here."""
    return <int64_t *> cnp.PyArray_DATA(<cnp.ndarray> array)


class Ranks:
    """Sequences sorted by length, longest first, those of equal length in the order in which they came.

    Args:
        given: the offsets, int64 [sequences + 1], which go up from 0.

    Attributes:
        order: int64 [sequences], which sequence is the k-th longest; `back`: which place each sequence has.
        items: int64 [rows], the rows in the order of steps, in each step those of the longest sequence first; `places`:
            where each row stands there; `ranks`: which of its step each of them is, in that order.
        bounds: int64 [steps + 1], where each step begins, and the last one ends.
        first: int64 [sequences that have a row], counted from 0; `count`: int64 [1], how many steps there are.
    """

    __slots__ = ("back", "bounds", "count", "first", "items", "order", "places", "ranks")

    def __init__(self, given) -> None:
        cdef Py_ssize_t n = 0, k, rank, longest = 0, running
        cdef const int64_t *offsets = offsets_of(given, &n)
        cdef int64_t length, step, at
        for k in range(n):
            longest = max(longest, offsets[k + 1] - offsets[k])
        made = [np.empty(size, np.int64) for size in (n, n, offsets[n], offsets[n], offsets[n], longest + 1)]
        cdef int64_t *order = made_in(made[0])
        cdef int64_t *back = made_in(made[1])
        cdef int64_t *items = made_in(made[2])
        cdef int64_t *places = made_in(made[3])
        cdef int64_t *ranks = made_in(made[4])
        cdef int64_t *bounds = made_in(made[5])
        cdef vector[int64_t] begins
        begins.resize(longest + 2)  # zeros: of each length: how many are longer, then where the next one goes
        for k in range(n):
            begins[offsets[k + 1] - offsets[k]] += 1
        at = 0
        for length in range(longest, -1, -1):
            running = begins[length]
            begins[length] = at
            at += running
        for k in range(n):
            length = offsets[k + 1] - offsets[k]
            order[begins[length]] = k
            back[k] = begins[length]
            begins[length] += 1
        # By now those longer than a length are as many as those of the next length end at.
        at = 0
        for step in range(longest):
            bounds[step] = at
            running = begins[step + 1]
            for rank in range(running):
                items[at] = offsets[order[rank]] + step
                places[items[at]] = at
                ranks[at] = rank
                at += 1
        bounds[longest] = at
        self.order, self.back, self.items, self.places, self.ranks, self.bounds = made
        self.count = np.array([longest], np.int64)
        self.first = self.ranks[: bounds[1] if longest else 0]


class InOrder:
    """Other sequences in the order of those that are ranked.

    Args:
        given: their offsets, int64 [sequences + 1], which go up from 0.
        ranks: has as many sequences.

    Attributes:
        offsets: int64 [sequences + 1], in that order.
        rows: int64 [rows], their rows in that order; `back`: where each row stands there.
        bounds: int64 [steps + 1], where each step would begin, and the last one end, if the rows of those that still run
            stood one behind the other.
    """

    __slots__ = ("back", "bounds", "offsets", "rows")

    def __init__(self, given, ranks) -> None:
        cdef Py_ssize_t n = 0, ranked = 0, n_bounds = 0, count, k, step
        cdef const int64_t *offsets = offsets_of(given, &n)
        cdef const int64_t *order = integers(ranks.order, &ranked)
        cdef const int64_t *steps = integers(ranks.bounds, &n_bounds)
        cdef int64_t at = 0, row
        if n != ranked:
            raise ValueError(f"{n} sequences in the order of {ranked}")
        count = n_bounds - 1
        made = [np.empty(size, np.int64) for size in (n + 1, offsets[n], offsets[n], count + 1)]
        cdef int64_t *own = made_in(made[0])
        cdef int64_t *rows = made_in(made[1])
        cdef int64_t *back = made_in(made[2])
        cdef int64_t *bounds = made_in(made[3])
        own[0] = bounds[0] = 0
        for k in range(n):
            for row in range(offsets[order[k]], offsets[order[k] + 1]):
                rows[at] = row
                back[row] = at
                at += 1
            own[k + 1] = at
        for step in range(count):
            bounds[step + 1] = bounds[step] + own[steps[step + 1] - steps[step]]
        self.offsets, self.rows, self.back, self.bounds = made
