"""Code for the CPU: lowering, memory, the engine, plans."""
