cdef extern from "elements.h" namespace "fl" nogil:
    cdef cppclass CElements "fl::Elements":
        int64_t first
        int64_t count
        int64_t bytes
        const char *data()
        void begin(int64_t bytes, const int64_t *addresses, int64_t n)


cdef class Elements:
    """The elements of a tensor array while a loop turns, all of one size: what `element_read` and `element_write` work on."""

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
        return self.elements.count

    def begin(self, int64_t size, arrays=()) -> None:
        """Have elements of `size` bytes, none of which has been written.

        Args:
            arrays: the elements that are there already, C-contiguous, by index; None where there is none.
        """
        addresses = np.array([0 if each is None else address(each) for each in arrays], np.int64)
        self.held = arrays, addresses
        self.elements.begin(size, <const int64_t *> cnp.PyArray_DATA(<cnp.ndarray> addresses), len(addresses))

    def take(self, dtype, shape) -> np.ndarray:
        """The elements that have been written, one behind the other; nothing has been written after that."""
        made = np.empty((self.elements.count, *shape), dtype)
        if cnp.PyArray_NBYTES(<cnp.ndarray> made) != self.elements.count * self.elements.bytes:
            raise ValueError(f"elements of {self.elements.bytes} bytes have no shape {shape} of {np.dtype(dtype)}")
        if cnp.PyArray_NBYTES(<cnp.ndarray> made):
            memcpy(cnp.PyArray_DATA(<cnp.ndarray> made), self.elements.data(), cnp.PyArray_NBYTES(<cnp.ndarray> made))
        self.held = None
        self.elements.begin(0, NULL, 0)
        return made
