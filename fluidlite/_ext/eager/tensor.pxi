# What is on the tape: tensors and recorded operators.


cdef class Value:
    """A tensor: an array, and the place on the tape it came from."""

    cdef public object array
    cdef public bint stop_gradient
    cdef public bint persistable
    cdef public object given_name
    cdef readonly int64_t serial
    cdef public Node node
    cdef public int index
    cdef object leaf_grad
    cdef bint cleared
    cdef public object hooks

    def __cinit__(self):
        self.stop_gradient = True
        self.serial = -1

    cpdef take_number(self):
        """Count this tensor: results of operators are, and what users make without a name."""
        global _serial
        self.serial = _serial
        _serial += 1

    @property
    def grad_array(self):
        """The gradient as an array (or sparse rows), None if there is none; may be set on leaves."""
        if self.node is None:
            if self.leaf_grad is None and self.cleared:
                return self.zeros_alike()
            return self.leaf_grad
        return self.node.out_grads[self.index] if self.node.out_grads is not None else None

    @grad_array.setter
    def grad_array(self, value):
        if self.node is None:
            self.leaf_grad = value
            self.cleared = False
        elif self.node.out_grads is not None:
            self.node.out_grads[self.index] = value
        elif value is not None:
            self.node.out_grads = [None] * self.node.n_out
            self.node.out_grads[self.index] = value

    cpdef zeros_alike(self):
        """Zeros of this tensor's shape and type, where it is."""
        array = self.array
        if cnp.PyArray_Check(array):
            return np.zeros_like(array)
        return _zeros(_settle(None, [array]), array.shape, array.dtype)

    def clear_leaf(self) -> None:
        """Make the gradient zeros, which take no memory until they are asked for."""
        self.leaf_grad = None
        self.cleared = True

    cpdef accumulate(self, object gradient):
        """Add to the gradient of a leaf."""
        self.leaf_grad = added(self.leaf_grad, gradient)
        self.cleared = False

    def take_over(self, Value other) -> None:
        """Become what `other` is: its array and its place on the tape."""
        self.array = other.array
        self.node, self.index = other.node, other.index
        self.stop_gradient = other.stop_gradient
        self.serial = other.serial


cdef inline Value new_value(object array, bint counted):
    cdef Value made = _tensor_type.__new__(_tensor_type)
    made.array = array
    if counted:
        made.take_number()
    return made


cdef class Node:
    """One recorded operator."""

    cdef readonly Variant variant    # None for what `record_call` records
    cdef readonly object recipe      # see `Variant.recipe`
    cdef readonly object function    # computes the gradients of what `record_call` records
    cdef readonly list edges         # for each input: the leaf tensor, the node it came from, or None without gradient
    cdef readonly list indices       # which output of that node
    cdef tuple shapes                # of several results that may have others in another call
    cdef readonly list saved         # arrays of inputs and outputs that the gradient operators read
    cdef public list out_grads
    cdef public dict hooks           # output -> functions of its gradient
    cdef readonly int64_t number     # by when it was recorded
    cdef int64_t ended               # by when it was released; 0 before
    cdef readonly int n_out
    cdef int64_t run
    cdef bint queued

    cdef int join(self, list tensors, int n_out) except -1:
        """Stand on the tape behind `tensors`, as what comes next."""
        global _clock
        cdef Value value
        self.n_out = n_out
        self.number = _clock
        _clock += 1
        self.edges, self.indices, self.saved = [], [], []
        for value in tensors:
            if value.stop_gradient:
                self.edges.append(None)
                self.indices.append(0)
            elif value.node is None:
                self.edges.append(value)
                self.indices.append(0)
            else:
                self.edges.append(value.node)
                self.indices.append(value.index)
        return 0

    cpdef zeros(self, Py_ssize_t k):
        """Zeros like result `k`, where it was computed: the gradient of a result that none has arrived for."""
        dtype, shape = self.variant.layouts_out[k]
        if self.shapes is not None:
            shape = self.shapes[k]
        device = self.variant.device
        return np.zeros(shape, dtype) if device is None else _zeros(device, shape, dtype)

    @property
    def released(self) -> bool:
        """Whether a backward pass has used this node up."""
        return self.edges is None

    cpdef release(self):
        """Let go of everything that only a backward pass needs."""
        self.ended = _clock
        self.edges = self.indices = self.saved = self.function = None
