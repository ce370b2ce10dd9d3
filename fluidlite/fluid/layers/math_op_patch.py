"""`fluid.layers.math_op_patch`: the operators that Variables have."""

__all__ = ["compare_ops"]

compare_ops = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]
"""The methods that compare Variables."""
