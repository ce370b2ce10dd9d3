# distutils: language = c++
"""A bounded blocking queue of Python objects: waits without the GIL, can be closed or failed from both ends.
"""
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

import threading

cdef extern from "queue/bounded_queue.h" namespace "fluidlite" nogil:
    cdef enum class Outcome(int):
        kDone
        kTimedOut
        kShut
        kForked

    cdef cppclass QueueCounters:
        uint64_t put
        uint64_t got
        double put_seconds
        double get_seconds

    cdef cppclass BoundedQueue:
        BoundedQueue(size_t capacity) except +
        Outcome put(void* item, double seconds) except +
        void arrive() except +
        uint64_t arrivals() except +
        void let_arrive(uint64_t seen, double seconds) except +
        Outcome get(void** item, double seconds) except +
        cbool close() except +
        vector[void*] kill() except +
        size_t size() except +
        size_t capacity()
        cbool shut() except +
        QueueCounters counters() except +
        @staticmethod
        int64_t live_queues()
        @staticmethod
        int64_t live_items()

cdef extern from "clock.h" namespace "fluidlite" nogil:
    double seconds_now "fluidlite::seconds"()

# How long the main thread may sleep before it looks for signals: a wait on a condition variable is not
# interrupted by Ctrl-C, so that it has to be cut into slices. Other threads never handle signals and sleep
# in one piece.
cdef double SIGNAL_SLICE = 0.05

# A thread that has put something keeps the GIL, and with it fills the queue for milliseconds before another that waits for
# an item can take it: by then all have left the caches. So whoever has kept somebody waiting for so many seconds lets him
# have his turn (not each time: changing threads costs as much as making a small batch), and so does whoever has filled the queue:
# he would have to wait soon, and be woken for each item that is taken ...
cdef double SHARE = 0.0003
# ... for which he waits so many at most.
cdef double COURTESY = 0.001


class QueueClosed(Exception):
    """The queue was closed and holds nothing more."""


class QueueForked(RuntimeError):
    """The queue was made before a fork: the threads that fill it are in the parent of this process."""


cdef class Queue:
    """First in, first out, at most `capacity` objects (an int, at least 1).

    A queue is open until `close`, `fail` or `kill`. After `close` and `fail` the objects inside are still
    handed out; then `get` raises `QueueClosed`, or the exception given to `fail` with the traceback it had.
    `kill` drops them. Any number of threads may use each method. In the child of a fork the queues of its
    parent are shut, and `get` raises `QueueForked`. Raises ValueError for a capacity below 1.
    """
    cdef BoundedQueue* _queue
    cdef object _error
    cdef object _traceback

    cdef int _away         # threads that wait in `get`, for an item or for the GIL
    cdef double _let_in    # when a thread that put something last let one of these have the GIL

    def __cinit__(self, capacity):
        cdef Py_ssize_t size = capacity
        if size < 1:
            raise ValueError(f"the capacity of a queue must be at least 1, got {capacity}")
        self._queue = new BoundedQueue(<size_t> size)

    def __dealloc__(self):
        if self._queue != NULL:
            self._drop()
            del self._queue

    def put(self, item, timeout=None):
        """Append `item`, waiting for room; False if the queue is shut, True otherwise.

        `timeout`: seconds to wait at most, None for ever; TimeoutError when they are over.
        """
        Py_INCREF(item)
        cdef Outcome outcome = Outcome.kTimedOut
        try:
            outcome = self._put(<void*> <PyObject*> item, _seconds(timeout))
        finally:
            if outcome != Outcome.kDone:
                Py_DECREF(item)
        if outcome == Outcome.kTimedOut:
            raise TimeoutError(f"the queue has been full ({self._queue.capacity()} items) for {timeout} s")
        return outcome == Outcome.kDone

    def get(self, timeout=None):
        """The oldest item, waiting for one.

        `timeout`: seconds to wait at most, None for ever; TimeoutError when they are over. Raises
        QueueClosed, or the error given to `fail`, once there will be no more items.
        """
        cdef PyObject* raw = NULL
        cdef Outcome outcome = self._get(<void**> &raw, _seconds(timeout))
        if outcome == Outcome.kDone:
            item = <object> raw
            Py_DECREF(item)
            return item
        if outcome == Outcome.kTimedOut:
            raise TimeoutError(f"the queue has been empty for {timeout} s")
        if outcome == Outcome.kForked:
            raise QueueForked(
                "this reader was begun before the process was forked, and the thread that reads for it is in the "
                "parent; begin anew in this process"
            )
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)
        raise QueueClosed("the queue was closed and is empty")

    cdef Outcome _put(self, void* item, double seconds) except *:
        cdef Outcome outcome = self._queue.put(item, 0.0)
        cdef double slice
        while outcome == Outcome.kTimedOut and seconds != 0.0:
            slice = _slice(&seconds)
            with nogil:
                outcome = self._queue.put(item, slice)
            if outcome == Outcome.kTimedOut:
                PyErr_CheckSignals()
        cdef uint64_t seen
        if outcome == Outcome.kDone and self._away and (
                seconds_now() - self._let_in > SHARE or self._queue.size() == self._queue.capacity()):
            seen = self._queue.arrivals()
            with nogil:
                self._queue.let_arrive(seen, COURTESY)
            self._let_in = seconds_now()
        return outcome

    cdef Outcome _get(self, void** item, double seconds) except *:
        cdef Outcome outcome = self._queue.get(item, 0.0)
        cdef double slice
        if outcome != Outcome.kTimedOut or seconds == 0.0:
            return outcome
        self._away += 1
        try:
            while outcome == Outcome.kTimedOut and seconds != 0.0:
                slice = _slice(&seconds)
                with nogil:
                    outcome = self._queue.get(item, slice)
                if outcome == Outcome.kTimedOut:
                    PyErr_CheckSignals()
        finally:
            self._away -= 1
            self._queue.arrive()
        return outcome

    def close(self):
        """No more items: those inside are still handed out. Does nothing on a shut queue."""
        self._queue.close()

    def fail(self, error):
        """Close the queue; `get` raises `error`, with the traceback it has now, after the items inside.

        Does nothing on a queue that is shut already.
        """
        if not self._queue.shut():
            # Set first: a consumer that wakes up must find it. Nobody else can shut the queue meanwhile
            # without the GIL.
            self._error, self._traceback = error, error.__traceback__
            self._queue.close()

    def kill(self):
        """No more items, and those inside are dropped; everybody who waits wakes up."""
        self._error = self._traceback = None
        self._drop()

    cdef _drop(self):
        cdef vector[void*] left = self._queue.kill()
        cdef size_t i
        for i in range(left.size()):
            Py_DECREF(<object> <PyObject*> left[i])

    def __len__(self):
        return self._queue.size()

    def size(self):
        """How many items are inside."""
        return self._queue.size()

    @property
    def capacity(self):
        """How many items fit inside."""
        return self._queue.capacity()

    @property
    def shut(self):
        """Whether it takes no more items."""
        return self._queue.shut()

    @property
    def error(self):
        """The exception given to `fail`, or None."""
        return self._error

    def stats(self):
        """Counters as a dict: items `put` and `got`, seconds waited for room (`put_seconds`) and items
        (`get_seconds`).
        """
        cdef QueueCounters now = self._queue.counters()
        return {
            "put": now.put,
            "got": now.got,
            "put_seconds": now.put_seconds,
            "get_seconds": now.get_seconds,
        }


# A clock counts nanoseconds in 64 bits, which 292 years fill. Whoever waits longer than these seconds waits for ever.
cdef double FOR_EVER = 1e9


cdef double _seconds(timeout) except? -2.0:
    """A timeout as C++ takes it: negative means for ever. Raises ValueError for what is not a number."""
    cdef double seconds = -1.0 if timeout is None else timeout
    if seconds != seconds:
        raise ValueError(f"a timeout is a number of seconds, got {timeout}")
    return -1.0 if timeout is None or seconds > FOR_EVER else max(seconds, 0.0)


cdef double _slice(double* seconds):
    """How long to sleep now, taken off what is left in `seconds` (negative: for ever)."""
    cdef double slice = seconds[0]
    if threading.get_ident() == threading.main_thread().ident and (slice < 0.0 or slice > SIGNAL_SLICE):
        slice = SIGNAL_SLICE
    if seconds[0] > 0.0:
        seconds[0] -= slice
        if seconds[0] < 1e-9:
            seconds[0] = 0.0
    return slice


def counters():
    """Over this process: how many queues exist and how many items they hold, as {'queues': ..., 'items':
    ...}.
    """
    return {"queues": BoundedQueue.live_queues(), "items": BoundedQueue.live_items()}
