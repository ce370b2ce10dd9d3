# Running the tape backwards.


cdef object added(object have, object more):
    """The sum of two gradients as a new object."""
    if have is None:
        return more
    if cnp.PyArray_Check(have) and cnp.PyArray_Check(more):
        return sum_of(<cnp.ndarray> have, <cnp.ndarray> more)
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
        ends: nodes where gradients arrive and end: they are neither run nor released.
    """

    cdef list queue
    cdef list visited
    cdef dict leaves
    cdef int64_t run
    cdef bint retain
    cdef object only
    cdef object blocked
    cdef object ends
    cdef readonly bint broken  # whether it came to a node that an earlier pass has released

    def __init__(self, bint retain, only=None, blocked=None, ends=()):
        global _runs
        _runs += 1
        self.run = _runs
        self.queue, self.visited, self.leaves = [], [], {}
        self.retain, self.only, self.blocked, self.ends = retain, only, blocked, ends

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
            if node.edges is not None and node not in self.ends:
                self.differentiate(node)
                if not self.retain:
                    node.release()

    cdef int differentiate(self, Node node) except -1:
        if node.function is None:
            return self.follow(node)
        for k, gradient in enumerate(node.function(node.out_grads, self.retain)):
            if gradient is not None and node.edges[k] is not None:
                self.hand_on(node, k, gradient)
        return 0

    cdef int hand_on(self, Node node, int k, object gradient) except -1:
        """Give the gradient of input `k` of a node to where that came from."""
        place = node.edges[k]
        if isinstance(place, Node) and (<Node> place).ended > node.number:
            self.broken = True
        self.give(place, node.indices[k], gradient)
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
                        item = node.zeros(place - n_saved)
                else:
                    item = made[place - n_saved - node.n_out]
                arrays.append(item)
            form = <Form> step[0]
            results = form.variant(arrays).compute(arrays)
            for k, target in enumerate(<tuple> step[2]):
                item = results[k]
                if target == -2:
                    made.append(item)
                elif target >= 0 and item is not None and node.edges[target] is not None:
                    self.hand_on(node, target, item)
        return 0
