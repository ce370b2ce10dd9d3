"""Random number nodes, by Fluid's generators: equal distributions, but other values than onnxruntime's."""

from __future__ import annotations

from typing import Any

from onnx import helper

from ...base.dtypes import VarType, to_vartype
from ...framework import Variable
from .values import Node, imports


def _drawn(n: Node, kind: str, like: Variable | None, dtype: VarType, **attrs: Any) -> Variable:
    """Random numbers in the shape of the node's attribute, or in that of a variable whose first size may be open."""
    attrs |= {"seed": int(n.attr("seed", 0)), "dtype": int(dtype)}
    if like is None:
        return n.op(kind, {}, shape=[int(size) for size in n.attr("shape")] or [1], **attrs)
    if -1 in like.shape[1:]:
        raise n.fail("has sizes that are unknown until run time, other than the first")
    return n.op(f"{kind}_batch_size_like", {"Input": like}, shape=list(like.shape), **attrs)


@imports("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def _random(n: Node) -> None:
    like = n.var() if n.kind.endswith("Like") else None
    given = n.attr("dtype")
    dtype = VarType.FP32 if given is None else to_vartype(helper.tensor_dtype_to_np_dtype(given))
    if given is None and like is not None:
        dtype = like.dtype
    if dtype not in (VarType.FP32, VarType.FP64):
        raise n.fail(f"makes elements of {dtype.name}, expected FP32 or FP64")
    if "Normal" in n.kind:
        attrs = {"mean": n.attr("mean", 0.0), "std": n.attr("scale", 1.0)}
        n.out(_drawn(n, "gaussian_random", like, dtype, **attrs))
        return
    attrs = {"min": n.attr("low", 0.0), "max": n.attr("high", 1.0)}
    n.out(_drawn(n, "uniform_random", like, dtype, **attrs))


@imports("Bernoulli")
def _bernoulli(n: Node) -> None:
    chances, given = n.var(), n.attr("dtype")
    dtype = chances.dtype if given is None else to_vartype(helper.tensor_dtype_to_np_dtype(given))
    numbers = _drawn(n, "uniform_random", chances, VarType.FP32, min=0.0, max=1.0)
    n.out(n.cast(n.pair("less_than", n.cast(numbers, chances.dtype), chances), dtype))
