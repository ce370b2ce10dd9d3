"""What models of clicks begin with: counts of showing and clicking, hashed ids, samples chosen by tags."""

from __future__ import annotations

from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable
from ...layer_helper_base import is_eager
from ..checks import INTEGERS, check_dtype

__all__ = ["continuous_value_model", "filter_by_instag", "hash"]


def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = True) -> Variable:
    """Rows whose first two elements count how often something was shown and clicked
    (`fluid.layers.continuous_value_model`).

    Args:
        input: floats [rows, width], the width at least 2; with or without sequences.
        cvm: float counts of showing and clicking, [rows, 2], or a row for each sequence. They are what `input` gets as
            the gradients of its first two columns.
        use_cvm: whether the counts stay, as log(shown + 1) and log(clicked + 1) - log(shown + 1), or are left out.

    Returns:
        [rows, width], or [rows, width - 2].

    Raises:
        TypeError: for arguments of another type.
    """
    check_dtype(input, "input", "cvm")
    helper = LayerHelper("cvm")
    out = helper.create_variable(dtype=input.dtype)
    helper.append_op(
        type="cvm", inputs={"X": [input], "CVM": [cvm]}, outputs={"Y": [out]}, attrs={"use_cvm": use_cvm}
    )
    out.lod_level = input.lod_level
    return out


def hash(input: Variable, hash_size: int, num_hash: int = 1, name: str | None = None) -> Variable:
    """Numbers of buckets for rows of ids, by XXH64 (`fluid.layers.hash`).

    Args:
        input: int32 or int64 ids [rows, width], with or without sequences. The bytes of a row are hashed, so that both
            types give other numbers.
        hash_size: how many buckets there are.
        num_hash: how many hash functions.

    Returns:
        [rows, num_hash, 1] numbers in [0, hash_size), of the type and with the sequences of `input`.

    Raises:
        TypeError: `input` is something else.
    """
    check_dtype(input, "input", "hash", INTEGERS)
    helper = LayerHelper("hash", name=name)
    out = helper.run(
        "hash", {"X": input}, attrs={"num_hash": num_hash, "mod_by": hash_size}, stop_gradient=True
    )
    if not is_eager(out):
        out.lod_level = input.lod_level
    return out


def filter_by_instag(
    ins: Variable, ins_tag: Variable, filter_tag: Variable, is_lod: bool, out_val_if_empty: int = 0
) -> list[Variable]:
    """The samples that have one of the wanted tags (`fluid.layers.filter_by_instag`).

    Args:
        ins: the samples: the sequences of [rows, ...], or with `is_lod` False its rows.
        ins_tag: int64 tags [n, 1]; their sequences say which are whose.
        filter_tag: the wanted tags, int64 [m].
        is_lod: what a sample is.
        out_val_if_empty: what the one row of the result is made of if no sample is wanted.

    Returns:
        The wanted samples, as sequences, and a weight [samples, 1] to multiply the loss by: 1, or 0 if there are none.

    Raises:
        TypeError: for arguments that are no Variables.
    """
    for name, given in (("ins", ins), ("ins_tag", ins_tag), ("filter_tag", filter_tag)):
        check_variable(given, name, "filter_by_instag")
    helper = LayerHelper("filter_by_instag")
    inputs = {"Ins": ins, "Ins_tag": ins_tag, "Filter_tag": filter_tag}
    attrs = {"is_lod": is_lod, "out_val_if_empty": out_val_if_empty}
    out, weight, _ = helper.run("filter_by_instag", inputs, ("Out", "LossWeight", "IndexMap"), attrs)
    return [out, weight]
