"""Programs of trainers and of parameter servers: what `DistributeTranspiler` is made of."""
