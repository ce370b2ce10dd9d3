# distutils: language = c++
"""Forks of this process, kept apart from work of NumPy's BLAS; see `fork_gate.h`."""
import os

cdef extern from "fork_gate.h" namespace "fl" nogil:
    cdef cppclass ForkGate:
        void enter(double seconds)
        bint try_enter()
        void leave()
        void close(int own)
        void open()
        void reset(int own)

cdef extern from *:
    """
    static thread_local int fl_mine = 0;  // how often this thread is inside
    """
    int fl_mine

cdef ForkGate gate

# A fork's other handlers may wait for a lock that a thread has which is held back here: then it goes on after so long.
cdef double HELD_BACK = 5.0


def library_call(function, *args, **options):
    """`function(*args, **options)`, in which NumPy's BLAS may be at work: a fork waits for its end, and it for that of a fork.

    Only for what ends by itself: nothing that waits for other threads or calls code of the user. Any number of threads
    may be at it at the same time, and one thread several times.
    """
    global fl_mine
    if fl_mine or not gate.try_enter():
        with nogil:
            gate.enter(0.0 if fl_mine else HELD_BACK)
    fl_mine += 1
    try:
        return function(*args, **options)
    finally:
        fl_mine -= 1
        gate.leave()


def _before():
    cdef int own = fl_mine
    with nogil:
        gate.close(own)


def _in_parent():
    gate.open()


def _in_child():
    gate.reset(fl_mine)


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
