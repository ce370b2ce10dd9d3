"""What every phase asks operators for: the variables of their slots, attributes, shapes and element types.

Compiled, because building, compiling and running a program ask several times for each operator.
"""
from .sizes import SymInt

cdef object MISSING = object()


cdef list in_order(slots):
    """The names in all slots, sorted by slot."""
    cdef list found = []
    for slot in sorted(slots):
        found += slots[slot]
    return found


cdef class Operands:
    """An operator's type, declaration, names by slot, and attributes."""

    cdef public object type, definition, inputs, outputs, attrs

    def reads(self):
        """The names of all inputs, in no particular order."""
        cdef list found = []
        for names in self.inputs.values():
            found += names
        return found

    def writes(self):
        """The names of all outputs, in no particular order."""
        cdef list found = []
        for names in self.outputs.values():
            found += names
        return found

    @property
    def input_arg_names(self):
        return in_order(self.inputs)

    @property
    def output_arg_names(self):
        return in_order(self.outputs)

    def __copy__(self):
        cls = type(self)
        cdef Operands made = cls.__new__(cls)
        made.type, made.definition = self.type, self.definition
        made.inputs, made.outputs, made.attrs = self.inputs, self.outputs, self.attrs
        for name in cls.__slots__:
            setattr(made, name, getattr(self, name))
        return made


cdef class Types:
    """Shapes and element types of variables, by name: the part of a `Meta` that is a table."""

    cdef public dict shapes, dtypes

    def __init__(self, shapes=(), dtypes=()):
        self.shapes, self.dtypes = dict(shapes), dict(dtypes)

    def shape(self, name):
        return self.shapes[name]

    def dtype(self, name):
        return self.dtypes[name]

    cdef object put(self, name, tuple shape, dtype):
        self.shapes[name] = shape
        self.dtypes[name] = dtype

    def set(self, name, shape, dtype):
        self.put(name, shape, dtype)


cdef class FixedTypes(Types):
    """`Types` where a variable keeps its shape and type; a subclass has `conflict`, the error if it would change.

    `block`: where variables are declared, or in a block around it; `persistable`: variables that live in a scope; `max_shapes`: upper bounds of shapes; `retyped`: variables of another element type than declared; `kinds`: all
    element types.
    """

    cdef readonly object block
    cdef public dict persistable, max_shapes
    cdef public set retyped, kinds
    cdef dict _outer, _item_bytes

    def __init__(self, block, dict item_bytes):
        super().__init__()
        self.block, self._item_bytes = block, item_bytes
        self._outer = {}  # variables that are not declared in the block itself
        self.persistable, self.max_shapes = {}, {}
        self.retyped, self.kinds = set(), set()

    cdef object put(self, name, tuple shape, dtype):
        known = self.shapes.get(name)
        kind = self.dtypes.get(name)
        if (known is not None and known != shape) or (kind is not None and kind != dtype):
            raise self.conflict(name, shape, dtype)
        # Declared types are ignored: kernels write inferred ones. The first of several equal symbolic shapes stays:
        # others may have symbols that are resolved later.
        if known is None:
            self.shapes[name] = shape
        self.set_type(name, dtype)

    cpdef set_type(self, name, dtype):
        """Note the element type of a variable."""
        self.dtypes[name] = dtype
        self.kinds.add(dtype)
        declared = self.declared(name)
        if declared is not None and declared != dtype:
            self.retyped.add(name)

    cpdef variable(self, name):
        """The declaration of a variable; None without one."""
        var = self.block.vars.get(name)
        if var is None:
            var = self._outer.get(name, MISSING)
            if var is MISSING:
                var = self._outer[name] = self.block._find_var_recursive(name)
        return var

    cpdef declared(self, name):
        """The declared element type; None without a declaration."""
        var = self.variable(name)
        return None if var is None else var._dtype

    def is_persistable(self, name):
        """True if a variable lives in the scope."""
        if name in self.persistable:
            return True
        var = self.variable(name)
        return var is not None and var.persistable

    def bytes(self, name):
        """The size of a variable in bytes, an upper bound if it is data-dependent."""
        size = self._item_bytes[self.dtypes[name]]
        for n in self.max_shapes.get(name) or self.shapes[name]:
            size = n * size
        return size


cdef class View(Operands):
    """The accessors of `OpView`."""

    cdef readonly object meta
    cdef Types types  # `meta`, if it is one

    def __init__(self, definition, inputs, outputs, attrs, meta):
        self.type = definition.type
        self.definition = definition
        self.inputs, self.outputs, self.attrs = inputs, outputs, attrs
        self.meta = meta
        self.types = meta if isinstance(meta, Types) else None

    def __copy__(self):
        return type(self)(self.definition, self.inputs, self.outputs, self.attrs, self.meta)

    cpdef names(self, slot):
        """The variables of an input or output slot."""
        return self.inputs.get(slot) or self.outputs.get(slot) or []

    def name(self, slot, index=0):
        return (self.inputs.get(slot) or self.outputs.get(slot) or ())[index]

    def name_or_none(self, slot):
        names = self.names(slot)
        return names[0] if names else None

    def has(self, slot):
        return bool(self.inputs.get(slot) or self.outputs.get(slot))

    def count(self, slot):
        return len(self.names(slot))

    def shape(self, slot, index=0):
        name = (self.inputs.get(slot) or self.outputs.get(slot) or ())[index]
        return self.meta.shape(name) if self.types is None else self.types.shapes[name]

    def dtype(self, slot, index=0):
        name = (self.inputs.get(slot) or self.outputs.get(slot) or ())[index]
        return self.meta.dtype(name) if self.types is None else self.types.dtypes[name]

    def has_meta(self, name):
        """Whether shape and dtype of variable `name` can be asked for; in a run not all values are kept."""
        if self.types is not None and name in self.types.shapes:
            return True
        has = getattr(self.meta, "has", None)
        return has is None or has(name)

    def attr(self, name):
        """An attribute, or its declared default."""
        value = self.attrs.get(name, MISSING)
        if value is MISSING:
            value = self.definition.attrs.get(name, MISSING)
        if value is MISSING:
            raise self.fail(f"has no attribute {name!r}")
        return value

    def set(self, slot, shape, dtype, index=0):
        """Say shape and dtype of an output; nothing happens if it is not wanted."""
        names = self.outputs.get(slot)
        if not names or index >= len(names) or not names[index]:
            return
        sizes = tuple([n if type(n) is int or type(n) is SymInt else int(n) for n in shape])
        if self.types is None:
            self.meta.set(names[index], sizes, dtype)
        else:
            self.types.put(names[index], sizes, dtype)

    def value(self, slot, index=0):
        """The elements of an input when they are known without running, else None."""
        return self.meta.value((self.inputs.get(slot) or self.outputs.get(slot) or ())[index])

    @property
    def exact(self):
        """Whether shapes are those of a run, which a plan relies on, and not what a program declares."""
        return getattr(self.meta, "exact", False)

    @property
    def building(self):
        """Whether a program is being built, and shapes are what it declares."""
        return getattr(self.meta, "building", False)


cdef class Aliases(dict):
    """Alias -> variable that owns the memory; grows by `merge` alone."""

    cdef dict _of  # owner -> its aliases

    def root(self, name):
        """The variable that owns the memory of `name`."""
        return self.get(name, name)

    def merge(self, name, other):
        """Make a variable and its aliases aliases of another variable with the same value."""
        mine, its = self.root(name), self.root(other)
        if self._of is None:
            self._of = {}
        cdef list moved = self._of.pop(mine, [])
        for alias in moved:
            self[alias] = its
        moved.append(mine)
        self[mine] = its
        self._of.setdefault(its, []).extend(moved)


cdef class DeclaredTypes:
    """Shapes and element types as a block declares them: the part of a `Meta` for programs that are being built."""

    cdef public object block

    def __init__(self, block):
        self.block = block

    cdef object variable(self, name):
        var = self.block.vars.get(name)
        return self.block._var_recursive(name) if var is None else var

    def shape(self, name):
        return self.variable(name)._shape

    def dtype(self, name):
        return self.variable(name).dtype

    def set(self, name, shape, dtype):
        var = self.variable(name)
        var._shape = shape
        var._shaped = True
        # As in Fluid, the types that operators compute do not depend on declarations.
        var._dtype = dtype


def names_by_slot(slots, kinds, name_of):
    """Slot -> names, from strings, variables, or lists of these.

    Args:
        kinds: the exact classes of variables, which have a `name`.
        name_of: gives the name of anything else, for a slot and it.
    """
    cdef dict found = {}
    for slot, given in slots.items():
        if given is None:
            continue
        names = []
        for item in given if isinstance(given, (list, tuple)) else (given,):
            if type(item) is str:
                names.append(item)
            else:
                names.append(item.name if type(item) in kinds else name_of(slot, item))
        found[slot] = names
    return found


def fits(slots, declared, required, variables):
    """Whether names by slot are those of declared slots, fill the required ones, and are names of variables."""
    for slot, names in slots.items():
        one = declared.get(slot)
        if one is None or (len(names) > 1 and not one.many):
            return False
        for name in names:
            if name not in variables:
                return False
    for slot in required:
        if not slots.get(slot):
            return False
    return True


def retyped(attrs, defaults):
    """The attributes of another type than their default."""
    cdef list found = []
    for name, value in attrs.items():
        default = defaults.get(name)
        if default is not None and type(default) is not type(value):
            found.append(name)
    return found


def converted(attrs, convert):
    """Attributes without None, and with `convert` of what is no integer, truth value or text."""
    cdef dict found = {}
    for name, value in attrs.items():
        if value is not None:
            kind = type(value)
            found[name] = value if kind is int or kind is bool or kind is str else convert(value)
    return found
