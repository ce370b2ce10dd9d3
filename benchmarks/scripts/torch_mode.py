"""PyTorch's networks as they are, or as torch.compile makes them (BENCHMARK_COMPILE is set)."""

import os

import numpy as np
import torch
from timing import blocks


class Mode:
    """How networks run here, and what their steps took: `metrics`."""

    def __init__(self):
        self.compiled = "BENCHMARK_COMPILE" in os.environ
        self.metrics = {}

    def made(self, net):
        return torch.compile(net) if self.compiled else net

    def measure(self, name, step, seconds):
        """Measure a step; one that cannot be compiled is left out."""
        try:
            assert np.isfinite(step()).all()
        except Exception as error:
            if not self.compiled:
                raise
            print(name, "is not compiled:", str(error).splitlines()[0])
            return
        self.metrics[name] = blocks(step, seconds)
