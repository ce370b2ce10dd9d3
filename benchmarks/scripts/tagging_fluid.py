"""Training steps of a tagger and of labels without places. usage: tagging_fluid.py STEPS"""

import sys

import numpy as np
import paddle.fluid as fluid
import tagging_data as data
from timing import each, result

layers = fluid.layers
place = fluid.CPUPlace()


def tagger():
    words, tags = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("words", "tags"))
    emission = layers.fc(layers.embedding(words, [data.VOCABULARY, data.EMBEDDING]), data.TAGS)
    return layers.mean(layers.linear_chain_crf(emission, tags))


def ctc():
    frames = fluid.data("frames", [None, data.WIDTH], "float32", lod_level=1)
    label = fluid.data("label", [None, 1], "int32", lod_level=1)
    return layers.mean(layers.warpctc(layers.fc(frames, data.CLASSES), label))


def tagged(random, count):
    return [
        {
            "words": fluid.create_lod_tensor(words, [list(lengths)], place),
            "tags": fluid.create_lod_tensor(tags, [list(lengths)], place),
        }
        for lengths, words, tags in data.sentences(random, count)
    ]


def labelled(random, count):
    return [
        {
            "frames": fluid.create_lod_tensor(frames, [[data.FRAMES] * data.BATCH], place),
            "label": fluid.create_lod_tensor(label, [[data.LABELS] * data.BATCH], place),
        }
        for frames, label in data.frames(random, count)
    ]


count = int(sys.argv[1])
warm = min(data.MOST_WARM, count)
metrics = {}
for name, build, feeds in (("linear_chain_crf", tagger, tagged), ("warpctc", ctc, labelled)):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = build()
        fluid.optimizer.Adam(0.001).minimize(loss)
    exe = fluid.Executor(place)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fed = feeds(np.random.RandomState(0), warm + count)
        metrics[name] = each(lambda feed: exe.run(main, feed=feed, fetch_list=[loss]), fed, warm)
result(metrics)
