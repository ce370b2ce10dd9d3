cdef class Memory:
    """A table of slots, sizes, and what follows from these: memory of temporaries, numbers of instructions."""

    cdef Plan plan
    cdef Layouts signature
    cdef Layouts fetches
    cdef bint running
    cdef readonly Sizes sizes
    cdef readonly cnp.ndarray arena
    cdef Py_ssize_t most  # bytes needed at most since memory was looked at last
    cdef Py_ssize_t steps
    cdef bint unsettled
    cdef bint finds  # sizes while it runs
    cdef readonly Py_ssize_t generation

    def __cinit__(self, Py_ssize_t n_slots, Sizes sizes=None):
        if n_slots < 0:
            raise ValueError(f"the number of slots must not be negative, got {n_slots}")
        self.plan = Plan(n_slots)
        self.sizes = Sizes() if sizes is None else sizes
        self.plan.sizes = &self.sizes.sizes
        self.arena = aligned(0)
        self.signature = Layouts((), n_slots)
        self.fetches = Layouts((), n_slots)

    cdef int check_slot(self, Py_ssize_t slot) except -1:
        if not 0 <= slot < <Py_ssize_t> self.plan.n_slots():
            raise IndexError(f"slot {slot} is outside the table of {self.plan.n_slots()} slots")
        return 0

    cdef int check_idle(self) except -1:
        if self.running:
            raise RuntimeError(
                "this plan is running: one engine serves one run at a time; wait for it or use a second executor")
        return 0

    def add_storage(self, Py_ssize_t first, Py_ssize_t last, int64_t register, slots) -> None:
        """Declare memory for temporaries that live from instruction `first` to `last`.

        Args:
            register: of `sizes`: how many bytes.
            slots: which slots point there.
        """
        cdef vector[int64_t] places
        self.check_idle()
        for slot in slots:
            self.check_slot(slot)
        take_integers(places, slots)
        self.plan.add_storage(first, last, register, places)

    def settle(self) -> bool:
        """Have everything follow the roots of `sizes`: numbers of instructions, memory of temporaries, shapes of fetches.

        Returns:
            False if a guard does not hold for these sizes or a formula has no value; then nothing has changed.

        Raises:
            MemoryError: the temporaries need more memory than there is.
        """
        cdef int64_t need
        self.check_idle()
        self.unsettled = True
        need = self.plan.resize()
        if need == -1:
            return False
        if need < 0:
            raise MemoryError("the temporaries of this step need more memory than could be counted")
        self.most = max(self.most, need)
        if need > cnp.PyArray_DIM(self.arena, 0):
            self.allocate(need)
        self.point()
        if not self.plan.enter_all():
            raise MemoryError("the temporaries of this step need more memory than there is")
        self.signature.settle(self.plan.sizes)
        self.fetches.settle(self.plan.sizes)
        self.unsettled = False
        return True

    cdef int allocate(self, Py_ssize_t size) except -1:
        """Have `size` bytes for the temporaries; `point` comes next. What is there now is given back before."""
        self.plan.point(NULL)
        try:
            self.arena = aligned(0)
            self.arena = aligned(size)
        except (MemoryError, ValueError):
            raise MemoryError(f"the temporaries of this step need {size} bytes of memory") from None
        return 0

    cdef int point(self) except -1:
        """Give the slots of temporaries their addresses."""
        self.plan.point(<char *> cnp.PyArray_DATA(self.arena))
        self.generation += 1
        return 0

    cdef int spare(self) except -1:
        """Now and then give memory back that steps of the last while have not needed."""
        self.steps += 1
        if self.steps < 256:
            return 0
        self.steps = 0
        if self.most < cnp.PyArray_DIM(self.arena, 0) // 2:
            self.unsettled = True  # until there is memory
            self.allocate(self.most)
            self.point()
            self.unsettled = False
        self.most = self.plan.needed()
        self.plan.spare()
        return 0

    @property
    def arena_bytes(self) -> int:
        """How many bytes the temporaries have together."""
        return cnp.PyArray_DIM(self.arena, 0)

    @property
    def found_bytes(self) -> int:
        """How many bytes the temporaries have whose sizes are found on the way."""
        return self.plan.found_bytes()
