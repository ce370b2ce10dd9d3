"""Which names Fluid 1.8 has, where they are here, and what stands where there is nothing, for `missing.py`."""
