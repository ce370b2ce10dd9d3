"""Operators of the layers that Fluid keeps beside its core (`fluid.contrib.layers`)."""
