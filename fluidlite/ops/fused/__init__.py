"""Operators that passes over programs for inference put in place of several; they have no gradients."""
