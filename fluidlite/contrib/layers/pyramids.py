"""`search_pyramid_hash`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import ArgumentTypeError
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable
from ...param_attr import ParamAttr

__all__ = ["search_pyramid_hash"]


def search_pyramid_hash(
    input: Variable,
    num_emb: int,
    space_len: int,
    pyramid_layer: int,
    rand_len: int,
    drop_out_percent: float,
    is_training: bool,
    use_filter: bool,
    white_list_len: int,
    black_list_len: int,
    seed: int,
    lr: float,
    param_attr: Any = None,
    param_attr_wl: Any = None,
    param_attr_bl: Any = None,
    name: str | None = None,
    distribute_update_vars: Sequence[str] | None = None,
    dtype: str = "float32",
) -> Variable:
    """Hashed embeddings of all n-grams of ids (`fluid.contrib.layers.search_pyramid_hash`).

    A sequence gets a row for each n-gram of 2 ids, then of 3, up to `pyramid_layer`; one row of zeros if none is left.
    A row is a concatenation of slices of a vector, of `rand_len` numbers each, at offsets given by hashes of the
    n-gram. The vector is no parameter for optimizers: if `input.stop_gradient` is False, a step of `lr` is taken while
    gradients are computed, as in Fluid.

    Args:
        input: int32 [ids, 1] of one level of sequences.
        num_emb: the width of a row, a multiple of `rand_len`.
        space_len: the number of offsets of slices.
        pyramid_layer: the largest length of n-grams, at least 2.
        rand_len: the length of slices.
        drop_out_percent: the fraction of n-grams that is dropped, drawn from `seed` in each run; without `is_training`
            rows are multiplied by it.
        is_training: True to drop n-grams.
        use_filter: True to keep only n-grams in the filter `param_attr_wl` and not in `param_attr_bl`.
        white_list_len, black_list_len: the filters' sizes in float32 numbers; 0 for no filter.
        seed: the seed of the draws.
        lr: the learning rate.
        param_attr: the attributes of the vector [space_len + rand_len, 1]; param_attr_wl, param_attr_bl: of the
            filters.
        name: a prefix of names.
        distribute_update_vars: names among those of the three that servers update.
        dtype: float32.

    Returns:
        Floats [rows, num_emb], of one level of sequences.

    Raises:
        ArgumentTypeError: `distribute_update_vars` is no list.
        ValueError: it has other names.
        OperatorError: sizes do not fit, when the program is built or run.
    """
    check_variable(input, "input", "search_pyramid_hash")
    updated = list(distribute_update_vars or ())
    if distribute_update_vars is not None and not isinstance(distribute_update_vars, list):
        raise ArgumentTypeError(
            f"distribute_update_vars must be a list of names, got {distribute_update_vars!r}"
        )
    known = [ParamAttr._to_attr(attr).name for attr in (param_attr, param_attr_wl, param_attr_bl) if attr]
    for one in updated:
        if one not in known:
            raise ValueError(
                f"search_pyramid_hash has no parameter {one!r} for distribute_update_vars, only {known}"
            )
    helper = LayerHelper("search_pyramid_hash", name=name)
    inputs = {"X": input, "W": helper.create_parameter(param_attr, [space_len + rand_len, 1], dtype)}
    for slot, attr, length in (
        ("WhiteList", param_attr_wl, white_list_len),
        ("BlackList", param_attr_bl, black_list_len),
    ):
        if length > 0:
            inputs[slot] = helper.create_parameter(attr, [length, 1], dtype)
    for slot, parameter in inputs.items():
        if slot != "X":
            parameter.stop_gradient = True
    attrs = {
        "num_emb": num_emb,
        "space_len": space_len,
        "pyramid_layer": pyramid_layer,
        "rand_len": rand_len,
        "drop_out_percent": drop_out_percent,
        "is_training": int(is_training),
        "use_filter": use_filter,
        "white_list_len": white_list_len,
        "black_list_len": black_list_len,
        "seed": seed,
        "lr": lr,
        "distribute_update_vars": ",".join(updated),
    }
    return helper.run("pyramid_hash", inputs, ["Out", "DropPos", "X_Temp_Out"], attrs)[0]
