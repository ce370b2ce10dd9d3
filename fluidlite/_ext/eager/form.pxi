# Calling operators: finding the variant, computing, recording.


cdef class Form:
    """One way to call an operator, with its variants for the shapes that were met.

    Args:
        specialise: called with the form, a list of arrays, the device that they are on (None: the host), and whether the
            Variant, which it makes for them, may be an open one.
        definition: the operator's declaration.
        inputs, outputs: names of the operands by slot, as the declaration sees them.
        attrs: the attributes.
        known: shapes and types of other names that the declaration may ask for.

    `kinds`: for `specialise`, what inputs were met.
    `counted`: whether results take part in the count that tensors without names are named by.
    """

    cdef readonly object definition
    cdef readonly dict inputs
    cdef readonly dict outputs
    cdef readonly dict attrs
    cdef readonly object known
    cdef readonly tuple names_in
    cdef readonly tuple names_out
    cdef object specialise
    cdef readonly dict kinds
    cdef readonly list opened        # variants that are open
    cdef list recent                 # variants for exact shapes
    cdef dict variants
    cdef Py_ssize_t n_in
    cdef public bint counted

    LIMIT = 512
    MOST_OPEN = 8

    def __init__(self, specialise, definition, dict inputs, dict outputs, dict attrs, known=None):
        self.specialise, self.definition = specialise, definition
        self.inputs, self.outputs, self.attrs, self.known = inputs, outputs, attrs, known
        self.names_in = tuple([name for names in inputs.values() for name in names])
        self.names_out = tuple([name for names in outputs.values() for name in names])
        self.n_in = len(self.names_in)
        self.recent, self.opened = [], []
        self.variants, self.kinds = {}, {}
        self.counted = True

    cpdef Variant variant(self, list arrays):
        """The variant for the shapes and types of `arrays`.

        Replaces those by plain ones that are not (see `base/arrays.py`), and moves them to the device that any of them is on.
        """
        cdef Variant one
        cdef Py_ssize_t k
        cdef bint host = True
        for k in range(len(arrays)):
            item = arrays[k]
            if not cnp.PyArray_Check(item):
                host = False
            elif not is_plain(<cnp.ndarray> item):
                arrays[k] = _plain(item)
        if not host or self.n_in == 0:
            device = _ambient() if host else _settle(self, arrays)
            if device is not None:
                return self.variant_on(device, arrays)
        for one in self.recent:
            if one.fits(arrays):
                return one
        for one in self.opened:
            if one.fits(arrays) or one.adapt(arrays):
                return one
        return self.exact(arrays, True)

    cdef Variant exact(self, list arrays, bint may_open):
        """The variant for the shapes and types of plain `arrays` on the host, or a new open one if it may be."""
        cdef Variant one
        key = tuple([(a.shape, a.dtype) if isinstance(a, np.ndarray) else id(type(a)) for a in arrays])
        found = self.variants.get(key)
        if found is None:
            one = self.specialise(self, arrays, None, may_open)
            if one.is_open:
                self.opened.insert(0, one)
                del self.opened[self.MOST_OPEN:]
                return one
            if not one.cached:
                return one
            if len(self.variants) >= self.LIMIT:
                self.variants.clear()
            self.variants[key] = one
        else:
            one = found
        self.recent.insert(0, one)
        del self.recent[4:]
        return one

    cdef Variant variant_on(self, object device, list arrays):
        """The variant for `arrays` on a device."""
        cdef Variant one
        layouts = tuple([(a.shape, a.dtype) if hasattr(a, "strides") else id(type(a)) for a in arrays])
        key = (device, layouts)
        found = self.variants.get(key)
        if found is not None:
            return found
        one = self.specialise(self, arrays, device, False)
        if one.cached:
            if len(self.variants) >= self.LIMIT:
                self.variants.clear()
            self.variants[key] = one
        return one

    def __call__(self, *tensors):
        """Compute at once; returns the result, or a list of them if there are several."""
        cdef list results = self.invoke(list(tensors))
        return results[0] if len(results) == 1 else results

    cpdef list invoke(self, list tensors):
        """The results of the operator on tensors in the order of `names_in`, recorded if an input wants a gradient.

        Raises:
            TypeError: not the declared number of eager tensors.
        """
        cdef list arrays = []
        cdef list out
        cdef list results = []
        cdef Value value
        cdef Variant variant
        cdef Py_ssize_t k
        cdef bint wanted = False
        if _traces:
            diverted = _divert(self, tensors)
            if diverted is not None:
                return diverted
        if len(tensors) != self.n_in:
            raise TypeError(f"operator {self.definition.type} takes {self.n_in} tensors here, got {len(tensors)}")
        for item in tensors:
            if not isinstance(item, Value):
                if isinstance(item, _foreign_type):
                    raise TypeError(
                        f"operator {self.definition.type} got eager tensors and {item.name!r} of a static program: both "
                        "must be of one kind. A Layer has eager parameters if it is made inside fluid.dygraph.guard() or "
                        "after paddle.disable_static()")
                raise TypeError(
                    f"operator {self.definition.type} works on eager tensors, got {type(item).__name__}; make one with "
                    "fluid.dygraph.to_variable or paddle.to_tensor")
            value = <Value> item
            if value.array is None:
                raise ValueError(f"a tensor given to operator {self.definition.type} has no value yet")
            arrays.append(value.array)
            if not value.stop_gradient:
                wanted = True
        variant = self.variant(arrays)
        out = variant.compute(arrays)
        if variant.is_view and (<Value> tensors[0]).persistable:
            out[0] = out[0].copy() if variant.device is None else _duplicate(out[0])
        for array in out:
            results.append(new_value(array, self.counted))
        if wanted and recording():
            self.record(variant, tensors, arrays, results)
        return results

    cdef int record(self, Variant variant, list tensors, list arrays, list results) except -1:
        cdef Value value
        cdef Node node
        cdef Py_ssize_t k
        cdef tuple mask = tuple([not (<Value> item).stop_gradient for item in tensors])
        recipe = variant.recipe(mask)
        if recipe is False:
            variant = variant.form.exact(arrays, False)
            recipe = variant.recipe(mask)
        if recipe is None:
            return 0
        node = Node.__new__(Node)
        node.variant, node.recipe = variant, recipe
        node.join(tensors, len(results))
        if node.n_out > 1 and not variant.is_fixed:
            node.shapes = tuple([None if value.array is None else value.array.shape for value in results])
        cdef list everything = arrays + [(<Value> item).array for item in results]
        for k in <tuple> recipe[0]:
            node.saved.append(everything[k])
        for k in range(len(results)):
            if not variant.stop_gradient[k]:
                value = <Value> results[k]
                value.node, value.index, value.stop_gradient = node, k, False
        return 0


def record_call(function, list tensors, list results, differentiable) -> None:
    """Record that `results` were computed from `tensors` by something that knows its own gradients.

    Args:
        function: called in a backward pass with the list of the gradients of the results (None where none arrived) and
            whether the tape is kept; returns a gradient or None for each of `tensors`.
        tensors, results: lists of tensors.
        differentiable: for each result whether gradients go through it.
    """
    cdef Node node = Node.__new__(Node)
    cdef Value value
    cdef int k
    node.function = function
    node.join(tensors, len(results))
    for k in range(len(results)):
        if differentiable[k]:
            value = <Value> results[k]
            value.node, value.index, value.stop_gradient = node, k, False


def mixture(values) -> int:
    """1 if there are eager tensors and no static variables among `values` (and lists in it), 0 otherwise.

    0 while a program is traced: eager tensors are its constants and parameters then.
    """
    cdef bint eager = False
    if _traces and _tracer() is not None:
        return 0
    for item in values:
        if isinstance(item, Value):
            eager = True
        elif isinstance(item, (list, tuple)):
            for one in item:
                if isinstance(one, Value):
                    eager = True
                elif type(one) is _foreign_type:
                    return 0
        elif type(item) is _foreign_type:
            return 0
    return eager
