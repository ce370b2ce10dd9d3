"""Eager tensors, the tape they leave behind, and the loop that runs it backwards.

A `Form` is one way to call an operator (its type, slots and attributes); a `Variant` is a form for exact shapes, with its
native kernels chosen and its gradient operators found. What they are made from stays in Python: `Form.specialise` and
`Variant.differentiate` are callables that the `eager` folder hands in.
"""
from heapq import heappop, heappush

import numpy as np
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t, uintptr_t
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

cnp.import_array()


cdef extern from "Python.h":
    int PyContextVar_Get(object var, PyObject *default_value, PyObject **value) except -1


cdef extern from "abi.h":
    ctypedef struct fl_call:
        void **p
        const int64_t *i
        const double *f
        int n_p
        int n_i
        int n_f
        void *state
        void (*free_state)(void *state) noexcept nogil
        int64_t err[4]
    ctypedef int (*fl_kernel)(fl_call *call) noexcept nogil


cdef extern from "eager/layout.h" namespace "fl" nogil:
    cdef cppclass Layout:
        int type_num
        int ndim
        int64_t bytes
        cnp.npy_intp shape[32]
    cdef cppclass Native:
        fl_kernel run
        fl_call call
        vector[int] places
        vector[void *] p
        vector[int64_t] i
        vector[double] f
        void fix()
        void forget()


# Larger operators run without the GIL; for smaller ones giving it away costs more than it brings.
cdef int64_t RELEASE_FROM = 1 << 18

cdef object _tensor_type = None    # the Python class of results
cdef object _foreign_type = None   # variables of static programs
cdef object _recording_var = None  # ContextVar: whether operators are recorded
cdef object _recording_slot = None
cdef object _add_up = None         # adds two gradients that are not both arrays
cdef object _explain = None        # makes the error for what a native kernel reports
cdef object _divert = None         # appends a call to the program being traced, instead of computing
cdef object _tracer = None         # says what is being traced here
cdef int64_t _traces = 0           # how many programs are being traced, in all threads
cdef int64_t _clock = 0            # numbers the nodes of the tape
cdef int64_t _runs = 0             # numbers the backward passes
cdef int64_t _serial = 0           # numbers the tensors made


def setup(tensor_type, foreign_type, recording_var, recording_slot, add_up, explain) -> None:
    """Say which class results have, which class marks static variables, where the recording switch is, what adds
    gradients that are not arrays, and what makes errors of kernels' codes."""
    global _tensor_type, _foreign_type, _recording_var, _recording_slot, _add_up, _explain
    _tensor_type, _foreign_type = tensor_type, foreign_type
    _recording_var, _recording_slot, _add_up, _explain = recording_var, recording_slot, add_up, explain


def setup_tracing(divert, tracer) -> None:
    """Say what a form does instead of computing while a program is traced (None: it computes), and what tells whether
    that happens in this thread."""
    global _divert, _tracer
    _divert, _tracer = divert, tracer


def count_traces(int64_t change) -> None:
    """A trace has begun (1) or ended (-1)."""
    global _traces
    _traces += change


def serial() -> int:
    """How many tensors were counted so far."""
    return _serial


def set_serial(int64_t number) -> None:
    """Let the count of tensors go on from `number`."""
    global _serial
    _serial = number


cpdef bint recording() except -1:
    """Whether operators are recorded now."""
    cdef PyObject *value = NULL
    PyContextVar_Get(_recording_var, NULL, &value)
    if value == NULL:
        return _recording_slot._default
    found = <object> value
    Py_DECREF(found)
    return found


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
                return np.zeros_like(self.array)
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
    cdef readonly list saved         # arrays of inputs and outputs that the gradient operators read
    cdef public list out_grads
    cdef public dict hooks           # output -> functions of its gradient
    cdef readonly int64_t number
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

    @property
    def released(self) -> bool:
        """Whether a backward pass has used this node up."""
        return self.edges is None

    cpdef release(self):
        """Let go of everything that only a backward pass needs."""
        self.edges = self.indices = self.saved = self.function = None


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
    """

    cdef readonly Form form
    cdef readonly object meta
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
    cdef bint busy
    cdef int64_t bytes

    def __init__(self, Form form, inputs, outputs, calls, bint view, python, frozen, differentiate, meta, bint random,
                 bint cached):
        cdef Native *native
        self.form, self.meta, self.cached, self.random = form, meta, cached, random
        self.python, self.differentiate, self.frozen = python, differentiate, frozen
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
        cdef list out
        cdef Py_ssize_t k
        if self.is_view:
            array = <cnp.ndarray> arrays[0]
            out = [array.reshape(self.layouts_out[0][1])]
            for k in range(1, self.n_out):
                out.append(cnp.PyArray_EMPTY(self.outs[k].ndim, self.outs[k].shape, self.outs[k].type_num, 0))
            return out
        if not self.is_native or self.busy:
            return self.python(arrays)
        out = []
        for k in range(self.n_in):
            self.table[k + 1] = cnp.PyArray_DATA(<cnp.ndarray> arrays[k])
        for k in range(self.n_out):
            made = cnp.PyArray_EMPTY(self.outs[k].ndim, self.outs[k].shape, self.outs[k].type_num, 0)
            self.table[self.n_in + k + 1] = cnp.PyArray_DATA(<cnp.ndarray> made)
            out.append(made)
        self.run_natives()
        return out

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
    layout.bytes = np.dtype(dtype).itemsize
    for axis, length in enumerate(shape):
        layout.shape[axis] = length
        layout.bytes *= length
    return layout


cdef class Form:
    """One way to call an operator, with its variants for the shapes that were met.

    Args:
        specialise: called with the form and a list of arrays; makes the Variant for them.
        definition: the operator's declaration.
        inputs, outputs: names of the operands by slot, as the declaration sees them.
        attrs: the attributes.
        known: shapes and types of other names that the declaration may ask for.

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
    cdef list recent
    cdef dict variants
    cdef Py_ssize_t n_in
    cdef public bint counted

    LIMIT = 512

    def __init__(self, specialise, definition, dict inputs, dict outputs, dict attrs, known=None):
        self.specialise, self.definition = specialise, definition
        self.inputs, self.outputs, self.attrs, self.known = inputs, outputs, attrs, known
        self.names_in = tuple([name for names in inputs.values() for name in names])
        self.names_out = tuple([name for names in outputs.values() for name in names])
        self.n_in = len(self.names_in)
        self.recent = []
        self.variants = {}
        self.counted = True

    cpdef Variant variant(self, list arrays):
        """The variant for the shapes and types of `arrays`."""
        cdef Variant one
        for one in self.recent:
            if one.fits(arrays):
                return one
        key = tuple([(a.shape, a.dtype) if isinstance(a, np.ndarray) else id(type(a)) for a in arrays])
        found = self.variants.get(key)
        if found is None:
            one = self.specialise(self, arrays)
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
            out[0] = out[0].copy()
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
        if recipe is None:
            return 0
        node = Node.__new__(Node)
        node.variant, node.recipe = variant, recipe
        node.join(tensors, len(results))
        cdef list everything = arrays + [(<Value> item).array for item in results]
        for k in <tuple> recipe[0]:
            node.saved.append(everything[k])
        for k in range(len(results)):
            if not variant.frozen[k]:
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


cdef object added(object have, object more):
    """The sum of two gradients as a new object."""
    if have is None:
        return more
    if cnp.PyArray_Check(have) and cnp.PyArray_Check(more):
        return have + more
    return _add_up(have, more)


cpdef bint arrives(tuple places, Py_ssize_t n_saved, list out_grads):
    """Whether a gradient operator has anything to do: it reads none of the outputs' gradients, or one that is there.

    Args:
        places: those of its arguments, see `Variant.recipe`.
        n_saved: how many arrays were kept.
        out_grads: the gradients of the outputs, None for one that has not arrived.
    """
    cdef bint reads = False
    cdef Py_ssize_t place
    for place in places:
        if n_saved <= place < n_saved + len(out_grads):
            if out_grads[place - n_saved] is not None:
                return True
            reads = True
    return not reads


cdef class Sweep:
    """One backward pass over the tape with gradients as arrays.

    Args:
        retain: whether the tape is kept for another pass.
        only: the nodes to go to; all by default.
        blocked: (id of a node or leaf, output) that no gradient goes through.
    """

    cdef list queue
    cdef list visited
    cdef dict leaves
    cdef int64_t run
    cdef bint retain
    cdef object only
    cdef object blocked

    def __init__(self, bint retain, only=None, blocked=None):
        global _runs
        _runs += 1
        self.run = _runs
        self.queue, self.visited, self.leaves = [], [], {}
        self.retain, self.only, self.blocked = retain, only, blocked

    cdef int begin(self, Node node) except -1:
        if node.run != self.run:
            node.run = self.run
            node.out_grads = [None] * node.n_out
            node.queued = False
            self.visited.append(node)
        if not node.queued:
            node.queued = True
            heappush(self.queue, (-node.number, node))
        return 0

    cpdef give(self, object place, int index, object gradient):
        """Add `gradient` to what has arrived at output `index` of a node, or at a leaf tensor."""
        cdef Node node
        if self.blocked and (id(place), index) in self.blocked:
            return
        if isinstance(place, Node):
            node = <Node> place
            if self.only is not None and node not in self.only:
                return
            self.begin(node)
            node.out_grads[index] = added(node.out_grads[index], gradient)
        else:
            key = id(place)
            have = self.leaves.get(key)
            self.leaves[key] = (place, gradient if have is None else added(have[1], gradient))

    def arrived(self) -> list:
        """(leaf tensor, gradient) for every leaf that got one."""
        return list(self.leaves.values())

    def nodes(self) -> list:
        """The nodes that were visited."""
        return self.visited

    def sweep(self) -> None:
        """Run the gradient operators of all nodes that have gradients, latest first."""
        cdef Node node
        while self.queue:
            node = <Node> heappop(self.queue)[1]
            if node.hooks is not None:
                for index, functions in node.hooks.items():
                    for function in list(functions):
                        if node.out_grads[index] is not None:
                            node.out_grads[index] = function(node.out_grads[index])
            if node.edges is not None:
                self.differentiate(node)
                if not self.retain:
                    node.release()

    cdef int differentiate(self, Node node) except -1:
        if node.function is None:
            return self.follow(node)
        for k, gradient in enumerate(node.function(node.out_grads, self.retain)):
            if gradient is not None and node.edges[k] is not None:
                self.give(node.edges[k], node.indices[k], gradient)
        return 0

    cdef int follow(self, Node node) except -1:
        """Run the gradient operators of one node."""
        cdef list made = []
        cdef list arrays
        cdef list results
        cdef tuple step
        cdef Py_ssize_t k
        cdef int place
        cdef Form form
        cdef Variant variant
        cdef tuple recipe = <tuple> node.recipe
        if isinstance(recipe[1], Exception):
            raise recipe[1]
        # Places of arguments: saved arrays first, then the gradients of the outputs, then what earlier steps made.
        cdef Py_ssize_t n_saved = len(node.saved)
        for step in recipe[1]:
            if not arrives(<tuple> step[1], n_saved, node.out_grads):
                made += [None for target in <tuple> step[2] if target == -2]
                continue
            arrays = []
            for place in <tuple> step[1]:
                if place < n_saved:
                    item = node.saved[place]
                elif place < n_saved + node.n_out:
                    item = node.out_grads[place - n_saved]
                    if item is None:
                        dtype, shape = node.variant.layouts_out[place - n_saved]
                        item = np.zeros(shape, dtype)
                else:
                    item = made[place - n_saved - node.n_out]
                arrays.append(item)
            form = <Form> step[0]
            results = form.variant(arrays).compute(arrays)
            for k, target in enumerate(<tuple> step[2]):
                item = results[k]
                if target == -2:
                    made.append(item)
                elif target >= 0 and item is not None:
                    place_of = node.edges[target]
                    if place_of is not None:
                        self.give(place_of, node.indices[target], item)
        return 0
