"""Fluid 1.8 by its own module names: `fluid/layers`, `fluid/dygraph`, `fluid/optimizer`, ...

The names of `paddle.fluid` itself are those of `fluidlite` (`import fluidlite as fluid`). `fluidlite.layers` and
`paddle.fluid.layers` are the module `fluidlite.fluid.layers` under other names; see `base/names/views.py`.
"""
