"""Programs of trainers and of parameter servers: the parts of `DistributeTranspiler`."""
