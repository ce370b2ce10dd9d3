"""The names of Fluid 1.8, where they are in this package, and stand-ins for the missing ones (see `missing.py`)."""
