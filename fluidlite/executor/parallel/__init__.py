"""Data parallelism: several devices or processes train on parts of a batch (`fluid.compiler`)."""
