OUT_OF_RANGE = FL_OUT_OF_RANGE
NO_MEMORY = FL_NO_MEMORY
LIBRARY = FL_LIBRARY
TOO_LARGE = FL_TOO_LARGE
MISSING = FL_MISSING
UNFIT = FL_UNFIT


class KernelFailure(Exception):
    """A native instruction failed.

    Attributes:
        index: position of the instruction in its engine.
        code: `OUT_OF_RANGE`, `NO_MEMORY`, `LIBRARY`, `TOO_LARGE`, `MISSING` or `UNFIT`: sizes that have been
            found are none of this plan's.
        err: four integers with the details; for `OUT_OF_RANGE` the value found, its position and the exclusive upper
            bound, for `NO_MEMORY` the bytes wanted, for `LIBRARY` the status of the library called, for `TOO_LARGE` the size
            and the largest that a library can take, for `MISSING` the number of the operand that is needed.
        turn: where the instruction is a loop, the number of the engine of its turns that failed, the position of the
            instruction there, and the same of that instruction; None otherwise.
    """

    def __init__(self, index: int, code: int, err: tuple, turn: tuple | None = None) -> None:
        if code == FL_OUT_OF_RANGE:
            what = f"the value {err[0]} at position {err[1]} is not in [0, {err[2]})"
        elif code == FL_NO_MEMORY:
            what = f"{err[0]} bytes of memory could not be had"
        elif code == FL_TOO_LARGE:
            what = f"a size of {err[0]} is more than a library can take ({err[1]})"
        elif code == FL_MISSING:
            what = f"operand {err[0]} was left out"
        elif code == FL_UNFIT:
            what = "this plan is not for the sizes that it has found"
        else:
            what = f"a library call returned status {err[0]}"
        super().__init__(f"instruction {index} failed: {what}")
        self.index = index
        self.code = code
        self.err = err
        self.turn = turn
