"""`TreeConv`."""

from __future__ import annotations

from typing import Any

from ..layers import Layer, setting

__all__ = ["TreeConv"]


class TreeConv(Layer):
    """Convolves over each node of a tree and its descendants (`fluid.dygraph.TreeConv`; Mou et al. 2016).

    Args:
        feature_size: the number of features of a node.
        output_size: the number of features of the result.
        num_filters: how many filters there are.
        max_depth: how many levels a filter looks at.
        act: the name of an activation.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of `weight`, [feature_size, 3, output_size,
            num_filters], and `bias`, [num_filters]; there is no bias if it is None or False.
        name: accepted and without effect, as in Fluid.
        dtype: 'float32' or 'float64'.
    """

    _max_depth = setting("max_depth")

    def __init__(
        self,
        feature_size: int,
        output_size: int,
        num_filters: int = 1,
        max_depth: int = 2,
        act: str | None = "tanh",
        param_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        self._act, self._name, self._param_attr, self._bias_attr = act, name, param_attr, bias_attr
        self._feature_size, self._output_size, self._num_filters = feature_size, output_size, num_filters
        self._attrs = {"max_depth": max_depth}
        self.bias = self.create_parameter([num_filters], bias_attr or False, dtype, is_bias=True)
        self.weight = self.create_parameter([feature_size, 3, output_size, num_filters], param_attr, dtype)

    def forward(self, nodes_vector: Any, edge_set: Any) -> Any:
        """`nodes_vector` is [N, nodes, feature_size], `edge_set` int32 [N, edges, 2]: pairs of nodes, parent first,
        counted from 1. The result is [N, nodes, output_size, num_filters].
        """
        inputs = {"NodesVector": nodes_vector, "EdgeSet": edge_set, "Filter": self.weight}
        out = self._helper.run("tree_conv", inputs, attrs=self._attrs)
        return self._helper.append_activation(self._helper.add_bias(out, self.bias, 3), self._act)
