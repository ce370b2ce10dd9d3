"""Weight normalisation: parameters as a direction and a length (Salimans and Kingma 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import unique_name
from ..framework import Block, Parameter, Variable
from .param_attr import ParamAttr, WeightNormParamAttr


class WeightNorm:
    """The parameters and operators of one weight g * v / |v|, made for layer `name`.

    `v` has the shape of the weight, `g` its size along `dim` and 1 elsewhere; they are called `NAME_v` and `NAME_g`.
    The norms are taken over all dimensions but `dim`, or over all of them if that is None. Follows Fluid 1.8's
    operators for `fluid.WeightNormParamAttr`.
    """

    def __init__(self, name: str, main: Block, startup: Block) -> None:
        self._layer = name
        self._main, self._startup = main, startup

    def create(
        self, attr: WeightNormParamAttr, shape: Sequence[int], dtype: Any, initializer: Any
    ) -> Variable:
        """The weight, as the result of operators of the main program; startup sets g to the norms of v.

        Raises ValueError if the weight has no dimension `attr.dim`.
        """
        dim, rank = attr.dim, len(shape)
        if dim is not None and not -rank <= dim < rank:
            raise ValueError(f"dim of WeightNormParamAttr must be in [{-rank}, {rank}), got {dim}")
        dim = dim + rank if dim is not None and dim < 0 else dim
        lengths = [n if axis == dim else 1 for axis, n in enumerate(shape)]
        g = self._parameter(attr, "_g", lengths, dtype, None)
        v = self._parameter(attr, "_v", shape, dtype, initializer)
        twin = self._startup.var(g.name)
        self._norm(self._startup, self._startup.var(v.name), dim, twin)
        self._append(self._startup, "reshape", twin, {"shape": lengths}, twin)
        norm = self._norm(self._main, v, dim)
        scale = self._combine("elementwise_div", g, norm, -1)
        if dim is None:
            return self._combine("elementwise_mul", v, scale, -1)
        return self._combine("elementwise_mul", v, self._flattened(scale, shape[dim]), dim)

    def _parameter(
        self, attr: ParamAttr, suffix: str, shape: Sequence[int], dtype: Any, initializer: Any
    ) -> Parameter:
        given = attr._to_kwargs()
        given["name"] += suffix
        self._startup.create_parameter(dtype=dtype, shape=list(shape), initializer=initializer, **given)
        return self._main.create_parameter(dtype=dtype, shape=list(shape), **given)

    def _norm(self, block: Block, x: Variable, dim: int | None, out: Variable | None = None) -> Variable:
        """The norms of `x` over all dimensions but `dim`, in `out` if given."""
        rank = len(x.shape)
        if out is None:
            out = self._temporary(block, "norm", x)
        if dim is None:
            return self._root_of_squares(block, x, None, out)
        lengths = [n if axis == dim else 1 for axis, n in enumerate(x.shape)]
        if dim == rank - 1 and rank > 1:
            flat = self._append(block, "reshape", x, {"shape": [-1, x.shape[dim]]})
            norms = self._root_of_squares(block, flat, 0)
            return self._append(block, "reshape", norms, {"shape": lengths}, out)
        size = x.shape[dim]
        swap = [dim if axis == 0 else 0 if axis == dim else axis for axis in range(rank)]
        first = self._append(block, "transpose", x, {"axis": swap}) if dim else x
        flat = self._append(block, "reshape", first, {"shape": [size, -1]})
        norms = self._root_of_squares(block, flat, 1)
        tall = {"shape": [size] + [1] * (rank - 1)}
        if not dim:
            return self._append(block, "reshape", norms, tall, out)
        norms = self._append(block, "reshape", norms, tall)
        return self._append(block, "transpose", norms, {"axis": swap}, out)

    def _root_of_squares(
        self, block: Block, x: Variable, dim: int | None, out: Variable | None = None
    ) -> Variable:
        squares = self._append(block, "pow", self._append(block, "abs", x), {"factor": 2.0})
        reduction = {"dim": [dim or 0], "keep_dim": False, "reduce_all": dim is None}
        total = self._append(block, "reduce_sum", squares, reduction)
        if out is None:
            out = self._temporary(block, "norm", x)
        return self._append(block, "pow", total, {"factor": 0.5}, out)

    def _append(
        self,
        block: Block,
        op_type: str,
        x: Variable,
        attrs: dict[str, Any] | None = None,
        out: Variable | None = None,
    ) -> Variable:
        if out is None:
            out = self._temporary(block, op_type.removeprefix("reduce_"), x)
        block.append_op(type=op_type, inputs={"X": [x]}, outputs={"Out": [out]}, attrs=attrs)
        return out

    def _temporary(self, block: Block, what: str, like: Variable) -> Variable:
        name = block._new_name(f"{self._layer}.weight_norm_{what}")
        return block.create_var(name=name, dtype=like.dtype, persistable=False, stop_gradient=False)

    def _combine(self, op_type: str, x: Variable, y: Variable, axis: int) -> Variable:
        out = self._result(op_type, x)
        self._main.append_op(
            type=op_type, inputs={"X": [x], "Y": [y]}, outputs={"Out": [out]}, attrs={"axis": axis}
        )
        return out

    def _flattened(self, x: Variable, size: int) -> Variable:
        layer = unique_name.generate("reshape2")
        out, old_shape = (
            self._main.create_var(name=self._main._new_name(f"{layer}.tmp"), dtype=x.dtype) for _ in range(2)
        )
        outputs = {"Out": [out], "XShape": [old_shape]}
        self._main.append_op(type="reshape2", inputs={"X": [x]}, outputs=outputs, attrs={"shape": [size]})
        return out

    def _result(self, op_type: str, like: Variable) -> Variable:
        name = self._main._new_name(f"{unique_name.generate(op_type)}.tmp")
        return self._main.create_var(name=name, dtype=like.dtype)
