"""Data sets of slot files: the format, reading by threads, shuffling."""
