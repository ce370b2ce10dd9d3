"""Clicks from slot files: a data set in memory, shuffled and trained by threads, then served by a predictor.

    python -m fluidlite examples/ctr_from_files.py [LINES]

Follows Fluid's DatasetFactory, train_from_dataset and create_paddle_predictor; runs on Paddle 1.8.5 as well.
"""

import os
import sys
import tempfile

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.core import AnalysisConfig, PaddleTensor, create_paddle_predictor

LINES = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
WORDS = 500
layers = fluid.layers
rng = np.random.RandomState(0)
likes = rng.uniform(-1, 1, WORDS)  # what each word adds to the odds of a click


def write(path, lines):
    """Write lines of slots: a few words, two numbers, a label."""
    with open(path, "w") as file:
        for _ in range(lines):
            words, numbers = rng.randint(0, WORDS, rng.randint(1, 6)), rng.uniform(-1, 1, 2)
            click = int(likes[words].sum() + numbers[0] > 0)
            file.write(
                f"{len(words)} {' '.join(map(str, words))} 2 {numbers[0]:.4f} {numbers[1]:.4f} 1 {click}\n"
            )


holder = tempfile.TemporaryDirectory()
folder = holder.name
files = [os.path.join(folder, f"part-{number}") for number in range(2)]
for path in files:
    write(path, LINES // 2)

words = fluid.data("words", [None, 1], "int64", lod_level=1)
numbers = fluid.data("numbers", [None, 2], "float32")
click = fluid.data("click", [None, 1], "int64")
pooled = layers.sequence_pool(layers.embedding(words, [WORDS, 8], is_sparse=True), "sum")
odds = layers.fc(layers.fc([pooled, numbers], 16, act="tanh"), 2, act="softmax")
loss = layers.mean(layers.cross_entropy(odds, click))
fluid.optimizer.Adam(0.01).minimize(loss)

dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
dataset.set_use_var([words, numbers, click])
dataset.set_batch_size(50)
dataset.set_thread(2)
dataset.set_filelist(files)
dataset.load_into_memory()
print(f"{dataset.get_memory_data_size()} samples in memory")
dataset.local_shuffle()

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
for _ in range(8):
    exe.train_from_dataset(fluid.default_main_program(), dataset)

model = os.path.join(folder, "model")
fluid.io.save_inference_model(model, ["words", "numbers"], [odds], exe)
config = AnalysisConfig(model)
config.disable_glog_info()
predictor = create_paddle_predictor(config)
lengths = rng.randint(1, 6, 200)
ids, reals = rng.randint(0, WORDS, (lengths.sum(), 1)), rng.uniform(-1, 1, (200, 2)).astype("float32")
offsets = [0] + np.cumsum(lengths).tolist()
(found,) = predictor.run([PaddleTensor(ids, "words", [offsets]), PaddleTensor(reals, "numbers")])
sums = np.add.reduceat(likes[ids.ravel()], offsets[:-1]) + reals[:, 0]
accuracy = np.mean(found.as_ndarray().argmax(1) == (sums > 0))
print(f"accuracy on new samples {accuracy:.3f}")
holder.cleanup()
