cdef extern from "engine/places.h" namespace "fl" nogil:
    const size_t PLACES_FITTED "fl::Places::FITTED"
    cdef cppclass CPlaces "fl::Places":
        CPlaces()
        CPlaces(size_t fitted)
        void add(int64_t first, int64_t last) except +
        size_t size()
        int64_t place(const int64_t *bytes, int64_t *offsets) except +


cdef class Places:
    """Places in one arena for storages of which only those that live at the same time must not share memory.

    Args:
        fitted: how many storages, the largest, are packed tightest; this takes the square of their number.
    """

    cdef CPlaces places

    def __cinit__(self, size_t fitted=PLACES_FITTED):
        self.places = CPlaces(fitted)

    def __len__(self) -> int:
        """Number of storages."""
        return self.places.size()

    def add(self, int64_t first, int64_t last) -> None:
        """Declare a storage, which is in use from step `first` to step `last`."""
        self.places.add(first, last)

    def place(self, sizes) -> tuple:
        """Where storages of these sizes go.

        Args:
            sizes: bytes of each storage, in the order of `add`.

        Returns:
            The bytes that all need, and a list of their offsets, multiples of 64. They follow from the lives and sizes
            alone.

        Raises:
            ValueError: another number of sizes than of storages.
            MemoryError: all together are more than could be counted.
        """
        cdef vector[int64_t] offsets
        cdef vector[int64_t] wanted
        cdef int64_t total
        if len(sizes) != <Py_ssize_t> self.places.size():
            raise ValueError(f"{self.places.size()} storages want as many sizes, got {len(sizes)}")
        try:
            take_integers(wanted, sizes)
        except OverflowError:
            raise MemoryError("no machine has as much memory") from None
        offsets.resize(wanted.size())
        total = self.places.place(wanted.data(), offsets.data())
        if total < 0:
            raise MemoryError("no machine has as much memory")
        return total, offsets
