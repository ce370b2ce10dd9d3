"""Loading of, and training from, slot files. usage: from_files_fluid.py FOLDER"""

import os
import sys
import time

import paddle.fluid as fluid
from timing import result

layers = fluid.layers
FOLDER = os.path.abspath(sys.argv[1])
FILES = sorted(os.path.join(FOLDER, name) for name in os.listdir(FOLDER) if name.startswith("part"))
os.chdir(FOLDER)  # Paddle leaves files where it runs
IDS = 100000


def build(width, hidden):
    reals = fluid.data("reals", [None, 13], "float32")
    ids = [fluid.data("id%d" % k, [None, 1], "int64", lod_level=1) for k in range(26)]
    label = fluid.data("label", [None, 1], "int64")
    table = fluid.ParamAttr("table")
    looked = [
        layers.sequence_pool(layers.embedding(each, [IDS, width], is_sparse=True, param_attr=table), "sum")
        for each in ids
    ]
    last = layers.concat([*looked, reals], axis=1)
    for size in hidden:
        last = layers.fc(last, size, act="relu")
    loss = layers.mean(layers.cross_entropy(layers.fc(last, 2, act="softmax"), label))
    fluid.optimizer.SGD(0.01).minimize(loss)
    return [reals, *ids, label]


def made(kind, variables, threads):
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_use_var(variables)
    dataset.set_batch_size(1000)
    dataset.set_thread(threads)
    dataset.set_filelist(FILES)
    return dataset


def timed(work):
    began = time.time()
    work()
    return time.time() - began


metrics = {}
for name, width, hidden, kinds in (
    ("logistic regression", 1, (), ("QueueDataset",)),
    ("deep model", 10, (64, 64), ("QueueDataset", "InMemoryDataset")),
):
    for threads in (1, 2):
        for kind in kinds:
            main, startup = fluid.Program(), fluid.Program()
            with fluid.program_guard(main, startup), fluid.unique_name.guard():
                variables = build(width, hidden)
            with fluid.scope_guard(fluid.Scope()):
                exe = fluid.Executor(fluid.CPUPlace())
                exe.run(startup)
                dataset = made(kind, variables, threads)
                end = ", %d thread(s)" % threads
                if kind == "InMemoryDataset":
                    # Paddle reads files only once for each data set.
                    fresh = [made(kind, variables, threads) for _ in range(4)]
                    metrics["load" + end] = [timed(each.load_into_memory) for each in (*fresh, dataset)]
                    del fresh
                    end = " in memory" + end
                elif hidden:
                    end = " from files" + end

                def train(exe=exe, main=main, dataset=dataset):
                    exe.train_from_dataset(main, dataset)

                train()
                metrics[name + end] = [timed(train) for _ in range(3)]
result(metrics)
