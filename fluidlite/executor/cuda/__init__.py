"""Programs on a GPU: launches, what joins them, and the plans that record them as CUDA graphs."""
