"""What rewritten functions call while they run: conditions, loops, calls, and the values in them."""
