"""Several devices or processes that share a step (`fluid.compiler`)."""
