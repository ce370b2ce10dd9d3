"""Data sets of slot files: what they hold, how threads read and shuffle them."""
