# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.slim.core.config import (
    ConfigFactory as ConfigFactory,
    PLUGINS as PLUGINS,
    Strategy as Strategy,
)
from fluidlite.contrib.slim.distillation import (
    DistillationStrategy as DistillationStrategy,
    FSPDistiller as FSPDistiller,
    L2Distiller as L2Distiller,
    SoftLabelDistiller as SoftLabelDistiller,
)
from fluidlite.contrib.slim.nas.controller_server import (
    ControllerServer as ControllerServer,
    SearchAgent as SearchAgent,
    SearchSpace as SearchSpace,
)
from fluidlite.contrib.slim.nas.light_nas_strategy import (
    LightNASStrategy as LightNASStrategy,
)
from fluidlite.contrib.slim.prune.auto_prune_strategy import (
    AutoPruneStrategy as AutoPruneStrategy,
)
from fluidlite.contrib.slim.prune.prune_strategy import (
    PruneStrategy as PruneStrategy,
    SensitivePruneStrategy as SensitivePruneStrategy,
    UniformPruneStrategy as UniformPruneStrategy,
)
from fluidlite.contrib.slim.prune.pruner import (
    Pruner as Pruner,
    StructurePruner as StructurePruner,
)
from fluidlite.contrib.slim.quantization.freezing import (
    AddQuantDequantPass as AddQuantDequantPass,
    ConvertToInt8Pass as ConvertToInt8Pass,
    OutScaleForInferencePass as OutScaleForInferencePass,
    OutScaleForTrainingPass as OutScaleForTrainingPass,
    QuantizationFreezePass as QuantizationFreezePass,
    TransformForMobilePass as TransformForMobilePass,
)
from fluidlite.contrib.slim.quantization.post_training_quantization import (
    PostTrainingQuantization as PostTrainingQuantization,
)
from fluidlite.contrib.slim.quantization.quantization_strategy import (
    QuantizationStrategy as QuantizationStrategy,
)
from fluidlite.contrib.slim.quantization.transform import (
    QuantizationTransformPass as QuantizationTransformPass,
)
from fluidlite.contrib.slim.quantization.weight_quantization import (
    WeightQuantization as WeightQuantization,
)
from fluidlite.contrib.slim.searcher import (
    EvolutionaryController as EvolutionaryController,
    SAController as SAController,
)
