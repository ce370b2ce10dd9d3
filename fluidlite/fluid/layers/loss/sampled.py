"""Losses over many classes that evaluate only some of them: `nce`, `hsigmoid`, sampled softmax."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ....base.errors import ArgumentAssertion, ArgumentError
from ....framework import Variable
from ....ops.loss.sampled import SAMPLERS
from ...initializer import NumpyArrayInitializer
from ...layer_helper import LayerHelper, check_variable
from ...layer_helper_base import is_eager
from ...param_attr import ParamAttr
from ..checks import check_choice, check_dtype

__all__ = ["hsigmoid", "nce", "sampled_softmax_with_cross_entropy"]


def alias_table(chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Walker's alias method: for each class the alias that shares its column, and its own share of the column.

    In Fluid's order, first come first served; -1 for columns that are all one class.
    """
    share = (chances * len(chances)).tolist()
    alias = np.full(len(share), -1, dtype="int32")
    small = deque(k for k, n in enumerate(share) if n < 1)
    large = deque(k for k, n in enumerate(share) if n > 1)
    while small and large:
        low, high = small.popleft(), large.popleft()
        alias[low] = high
        share[high] += share[low] - 1
        if share[high] != 1:
            (small if share[high] < 1 else large).append(high)
    for left in (*small, *large):
        share[left] = 1.0
    return alias, np.array(share, dtype="float32")


class NoiseContrast:
    """Noise-contrastive estimation for `nce` and the layer `NCE`: attributes, parameters, and the cost.

    `layer` is what errors call it; the other arguments are those of `nce`.
    """

    def __init__(
        self,
        layer: str,
        num_total_classes: int,
        num_neg_samples: int | None,
        sampler: str,
        custom_dist: Any,
        seed: int,
        is_sparse: bool,
    ) -> None:
        check_choice(sampler, "sampler", SAMPLERS, layer)
        self.classes = int(num_total_classes)
        self.negatives = 10 if num_neg_samples is None else int(num_neg_samples)
        self.chances = np.asarray(custom_dist, dtype="float64") if sampler == "custom_dist" else None
        if self.chances is not None and self.chances.shape != (self.classes,):
            raise ArgumentAssertion(
                f"'custom_dist' of {layer} must have one probability for each of {self.classes} classes, got "
                f"{custom_dist!r:.60}"
            )
        self.attrs = {
            "num_total_classes": self.classes,
            "num_neg_samples": self.negatives,
            "seed": seed,
            "sampler": SAMPLERS.index(sampler),
            "is_sparse": bool(is_sparse),
            "remote_prefetch": bool(is_sparse),
        }

    def create_weights(
        self, create_parameter: Callable[..., Any], width: int, param_attr: Any, bias_attr: Any, dtype: Any
    ) -> tuple[Any, Any]:
        """Weights [classes, width] and bias [classes, 1]; None for the one whose attribute is False."""
        weight = create_parameter(attr=param_attr, shape=[self.classes, width], dtype=dtype)
        return weight, create_parameter(attr=bias_attr, shape=[self.classes, 1], dtype=dtype, is_bias=True)

    def create_distribution(self, create_parameter: Callable[..., Any]) -> dict[str, Any]:
        """The inputs of the operator that describe the distribution of 'custom_dist', which are not trained."""
        if self.chances is None:
            return {}
        alias, own = alias_table(self.chances.copy())
        made = {}
        for ending, value in (
            ("Probs", self.chances.astype("float32")),
            ("Alias", alias),
            ("AliasProbs", own),
        ):
            attr = ParamAttr(initializer=NumpyArrayInitializer(value))
            made[f"CustomDist{ending}"] = create_parameter(
                attr=attr, shape=list(value.shape), dtype=value.dtype
            )
            made[f"CustomDist{ending}"].stop_gradient = True
        return made

    def cost(self, helper: LayerHelper, inputs: dict[str, Any]) -> Any:
        """The cost [N, 1] of the operator's `inputs`, by slot."""
        cost, *_ = helper.run("nce", inputs, ("Cost", "SampleLogits", "SampleLabels"), attrs=self.attrs)
        return cost * (1.0 / (self.negatives + 1))


def nce(
    input: Variable,
    label: Variable,
    num_total_classes: int,
    sample_weight: Variable | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    num_neg_samples: int | None = None,
    name: str | None = None,
    sampler: str = "uniform",
    custom_dist: Any = None,
    seed: int = 0,
    is_sparse: bool = False,
) -> Variable:
    """The cost of telling the true classes from classes drawn at random (`fluid.layers.nce`).

    Follows Gutmann and Hyvärinen (2010).

    Args:
        input: floats [batch, width].
        label: int64 [batch, true classes].
        num_total_classes: how many classes there are.
        sample_weight: floats [batch, 1] that weigh the costs.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of weights [classes, width] and bias [classes, 1];
            `bias_attr=False`: no bias.
        num_neg_samples: how many classes are drawn for each row; by default 10.
        sampler: 'uniform', 'log_uniform' (the smaller the number, the more often) or 'custom_dist'.
        custom_dist: the probability of each class, for 'custom_dist'.
        seed: not 0: the same classes each time.
        is_sparse: whether the weights' gradient holds only the rows that were looked at (`SelectedRows`).

    Returns:
        The costs [batch, 1], divided by `num_neg_samples` + 1.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    check_dtype(input, "input", "nce")
    check_variable(label, "label", "nce")
    nce = NoiseContrast("nce", num_total_classes, num_neg_samples, sampler, custom_dist, seed, is_sparse)
    helper = LayerHelper("nce", name=name)
    create = helper.create_parameter
    weight, bias = nce.create_weights(create, input.shape[1], param_attr, bias_attr, input.dtype)
    inputs = {"Input": input, "Label": label, "Weight": weight, "Bias": bias, "SampleWeight": sample_weight}
    return nce.cost(helper, {**inputs, **nce.create_distribution(create)})


def hsigmoid(
    input: Variable,
    label: Variable,
    num_classes: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
    path_table: Variable | None = None,
    path_code: Variable | None = None,
    is_custom: bool = False,
    is_sparse: bool = False,
) -> Variable:
    """The cost of finding a class by yes-no decisions along a tree (`fluid.layers.hsigmoid`).

    Args:
        input: floats [batch, width].
        label: int64 [batch, 1].
        num_classes: how many classes a complete binary tree has as leaves; with `is_custom` how many inner nodes there
            are.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of weights [nodes, width] and bias [nodes, 1];
            `bias_attr=False`: no bias.
        path_table, path_code: with `is_custom`, int64 [batch, depth]: for each row the inner nodes on the way to its
            class and the decisions there (0 or 1); -1 where the way is shorter.
        is_sparse: whether the weights' gradient holds only the rows that were looked at (`SelectedRows`); as in Fluid
            only with `is_custom`.

    Returns:
        The costs, [batch, 1].

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    check_dtype(input, "input", "hsigmoid")
    check_variable(label, "label", "hsigmoid")
    if not is_custom and (num_classes is None or num_classes < 2):
        raise ArgumentError(f"num_classes must not be less than 2 with default tree, got {num_classes}")
    if is_custom and (path_table is None or path_code is None):
        raise ArgumentError("'path_table' and 'path_code' of hsigmoid must be given with 'is_custom'")
    helper = LayerHelper("hierarchical_sigmoid", name=name)
    is_sparse = bool(is_sparse and is_custom)
    nodes = num_classes if is_custom else num_classes - 1
    weights = helper.create_parameter(attr=param_attr, shape=[nodes, input.shape[1]], dtype=input.dtype)
    bias = helper.create_parameter(attr=bias_attr, shape=[nodes, 1], dtype=input.dtype, is_bias=True)
    inputs = {"X": input, "W": weights, "Label": label, "Bias": bias}
    if is_custom:
        inputs["PathTable"], inputs["PathCode"] = path_table, path_code
    out, *_ = helper.run(
        "hierarchical_sigmoid",
        inputs,
        ("Out", "PreOut", *([] if is_eager(input) else ["W_Out"])),
        attrs={"num_classes": num_classes, "is_sparse": is_sparse, "remote_prefetch": is_sparse},
        into={"W_Out": weights},
    )
    return out


def sampled_softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    num_samples: int,
    num_true: int = 1,
    remove_accidental_hits: bool = True,
    use_customized_samples: bool = False,
    customized_samples: Variable | None = None,
    customized_probabilities: Variable | None = None,
    seed: int = 0,
) -> Variable:
    """Cross entropy of the true class among some drawn at random (`fluid.layers.sampled_softmax_with_cross_entropy`).

    Follows Jean et al. (2014): scores are lessened by the logarithm of how likely their class is drawn.

    Args:
        logits: floats [batch, classes].
        label: int64 [batch, num_true].
        num_samples: how many other classes are drawn, the same for all rows, small numbers more often.
        num_true: how many true classes a row has; as in Fluid only 1 works.
        remove_accidental_hits: leave out drawn classes that are the true one.
        use_customized_samples: take the classes from `customized_samples`, int64 [batch, num_true + num_samples], the
            true ones first, and how likely they are from `customized_probabilities`, of the same shape.
        seed: not 0: the same classes each time.

    Returns:
        The costs, [batch, 1].

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    check_dtype(logits, "logits", "sampled_softmax_with_cross_entropy")
    check_variable(label, "label", "sampled_softmax_with_cross_entropy")
    helper = LayerHelper("sample_logits")
    inputs = {
        "Logits": logits,
        "Labels": label,
        "CustomizedSamples": customized_samples,
        "CustomizedProbabilities": customized_probabilities,
    }
    attrs = {
        "use_customized_samples": use_customized_samples,
        "uniq": True,
        "remove_accidental_hits": remove_accidental_hits,
        "num_samples": num_samples,
        "seed": seed,
    }
    given = {slot: value for slot, value in inputs.items() if value is not None}
    samples, chances = customized_samples, customized_probabilities
    if not use_customized_samples:
        samples, chances = map(helper.create_variable_for_type_inference, ("int64", logits.dtype))
    scores, labels = map(helper.create_variable_for_type_inference, (logits.dtype, "int64"))
    soft = helper.create_variable_for_type_inference()
    dims = [helper.create_variable_for_type_inference(dtype) for dtype in (logits.dtype, label.dtype)]
    outputs = {
        "Samples": samples,
        "Probabilities": chances,
        "SampledLogits": scores,
        "SampledLabels": labels,
        "LogitsDim": dims[0],
        "LabelsDim": dims[1],
    }
    helper.append_op(type="sample_logits", inputs=given, outputs=outputs, attrs=attrs)
    helper.run("one_hot", {"X": labels}, attrs={"depth": num_samples + 1}, into={"Out": soft})
    loss, _ = helper.run(
        "softmax_with_cross_entropy",
        {"Logits": scores, "Label": soft},
        ("Loss", "Softmax"),
        attrs={"soft_label": True, "ignore_index": 0, "numeric_stable_mode": False},
    )
    return loss / num_true
