"""The modules of lazily loaded names. Written by scripts/lazy_names.py."""

# ruff: noqa: E501
# fmt: off
LAZY: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "fluidlite": (
        {
        },
        {
            "": "reader contrib=fluid.contrib core=fluid.core data_feeder=fluid.data_feeder dygraph=fluid.dygraph evaluator=fluid.evaluator incubate=fluid.incubate metrics=fluid.metrics nets=fluid.nets op=fluid.op profiler=fluid.profiler",
            ".base.errors": "ArgumentAssertion ArgumentError ArgumentTypeError DataTypeError DownloadError MissingModelError MissingPartError MissingValueError NotSupportedError StaticModeError TypeAssertion UnknownOperator",
            ".base.version": "VersionError",
            ".distributed.communicator": "DistributedError RankLost",
            ".distributed.rpc.transport": "RpcError ServerLost TrainerLost",
            ".executor": "Executor",
            ".executor.lod_tensor": "create_lod_tensor create_random_int_lodtensor",
            ".executor.parallel.compiler": "CompiledProgram ParallelExecutor",
            ".executor.parallel.strategies": "BuildStrategy ExecutionStrategy",
            ".fluid.core.system": "core_suffix legacy_core",
            ".fluid.data_feeder": "DataFeeder",
            ".fluid.dygraph": "Layer disable_dygraph disable_imperative enable_dygraph enable_imperative load_dygraph save_dygraph",
            ".fluid.dygraph.base": "in_dygraph_mode",
            ".fluid.dygraph.nn": "NCE BatchNorm BCELoss BilinearTensorProduct Conv2D Conv2DTranspose Conv3D Conv3DTranspose Dropout Embedding GroupNorm GRUUnit InstanceNorm L1Loss LayerNorm Linear MSELoss NLLLoss Pool2D PRelu SpectralNorm TreeConv",
            ".fluid.io": "load load_program_state save set_program_state",
            ".fluid.metrics": "NotProbability",
            ".fluid.small_modules": "embedding memory_optimize monkey_patch_varbase monkey_patch_variable one_hot release_memory",
            ".old_scripts": "OldNameWarning",
            ".reader.decorators": "ComposeNotAligned SizeError",
            ".reader.loader.epoch": "LoaderError",
            ".reader.loader.source": "FieldCountError ItemCountError",
            ".reader.slots.datasets": "DatasetFactory InMemoryDataset QueueDataset",
            ".reader.slots.feed_description": "DataFeedDesc",
            ".reader.worker.channel": "WorkerDied WorkerTimeout WorkerTraceback",
        },
    ),
    "fluidlite.dataset": (
        {
        },
        {
            "..reader.slots.datasets": "DatasetBase DatasetFactory InMemoryDataset QueueDataset",
            "": "cifar common conll05 flowers image imdb imikolov mnist movielens mq2007 sentiment uci_housing voc2012 wmt14 wmt16",
        },
    ),
    "fluidlite.executor": (
        {
        },
        {
            ".executor": "Executor",
            ".functions": "_as_lodtensor _fetch_var _to_name_str as_numpy check_feed_shape_type dimension_is_compatible_with dtype_is_compatible_with has_feed_operators has_fetch_operators",
            ".reading": "FetchHandler",
        },
    ),
    "fluidlite.fluid.core": (
        {
            "..inference": "AnalysisConfig AnalysisPredictor CpuPassStrategy GpuPassStrategy MkldnnQuantizerConfig NativeConfig NativePaddlePredictor PaddleBuf PaddleDType PaddlePassBuilder PaddlePlace PaddlePredictor PaddleTensor PassStrategy ZeroCopyTensor create_paddle_predictor paddle_dtype_size paddle_tensor_to_bytes",
            ".processes": "Gloo",
        },
        {
        },
    ),
    "fluidlite.fluid.dygraph": (
        {
        },
        {
            "...eager.tracer": "BackwardStrategy",
            "..optimizer.epoch_schedules": "LambdaDecay MultiStepDecay ReduceLROnPlateau StepDecay",
            "..optimizer.schedules": "CosineDecay ExponentialDecay InverseTimeDecay LinearLrWarmup NaturalExpDecay NoamDecay PiecewiseDecay PolynomialDecay",
            ".base": "Tracer disable_dygraph disable_imperative enable_dygraph enable_imperative enabled grad guard no_grad to_variable",
            ".checkpoint": "load_dygraph save_dygraph",
            ".container": "LayerList ParameterList Sequential",
            ".jit": "ProgramTranslator TracedLayer declarative dygraph_to_static_func",
            ".jit.models": "StaticModelRunner",
            ".layers": "Layer",
            ".nn": "NCE BatchNorm BCELoss BilinearTensorProduct Conv2D Conv2DTranspose Conv3D Conv3DTranspose Dropout Embedding GroupNorm GRUUnit InstanceNorm L1Loss LayerNorm Linear MSELoss NLLLoss Pool2D PRelu SpectralNorm TreeConv",
            ".parallel": "DataParallel ParallelEnv prepare_context",
        },
    ),
    "fluidlite.fluid.dygraph.dygraph_to_static": (
        {
        },
        {
            "..jit.translator": "ProgramTranslator",
            ".ast_transformer": "AstNodeWrapper DygraphToStaticAst convert_to_static",
        },
    ),
    "fluidlite.fluid.incubate": (
        {
        },
        {
            "": "fleet",
        },
    ),
    "fluidlite.fluid.incubate.fleet": (
        {
        },
        {
            "": "base collective parameter_server utils",
        },
    ),
    "fluidlite.fluid.incubate.fleet.parameter_server": (
        {
        },
        {
            "": "distribute_transpiler",
        },
    ),
    "fluidlite.fluid.incubate.fleet.utils": (
        {
        },
        {
            "": "utils",
        },
    ),
    "fluidlite.fluid.io": (
        {
        },
        {
            "...reader": "ComposeNotAligned DataLoader Dataset PyReader batch buffered cache chain compose default_collate_fn firstn map_readers multiprocess_reader shuffle xmap_readers BatchSampler=FluidBatchSampler",
            ".inference": "append_fetch_ops load_inference_model prepend_feed_ops save_inference_model",
            ".saving": "_load_persistable_nodes _save_persistable_nodes load_params load_persistables load_vars save_params save_persistables save_vars",
            ".selection": "get_parameter_value get_parameter_value_by_name get_program_parameter get_program_persistable_vars is_belong_to_optimizer is_parameter is_persistable",
            ".state": "load load_program_state save set_program_state",
        },
    ),
    "fluidlite.fluid.layers": (
        {
            ".control_flow": "Print array_length array_read array_write autoincreased_step_counter create_array increment tensor_array_to_tensor case cond switch_case Switch DynamicRNN reorder_lod_tensor_by_rank IfElse While while_loop StaticRNN",
            ".detection": "anchor_generator bipartite_match box_clip box_coder box_decoder_and_assign density_prior_box iou_similarity polygon_box_transform prior_box target_assign generate_mask_labels locality_aware_nms matrix_nms multiclass_nms retinanet_detection_output retinanet_target_assign sigmoid_focal_loss yolo_box yolov3_loss collect_fpn_proposals distribute_fpn_proposals generate_proposal_labels generate_proposals rpn_target_assign deformable_conv deformable_roi_pooling prroi_pool psroi_pool roi_align roi_perspective_transform roi_pool detection_output multi_box_head ssd_loss",
            ".distributions": "Categorical MultivariateNormalDiag Normal Uniform",
            ".inputs": "data",
            ".io": "BlockGuardServ ListenAndServ Recv Send create_py_reader_by_data double_buffer load monkey_patch_reader_methods py_reader read_file",
            ".learning_rate_scheduler": "cosine_decay exponential_decay inverse_time_decay linear_lr_warmup natural_exp_decay noam_decay piecewise_decay polynomial_decay",
            ".loss": "bpr_loss center_loss cross_entropy dice_loss huber_loss kldiv_loss label_smooth log_loss margin_rank_loss mse_loss npair_loss rank_loss sigmoid_cross_entropy_with_logits smooth_l1 softmax_with_cross_entropy square_error_cost teacher_student_sigmoid_loss hsigmoid nce sampled_softmax_with_cross_entropy chunk_eval crf_decoding ctc_greedy_decoder edit_distance linear_chain_crf warpctc",
            ".metric_op": "accuracy auc",
            ".nn": "add_position_encoding brelu clip clip_by_norm dropout elu hard_sigmoid hard_swish leaky_relu log log1p log_softmax maxout mean_iou mish one_hot pow prelu relu relu6 selu sign soft_relu softmax stanh swish topk adaptive_pool2d adaptive_pool3d conv2d conv2d_transpose conv3d conv3d_transpose pool2d pool3d continuous_value_model data_norm embedding fc filter_by_instag hash batch_norm group_norm inplace_abn instance_norm l2_normalize layer_norm spectral_norm PyFuncRegistry py_func affine_channel affine_grid grid_sampler im2sequence image_resize image_resize_short interpolate lrn pixel_shuffle resize_bilinear resize_nearest resize_trilinear shuffle_channel similarity_focus space_to_depth temporal_shift unfold",
            ".ops": "abs acos asin atan ceil cos cumsum erf exp floor gelu hard_shrink logsigmoid reciprocal round rsqrt sigmoid sin softplus softshrink softsign sqrt square tanh tanh_shrink thresholded_relu",
            ".recurrent": "BeamSearchDecoder beam_search beam_search_decode gather_tree GRUCell LSTMCell RNNCell rnn BasicDecoder DecodeHelper Decoder GreedyEmbeddingHelper SampleEmbeddingHelper TrainingHelper dynamic_decode dynamic_gru dynamic_lstm dynamic_lstmp gru_unit lstm lstm_unit row_conv",
            ".sequence_lod": "sequence_concat sequence_conv sequence_enumerate sequence_expand sequence_expand_as sequence_first_step sequence_last_step sequence_mask sequence_pad sequence_pool sequence_reshape sequence_reverse sequence_scatter sequence_slice sequence_softmax sequence_unpad",
            ".tensor": "argmax argmin argsort elementwise_add elementwise_div elementwise_equal elementwise_floordiv elementwise_max elementwise_min elementwise_mod elementwise_mul elementwise_pow elementwise_sub equal greater_equal greater_than has_inf has_nan is_empty isfinite less_equal less_than logical_and logical_not logical_or logical_xor logsumexp mean not_equal reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod reduce_sum scale sum sums where arange diag eye fill_constant fill_constant_batch_size_like full full_like linspace ones ones_like range zeros zeros_like crop crop_tensor diag_embed gather gather_nd index_sample index_select meshgrid nonzero randperm roll sampling_id scatter scatter_nd scatter_nd_add shard_index slice strided_slice t tril triu unique unique_with_counts concat expand expand_as flip multiplex pad pad2d pad_constant_like reverse split stack unstack addcmul addmm allclose bilinear_tensor_product bmm clamp cos_sim cross dist dot fsp_matrix kron matmul mul trace gaussian_random gaussian_random_batch_size_like randint randn random_crop uniform_random uniform_random_batch_size_like flatten rank reshape shape size squeeze transpose unsqueeze assign cast create_global_var create_parameter create_tensor get_tensor_from_selected_rows lod_append lod_reset merge_selected_rows",
        },
        {
            "": "control_flow detection distributions io learning_rate_scheduler loss metric_op nn ops recurrent sequence_lod tensor utils",
            ".control_flow": "BlockGuard ConditionalBlock WhileGuard array_to_lod_tensor copy_var_to_parent_block lod_rank_table lod_tensor_to_array max_sequence_len merge_lod_tensor select_input select_output shrink_memory split_lod_tensor",
            ".learning_rate_scheduler": "_decay_step_counter",
            ".ops": "_scale",
            ".utils": "compare_ops",
        },
    ),
    "fluidlite.fluid.layers.control_flow": (
        {
            ".arrays": "Print array_length array_read array_write autoincreased_step_counter create_array increment tensor_array_to_tensor",
            ".branching": "case cond switch_case",
            ".conditional_block": "Switch",
            ".dynamic_rnn": "DynamicRNN reorder_lod_tensor_by_rank",
            ".if_else": "IfElse",
            ".loops": "While while_loop",
            ".static_rnn": "StaticRNN",
        },
        {
            ".branching": "copy_var_to_parent_block select_input select_output",
            ".conditional_block": "BlockGuard ConditionalBlock ConditionalBlockGuard",
            ".dynamic_rnn": "array_to_lod_tensor lod_rank_table lod_tensor_to_array max_sequence_len shrink_memory",
            ".if_else": "IfElseBlockGuard merge_lod_tensor split_lod_tensor",
            ".loops": "WhileGuard",
            ".static_rnn": "BlockGuardWithCompletion StaticRNNMemoryLink",
        },
    ),
    "fluidlite.fluid.layers.detection": (
        {
            ".anchors": "anchor_generator bipartite_match box_clip box_coder box_decoder_and_assign density_prior_box iou_similarity polygon_box_transform prior_box target_assign",
            ".one_stage": "generate_mask_labels locality_aware_nms matrix_nms multiclass_nms retinanet_detection_output retinanet_target_assign sigmoid_focal_loss yolo_box yolov3_loss",
            ".proposals": "collect_fpn_proposals distribute_fpn_proposals generate_proposal_labels generate_proposals rpn_target_assign",
            ".regions": "deformable_conv deformable_roi_pooling prroi_pool psroi_pool roi_align roi_perspective_transform roi_pool",
            ".ssd": "detection_output multi_box_head ssd_loss",
        },
        {
            ".one_stage": "detection_map",
        },
    ),
    "fluidlite.fluid.layers.loss": (
        {
            ".classification": "bpr_loss center_loss cross_entropy dice_loss huber_loss kldiv_loss label_smooth log_loss margin_rank_loss mse_loss npair_loss rank_loss sigmoid_cross_entropy_with_logits smooth_l1 softmax_with_cross_entropy square_error_cost teacher_student_sigmoid_loss",
            ".sampled": "hsigmoid nce sampled_softmax_with_cross_entropy",
            ".sequences": "chunk_eval crf_decoding ctc_greedy_decoder edit_distance linear_chain_crf warpctc",
        },
        {
            ".classification": "cross_entropy2 kIgnoreIndex",
        },
    ),
    "fluidlite.fluid.layers.nn": (
        {
            ".activations": "add_position_encoding brelu clip clip_by_norm dropout elu hard_sigmoid hard_swish leaky_relu log log1p log_softmax maxout mean_iou mish one_hot pow prelu relu relu6 selu sign soft_relu softmax stanh swish topk",
            ".convolution": "adaptive_pool2d adaptive_pool3d conv2d conv2d_transpose conv3d conv3d_transpose pool2d pool3d",
            ".dense": "continuous_value_model data_norm embedding fc filter_by_instag hash",
            ".normalization": "batch_norm group_norm inplace_abn instance_norm l2_normalize layer_norm spectral_norm",
            ".user_functions": "PyFuncRegistry py_func",
            ".vision": "affine_channel affine_grid grid_sampler im2sequence image_resize image_resize_short interpolate lrn pixel_shuffle resize_bilinear resize_nearest resize_trilinear shuffle_channel similarity_focus space_to_depth temporal_shift unfold",
        },
        {
        },
    ),
    "fluidlite.fluid.layers.recurrent": (
        {
            ".beams": "BeamSearchDecoder beam_search beam_search_decode gather_tree",
            ".cells": "GRUCell LSTMCell RNNCell rnn",
            ".decoding": "BasicDecoder DecodeHelper Decoder GreedyEmbeddingHelper SampleEmbeddingHelper TrainingHelper dynamic_decode",
            ".sequences": "dynamic_gru dynamic_lstm dynamic_lstmp gru_unit lstm lstm_unit row_conv",
        },
        {
        },
    ),
    "fluidlite.fluid.layers.tensor": (
        {
            ".arithmetic": "argmax argmin argsort elementwise_add elementwise_div elementwise_equal elementwise_floordiv elementwise_max elementwise_min elementwise_mod elementwise_mul elementwise_pow elementwise_sub equal greater_equal greater_than has_inf has_nan is_empty isfinite less_equal less_than logical_and logical_not logical_or logical_xor logsumexp mean not_equal reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod reduce_sum scale sum sums where",
            ".constants": "arange diag eye fill_constant fill_constant_batch_size_like full full_like linspace ones ones_like range zeros zeros_like",
            ".indexing": "crop crop_tensor diag_embed gather gather_nd index_sample index_select meshgrid nonzero randperm roll sampling_id scatter scatter_nd scatter_nd_add shard_index slice strided_slice t tril triu unique unique_with_counts",
            ".joining": "concat expand expand_as flip multiplex pad pad2d pad_constant_like reverse split stack unstack",
            ".matrix": "addcmul addmm allclose bilinear_tensor_product bmm clamp cos_sim cross dist dot fsp_matrix kron matmul mul trace",
            ".random": "gaussian_random gaussian_random_batch_size_like randint randn random_crop uniform_random uniform_random_batch_size_like",
            ".shapes": "flatten rank reshape shape size squeeze transpose unsqueeze",
            ".variables": "assign cast create_global_var create_parameter create_tensor get_tensor_from_selected_rows lod_append lod_reset merge_selected_rows",
        },
        {
            ".variables": "load_combine save save_combine",
        },
    ),
    "fluidlite.fluid.optimizer": (
        {
        },
        {
            ".adaptive": "SGD Adadelta AdadeltaOptimizer Adagrad AdagradOptimizer Adam Adamax AdamaxOptimizer AdamOptimizer DecayedAdagrad DecayedAdagradOptimizer Dpsgd DpsgdOptimizer Ftrl FtrlOptimizer Lamb LambOptimizer LarsMomentum LarsMomentumOptimizer Momentum MomentumOptimizer RMSProp RMSPropOptimizer SGDOptimizer",
            ".averaging": "ExponentialMovingAverage ModelAverage",
            ".base": "Optimizer",
            ".wrappers": "DGCMomentumOptimizer LookaheadOptimizer PipelineOptimizer RecomputeOptimizer",
        },
    ),
    "fluidlite.framework": (
        {
        },
        {
            "..base.version": "require_version",
            ".serialization.ir_graph": "IrGraph IrNode IrOpNode IrVarNode",
            ".serialization.op_protos": "OpProtoHolder get_all_op_protos",
        },
    ),
    "fluidlite.paddle": (
        {
            ".tensor": "arange assign create_parameter diag empty empty_like eye full full_like linspace meshgrid ones ones_like to_tensor tril triu zeros zeros_like addmm bincount bmm cholesky cross diagonal dist dot einsum histogram inner inverse kron matmul mm mv norm outer trace allclose equal equal_all greater_equal greater_than is_empty is_tensor isclose less_equal less_than logical_and logical_not logical_or logical_xor not_equal broadcast_shape broadcast_to cast chunk concat crop expand expand_as flatten flip gather gather_nd moveaxis rank repeat_interleave reshape reshape_ reverse roll scatter scatter_nd scatter_nd_add shape slice split squeeze squeeze_ stack strided_slice t tile tolist transpose unbind unique unsqueeze unsqueeze_ unstack abs acos add add_n asin atan ceil clip cos cosh cumsum divide erf exp expm1 floor floor_divide floor_mod increment isfinite isinf isnan lerp log log10 log1p log2 maximum minimum mod multiplex multiply neg pow reciprocal remainder round rsqrt scale sigmoid sign sin sinh sqrt square stanh subtract tan tanh trunc bernoulli multinomial normal rand randint randint_like randn randperm seed standard_normal uniform argmax argmin argsort index_sample index_select masked_select nonzero sort topk where all any count_nonzero logsumexp max mean median min numel prod std sum var",
        },
        {
            "..fluid.dygraph": "DataParallel",
            "": "autograd complex hapi io jit metric nn optimizer static utils vision",
            ".hapi": "Model",
            ".hapi.summary": "summary",
            ".saving": "load save",
            ".small_modules": "ParamAttr",
        },
    ),
    "fluidlite.paddle.distributed": (
        {
        },
        {
            "": "cloud_utils launch launch_ps utils",
        },
    ),
    "fluidlite.paddle.nn.functional": (
        {
            ".activation": "celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid log_softmax maxout mish prelu relu relu6 selu sigmoid silu softmax softplus softshrink softsign swish tanh tanhshrink thresholded_relu",
            ".common": "affine_grid alpha_dropout bilinear cosine_similarity dropout dropout2d dropout3d embedding grid_sample interpolate label_smooth linear normalize one_hot pad pairwise_distance pixel_shuffle unfold upsample zeropad2d",
            ".conv": "conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose",
            ".loss": "binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy dice_loss hinge_embedding_loss kl_div l1_loss log_loss margin_ranking_loss mse_loss nll_loss npair_loss sigmoid_focal_loss smooth_l1_loss softmax_with_cross_entropy square_error_cost triplet_margin_loss",
            ".norm": "batch_norm group_norm instance_norm layer_norm local_response_norm",
            ".pooling": "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d",
        },
        {
        },
    ),
    "fluidlite.paddle.nn.layer": (
        {
            ".common": "AlphaDropout Bilinear CosineSimilarity Dropout Dropout2D Dropout3D Embedding Flatten Identity LayerDict LayerList Linear Pad1D Pad2D Pad3D PairwiseDistance ParameterList PixelShuffle Sequential Unfold Upsample UpsamplingBilinear2D UpsamplingNearest2D ZeroPad2D",
            ".conv": "Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose",
            ".norm": "BatchNorm BatchNorm1D BatchNorm2D BatchNorm3D GroupNorm InstanceNorm1D InstanceNorm2D InstanceNorm3D LayerNorm LocalResponseNorm SpectralNorm SyncBatchNorm",
            ".of_functions": "AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D AdaptiveMaxPool1D AdaptiveMaxPool2D AdaptiveMaxPool3D AvgPool1D AvgPool2D AvgPool3D BCELoss BCEWithLogitsLoss CELU CosineEmbeddingLoss CrossEntropyLoss ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss KLDivLoss L1Loss LeakyReLU LogSigmoid LogSoftmax MSELoss MarginRankingLoss MaxPool1D MaxPool2D MaxPool3D Maxout Mish NLLLoss PReLU ReLU ReLU6 SELU Sigmoid Silu SmoothL1Loss Softmax Softplus Softshrink Softsign Swish Tanh Tanhshrink ThresholdedReLU TripletMarginLoss",
            ".rnn": "BiRNN GRU GRUCell LSTM LSTMCell RNN RNNCellBase SimpleRNN SimpleRNNCell",
            ".transformer": "MultiHeadAttention Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
        },
        {
        },
    ),
    "fluidlite.paddle.tensor": (
        {
            ".creation": "arange assign create_parameter diag empty empty_like eye full full_like linspace meshgrid ones ones_like to_tensor tril triu zeros zeros_like",
            ".linalg": "addmm bincount bmm cholesky cross diagonal dist dot einsum histogram inner inverse kron matmul mm mv norm outer trace",
            ".logic": "allclose equal equal_all greater_equal greater_than is_empty is_tensor isclose less_equal less_than logical_and logical_not logical_or logical_xor not_equal",
            ".manipulation": "broadcast_shape broadcast_to cast chunk concat crop expand expand_as flatten flip gather gather_nd moveaxis rank repeat_interleave reshape reshape_ reverse roll scatter scatter_nd scatter_nd_add shape slice split squeeze squeeze_ stack strided_slice t tile tolist transpose unbind unique unsqueeze unsqueeze_ unstack",
            ".math": "abs acos add add_n asin atan ceil clip cos cosh cumsum divide erf exp expm1 floor floor_divide floor_mod increment isfinite isinf isnan lerp log log10 log1p log2 maximum minimum mod multiplex multiply neg pow reciprocal remainder round rsqrt scale sigmoid sign sin sinh sqrt square stanh subtract tan tanh trunc",
            ".random": "bernoulli multinomial normal rand randint randint_like randn randperm seed standard_normal uniform",
            ".search": "argmax argmin argsort index_sample index_select masked_select nonzero sort topk where",
            ".stat": "all any count_nonzero logsumexp max mean median min numel prod std sum var",
        },
        {
        },
    ),
    "fluidlite.reader": (
        {
        },
        {
            ".collating": "default_collate_fn",
            ".dataset": "ChainDataset ComposeDataset ConcatDataset Dataset IterableDataset Subset TensorDataset random_split",
            ".decorators": "ComposeNotAligned batch cache chain compose firstn map_readers np_array recordio shuffle text_file",
            ".feeder": "DataFeeder",
            ".loader.dataset": "DataLoader",
            ".loader.epoch": "LoaderError State",
            ".loader.from_generator": "KEEP_DATA_LOADER_ORDER QUEUE_GET_TIMEOUT DataLoaderBase DygraphGeneratorLoader GeneratorLoader data_loader_unique_name_generator keep_data_loader_order multiprocess_queue_set _cleanup",
            ".loader.of_files": "DatasetLoader",
            ".loader.py_reader": "PyReader",
            ".loader.stats": "leaks",
            ".processes": "multiprocess_reader",
            ".samplers": "BatchSampler DistributedBatchSampler FluidBatchSampler RandomSampler Sampler SequenceSampler WeightedRandomSampler",
            ".threaded": "buffered xmap_readers",
            ".worker.batches": "get_worker_info",
        },
    ),
}
