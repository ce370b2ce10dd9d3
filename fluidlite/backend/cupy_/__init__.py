"""GPUs through CuPy. Only files of this folder import it, and only once a GPU is asked for."""
