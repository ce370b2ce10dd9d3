"""Tree convolution, and the layers of tree-based deep models (`fluid.contrib.layers.nn`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.dtypes import to_vartype
from ...framework import Variable
from ...initializer import ConstantInitializer
from ...layer_helper import LayerHelper, check_variable
from ...layers import reshape, slice
from ...layers.checks import INTEGERS, check_dtype

__all__ = ["tdm_child", "tdm_sampler", "tree_conv"]


def tree_conv(
    nodes_vector: Variable,
    edge_set: Variable,
    output_size: int,
    num_filters: int = 1,
    max_depth: int = 2,
    act: str | None = "tanh",
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> Variable:
    """Convolution over windows of a tree (`fluid.contrib.layers.tree_conv`; Mou et al. 2016).

    Args:
        nodes_vector: floats [N, nodes, features].
        edge_set: int32 [N, edges, 2], pairs of nodes, parent first, counted from 1; (0, 0) for none.
        output_size, num_filters: sizes of the result.
        max_depth: the depth of a window.
        act: the name of an activation.
        param_attr, bias_attr: the attributes of the filter [features, 3, output_size, num_filters] and the bias
            [nodes, output_size, num_filters].

    Returns:
        [N, nodes, output_size, num_filters].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    check_dtype(nodes_vector, "nodes_vector", "tree_conv")
    check_variable(edge_set, "edge_set", "tree_conv")
    helper = LayerHelper("tree_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    weight = helper.create_parameter(
        attr=helper.param_attr,
        shape=[nodes_vector.shape[2], 3, output_size, num_filters],
        dtype=nodes_vector.dtype,
    )
    inputs = {"NodesVector": nodes_vector, "EdgeSet": edge_set, "Filter": weight}
    out = helper.run("tree_conv", inputs, attrs={"max_depth": max_depth})
    return helper.append_activation(helper.append_bias_op(out))


def tdm_child(
    x: Variable, node_nums: int, child_nums: int, param_attr: Any = None, dtype: Any = "int32"
) -> tuple[Variable, Variable]:
    """The children of nodes of a tree (`fluid.contrib.layers.tdm_child`; Zhu et al. 2018).

    Args:
        x: int32 or int64 nodes of any shape.
        node_nums, child_nums: the number of nodes, and the largest number of children.
        param_attr: the attributes of the tree, [node_nums, 3 + child_nums]: item, layer, parent and children of each
            node, 0 for none.
        dtype: int32 or int64, of the results and the tree.

    Returns:
        The children, [..., child_nums], 0 where there are fewer, and 1 for those of them that are leaves.

    Raises:
        TypeError: for arguments of another type.
    """
    check_dtype(x, "x", "tdm_child", INTEGERS)
    kind = _integer(dtype, "dtype", "tdm_child")
    helper = LayerHelper("tdm_child")
    tree = helper.create_parameter(
        attr=param_attr,
        shape=[node_nums, 3 + child_nums],
        dtype=kind,
        default_initializer=ConstantInitializer(0),
    )
    tree.stop_gradient = True
    return helper.run(
        "tdm_child",
        {"X": x, "TreeInfo": tree},
        ("Child", "LeafMask"),
        attrs={"child_nums": child_nums, "dtype": int(kind)},
        stop_gradient=True,
    )


def tdm_sampler(
    x: Variable,
    neg_samples_num_list: Sequence[int],
    layer_node_num_list: Sequence[int],
    leaf_node_num: int,
    tree_travel_attr: Any = None,
    tree_layer_attr: Any = None,
    output_positive: bool = True,
    output_list: bool = True,
    seed: int = 0,
    tree_dtype: Any = "int32",
    dtype: Any = "int32",
) -> tuple[Any, Any, Any]:
    """For each item and layer of a tree the node on the path to it, and others at random
    (`fluid.contrib.layers.tdm_sampler`; Zhu et al. 2018).

    Args:
        x: int32 or int64 items [n, 1].
        neg_samples_num_list: how many others, for each layer; less than the layer has nodes.
        layer_node_num_list: how many nodes, for each layer.
        leaf_node_num: how many items there are.
        tree_travel_attr: of the paths [leaf_node_num, layers].
        tree_layer_attr: of the nodes [sum of layer_node_num_list, 1], layer by layer.
        output_positive: whether the nodes on the paths are among the results.
        output_list: results for each layer, [n, samples, 1]; else [n, all samples].
        seed: 0 for new numbers in each run.
        tree_dtype, dtype: int32 or int64, of the tree and of the results.

    Returns:
        Nodes, labels (1 on the path), and masks (0 where a path has ended).

    Raises:
        TypeError: for arguments of another type.
        ValueError: if the lists differ in length, or a layer has too few nodes.
    """
    check_dtype(x, "x", "tdm_sampler", INTEGERS)
    kind, of_tree = (_integer(d, n, "tdm_sampler") for d, n in ((dtype, "dtype"), (tree_dtype, "tree_dtype")))
    if len(neg_samples_num_list) != len(layer_node_num_list):
        raise ValueError(
            "the neg_samples_num_list and layer_node_num_list of tdm_sampler must have one length, got "
            f"{len(neg_samples_num_list)} and {len(layer_node_num_list)}"
        )
    offsets = [0]
    for count, nodes in zip(neg_samples_num_list, layer_node_num_list, strict=True):
        if count >= nodes:
            raise ValueError(
                f"The number of negative samples must be less than the nodes of the layer, got {count} of {nodes}"
            )
        offsets.append(offsets[-1] + nodes)
    helper = LayerHelper("tdm_sampler")
    inputs = {"X": x}
    for slot, attr, shape in (
        ("Travel", tree_travel_attr, [leaf_node_num, len(layer_node_num_list)]),
        ("Layer", tree_layer_attr, [offsets[-1], 1]),
    ):
        inputs[slot] = helper.create_parameter(
            attr=attr, shape=shape, dtype=of_tree, default_initializer=ConstantInitializer(0)
        )
    results = helper.run(
        "tdm_sampler",
        inputs,
        ("Out", "Labels", "Mask"),
        attrs={
            "neg_samples_num_list": list(neg_samples_num_list),
            "output_positive": output_positive,
            "layer_offset_lod": offsets,
            "seed": seed,
            "dtype": int(kind),
        },
        stop_gradient=True,
    )
    if not output_list:
        return tuple(results)
    lists: tuple[list[Variable], list[Variable], list[Variable]] = [], [], []
    start = 0
    for count in neg_samples_num_list:
        end = start + count + (output_positive is not False)
        parts = [slice(one, axes=[1], starts=[start], ends=[end]) for one in results]
        for target, part in zip(lists, parts, strict=True):
            target.append(reshape(part, [-1, end - start, 1]))
            target[-1].stop_gradient = True
        start = end
    return lists


def _integer(dtype: Any, name: str, layer: str) -> Any:
    kind = to_vartype(dtype)
    if kind not in INTEGERS:
        raise TypeError(f"The '{name}' of {layer} must be int32 or int64, but received {dtype}")
    return kind
