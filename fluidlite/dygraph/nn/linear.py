"""`Linear` and `BilinearTensorProduct`."""

from __future__ import annotations

from typing import Any

from ...eager import Tensor, form
from ...layers.tensor.matrix import create_bilinear
from ..layers import Layer

__all__ = ["BilinearTensorProduct", "Linear"]

_PRODUCT = {"transpose_X": False, "transpose_Y": False, "alpha": 1.0}


class Linear(Layer):
    """`act(input @ weight + bias)`, over the last axis of the input (`fluid.dygraph.Linear`).

    Args:
        input_dim: the size of the input's last axis.
        output_dim: that of the result.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of the parameters; `bias_attr=False`: no bias.
        act: the name of an activation.
        dtype: 'float32' or 'float64', which inputs must have too.

    `weight` is [input_dim, output_dim], `bias` [output_dim].

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> with fluid.dygraph.guard():
        ...     layer = fluid.dygraph.Linear(3, 2)
        ...     out = layer(fluid.dygraph.to_variable(np.ones([4, 3], "float32")))
        ...     print(out.shape, [tuple(one.shape) for one in layer.parameters()])
        [4, 2] [(3, 2), (2,)]
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        act: str | None = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        self._act, self._sizes = act, (input_dim, output_dim)
        self.weight = self.create_parameter([input_dim, output_dim], param_attr, dtype)
        self.bias = self.create_parameter([output_dim], bias_attr, dtype, is_bias=True)

    def forward(self, input: Any) -> Any:
        """`input` is [..., input_dim], the result [..., output_dim]."""
        # The layer of small models that are called most: the dict is three times as fast as the attributes.
        held = self._parameters
        weight = held["weight"] if "weight" in held else self.weight
        bias = held["bias"] if "bias" in held else self.bias
        if isinstance(input, Tensor):
            out = _matmul(input, weight)
            if bias is not None:
                out = _add(out, bias)
        else:
            out = self._helper.run("matmul", {"X": input, "Y": weight}, attrs=_PRODUCT)
            out = self._helper.add_bias(out, bias, len(out.shape) - 1)
        return self._helper.append_activation(out, self._act)

    def extra_repr(self) -> str:
        return f"in_features={self._sizes[0]}, out_features={self._sizes[1]}"


_matmul = form("matmul", (("X", 1), ("Y", 1)), (("Out", 1),), _PRODUCT)
_add = form("elementwise_add", (("X", 1), ("Y", 1)), (("Out", 1),), {"axis": -1})


class BilinearTensorProduct(Layer):
    """`act(x_i W_k y_i + bias)` for each row i and each output k (`fluid.dygraph.BilinearTensorProduct`).

    Args:
        input1_dim, input2_dim, output_dim: sizes of the rows of the inputs and of the result.
        name: accepted and without effect, as in Fluid.
        act: the name of an activation.
        param_attr, bias_attr: a ParamAttr, a name or an initializer; `bias_attr=False`: no bias.
        dtype: 'float32' or 'float64'.

    `weight` is [output_dim, input1_dim, input2_dim], `bias` [1, output_dim].
    """

    def __init__(
        self,
        input1_dim: int,
        input2_dim: int,
        output_dim: int,
        name: str | None = None,
        act: str | None = None,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        self._act, self._name, self._param_attr, self._bias_attr = act, name, param_attr, bias_attr
        sizes = self._output_dim, self._input1_dim, self._input2_dim = output_dim, input1_dim, input2_dim
        self.weight, self.bias = create_bilinear(self.create_parameter, sizes, param_attr, bias_attr, dtype)

    def forward(self, x: Any, y: Any) -> Any:
        """`x` is [N, input1_dim], `y` [N, input2_dim], the result [N, output_dim]."""
        inputs = {"X": x, "Y": y, "Weight": self.weight, "Bias": self.bias}
        return self._helper.append_activation(self._helper.run("bilinear_tensor_product", inputs), self._act)
