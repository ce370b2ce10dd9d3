# Included by extensions: lists as vectors. Cython's own conversion copies its vector where no exception of C++ is caught, so
# that a lack of memory ends the process.

cdef inline int take_integers(vector[int64_t] &into, items) except -1:
    """Have `into` consist of `items`."""
    cdef int64_t number
    into.clear()
    for number in items:
        into.push_back(number)
    return 0


cdef inline int take_reals(vector[double] &into, items) except -1:
    """Have `into` consist of `items`."""
    cdef double number
    into.clear()
    for number in items:
        into.push_back(number)
    return 0
