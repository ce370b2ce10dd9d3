# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.slim.core import (
    ConfigFactory as ConfigFactory,
    PLUGINS as PLUGINS,
    Strategy as Strategy,
)
from fluidlite.fluid.contrib.slim.distillation import (
    DistillationStrategy as DistillationStrategy,
    FSPDistiller as FSPDistiller,
    L2Distiller as L2Distiller,
    SoftLabelDistiller as SoftLabelDistiller,
)
from fluidlite.fluid.contrib.slim.nas import (
    ControllerServer as ControllerServer,
    LightNASStrategy as LightNASStrategy,
    SearchAgent as SearchAgent,
    SearchSpace as SearchSpace,
)
from fluidlite.fluid.contrib.slim.prune import (
    AutoPruneStrategy as AutoPruneStrategy,
)
from fluidlite.fluid.contrib.slim.prune.prune_strategy import (
    PruneStrategy as PruneStrategy,
    SensitivePruneStrategy as SensitivePruneStrategy,
    UniformPruneStrategy as UniformPruneStrategy,
)
from fluidlite.fluid.contrib.slim.prune.pruner import (
    Pruner as Pruner,
    StructurePruner as StructurePruner,
)
from fluidlite.fluid.contrib.slim.quantization import (
    QuantizationStrategy as QuantizationStrategy,
)
from fluidlite.fluid.contrib.slim.quantization.freezing import (
    AddQuantDequantPass as AddQuantDequantPass,
    ConvertToInt8Pass as ConvertToInt8Pass,
    OutScaleForInferencePass as OutScaleForInferencePass,
    OutScaleForTrainingPass as OutScaleForTrainingPass,
    QuantizationFreezePass as QuantizationFreezePass,
    TransformForMobilePass as TransformForMobilePass,
)
from fluidlite.fluid.contrib.slim.quantization.post_training_quantization import (
    PostTrainingQuantization as PostTrainingQuantization,
    WeightQuantization as WeightQuantization,
)
from fluidlite.fluid.contrib.slim.quantization.transform import (
    QuantizationTransformPass as QuantizationTransformPass,
)
from fluidlite.fluid.contrib.slim.searcher import (
    EvolutionaryController as EvolutionaryController,
    SAController as SAController,
)
