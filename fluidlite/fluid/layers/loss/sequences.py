"""Losses of sequences: conditional random fields over tags, connectionist temporal classification, edit distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base.dtypes import VarType
from ....base.errors import ArgumentError
from ....framework import Variable
from ...layer_helper import LayerHelper
from ...op_functions import run_layer
from ..checks import check_dtype
from ..nn.activations import topk
from ..tensor.shapes import squeeze

__all__ = ["chunk_eval", "crf_decoding", "ctc_greedy_decoder", "edit_distance", "linear_chain_crf", "warpctc"]

_INT64 = (VarType.INT64,)


def linear_chain_crf(
    input: Variable, label: Variable, param_attr: Any = None, length: Variable | None = None
) -> Variable:
    """The cost of the tags of sequences (`fluid.layers.linear_chain_crf`).

    A conditional random field after Lafferty, McCallum and Pereira (2001).

    Args:
        input: float scores of the tags, [rows, tags] with one level of sequences; or padded, [batch, time, tags].
        label: int64 tags, [rows, 1] with the same sequences, or [batch, time] or [batch, time, 1].
        param_attr: a ParamAttr, a name or an initializer of the scores [tags + 2, tags]: of each first tag, of each
            last tag, and, row by row, of each tag after another.
        length: int64 [batch] or [batch, 1], for padded sequences: how long each is.

    Returns:
        The negative log-likelihood of each sequence, [batch, 1]; 0 for an empty one.

    Raises:
        TypeError: for arguments of another type.
    """
    check_dtype(input, "input", "linear_chain_crf")
    check_dtype(label, "label", "linear_chain_crf", _INT64)
    helper = LayerHelper("linear_chain_crf", param_attr=param_attr)
    tags = input.shape[2] if length is not None else input.shape[1]
    inputs = {
        "Emission": input,
        "Transition": helper.create_parameter(
            attr=helper.param_attr, shape=[tags + 2, tags], dtype=input.dtype
        ),
        "Label": label,
        "Length": length,
    }
    outputs = ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")
    *_, cost = helper.run("linear_chain_crf", inputs, outputs)
    return cost


def crf_decoding(
    input: Variable, param_attr: Any, label: Variable | None = None, length: Variable | None = None
) -> Variable:
    """The tags of sequences that score most together (`fluid.layers.crf_decoding`); Viterbi (1967).

    Args:
        input, label, length: as for `linear_chain_crf`.
        param_attr: the ParamAttr or the name of the scores that `linear_chain_crf` has made.

    Returns:
        int64 tags in the form of the sequences, [rows, 1] or [batch, time]; 0 in the padding. With
        `label`: 1 where that is the tag found, else 0.

    Raises:
        ValueError: if there is no parameter of that name.
        TypeError: for arguments of another type.
    """
    check_dtype(input, "input", "crf_decoding")
    helper = LayerHelper("crf_decoding", param_attr=param_attr)
    inputs = {
        "Emission": input,
        "Transition": helper.get_parameter(helper.param_attr.name),
        "Label": label,
        "Length": length,
    }
    path: Variable = helper.run("crf_decoding", inputs, ("ViterbiPath",))
    if length is None:
        path.lod_level = input.lod_level
    return path


def chunk_eval(
    input: Variable,
    label: Variable,
    chunk_scheme: str,
    num_chunk_types: int,
    excluded_chunk_types: Sequence[int] | None = None,
    seq_length: Variable | None = None,
) -> tuple[Variable, ...]:
    """Precision, recall and F1 of the chunks that tags describe (`fluid.layers.chunk_eval`).

    A tag is type * tags of the scheme + number of the tag in it; the number after the last one is outside of chunks.

    Args:
        input, label: int64 tags, found and wanted: [rows, 1] with the same sequences; or padded, [batch, time].
        chunk_scheme: 'IOB' (tags B, I), 'IOE' (I, E), 'IOBES' (B, I, E, S) or 'plain' (one tag).
        num_chunk_types: how many types of chunks there are.
        excluded_chunk_types: types that do not count.
        seq_length: int64 [batch] or [batch, 1], for padded tags: how long each sequence is.

    Returns:
        Precision, recall and F1, float32 [1]; the numbers of chunks found, wanted, and both, int64 [1].

    Raises:
        TypeError: for tags that are not int64.
    """
    excluded_chunk_types = list(excluded_chunk_types or [])
    return run_layer("chunk_eval", locals(), Inference="input")


def warpctc(
    input: Variable,
    label: Variable,
    blank: int = 0,
    norm_by_times: bool = False,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> Variable:
    """The loss of labels that are not aligned with the steps of a sequence (`fluid.layers.warpctc`).

    Args:
        input: logits: floats [rows, classes] with sequences; or padded, [time, batch, classes].
        label: integers [rows, 1] with sequences; or padded, [batch, longest].
        blank: the index of the blank label.
        norm_by_times: divide gradients by the length of their sequence.
        input_length, label_length: int64 [batch]: how long the padded sequences and labels are.

    Returns:
        [batch, 1]; a sequence too short for its label costs 0.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    if (input_length is None) != (label_length is None):
        raise ArgumentError("'input_length' and 'label_length' of warpctc come together")
    outputs = ("Loss", "WarpCTCGrad")
    return run_layer(
        "warpctc", locals(), outputs, without=("outputs",), Logits="input", LogitsLength="input_length"
    )[0]


def ctc_greedy_decoder(
    input: Variable,
    blank: int,
    input_length: Variable | None = None,
    padding_value: int = 0,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """The likeliest class of each step, without repetitions and blanks (`fluid.layers.ctc_greedy_decoder`).

    Args:
        input: float scores of classes: [rows, classes] with sequences; or padded, [batch, time, classes].
        blank: the index of the blank label.
        input_length: int64 [batch, 1], for padded sequences: how long each is.
        padding_value: fills a padded result beyond its labels.

    Returns:
        int64 labels with sequences, [rows, 1]; one row of -1 if there are none at all. With `input_length` labels
        [batch, time] and how many there are of each sequence, [batch, 1].

    Raises:
        TypeError: for arguments of another type.
    """
    check_dtype(input, "input", "ctc_greedy_decoder")
    helper = LayerHelper("ctc_greedy_decoder", name=name)
    _, best = topk(input, k=1)
    if input_length is None:
        attrs = {"merge_repeated": True, "blank": blank}
        return helper.run("ctc_align", {"Input": best}, ("Output",), attrs=attrs)
    attrs = {"merge_repeated": True, "blank": blank, "padding_value": padding_value}
    inputs = {"Input": squeeze(best, [2]), "InputLength": input_length}
    out, count = helper.run("ctc_align", inputs, ("Output", "OutputLength"), attrs=attrs)
    return out, count


def edit_distance(
    input: Variable,
    label: Variable,
    normalized: bool = True,
    ignored_tokens: Sequence[int] | None = None,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> tuple[Variable, Variable]:
    """How far found sequences are from wanted ones (`fluid.layers.edit_distance`).

    Counts the tokens that have to be inserted, deleted or replaced (Levenshtein 1966).

    Args:
        input, label: int64 tokens, found and wanted: [rows, 1] with as many sequences; or padded, [batch, time].
        normalized: divide by the length of the wanted sequence, which then must not be empty.
        ignored_tokens: tokens that are taken out of both first; not for padded sequences.
        input_length, label_length: int64 [batch], for padded sequences: how long each is.

    Returns:
        float32 distances [batch, 1], and how many sequences there are, int64 [1].

    Raises:
        TypeError: for tokens that are not int64.
    """
    check_dtype(input, "input", "edit_distance", (VarType.INT64,))
    check_dtype(label, "label", "edit_distance", (VarType.INT64,))
    helper = LayerHelper("edit_distance")
    if ignored_tokens:
        attrs = {"tokens": list(ignored_tokens)}
        input, label = (helper.run("sequence_erase", {"X": var}, attrs=attrs) for var in (input, label))
    inputs = {"Hyps": input, "Refs": label, "HypsLength": input_length, "RefsLength": label_length}
    out, count = helper.run("edit_distance", inputs, ("Out", "SequenceNum"), attrs={"normalized": normalized})
    return out, count
