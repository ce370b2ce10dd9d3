cdef extern from "tensor_array.h" namespace "fl" nogil:
    cdef cppclass CTensorArray "fl::TensorArray":
        vector[char] stash
        int64_t stashed()
        int64_t length()


cdef class TensorArray:
    """The memory of a tensor array in a plan, or of what a loop stashes: the operand of the `array_` and `stash_` kernels."""

    cdef CTensorArray array

    @property
    def address(self) -> int:
        """The pointer that the slot of a kernel holds."""
        return <uintptr_t> &self.array

    @property
    def capacity(self) -> int:
        """The bytes allocated for the stash."""
        return self.array.stash.capacity()

    def __len__(self) -> int:
        """The number of elements."""
        return self.array.length()
