cdef extern from "elements.h" namespace "fl" nogil:
    cdef struct Element:
        const char *data
        int64_t bytes
        size_t n_levels
        const int64_t *const *offsets
        const int64_t *counts
    cdef cppclass CElements "fl::Elements":
        int64_t first
        int64_t turns
        vector[char] data
        vector[int64_t] ends
        vector[size_t] level_ends
        vector[int64_t] levels
        vector[int64_t] bounds
        vector[Element] before
        vector[const int64_t *] offsets_before
        vector[int64_t] counts_before
        void begin()
        int64_t count()
        void forget_turn() except +


cdef class Elements:
    """The elements of a tensor array while a loop turns: what `element_read` and `element_write` work on."""

    cdef CElements elements
    cdef object held

    @property
    def address(self) -> int:
        """What the slot of a kernel has to hold."""
        return <uintptr_t> &self.elements

    @property
    def first(self) -> int:
        """The index of the first element that has been written; -1 if there is none."""
        return self.elements.first

    @property
    def count(self) -> int:
        """How many elements have been written, at `first` and the indices behind it."""
        return self.elements.count()

    @property
    def capacity(self) -> int:
        """How many bytes there is memory for. It grows with what is written; it goes when 256 loops have not needed half."""
        return self.elements.data.capacity()

    @property
    def turns(self) -> int:
        """How many turns have begun, where these are told (`element_turn`)."""
        return self.elements.turns

    def begin(self, arrays=(), lods=()) -> None:
        """Have the elements that there are already, none of which has been written.

        Args:
            arrays: these, C-contiguous, by index; None where there is none.
            lods: the offsets of each, int64 arrays by level; none by default.
        """
        cdef Element one
        cdef size_t at = 0
        arrays = list(arrays)
        lods = list(lods) or [()] * len(arrays)
        self.elements.begin()
        for lod in lods:
            for level in lod:
                self.elements.offsets_before.push_back(<const int64_t *> <void *> cnp.PyArray_DATA(<cnp.ndarray?> level))
                self.elements.counts_before.push_back(cnp.PyArray_SIZE(level))
        for array, lod in zip(arrays, lods, strict=True):
            one.data = NULL
            one.bytes = -1
            one.n_levels = len(lod)
            one.offsets = self.elements.offsets_before.data() + at
            one.counts = self.elements.counts_before.data() + at
            at += one.n_levels
            if array is not None:
                one.data = <const char *> <void *> cnp.PyArray_DATA(<cnp.ndarray?> array)
                one.bytes = cnp.PyArray_NBYTES(<cnp.ndarray> array)
            self.elements.before.push_back(one)
        self.held = arrays, lods

    def forget_turn(self) -> None:
        """Forget what has been written since the last turn began."""
        self.elements.forget_turn()

    def take(self, dtype, tail) -> tuple:
        """The elements that have been written; nothing has been written after that.

        Args:
            tail: their shape without the number of rows, which are at least one number each.

        Returns:
            All rows one behind the other; where each element's begin and the last one's end; the offsets of each
            element, level by level.
        """
        cdef Py_ssize_t size = self.elements.data.size(), count = self.elements.ends.size(), k
        row = np.dtype(dtype).itemsize
        for n in tail:
            row *= n
        if row == 0 or any([self.elements.ends[k] % row for k in range(count)]):
            raise ValueError(f"rows of shape {tail} of {np.dtype(dtype)} do not make up these elements")
        made = np.empty((size // row, *tail), dtype)
        if size:
            memcpy(cnp.PyArray_DATA(<cnp.ndarray> made), self.elements.data.data(), size)
        bounds = [0, *[self.elements.ends[k] // row for k in range(count)]]
        offsets = np.array(self.elements.levels, np.int64)
        offsets.flags.writeable = False
        parts, lods, at = [], [], 0
        for end in self.elements.bounds:
            parts.append(offsets[at:end])
            at = end
        at = 0
        for end in self.elements.level_ends:
            lods.append(tuple(parts[at:end]))
            at = end
        self.held = None
        self.elements.begin()
        return made, bounds, lods
