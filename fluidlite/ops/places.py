"""Which module declares which operators. Written by scripts/lazy_names.py."""

# fmt: off
PLACES = {
    "clicks.data_norm": "data_norm data_norm_grad",  # noqa: E501
    "clicks.filter_by_instag": "filter_by_instag filter_by_instag_grad",  # noqa: E501
    "clicks.hash": "hash",  # noqa: E501
    "contrib.fused_elemwise": "fused_elemwise_activation fused_elemwise_activation_grad",  # noqa: E501
    "contrib.matching": "match_matrix_tensor match_matrix_tensor_grad sequence_topk_avg_pooling sequence_topk_avg_pooling_grad",  # noqa: E501
    "contrib.partial": "partial_concat partial_concat_grad partial_sum partial_sum_grad",  # noqa: E501
    "contrib.rank_attention": "rank_attention rank_attention_grad",  # noqa: E501
    "contrib.seq_pool": "fused_embedding_seq_pool fused_embedding_seq_pool_grad",  # noqa: E501
    "contrib.shuffle_batch": "shuffle_batch shuffle_batch_grad",  # noqa: E501
    "contrib.tdm": "tdm_child tdm_sampler",  # noqa: E501
    "contrib.var_conv": "var_conv_2d var_conv_2d_grad",  # noqa: E501
    "control_flow.branches": "conditional_block conditional_block_grad conditional_block_infer keep_value select_input select_output",  # noqa: E501
    "control_flow.loops": "while while_grad",  # noqa: E501
    "control_flow.rank_table": "lod_rank_table max_sequence_len reorder_lod_tensor_by_rank reorder_lod_tensor_by_rank_grad",  # noqa: E501
    "control_flow.recurrent": "recurrent recurrent_grad rnn_memory_helper rnn_memory_helper_grad",  # noqa: E501
    "control_flow.split_rows": "merge_lod_tensor merge_lod_tensor_infer split_lod_tensor",  # noqa: E501
    "control_flow.step_arrays": "array_to_lod_tensor lod_tensor_to_array shrink_rnn_memory shrink_rnn_memory_grad",  # noqa: E501
    "control_flow.tensor_array": "lod_array_length read_from_array tensor_array_to_tensor tensor_array_to_tensor_grad write_to_array",  # noqa: E501
    "detection.anchors": "anchor_generator density_prior_box prior_box",  # noqa: E501
    "detection.boxes": "box_clip box_coder box_decoder_and_assign iou_similarity polygon_box_transform",  # noqa: E501
    "detection.mask_targets": "generate_mask_labels",  # noqa: E501
    "detection.matching": "bipartite_match mine_hard_examples target_assign",  # noqa: E501
    "detection.nms": "locality_aware_nms matrix_nms multiclass_nms multiclass_nms2",  # noqa: E501
    "detection.proposal_targets": "generate_proposal_labels retinanet_target_assign rpn_target_assign",  # noqa: E501
    "detection.proposals": "collect_fpn_proposals distribute_fpn_proposals generate_proposals",  # noqa: E501
    "detection.retinanet": "retinanet_detection_output sigmoid_focal_loss sigmoid_focal_loss_grad",  # noqa: E501
    "detection.roi": "psroi_pool psroi_pool_grad roi_align roi_align_grad roi_pool roi_pool_grad",  # noqa: E501
    "detection.roi_deformable": "deformable_psroi_pooling deformable_psroi_pooling_grad",  # noqa: E501
    "detection.roi_perspective": "roi_perspective_transform roi_perspective_transform_grad",  # noqa: E501
    "detection.roi_precise": "prroi_pool prroi_pool_grad",  # noqa: E501
    "detection.yolo": "yolo_box yolov3_loss yolov3_loss_grad",  # noqa: E501
    "distributed.remote": "checkpoint_notify distributed_lookup_table fetch_barrier listen_and_serv recv recv_save send send_barrier",  # noqa: E501
    "distributed.shards": "fake_init merge_ids ref_by_trainer_id split_byref split_ids split_selected_rows",  # noqa: E501
    "fused.attention_lstm": "attention_lstm fused_embedding_fc_lstm",  # noqa: E501
    "fused.dense": "fusion_repeated_fc_relu fusion_squared_mat_sub",  # noqa: E501
    "fused.rnn": "fusion_gru fusion_lstm",  # noqa: E501
    "fused.sequences": "fusion_seqconv_eltadd_relu fusion_seqexpand_concat_fc fusion_seqpool_concat fusion_seqpool_cvm_concat",  # noqa: E501
    "loss.center_loss": "center_loss center_loss_grad",  # noqa: E501
    "loss.crf": "crf_decoding linear_chain_crf linear_chain_crf_grad",  # noqa: E501
    "loss.cross_entropy": "cross_entropy cross_entropy2 cross_entropy_grad cross_entropy_grad2 cross_entropy_grad_grad softmax_with_cross_entropy softmax_with_cross_entropy_grad softmax_with_cross_entropy_grad_grad",  # noqa: E501
    "loss.ctc": "ctc_align warpctc warpctc_grad",  # noqa: E501
    "loss.cvm": "cvm cvm_grad",  # noqa: E501
    "loss.hsigmoid": "hierarchical_sigmoid hierarchical_sigmoid_grad",  # noqa: E501
    "loss.likelihood": "bce_loss bce_loss_grad nll_loss nll_loss_grad",  # noqa: E501
    "loss.modified_huber": "modified_huber_loss modified_huber_loss_grad",  # noqa: E501
    "loss.nce": "nce nce_grad",  # noqa: E501
    "loss.regression": "bpr_loss bpr_loss_grad hinge_loss hinge_loss_grad huber_loss huber_loss_grad kldiv_loss kldiv_loss_grad label_smooth label_smooth_grad log_loss log_loss_grad margin_rank_loss margin_rank_loss_grad rank_loss rank_loss_grad smooth_l1_loss smooth_l1_loss_grad teacher_student_sigmoid_loss teacher_student_sigmoid_loss_grad",  # noqa: E501
    "loss.sample_logits": "sample_logits sample_logits_grad",  # noqa: E501
    "loss.sigmoid": "sigmoid_cross_entropy_with_logits sigmoid_cross_entropy_with_logits_grad sigmoid_cross_entropy_with_logits_grad_grad",  # noqa: E501
    "math.cast": "cast scale",  # noqa: E501
    "math.clip": "clip clip_by_norm clip_grad squared_l2_norm squared_l2_norm_grad squared_l2_norm_grad_grad",  # noqa: E501
    "math.compare": "equal greater_equal greater_than is_empty isfinite isinf isnan less_equal less_than logical_and logical_not logical_or logical_xor not_equal where where_grad where_grad_grad where_index",  # noqa: E501
    "math.distances": "cos_sim cos_sim_grad dist dist_grad frobenius_norm frobenius_norm_grad l1_norm l1_norm_grad minus minus_grad p_norm p_norm_grad",  # noqa: E501
    "math.elementwise": "elementwise_add elementwise_add_grad elementwise_add_grad_grad elementwise_div elementwise_div_grad elementwise_div_grad_grad elementwise_floordiv elementwise_max elementwise_max_grad elementwise_max_grad_grad elementwise_min elementwise_min_grad elementwise_min_grad_grad elementwise_mod elementwise_mul elementwise_mul_grad elementwise_mul_grad_grad elementwise_pow elementwise_pow_grad elementwise_pow_grad_grad elementwise_sub elementwise_sub_grad elementwise_sub_grad_grad",  # noqa: E501
    "math.functions": "abs abs_grad acos acos_grad acos_grad_grad asin asin_grad asin_grad_grad atan atan_grad atan_grad_grad ceil ceil_grad cos cos_grad cos_grad_grad cosh cosh_grad cosh_grad_grad erf erf_grad erf_grad_grad exp exp_grad exp_grad_grad expm1 expm1_grad expm1_grad_grad floor floor_grad log log10 log10_grad log10_grad_grad log1p log1p_grad log1p_grad_grad log2 log2_grad log2_grad_grad log_grad log_grad_grad reciprocal reciprocal_grad reciprocal_grad_grad round round_grad rsqrt rsqrt_grad rsqrt_grad_grad sin sin_grad sin_grad_grad sinh sinh_grad sinh_grad_grad sqrt sqrt_grad sqrt_grad_grad square square_grad square_grad_grad tan tan_grad tan_grad_grad",  # noqa: E501
    "math.linalg": "cholesky cholesky_grad inverse inverse_grad",  # noqa: E501
    "math.matmul": "bilinear_tensor_product bilinear_tensor_product_grad matmul matmul_grad matmul_grad_grad mul mul_grad mul_grad_grad",  # noqa: E501
    "math.products": "addmm addmm_grad bmm bmm_grad bmm_grad_grad cross cross_grad dot dot_grad dot_grad_grad kron kron_grad kron_grad_grad",  # noqa: E501
    "math.reduce": "cumsum mean mean_grad reduce_all reduce_any reduce_max reduce_max_grad reduce_max_grad_grad reduce_mean reduce_mean_grad reduce_min reduce_min_grad reduce_min_grad_grad reduce_prod reduce_prod_grad reduce_sum reduce_sum_grad",  # noqa: E501
    "math.row_pairs": "conv_shift conv_shift_grad squared_l2_distance squared_l2_distance_grad",  # noqa: E501
    "math.sign": "sign",  # noqa: E501
    "metrics.alignment": "chunk_eval edit_distance",  # noqa: E501
    "metrics.detection_map": "detection_map",  # noqa: E501
    "metrics.metric": "accuracy auc mean_iou top_k",  # noqa: E501
    "metrics.ranking": "positive_negative_pair precision_recall",  # noqa: E501
    "nn.activation": "brelu brelu_grad elu elu_grad elu_grad_grad gelu gelu_grad gelu_grad_grad hard_shrink hard_shrink_grad hard_sigmoid hard_sigmoid_grad hard_swish hard_swish_grad hard_swish_grad_grad leaky_relu leaky_relu_grad logsigmoid logsigmoid_grad logsigmoid_grad_grad mish mish_grad mish_grad_grad relu relu6 relu6_grad relu_grad selu selu_grad selu_grad_grad sigmoid sigmoid_grad sigmoid_grad_grad silu silu_grad silu_grad_grad soft_relu soft_relu_grad soft_relu_grad_grad softplus softplus_grad softplus_grad_grad softshrink softshrink_grad softsign softsign_grad softsign_grad_grad stanh stanh_grad stanh_grad_grad swish swish_grad swish_grad_grad tanh tanh_grad tanh_grad_grad tanh_shrink tanh_shrink_grad tanh_shrink_grad_grad thresholded_relu thresholded_relu_grad",  # noqa: E501
    "nn.batch_norm": "batch_norm batch_norm_grad",  # noqa: E501
    "nn.conv": "conv2d conv2d_grad conv2d_transpose conv2d_transpose_grad conv3d conv3d_grad conv3d_transpose conv3d_transpose_grad depthwise_conv2d depthwise_conv2d_grad depthwise_conv2d_transpose depthwise_conv2d_transpose_grad",  # noqa: E501
    "nn.conv_double_grad": "conv2d_grad_grad conv2d_transpose_grad_grad conv3d_grad_grad conv3d_transpose_grad_grad depthwise_conv2d_grad_grad depthwise_conv2d_transpose_grad_grad",  # noqa: E501
    "nn.dropout": "dropout dropout_grad",  # noqa: E501
    "nn.embedding": "lookup_table lookup_table_grad lookup_table_v2 lookup_table_v2_grad one_hot one_hot_v2",  # noqa: E501
    "nn.fc": "fc",  # noqa: E501
    "nn.inplace_abn": "inplace_abn inplace_abn_grad",  # noqa: E501
    "nn.lrn": "lrn lrn_grad",  # noqa: E501
    "nn.norm": "group_norm group_norm_grad instance_norm instance_norm_grad layer_norm layer_norm_grad norm norm_grad",  # noqa: E501
    "nn.norm_double_grad": "batch_norm_grad_grad group_norm_grad_grad instance_norm_grad_grad layer_norm_grad_grad norm_grad_grad",  # noqa: E501
    "nn.parametric": "maxout maxout_grad maxout_grad_grad pow pow_grad pow_grad_grad prelu prelu_grad prelu_grad_grad",  # noqa: E501
    "nn.pool": "pool2d pool2d_grad pool2d_grad_grad pool3d pool3d_grad pool3d_grad_grad",  # noqa: E501
    "nn.pool_index": "max_pool2d_with_index max_pool2d_with_index_grad max_pool2d_with_index_grad_grad max_pool3d_with_index max_pool3d_with_index_grad max_pool3d_with_index_grad_grad",  # noqa: E501
    "nn.position_encoding": "add_position_encoding add_position_encoding_grad",  # noqa: E501
    "nn.softmax": "softmax softmax_grad softmax_grad_grad",  # noqa: E501
    "nn.spatial_pyramid": "spp spp_grad",  # noqa: E501
    "nn.spectral_norm": "spectral_norm spectral_norm_grad",  # noqa: E501
    "nn.tree_conv": "tree_conv tree_conv_grad",  # noqa: E501
    "nn.unpool": "unpool unpool_grad",  # noqa: E501
    "optimizers.adam": "adam",  # noqa: E501
    "optimizers.average": "average_accumulates",  # noqa: E501
    "optimizers.compressed": "dgc_clip_by_norm dgc_momentum",  # noqa: E501
    "optimizers.layerwise": "dpsgd lamb lars_momentum",  # noqa: E501
    "optimizers.proximal": "proximal_adagrad proximal_gd",  # noqa: E501
    "optimizers.updates": "adadelta adagrad adamax decayed_adagrad ftrl momentum rmsprop sgd",  # noqa: E501
    "program.assert_": "assert",  # noqa: E501
    "program.collective": "allreduce broadcast c_allgather c_allreduce_max c_allreduce_min c_allreduce_prod c_allreduce_sum c_broadcast c_comm_init c_comm_init_all c_gen_nccl_id c_reducescatter c_sync_calc_stream c_sync_comm_stream gen_nccl_id",  # noqa: E501
    "program.feed_fetch": "feed fetch get_places",  # noqa: E501
    "program.print_": "print",  # noqa: E501
    "program.py_func": "py_func",  # noqa: E501
    "program.reader": "create_double_buffer_reader create_py_reader read",  # noqa: E501
    "program.save_load": "load load_combine save save_combine",  # noqa: E501
    "quantization.dequantize": "dequantize_abs_max dequantize_log fake_channel_wise_dequantize_max_abs fake_dequantize_max_abs",  # noqa: E501
    "quantization.fake_quantize": "fake_channel_wise_quantize_abs_max fake_quantize_abs_max fake_quantize_dequantize_moving_average_abs_max fake_quantize_moving_average_abs_max fake_quantize_range_abs_max moving_average_abs_max_scale",  # noqa: E501
    "quantization.integers": "dequantize lookup_table_dequant quantize requantize",  # noqa: E501
    "rnn.cudnn_lstm": "cudnn_lstm cudnn_lstm_grad",  # noqa: E501
    "rnn.gru": "gru gru_grad",  # noqa: E501
    "rnn.lstm": "lstm lstm_grad lstmp lstmp_grad",  # noqa: E501
    "rnn.unit": "gru_unit gru_unit_grad lstm_unit lstm_unit_grad",  # noqa: E501
    "sequences.beam_search": "beam_search beam_search_decode gather_tree",  # noqa: E501
    "sequences.conv": "sequence_conv sequence_conv_grad",  # noqa: E501
    "sequences.expand": "sequence_expand sequence_expand_as sequence_expand_as_grad sequence_expand_grad",  # noqa: E501
    "sequences.lod_reset": "lod_reset lod_reset_grad",  # noqa: E501
    "sequences.order": "sequence_concat sequence_concat_grad sequence_reverse",  # noqa: E501
    "sequences.pad": "sequence_mask sequence_pad sequence_pad_grad sequence_unpad sequence_unpad_grad",  # noqa: E501
    "sequences.parts": "sequence_enumerate sequence_erase sequence_reshape sequence_reshape_grad sequence_scatter sequence_scatter_grad sequence_slice sequence_slice_grad",  # noqa: E501
    "sequences.pool": "sequence_pool sequence_pool_grad",  # noqa: E501
    "sequences.row_conv": "row_conv row_conv_grad",  # noqa: E501
    "sequences.softmax": "sequence_softmax sequence_softmax_grad",  # noqa: E501
    "tensor.fill": "assign assign_value diag eye fill fill_any_like fill_constant fill_constant_batch_size_like fill_zeros_like fill_zeros_like2 increment linspace range",  # noqa: E501
    "tensor.gather": "gather gather_grad gather_nd gather_nd_grad scatter scatter_grad scatter_nd_add scatter_nd_add_grad",  # noqa: E501
    "tensor.indexing": "diag_embed diag_embed_grad index_sample index_sample_grad index_select index_select_grad masked_select masked_select_grad meshgrid meshgrid_grad roll roll_grad trace trace_grad tril_triu tril_triu_grad unbind unbind_grad",  # noqa: E501
    "tensor.join": "concat concat_grad multiplex multiplex_grad split sum",  # noqa: E501
    "tensor.manipulation": "expand expand_as expand_as_grad expand_grad flip reverse stack stack_grad transpose transpose2 transpose2_grad transpose_grad unstack unstack_grad",  # noqa: E501
    "tensor.pad": "crop crop_grad crop_tensor crop_tensor_grad pad pad2d pad2d_grad pad_constant_like pad_constant_like_grad pad_grad",  # noqa: E501
    "tensor.random_": "gaussian_random gaussian_random_batch_size_like randint seed truncated_gaussian_random uniform_random uniform_random_batch_size_like",  # noqa: E501
    "tensor.random_choice": "randperm sampling_id",  # noqa: E501
    "tensor.random_crop": "random_crop",  # noqa: E501
    "tensor.search": "arg_max arg_min argsort argsort_grad",  # noqa: E501
    "tensor.selected_rows": "dense_from_selected_rows get_tensor_from_selected_rows merge_selected_rows",  # noqa: E501
    "tensor.slice": "shape size slice slice_grad strided_slice strided_slice_grad",  # noqa: E501
    "tensor.unique": "allclose shard_index unique unique_with_counts",  # noqa: E501
    "tensor.views": "flatten flatten2 flatten2_grad flatten_grad reshape reshape2 reshape2_grad reshape_grad squeeze squeeze2 squeeze2_grad squeeze_grad unsqueeze unsqueeze2 unsqueeze2_grad unsqueeze_grad",  # noqa: E501
    "vision.deformable": "deformable_conv deformable_conv_grad deformable_conv_v1 deformable_conv_v1_grad",  # noqa: E501
    "vision.fsp": "fsp fsp_grad",  # noqa: E501
    "vision.grid_sampler": "affine_channel affine_channel_grad affine_grid affine_grid_grad grid_sampler grid_sampler_grad",  # noqa: E501
    "vision.im2sequence": "im2sequence im2sequence_grad",  # noqa: E501
    "vision.interp": "bicubic_interp bicubic_interp_grad bilinear_interp bilinear_interp_grad linear_interp linear_interp_grad nearest_interp nearest_interp_grad trilinear_interp trilinear_interp_grad",  # noqa: E501
    "vision.shuffle": "pixel_shuffle pixel_shuffle_grad shuffle_channel shuffle_channel_grad space_to_depth space_to_depth_grad temporal_shift temporal_shift_grad unfold unfold_grad",  # noqa: E501
    "vision.similarity_focus": "similarity_focus",  # noqa: E501
}
