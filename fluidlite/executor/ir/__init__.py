"""The data structures of the compiler: requests, instructions, symbolic types, and the interface of plans."""
