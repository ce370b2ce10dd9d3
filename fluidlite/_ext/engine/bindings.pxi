cdef class Bindings(Memory):
    """What slots point to: the arrays that a step is fed, and those that are fetched of it."""

    cdef list held
    cdef vector[Range] written

    def __cinit__(self, Py_ssize_t n_slots, Sizes sizes=None):
        self.held = [None] * n_slots

    def set_pointer(self, Py_ssize_t slot, uintptr_t address) -> None:
        """Put an address into a slot; the caller keeps the memory alive."""
        self.check_idle()
        self.check_slot(slot)
        self.plan.set(slot, <void *> address)
        self.held[slot] = None

    def pointer(self, Py_ssize_t slot) -> int:
        """The address a slot holds; 0 for an empty one."""
        self.check_slot(slot)
        return <uintptr_t> self.plan.get(slot)

    def bind(self, Py_ssize_t slot, array) -> None:
        """Put the address of a C-contiguous array into a slot and hold the array until the slot is bound anew."""
        self.check_slot(slot)
        if not cnp.PyArray_Check(array):
            raise TypeError(f"slot {slot} wants a numpy.ndarray, got {type(array).__name__}")
        if not cnp.PyArray_ISCARRAY_RO(<cnp.ndarray> array):
            raise ValueError(f"slot {slot} wants a C-contiguous, aligned array in native byte order")
        self.bind_array(slot, array)

    cdef int bind_array(self, Py_ssize_t slot, object array) except -1:
        if self.running:
            self.check_idle()
        self.plan.set(slot, cnp.PyArray_DATA(<cnp.ndarray> array))
        self.held[slot] = array
        return 0

    def set_signature(self, entries, written=()) -> None:
        """Declare what `bind_arrays` takes: `[(slot, dtype, shape)]`, with `-1 - root` for each dimension that varies.

        `written`: the positions in `entries` of arrays that instructions write to.
        """
        self.check_idle()
        cdef Layouts wanted = Layouts(entries, self.plan.n_slots(), len(self.sizes))
        cdef Py_ssize_t k
        cdef int axis
        for k in range(wanted.n):
            for axis in range(wanted.items[k].ndim):
                if wanted.items[k].registers[axis] >= 0 and not self.sizes.sizes.is_root(wanted.items[k].registers[axis]):
                    raise ValueError(f"argument {k}: dimension {axis} is computed: only a root of sizes can be set")
        self.signature = wanted
        for position in written:
            self.signature.items[<Py_ssize_t> position].written = True

    def bind_arrays(self, values) -> bool:
        """Bind a list or tuple of arrays to the slots of the signature.

        Returns:
            False when the number of values or any type, shape or memory layout differs from the signature, a guard of the
            sizes does not hold, or an array that is only read has memory in common with one of `set_written`. All slots of
            the signature are empty then, so that nothing runs on the arrays of an earlier step; the caller converts or
            complains.

        Raises:
            MemoryError: the temporaries of this step need more memory than there is.
        """
        cdef Py_ssize_t k
        cdef int axis
        cdef Layout *item
        cdef Layouts wanted = self.signature
        self.check_idle()
        if len(values) != wanted.n:
            self.unbind(wanted)
            return False
        for k in range(wanted.n):
            item = &wanted.items[k]
            if not fits(item, values[k]) or (
                    not item.written and self.is_written(cnp.PyArray_DATA(<cnp.ndarray> values[k]),
                                                         cnp.PyArray_NBYTES(<cnp.ndarray> values[k]))):
                self.unbind(wanted)
                return False
        if wanted.varying:
            for k in range(wanted.n):
                item = &wanted.items[k]
                if not item.varying:
                    continue
                for axis in range(item.ndim):
                    if (item.registers[axis] >= 0
                            and cnp.PyArray_DIM(<cnp.ndarray> values[k], axis) != self.sizes.sizes.get(item.registers[axis])):
                        self.sizes.sizes.set(item.registers[axis], cnp.PyArray_DIM(<cnp.ndarray> values[k], axis))
                        self.unsettled = True
        if self.unsettled and not self.settle():
            self.unbind(wanted)
            return False
        for k in range(wanted.n):
            self.bind_array(wanted.items[k].slot, values[k])
        return True

    def set_written(self, arrays) -> None:
        """Say which arrays the instructions write to, besides those of the signature.

        `bind_arrays` refuses what shares memory with them: it would change while the instructions run.
        """
        cdef Range one
        cdef vector[Range] found
        for array in arrays:
            one.begin = <uintptr_t> cnp.PyArray_DATA(<cnp.ndarray?> array)
            one.end = one.begin + <uintptr_t> cnp.PyArray_NBYTES(<cnp.ndarray> array)
            if one.end > one.begin:
                found.push_back(one)
        sort(found.begin(), found.end(), begins_before)
        self.written.clear()
        for one in found:
            if self.written.empty() or self.written.back().end < one.begin:
                self.written.push_back(one)
            elif self.written.back().end < one.end:
                self.written.back().end = one.end

    def shares(self, array) -> bool:
        """Whether an array has memory in common with one of `set_written`."""
        return cnp.PyArray_Check(array) and self.is_written(
            cnp.PyArray_DATA(<cnp.ndarray> array), cnp.PyArray_NBYTES(<cnp.ndarray> array))

    cdef bint is_written(self, void *address, Py_ssize_t size) noexcept:
        """Whether one of the written arrays has memory among these bytes."""
        cdef uintptr_t begin = <uintptr_t> address
        cdef size_t low = 0, high = self.written.size(), middle
        while low < high:  # the first that ends behind `begin`; no two overlap
            middle = (low + high) // 2
            if self.written[middle].end <= begin:
                low = middle + 1
            else:
                high = middle
        return low < self.written.size() and self.written[low].begin < begin + <uintptr_t> size

    cdef int unbind(self, Layouts layouts) except -1:
        cdef Py_ssize_t k
        for k in range(layouts.n):
            self.plan.set(layouts.items[k].slot, NULL)
            self.held[layouts.items[k].slot] = None
        return 0

    cdef object copy_out(self, Layout *layout):
        cdef void *address = self.plan.get(layout.slot)
        if address == NULL and layout.size:
            raise ValueError(f"slot {layout.slot} holds no address")
        array = cnp.PyArray_EMPTY(layout.ndim, layout.shape, layout.type_num, 0)
        if layout.size:
            memcpy(cnp.PyArray_DATA(<cnp.ndarray> array), address, layout.size)
        return array

    def fetch(self, Py_ssize_t slot, shape, dtype):
        """A new array of the given shape (`-1 - register` for a size) and dtype with a copy of what the slot points to."""
        cdef Layouts one = Layouts(((slot, dtype, shape),), self.plan.n_slots(), len(self.sizes))
        one.settle(self.plan.sizes)
        return self.copy_out(&one.items[0])

    def set_fetches(self, entries) -> None:
        """Declare what `fetch_all` returns: `[(slot, dtype, shape)]`, with `-1 - register` for each dimension that varies."""
        self.check_idle()
        self.fetches = Layouts(entries, self.plan.n_slots(), len(self.sizes))
        if self.sizes.sizes.evaluate():
            self.fetches.settle(&self.sizes.sizes)

    def fetch_all(self) -> list:
        """New arrays with copies of the declared fetches, in their order."""
        cdef Py_ssize_t k
        cdef list found = []
        if self.finds:
            self.fetches.settle(self.plan.sizes)
        for k in range(self.fetches.n):
            found.append(self.copy_out(&self.fetches.items[k]))
        return found

    def array(self, Py_ssize_t slot, dtype, shape) -> np.ndarray:
        """The array in a slot, in this shape: what was bound there, or the memory of a temporary.

        Valid until `generation` changes.
        """
        cdef Py_ssize_t at, size
        self.check_slot(slot)
        shape = tuple([n if n >= 0 else self.sizes.get(-1 - n) for n in shape])
        found = self.held[slot]
        if found is not None:
            return found.reshape(shape)
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        at = <char *> self.plan.get(slot) - <char *> cnp.PyArray_DATA(self.arena)
        if 0 <= at <= cnp.PyArray_DIM(self.arena, 0) - size:
            return np.ndarray(shape, dtype, self.arena, at)
        # What has a size that is found by the step has memory of its own.
        return np.ndarray(shape, dtype, PyMemoryView_FromMemory(<char *> self.plan.get(slot), size, PyBUF_WRITE))
