"""Making, joining, parting, moving and indexing tensors; random numbers; sparse rows."""
