# An operator for operands of exact shapes and types.


cdef class Variant:
    """A form for inputs of exact shapes and types.

    Args:
        form: the form.
        outputs: (dtype, shape) of each output in order; None for one that only the reference kernel can size.
        inputs: example arrays.
        calls: native calls as (address, places, ints, floats), or None for the reference kernel; places count the inputs,
            then the outputs, -1 for an operand left out.
        view: whether the first result is the input under another shape, and all others are empty.
        frozen: outputs without gradients.
        differentiate: called with a tuple of bools (which inputs want gradients); returns the recipe.
        meta: what `differentiate` wants to know.
        random: whether native kernels shall begin anew in each call.
        cached: whether the form keeps this.
        device: the device that the arrays are on, where `python` computes everything; None for the host.
    """

    cdef readonly Form form
    cdef readonly object meta
    cdef readonly object device
    cdef readonly bint cached
    cdef readonly tuple frozen
    cdef readonly tuple layouts_out
    cdef readonly bint is_native
    cdef readonly bint is_view
    cdef object python
    cdef object differentiate
    cdef dict recipes
    cdef vector[Layout] ins
    cdef vector[Layout] outs
    cdef vector[unique_ptr[Native]] natives
    cdef vector[void *] table
    cdef int n_in, n_out
    cdef bint random
    cdef int64_t bytes
    cdef bint busy
    cdef tuple twin_of               # the arguments after the example arrays, to make a twin with
    cdef list twins                  # what other threads use while this one is busy

    def __init__(self, Form form, inputs, outputs, calls, bint view, python, frozen, differentiate, meta, bint random,
                 bint cached, device=None):
        cdef Native *native
        if calls is not None:
            self.twin_of = (outputs, calls, view, python, frozen, differentiate, meta, random, cached)
        self.twins = []
        self.form, self.meta, self.cached, self.random = form, meta, cached, random
        self.python, self.differentiate, self.frozen = python, differentiate, frozen
        self.device = device
        self.recipes = {}
        self.n_in, self.n_out = len(inputs), len(outputs)
        self.layouts_out = tuple(outputs)
        self.is_native = calls is not None
        self.is_view = view
        self.bytes = 0
        for array in inputs:
            self.ins.push_back(layout_of(array.dtype, array.shape) if isinstance(array, np.ndarray) else nothing())
        if self.is_native or self.is_view:
            for dtype, shape in outputs:
                self.outs.push_back(layout_of(dtype, shape))
        for layout in self.ins:
            self.bytes += layout.bytes
        for address, places, ints, floats in calls or ():
            native = new Native()
            self.natives.emplace_back(native)
            native.run = <fl_kernel> <uintptr_t> address
            native.places = places
            native.i = ints
            native.f = floats
            native.fix()
        self.table.resize(self.n_in + self.n_out + 1)

    cdef bint fits(self, list arrays) noexcept:
        cdef Py_ssize_t k
        cdef int axis
        cdef cnp.ndarray array
        for k in range(self.n_in):
            item = arrays[k]
            if not cnp.PyArray_Check(item):
                return False
            array = <cnp.ndarray> item
            if cnp.PyArray_TYPE(array) != self.ins[k].type_num or cnp.PyArray_NDIM(array) != self.ins[k].ndim:
                return False
            for axis in range(self.ins[k].ndim):
                if cnp.PyArray_DIM(array, axis) != self.ins[k].shape[axis]:
                    return False
        return True

    cpdef list compute(self, list arrays):
        """The results for arrays of this variant's shapes.

        Raises the operator's error if a native kernel reports a problem.
        """
        if _observe is None:
            return self.results(arrays)
        observe, begin = _observe, time.perf_counter_ns()
        cdef list out = self.results(arrays)
        observe(self.form.definition.type, begin, time.perf_counter_ns(), self.device)
        return out

    cdef list results(self, list arrays):
        cdef list out
        cdef Py_ssize_t k
        if self.device is not None:
            return self.python(arrays)
        if self.is_view:
            array = <cnp.ndarray> arrays[0]
            out = [array.reshape(self.layouts_out[0][1])]
            for k in range(1, self.n_out):
                out.append(cnp.PyArray_EMPTY(self.outs[k].ndim, self.outs[k].shape, self.outs[k].type_num, 0))
            return out
        if not self.is_native:
            return self.python(arrays)
        if self.busy:
            return self.compute_beside(arrays)
        out = []
        for k in range(self.n_in):
            self.table[k + 1] = cnp.PyArray_DATA(<cnp.ndarray> arrays[k])
        for k in range(self.n_out):
            made = cnp.PyArray_EMPTY(self.outs[k].ndim, self.outs[k].shape, self.outs[k].type_num, 0)
            self.table[self.n_in + k + 1] = cnp.PyArray_DATA(<cnp.ndarray> made)
            out.append(made)
        self.run_natives()
        return out

    cdef list compute_beside(self, list arrays):
        """`compute` while another thread is at it: with kernels, and what they keep, of its own."""
        cdef Variant twin = self.twins.pop() if self.twins else Variant(self.form, arrays, *self.twin_of)
        try:
            return twin.results(arrays)
        finally:
            self.twins.append(twin)

    cdef int run_natives(self) except -1:
        cdef size_t k, j
        cdef int code = 0
        cdef Native *native
        self.busy = True
        for k in range(self.natives.size()):
            native = self.natives[k].get()
            for j in range(native.places.size()):
                native.p[j] = self.table[native.places[j] + 1]
            if self.bytes >= RELEASE_FROM:
                with nogil:
                    code = native.run(&native.call)
            else:
                code = native.run(&native.call)
            if self.random:
                native.forget()
            if code:
                self.busy = False
                raise _explain(self.form, code, tuple([native.call.err[j] for j in range(4)]))
        self.busy = False
        return 0

    cpdef object recipe(self, tuple wanted):
        """How to get the gradients of the wanted inputs; None if the operator has none.

        A tuple of (places of the arrays to keep, steps). A step is (form, places of its arguments, targets of its
        results); places count the kept arrays, the gradients of the outputs, and what earlier steps made for later ones;
        a target is the input whose gradient the result is, -1 for nothing, or -2 for a later step. Instead of steps there
        may be the error to raise when a backward pass comes here.
        """
        found = self.recipes.get(wanted)
        if found is None:
            found = self.recipes[wanted] = (self.differentiate(self, wanted),)
        return found[0]


cdef Layout nothing() noexcept:
    cdef Layout layout
    layout.type_num = -1
    layout.ndim = 0
    layout.bytes = 0
    return layout


cdef Layout layout_of(dtype, shape) except *:
    cdef Layout layout
    if len(shape) > 32:
        raise ValueError(f"at most 32 dimensions are supported, got {len(shape)}")
    layout.type_num = np.dtype(dtype).num
    layout.ndim = len(shape)
    size = np.dtype(dtype).itemsize
    for axis, length in enumerate(shape):
        layout.shape[axis] = length
        size *= length
    layout.bytes = min(size, 2**63 - 1)  # what is too large gets no memory later, and an error that says so
    return layout
