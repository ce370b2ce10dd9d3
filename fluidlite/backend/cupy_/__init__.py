"""GPUs through CuPy. Only files of this folder import it, and only when a GPU is used."""
