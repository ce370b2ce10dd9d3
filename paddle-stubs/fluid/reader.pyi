# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.base.place import (
    cpu_places as cpu_places,
)
from fluidlite.base.unique_name import (
    UniqueNameGenerator as UniqueNameGenerator,
)
from fluidlite.executor.scope import (
    global_scope as global_scope,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.layers.io import (
    double_buffer as double_buffer,
    monkey_patch_reader_methods as monkey_patch_reader_methods,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.program import (
    Program as Program,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    program_guard as program_guard,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.reader import (
    BatchSampler as BatchSampler,
    ChainDataset as ChainDataset,
    ComposeDataset as ComposeDataset,
    ComposeNotAligned as ComposeNotAligned,
    ConcatDataset as ConcatDataset,
    DataFeeder as DataFeeder,
    DataLoader as DataLoader,
    DataLoaderBase as DataLoaderBase,
    Dataset as Dataset,
    DatasetLoader as DatasetLoader,
    DistributedBatchSampler as DistributedBatchSampler,
    DygraphGeneratorLoader as DygraphGeneratorLoader,
    FluidBatchSampler as FluidBatchSampler,
    GeneratorLoader as GeneratorLoader,
    IterableDataset as IterableDataset,
    KEEP_DATA_LOADER_ORDER as KEEP_DATA_LOADER_ORDER,
    LoaderError as LoaderError,
    PyReader as PyReader,
    QUEUE_GET_TIMEOUT as QUEUE_GET_TIMEOUT,
    RandomSampler as RandomSampler,
    Sampler as Sampler,
    SequenceSampler as SequenceSampler,
    State as State,
    Subset as Subset,
    TensorDataset as TensorDataset,
    WeightedRandomSampler as WeightedRandomSampler,
    batch as batch,
    buffered as buffered,
    cache as cache,
    chain as chain,
    compose as compose,
    data_loader_unique_name_generator as data_loader_unique_name_generator,
    default_collate_fn as default_collate_fn,
    firstn as firstn,
    get_worker_info as get_worker_info,
    keep_data_loader_order as keep_data_loader_order,
    leaks as leaks,
    map_readers as map_readers,
    multiprocess_queue_set as multiprocess_queue_set,
    multiprocess_reader as multiprocess_reader,
    np_array as np_array,
    random_split as random_split,
    recordio as recordio,
    shuffle as shuffle,
    text_file as text_file,
    xmap_readers as xmap_readers,
)
from fluidlite.reader.feeder import (
    BatchedTensorProvider as BatchedTensorProvider,
)
from fluidlite.reader.slots.datasets import (
    DatasetBase as DatasetBase,
    InMemoryDataset as InMemoryDataset,
)
from fluidlite.reader.watchdog import (
    CleanupFuncRegistrar as CleanupFuncRegistrar,
)
