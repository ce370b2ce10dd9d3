# An operator for operands of exact types, and of exact shapes or those that guards admit.


cdef class Variant:
    """A form for inputs of exact shapes and types, or an open one for many shapes.

    Args:
        form: the form.
        outputs: (dtype, shape) of each output in order, -1 for what only the data know; None where nothing is known.
        inputs: example arrays.
        calls: native calls as (address, places, ints, floats), or None for the reference kernel; places count the inputs,
            then the outputs, -1 for an operand left out.
        view: whether the first result is the input under another shape, and all others are empty.
        stop_gradient: outputs without gradients.
        differentiate: called with a tuple of bools (which inputs want gradients); returns the recipe.
        meta: what `differentiate` wants to know.
        random: whether native kernels shall begin anew in each call.
        cached: whether the form keeps this.
        device: the device that the arrays are on, where `python` computes everything; None for the host.
        opening: what makes it open: (registers, axes of inputs, axes of outputs, integers, reals). Of the registers, an
            `engine.Sizes`, follow axes as (operand, axis, register) and numbers of calls as (call, position, register);
            those of inputs are roots. Shapes and calls may be those for other sizes than the example arrays have.

    Before an open variant computes, it takes on the sizes of its arrays, also of those that it is made for (`adapt`).
    """

    cdef readonly Form form
    cdef readonly object meta
    cdef readonly object device
    cdef readonly bint cached
    cdef readonly tuple stop_gradient
    cdef readonly tuple layouts_out
    cdef readonly bint is_native
    cdef readonly bint is_view
    cdef readonly bint is_open
    cdef readonly bint is_fixed      # whether the results always have the shapes in `layouts_out`
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
    cdef unique_ptr[Opening] opening
    cdef bint settled                # whether shapes and calls are those for `ins`
    cdef bint busy                   # whether somebody computes with shapes, table and calls, so that nobody else may
    cdef tuple twin_of               # the arguments after the example arrays, to make a twin with
    cdef list twins                  # what others use while this one is busy

    def __init__(self, Form form, inputs, outputs, calls, bint view, python, stop_gradient, differentiate, meta, bint random,
                 bint cached, device=None, opening=None):
        cdef Native *native
        cdef size_t k
        self.twin_of = (outputs, calls, view, python, stop_gradient, differentiate, meta, random, cached, device, opening)
        self.twins = []
        self.is_open = opening is not None
        self.is_fixed = opening is None and all([layout is not None and min(layout[1], default=0) >= 0 for layout in outputs])
        self.form, self.meta, self.cached, self.random = form, meta, cached, random
        self.python, self.differentiate, self.stop_gradient = python, differentiate, stop_gradient
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
            native.places.resize(len(places))
            for k, place in enumerate(places):
                native.places[k] = place
            take_integers(native.i, ints)
            take_reals(native.f, floats)
            native.fix()
        self.table.resize(self.n_in + self.n_out + 1)
        if self.is_open:
            self.open_up(opening)

    cdef int open_up(self, tuple opening) except -1:
        cdef Opening *made
        cdef size_t k
        registers, ins, outs, ints, reals = opening
        made = new Opening((<CSizes *> <uintptr_t> registers.address)[0])
        self.opening.reset(made)
        made.free.resize(self.n_in)
        made.lengths.resize(len(ins))
        for operand, axis, reg in ins:
            made.ins.push_back(VaryingAxis(operand, axis, reg))
            made.free[operand] |= (<uint32_t> 1) << <int> axis
        for operand, axis, reg in outs:
            made.outs.push_back(VaryingAxis(operand, axis, reg))
        for call, position, reg in ints:
            made.ints.push_back(Number(call, position, reg))
        for call, position, reg in reals:
            made.reals.push_back(Number(call, position, reg))
        for k in range(self.natives.size()):
            self.natives[k].get().states.select(
                self.natives[k].get().call, self.natives[k].get().i.data(), self.natives[k].get().call.n_i)
        return 0

    cdef bint adapt(self, list arrays) except -1:
        """Whether an open variant, or while it is busy its twin, holds for the sizes of `arrays`; takes them on."""
        cdef Variant twin
        if not self.busy:
            return self.take_on(arrays)
        twin = self.twin(arrays)
        try:
            return twin.take_on(arrays)
        finally:
            self.twins.append(twin)

    cdef bint take_on(self, list arrays) noexcept:
        """Whether an open variant holds for the sizes of `arrays`, which are those of its shapes and calls from now on."""
        cdef Py_ssize_t k
        cdef int axis
        cdef cnp.ndarray array
        cdef Opening *opening = self.opening.get()
        for k in range(self.n_in):
            item = arrays[k]
            if not cnp.PyArray_Check(item):
                return False
            array = <cnp.ndarray> item
            if cnp.PyArray_TYPE(array) != self.ins[k].type_num or cnp.PyArray_NDIM(array) != self.ins[k].ndim:
                return False
            for axis in range(self.ins[k].ndim):
                if not (opening.free[k] >> axis) & 1 and cnp.PyArray_DIM(array, axis) != self.ins[k].shape[axis]:
                    return False
        for k in range(<Py_ssize_t> opening.ins.size()):
            array = <cnp.ndarray> arrays[opening.ins[k].operand]
            opening.lengths[k] = cnp.PyArray_DIM(array, opening.ins[k].axis)
        if not opening.holds():
            return False
        opening.settle(self.ins, self.outs, self.natives)
        self.settled = True
        self.bytes = 0
        for item in arrays:
            self.bytes += cnp.PyArray_NBYTES(<cnp.ndarray> item)
        return True

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
        if self.device is not None or not (self.is_native or self.is_view):
            return self.python(arrays)
        if self.busy:
            return self.compute_beside(arrays)
        # Before anything is allocated: the garbage collector may run then, and finalisers call this operator for other
        # arrays, in this thread or in another one.
        self.busy = True
        try:
            return self.results_alone(arrays)
        finally:
            self.busy = False

    cdef list results_alone(self, list arrays):
        """The results, while this variant is busy for the caller."""
        cdef list out = []
        cdef Py_ssize_t k
        cdef cnp.PyArray_Dims wanted
        if self.is_open and not (self.settled and self.fits(arrays)) and not self.take_on(arrays):
            raise ValueError(f"operator {self.form.definition.type}: an array has got another shape meanwhile")
        if self.is_view:
            wanted.ptr, wanted.len = self.outs[0].shape, self.outs[0].ndim
            out.append(cnp.PyArray_Newshape(<cnp.ndarray> arrays[0], &wanted, cnp.NPY_CORDER))
            for k in range(1, self.n_out):
                out.append(cnp.PyArray_EMPTY(self.outs[k].ndim, self.outs[k].shape, self.outs[k].type_num, 0))
            return out
        for k in range(self.n_in):
            self.table[k + 1] = cnp.PyArray_DATA(<cnp.ndarray> arrays[k])
        for k in range(self.n_out):
            made = new_array(self.outs[k].ndim, self.outs[k].shape, self.outs[k].type_num, self.outs[k].item)
            self.table[self.n_in + k + 1] = cnp.PyArray_DATA(<cnp.ndarray> made)
            out.append(made)
        if VERIFIES and self.is_open:
            self.verify(arrays + out)
        self.run_natives()
        return out

    cdef int verify(self, list operands) except -1:
        """Verify the calls for the sizes taken on last; ValueError if one is wrong."""
        cdef size_t k
        cdef Native *native
        from . import kernels

        for k in range(self.natives.size()):
            native = self.natives[k].get()
            there = [place >= 0 for place in native.places]
            sizes = [operands[place].nbytes if place >= 0 else 0 for place in native.places]
            kernels.verify(<uintptr_t> native.run, there, native.i, native.f, sizes)
        return 0

    cdef list compute_beside(self, list arrays):
        """`results` while this variant is busy: with shapes, kernels, and what they keep, of its own."""
        cdef Variant twin = self.twin(arrays)
        try:
            return twin.results(arrays)
        finally:
            self.twins.append(twin)

    cdef Variant twin(self, list arrays):
        """What may be used while this variant is busy; put back by `twins.append`."""
        return self.twins.pop() if self.twins else Variant(self.form, arrays, *self.twin_of)

    cdef int run_natives(self) except -1:
        cdef size_t k, j
        cdef int code = 0
        cdef Native *native
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
                raise _explain(self.form, code, tuple([native.call.err[j] for j in range(4)]))
        return 0

    cpdef object recipe(self, tuple wanted):
        """How to get the gradients of the wanted inputs; None if the operator has none.

        A tuple of (places of the arrays to keep, steps). A step is (form, places of its arguments, targets of its
        results); places count the kept arrays, the gradients of the outputs, and what earlier steps made for later ones;
        a target is the input whose gradient the result is, -1 for nothing, or -2 for a later step. Instead of steps there
        may be the error to raise when a backward pass comes here. False for an open variant whose gradients are computed
        in a way that depends on the very sizes.
        """
        found = self.recipes.get(wanted)
        if found is None:
            found = self.recipes[wanted] = (self.differentiate(self, wanted),)
        return found[0]


cdef Layout nothing() noexcept:
    cdef Layout layout
    layout.type_num = -1
    layout.ndim = 0
    layout.item = layout.bytes = 0
    return layout


cdef Layout layout_of(dtype, shape) except *:
    cdef Layout layout
    if len(shape) > 32:
        raise ValueError(f"at most 32 dimensions are supported, got {len(shape)}")
    layout.type_num = np.dtype(dtype).num
    layout.ndim = len(shape)
    size = layout.item = np.dtype(dtype).itemsize
    for axis, length in enumerate(shape):
        layout.shape[axis] = length
        size *= length
    layout.bytes = min(size, 2**63 - 1)  # what is too large gets no memory later, and an error that says so
    return layout
