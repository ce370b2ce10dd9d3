"""What the phases of the compiler work on: requests, instructions, shapes as formulas, and the interface of plans."""
