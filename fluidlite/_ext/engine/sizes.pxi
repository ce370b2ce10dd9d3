cdef extern from "engine/sizes.h" namespace "fl" nogil:
    enum:
        OP_ROOT
        OP_CONST
        OP_ADD
        OP_SUB
        OP_MUL
        OP_FLOORDIV
        OP_MOD
        OP_MIN
        OP_MAX
        REALS_OF "fl::REAL_OF"
        REALS_ADD "fl::REAL_ADD"
        REALS_SUB "fl::REAL_SUB"
        REALS_MUL "fl::REAL_MUL"
        REALS_DIV "fl::REAL_DIV"
        REALS_SQRT "fl::REAL_SQRT"
        CMP_EQ
        CMP_NE
        CMP_LT
        CMP_LE
    cdef cppclass CSizes "fl::Sizes":
        int64_t add(int op, int64_t a, int64_t b) except +
        int64_t add_real(int op, int64_t a, int64_t b) except +
        int64_t add_real_const(double value) except +
        void guard(int compare, int64_t a, int64_t b) except +
        int64_t size()
        int64_t n_reals()
        cbool is_root(int64_t at)
        void set(int64_t root, int64_t value) except +
        cbool evaluate() noexcept
        int64_t get(int64_t at)
        double real(int64_t at)
        cbool holds() noexcept
        int64_t failed()


cdef class Sizes:
    """Formulas of sizes: integer and real registers, each a function of registers before it, and guards over them.

    The operations mean what they mean for Python's integers and floats; `evaluate` refuses what does not fit 64 bits.
    """

    ROOT, CONST, ADD, SUB, MUL = OP_ROOT, OP_CONST, OP_ADD, OP_SUB, OP_MUL
    FLOORDIV, MOD, MIN, MAX = OP_FLOORDIV, OP_MOD, OP_MIN, OP_MAX
    REAL_OF, REAL_ADD, REAL_SUB = REALS_OF, REALS_ADD, REALS_SUB
    REAL_MUL, REAL_DIV, REAL_SQRT = REALS_MUL, REALS_DIV, REALS_SQRT
    EQ, NE, LT, LE = CMP_EQ, CMP_NE, CMP_LT, CMP_LE

    cdef CSizes sizes

    @property
    def address(self) -> int:
        """Where the registers are, for another extension to copy."""
        return <uintptr_t> &self.sizes

    def __len__(self) -> int:
        """Number of integer registers."""
        return self.sizes.size()

    def add(self, int op, int64_t a, int64_t b=0) -> int:
        """Append an integer register and return its number.

        Args:
            op: `ROOT` (`a` is its first value; `set` changes it), `CONST` (`a` is its value), `ADD`, `SUB`, `MUL`,
                `FLOORDIV`, `MOD`, `MIN` or `MAX` of the registers `a` and `b`.
        """
        return self.sizes.add(op, a, b)

    def add_real(self, int op, int64_t a, int64_t b=0) -> int:
        """Append a real register and return its number; they are counted on their own.

        Args:
            op: `REAL_OF` (the integer register `a`), `REAL_ADD`, `REAL_SUB`, `REAL_MUL` or `REAL_DIV` of the real
                registers `a` and `b`, `REAL_SQRT` of the real register `a`.
        """
        return self.sizes.add_real(op, a, b)

    def add_real_const(self, double value) -> int:
        """Append a real register that keeps a value."""
        return self.sizes.add_real_const(value)

    def guard(self, int compare, int64_t a, int64_t b) -> None:
        """Append the condition that the integer registers `a` and `b` compare like `EQ`, `NE`, `LT` or `LE`."""
        self.sizes.guard(compare, a, b)

    cdef int check_root(self, int64_t register) except -1:
        """Raise if there is no such register, or it is no root."""
        if not 0 <= register < self.sizes.size():
            raise IndexError(f"register {register} is not among the {self.sizes.size()} sizes")
        if not self.sizes.is_root(register):
            raise ValueError(f"register {register} is computed: only a root of sizes can be set")
        return 0

    def set(self, int64_t root, int64_t value) -> None:
        """Change a root."""
        self.check_root(root)
        self.sizes.set(root, value)

    def evaluate(self) -> bool:
        """Give all registers their values; False if one has none (more than 64 bits, division by zero, square root of a
        negative number)."""
        return self.sizes.evaluate()

    def get(self, int64_t at) -> int:
        """The integer register `at`, as the last `evaluate` left it."""
        if not 0 <= at < self.sizes.size():
            raise IndexError(f"register {at} is not among the {self.sizes.size()} sizes")
        return self.sizes.get(at)

    def real(self, int64_t at) -> float:
        """The real register `at`, as the last `evaluate` left it."""
        if not 0 <= at < self.sizes.n_reals():
            raise IndexError(f"register {at} is not among the {self.sizes.n_reals()} reals")
        return self.sizes.real(at)

    def holds(self) -> bool:
        """Whether the last `evaluate` returned True, nothing was set since, and all guards hold."""
        return self.sizes.holds()

    @property
    def failed(self) -> int:
        """The first guard that the last `holds` found broken; -1 if there is none."""
        return self.sizes.failed()
