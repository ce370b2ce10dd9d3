"""Branches, loops and tensor arrays of Fluid as jumps, scans and array operators."""
