"""The foundation: places, data types, errors, names, flags, the ambient state; imports `_ext` alone."""
