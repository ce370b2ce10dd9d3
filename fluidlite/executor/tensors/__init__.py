"""Tensors with their sequences, scopes that keep them, files of them (`fluid.LoDTensor`, `fluid.Scope`)."""
