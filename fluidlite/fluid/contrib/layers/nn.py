"""Further layers (`fluid.contrib.layers.nn`): tree convolution, tree-based deep models, `ctr_metric_bundle`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base.dtypes import VarType, to_vartype
from ....framework import Variable
from ...initializer import ConstantInitializer
from ...layer_helper import LayerHelper, check_variable, check_variables, run_op
from ...layers import checks, reshape, slice
from ...layers.checks import INTEGERS
from ...layers.detection.one_stage import multiclass_nms2
from .text_matching import match_matrix_tensor, search_pyramid_hash, sequence_topk_avg_pooling, var_conv_2d

__all__ = [
    "fused_elemwise_activation",
    "fused_embedding_seq_pool",
    "match_matrix_tensor",
    "multiclass_nms2",
    "partial_concat",
    "partial_sum",
    "rank_attention",
    "search_pyramid_hash",
    "sequence_topk_avg_pooling",
    "shuffle_batch",
    "tdm_child",
    "tdm_sampler",
    "tree_conv",
    "var_conv_2d",
]


def rank_attention(
    input: Variable,
    rank_offset: Variable,
    rank_param_shape: Sequence[int],
    rank_param_attr: Any,
    max_rank: int = 3,
) -> Variable:
    """A sum over the neighbours of each row, weighted by the ranks of both (`fluid.contrib.layers.rank_attention`).

    The sum over k of `input[index_k]` times the block of the parameter for both ranks, [rows, columns]; 0 for rows
    without a rank. (Fluid has it for GPUs only.)

    Args:
        input: floats [rows, width].
        rank_offset: int32 [rows, 2 * max_rank + 1]: the rank of a row, counted from 1, then for each neighbour its rank
            and its row; 0 for none.
        rank_param_shape: [max_rank * max_rank * width, columns].
        rank_param_attr: the attributes of the parameter.
        max_rank: the number of ranks.

    Raises:
        OperatorError: the shapes do not fit.
    """
    check_variable(input, "input", "rank_attention")
    helper = LayerHelper("rank_attention")
    table = helper.create_parameter(rank_param_attr, list(rank_param_shape), input.dtype)
    table.stop_gradient = False
    return helper.run(
        "rank_attention",
        {"X": input, "RankOffset": rank_offset, "RankParam": table},
        attrs={"MaxRank": max_rank},
    )


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
    checks.check_dtype(nodes_vector, "nodes_vector", "tree_conv")
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
    checks.check_dtype(x, "x", "tdm_child", INTEGERS)
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
    checks.check_dtype(x, "x", "tdm_sampler", INTEGERS)
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


def fused_elemwise_activation(
    x: Variable,
    y: Variable,
    functor_list: str | Sequence[str],
    axis: int = -1,
    scale: float = 0.0,
    save_intermediate_out: bool = True,
) -> Variable:
    """A unary and a binary elementwise function, composed (`fluid.contrib.layers.fused_elemwise_activation`).

    Args:
        x, y: floats; y may be broadcast.
        functor_list: two names, in a list or with a comma: "elementwise_add" or "elementwise_mul", and "scale", "relu",
            "tanh" or "sigmoid". The first is applied last: "elementwise_add,relu" is x + relu(y), and
            "relu,elementwise_add" is relu(x + y).
        axis: the axis of x that the first axis of y is aligned with, as of `elementwise_add`.
        scale: the factor of "scale".
        save_intermediate_out: True to save the intermediate result for the gradient operator.

    Raises:
        ValueError: `functor_list` does not have two names.
        OperatorError: the names are unknown, or the shapes do not fit.
    """
    names = functor_list.split(",") if isinstance(functor_list, str) else functor_list
    if not isinstance(names, (list, tuple)) or len(names) != 2:
        raise ValueError(
            f"functor_list should be a list of str, and the length should be 2, got {functor_list!r}"
        )
    check_variables("fused_elemwise_activation", x=x, y=y)
    helper = LayerHelper("fused_elemwise_activation")
    out, _ = helper.run(
        "fused_elemwise_activation",
        {"X": x, "Y": y},
        ("Out", "IntermediateOut"),
        attrs={
            "axis": axis,
            "scale": scale,
            "save_intermediate_out": save_intermediate_out,
            "functor_list": list(names),
        },
    )
    return out


def _of_columns(
    op_type: str, input: Variable | Sequence[Variable], start_index: int, length: int
) -> Variable:
    inputs: list[Variable] = [input] if isinstance(input, Variable) else list(input)
    for one in inputs:
        checks.check_dtype(one, "input", op_type, (VarType.FP32, VarType.FP64, *INTEGERS))
    return run_op(op_type, {"X": inputs}, attrs={"start_index": start_index, "length": length})


def partial_concat(input: Variable | Sequence[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """The same columns of several matrices, side by side (`fluid.contrib.layers.partial_concat`).

    Args:
        input: a Variable, or several of one shape [rows, width]: floats or integers.
        start_index: the first column; below 0 it counts from the last.
        length: the number of columns; all that follow if negative.

    Returns:
        [rows, length * len(input)].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    return _of_columns("partial_concat", input, start_index, length)


def partial_sum(input: Variable | Sequence[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """The same columns of several matrices, added up (`fluid.contrib.layers.partial_sum`).

    Arguments as of `partial_concat`, except that `start_index` must not be negative. Returns [rows, length].
    """
    return _of_columns("partial_sum", input, start_index, length)


def fused_embedding_seq_pool(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    padding_idx: int | None = None,
    combiner: str = "sum",
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """Sums of the rows of a table over the ids of each sequence (`fluid.contrib.layers.fused_embedding_seq_pool`).

    Args:
        input: int64 ids [n, 1] or [n, k, 1] with sequences.
        size: rows and width of the table.
        is_sparse: True for sparse gradients of the table (SelectedRows).
        padding_idx: an id that is ignored; negative numbers count from the end.
        combiner: "sum".
        param_attr: the attributes of the table.
        dtype: float32 or float64.

    Returns:
        [sequences, width], or [sequences, k * width]: sums of the first ids of a sequence's rows, of the second, ...

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    checks.check_dtype(input, "input", "fused_embedding_seq_pool", INTEGERS)
    helper = LayerHelper("fused_embedding_seq_pool", param_attr=param_attr)
    table = helper.create_parameter(attr=helper.param_attr, shape=list(size), dtype=dtype, is_bias=False)
    padding = -1 if padding_idx is None else padding_idx if padding_idx >= 0 else size[0] + padding_idx
    return helper.run(
        "fused_embedding_seq_pool",
        {"W": table, "Ids": input},
        attrs={"is_sparse": is_sparse, "combiner": combiner, "padding_idx": padding},
    )


def shuffle_batch(x: Variable, seed: int | Variable | None = None) -> Variable:
    """The rows of `x` in a random order (`fluid.contrib.layers.shuffle_batch`).

    Args:
        x: floats or integers; all dimensions but the last one are flattened to rows.
        seed: the seed of the first order, or an int64 variable [1] that each run changes. By default the program's
            random_seed, or a random one.

    Raises:
        TypeError: for arguments of another type.
    """
    checks.check_dtype(x, "x", "shuffle_batch", (VarType.FP32, VarType.FP64, *INTEGERS))
    helper = LayerHelper("shuffle_batch")
    attrs: dict[str, Any] = {}
    if not isinstance(seed, Variable):
        if seed is None:
            seed = helper.main_program.random_seed or int(np.random.randint(-65536, 65535))
        attrs["startup_seed"] = seed
        seed = helper.create_variable(
            name=helper._new_name("shuffle_batch_seed"), dtype=VarType.INT64, persistable=True
        )
    outputs = ("Out", "ShuffleIdx", "SeedOut")
    results = helper.run("shuffle_batch", {"X": x, "Seed": seed}, outputs, attrs, into={"SeedOut": seed})
    return results[0]


def ctr_metric_bundle(input: Variable, label: Variable) -> tuple[Variable, ...]:
    """Sums over all batches for metrics of predicted click rates (`fluid.contrib.layers.ctr_metric_bundle`).

    Args:
        input: predictions, float32 [batch, 1].
        label: targets, float32 [batch, 1], 0 or 1.

    Returns:
        Float32 [1] persistable variables: squared errors, absolute errors, predictions, sigmoids of them, clicks,
        samples.

    Raises:
        TypeError: for arguments that are no Variables.
        AssertionError: if their shapes differ.
    """
    check_variables("ctr_metric_bundle", input=input, label=label)
    if tuple(input.shape) != tuple(label.shape):
        raise AssertionError(
            f"input and label of ctr_metric_bundle must have one shape, got {input.shape} and {label.shape}"
        )
    helper = LayerHelper("ctr_metric_bundle")

    def made(**kind: Any) -> Variable:
        # Fluid gives these names that do not mention the layer.
        return helper.create_global_variable(name=helper._new_name("_generated_var"), dtype="float32", **kind)

    sums = ("abserr", "sqrerr", "prob", "q", "pos", "ins")
    total = {name: made(persistable=True, shape=[1]) for name in sums}
    difference = made(persistable=False, shape=[-1])
    sigmoid = made(persistable=False, shape=[-1])
    ones = made(persistable=False, shape=[-1])
    batch = {
        name: made(persistable=False, shape=[1]) for name in ("prob", "abserr", "sqrerr", "q", "pos", "ins")
    }
    zero = ConstantInitializer(value=0.0, force_cpu=True)
    order = [v for name in ("abserr", "sqrerr", "prob", "q") for v in (total[name], batch[name])]
    for var in (*order, batch["pos"], batch["ins"], total["pos"], total["ins"]):
        helper.set_variable_initializer(var, zero)

    def add(name: str) -> None:
        helper.append_op(
            type="elementwise_add",
            inputs={"X": [batch[name]], "Y": [total[name]]},
            outputs={"Out": [total[name]]},
        )

    helper.append_op(
        type="elementwise_sub", inputs={"X": [input], "Y": [label]}, outputs={"Out": [difference]}
    )
    for name, op_type, source in (
        ("sqrerr", "squared_l2_norm", difference),
        ("abserr", "l1_norm", difference),
        ("prob", "reduce_sum", input),
    ):
        helper.append_op(type=op_type, inputs={"X": [source]}, outputs={"Out": [batch[name]]})
        add(name)
    helper.append_op(type="sigmoid", inputs={"X": [input]}, outputs={"Out": [sigmoid]})
    for name, source in (("q", sigmoid), ("pos", label), ("ins", ones)):
        if name == "ins":
            helper.append_op(
                type="fill_constant_batch_size_like",
                inputs={"Input": label},
                outputs={"Out": [ones]},
                attrs={"shape": [-1, 1], "dtype": int(ones.dtype), "value": 1.0},
            )
        helper.append_op(type="reduce_sum", inputs={"X": [source]}, outputs={"Out": [batch[name]]})
        add(name)
    return tuple(total[name] for name in ("sqrerr", "abserr", "prob", "q", "pos", "ins"))
