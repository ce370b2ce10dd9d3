"""Runs on a GPU, too, whatever the tests of this folder run on the host, and compares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fluidlite import backend
from fluidlite.backend import to_host
from fluidlite.backend.cupy_ import device as devices
from fluidlite.backend.cupy_ import faults
from fluidlite.backend.cupy_.recording import Recording
from fluidlite.base.lod import same
from fluidlite.base.place import CPUPlace, CUDAPlace, Place
from fluidlite.base.rank_table import RankTable
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.base.tensor_array import TensorArray
from fluidlite.ops.host_fallback import carried
from fluidlite.ops.registry import LodArray, OpDef

TOLERANCES = {"float16": (2e-3, 2e-3), "float32": (2e-5, 2e-6), "float64": (1e-10, 1e-12)}
"""How far a result of a GPU may be from that of the reference kernel on the host, for each dtype: relative to the
element, and relative to the largest element of the result (at least to 1). Sums are added up in another order there,
and functions are rounded differently. Integers and booleans are equal."""

WAITING = frozenset(
    """
    affine_grid affine_grid_grad argsort argsort_grad attention_lstm bilinear_interp bipartite_match box_clip
    cholesky cholesky_grad chunk_eval clip clip_by_norm collect_fpn_proposals concat concat_grad crf_decoding crop
    crop_grad crop_tensor crop_tensor_grad ctc_align cudnn_lstm cudnn_lstm_grad deformable_conv deformable_conv_grad
    deformable_conv_v1 deformable_conv_v1_grad deformable_psroi_pooling deformable_psroi_pooling_grad detection_map
    distribute_fpn_proposals dpsgd dropout edit_distance expand expand_grad fake_quantize_range_abs_max fc
    fill_constant filter_by_instag filter_by_instag_grad fused_embedding_seq_pool fused_embedding_seq_pool_grad
    gaussian_random generate_mask_labels generate_proposal_labels generate_proposals hash inverse linear_chain_crf
    linear_chain_crf_grad linspace locality_aware_nms lod_array_length lookup_table_dequant masked_select
    masked_select_grad match_matrix_tensor match_matrix_tensor_grad matrix_nms max_sequence_len merge_ids
    merge_selected_rows mine_hard_examples multiclass_nms multiclass_nms2 nce nearest_interp one_hot one_hot_v2
    pad2d pad2d_grad positive_negative_pair precision_recall prroi_pool prroi_pool_grad psroi_pool psroi_pool_grad
    randint random_crop randperm range ref_by_trainer_id reshape2 retinanet_detection_output retinanet_target_assign
    roi_align roi_align_grad roi_perspective_transform roi_perspective_transform_grad roi_pool roi_pool_grad
    rpn_target_assign sample_logits sampling_id seed sequence_mask sequence_topk_avg_pooling
    sequence_topk_avg_pooling_grad shuffle_batch similarity_focus slice slice_grad split split_ids
    split_selected_rows strided_slice strided_slice_grad target_assign tdm_child tdm_sampler tensor_array_to_tensor
    top_k tree_conv tree_conv_grad uniform_random unique unique_with_counts unsqueeze2 var_conv_2d var_conv_2d_grad
    warpctc where_index yolo_box yolov3_loss yolov3_loss_grad
    """.split()
)
"""Operators that may need the host, so that a step with them is no CUDA graph: their kernels work there, the sizes of
their results depend on elements, or (most of them only then) sizes, positions or numbers come from a tensor. All others
are recorded as well, and a replay has to give the same."""

_call = OpDef.call
_mode: dict[str, Any] = {"device": None}


def place() -> Place:
    """Where programs of these tests run."""
    return CPUPlace() if _mode["device"] is None else CUDAPlace(0)


def active() -> bool:
    """Whether operators are compared with those of a GPU now."""
    return _mode["device"] is not None


def put(array: np.ndarray) -> Any:
    """`array` where eager tensors of these tests live."""
    return backend.moved(array, _mode["device"])


@contextmanager
def compared() -> Iterator[None]:
    """Inside, every operator that is called on the host is called on GPU 0 as well, and has to agree or fail alike."""
    _mode["device"] = devices.device(0)
    OpDef.call = _compared_call  # type: ignore[method-assign]
    try:
        yield
    finally:
        OpDef.call = _call  # type: ignore[method-assign]
        _mode["device"] = None


@contextmanager
def paused() -> Iterator[None]:
    """Inside, operators run on the host alone: for differences of many calls."""
    before, OpDef.call = OpDef.call, _call  # type: ignore[method-assign]
    try:
        yield
    finally:
        OpDef.call = before  # type: ignore[method-assign]


def _compared_call(
    self: OpDef,
    xp: Any,
    inputs: dict[str, list[Any]],
    attrs: dict[str, Any],
    lods: dict[str, list[Any]] | None = None,
    device: Any = None,
    wanted: Any = None,
    on_numpy: bool = False,
) -> list[Any]:
    if device is not None or self.effects.host:
        return _call(self, xp, inputs, attrs, lods, device, wanted, on_numpy)
    given = {slot: [carried(item, lambda array: array) for item in items] for slot, items in inputs.items()}
    try:
        expected = _call(self, xp, inputs, attrs, lods, on_numpy=on_numpy)
    except Exception as error:
        _require_error(error, self, given, attrs, lods)
        raise
    got = _on_device(self, given, attrs, lods)
    for slot, mine, theirs in zip(self.output_slots, got, expected, strict=True):
        _agree(f"{self.type}, {slot.name}", mine, theirs, self.effects.random)
    return expected


def _require_error(
    error: Exception, definition: OpDef, inputs: Any, attrs: dict[str, Any], lods: Any
) -> None:
    """Assert that the device raises what the host did."""
    try:
        _on_device(definition, inputs, attrs, lods)
    except Exception as other:
        # Where the device notes an error for later, the host may say more.
        alike = type(other) is type(error) and str(error).startswith(str(other))
        assert alike, f"{definition.type} raises {other!r} on the device, {error!r} on the host"
        return
    raise AssertionError(f"{definition.type} raises {error!r} on the host, and nothing on the device")


def _on_device(
    definition: OpDef, inputs: dict[str, list[Any]], attrs: dict[str, Any], lods: Any
) -> list[Any]:
    """The results of an operator on the device, copied to the host."""
    device = _mode["device"]
    with device.active(), paused():
        given = _up(inputs)
        results = _call(definition, device.xp, given, attrs, lods, device)
        found = [carried(result, _down) for result in results]
        faults.raise_pending(device)
        if lods is None:
            _check_replay(definition, inputs, attrs, found)
    return found


def _check_replay(definition: OpDef, inputs: dict[str, list[Any]], attrs: dict[str, Any], want: Any) -> None:
    """Assert that a CUDA graph of the operator gives `want`, unless it may need the host."""
    device = _mode["device"]
    cuda = device.xp.cuda
    given = _up(inputs)
    made: list[Any] = []

    def work() -> None:
        made[:] = _call(definition, device.xp, given, attrs, None, device)

    # Temporaries of a graph have a pool of their own, as in plans, which lives as long as the graph.
    pool = cuda.MemoryPool()
    try:
        with cuda.using_allocator(pool.malloc):
            recording = Recording(device, work, cuda.Stream(non_blocking=True))
    except RuntimeError:  # of CUDA, of CuPy or our own (NotCapturable)
        if definition.type not in WAITING:
            raise
        return
    recording.launch()
    found = [carried(result, _down) for result in made]
    faults.raise_pending(device)
    for slot, mine, theirs in zip(definition.output_slots, found, want, strict=True):
        _agree(f"{definition.type}, {slot.name}, replayed", mine, theirs, definition.effects.random)


def _up(inputs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {slot: [carried(item, _copied_up) for item in items] for slot, items in inputs.items()}


def _copied_up(array: Any) -> Any:
    return _mode["device"].put(
        np.array(array, order="C") if isinstance(array, (np.ndarray, np.generic)) else array
    )


def _down(array: Any) -> Any:
    if array is None:
        return None
    assert backend.on_device(array), f"a result is {type(array)}, not an array of the device"
    return backend.to_host(array)


def _agree(what: str, got: Any, want: Any, shape_only: bool = False) -> None:
    """Assert that both are alike: arrays, lists, `LodArray`s, SelectedRows, tensor arrays, or None."""
    if want is None or got is None:
        # Launchers may leave out what nobody can ask for (reserved space).
        assert want is None and got is None, f"{what}: {got} on the device, {want} on the host"
    elif isinstance(want, list):
        assert len(got) == len(want), f"{what}: {len(got)} results, not {len(want)}"
        for mine, theirs in zip(got, want, strict=True):
            _agree(what, mine, theirs, shape_only)
    elif isinstance(want, LodArray):
        assert same(got.lod, want.lod), f"{what}: LoD {got.lod}, expected {want.lod}"
        _agree(what, got.array, want.array, shape_only)
    elif isinstance(want, RankTable):
        assert repr(got) == repr(want), what
    elif isinstance(want, TensorArray):
        assert len(got) == len(want) and all(map(same, got.lods, want.lods)), (
            f"{what}: {got}, expected {want}"
        )
        _agree(what, got.arrays, want.arrays, shape_only)
    elif isinstance(want, SelectedRows):
        # On the device rows may come more often: nothing waits there to count different ones.
        table = SelectedRows(to_host(got.rows), to_host(got.values), got.height).dense()
        _agree(what, table, want.dense(), shape_only)
    else:
        want = np.asarray(want)
        assert got.shape == want.shape, f"{what}: shape {got.shape} on the device, {want.shape} on the host"
        if (
            got.dtype == np.float16 and want.dtype == np.float32
        ):  # callers narrow what the host makes of halves
            want = want.astype(np.float16)
        assert got.dtype == want.dtype, f"{what}: {got.dtype} on the device, {want.dtype} on the host"
        if not shape_only and want.size:
            _close(what, got, want)


def _close(what: str, got: np.ndarray, want: np.ndarray) -> None:
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    rtol, atol = TOLERANCES[str(want.dtype)]
    scale = max(1.0, float(np.abs(want, where=np.isfinite(want), out=np.zeros_like(want)).max()))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol * scale, err_msg=what)
