import os
import tempfile

import numpy
import paddle
import paddle.dataset.mnist
import paddle.fluid as fluid

xrange = range

# The blocks of the guide begin here; the guide leaves the names above to the reader.

def reader_creator_random_image(width, height):
    def reader():
        while True:
            yield numpy.random.uniform(-1, 1, size=width*height)
    return reader

def reader_creator_random_image_and_label(width, height, label):
    def reader():
        while True:
            yield numpy.random.uniform(-1, 1, size=width*height), label
    return reader

mnist_train = paddle.dataset.mnist.train()
mnist_train_batch_reader = paddle.batch(mnist_train, 128)

def custom_batch_reader():
    while True:
        batch = []
        for i in xrange(128):
            batch.append((numpy.random.uniform(-1, 1, 28*28),)) # note that it's a tuple being appended.
        yield batch

mnist_random_image_batch_reader = custom_batch_reader

buffered_reader = paddle.reader.buffered(paddle.dataset.mnist.train(), 100)

reader = paddle.reader.shuffle(paddle.dataset.mnist.train(), 512)

def image_reader_creator(image_path, label_path, n):
    def reader():
        f = open(image_path)
        l = open(label_path)
        images = numpy.fromfile(
            f, 'ubyte', count=n * 28 * 28).reshape((n, 28 * 28)).astype('float32')
        images = images / 255.0 * 2.0 - 1.0
        labels = numpy.fromfile(l, 'ubyte', count=n).astype("int")
        for i in xrange(n):
            yield images[i, :], labels[i] # a single entry of data is created each time
        f.close()
        l.close()
    return reader

def train(batch_reader, mapping, batch_size, total_pass):
    for pass_idx in range(total_pass):
        for mini_batch in batch_reader(): # this loop will never end in online learning.
            do_forward_backward(mini_batch, mapping)

# The blocks of the guide end here.

def first(reader):
    iterator = iter(reader())
    item = next(iterator)
    iterator.close()
    return item

assert first(reader_creator_random_image(20, 20)).shape == (400,)
assert first(reader_creator_random_image_and_label(20, 20, 7))[1] == 7
batch = first(mnist_train_batch_reader)
assert len(batch) == 128 and batch[0][0].shape == (784,)
assert len(first(mnist_random_image_batch_reader)) == 128
assert first(buffered_reader)[0].shape == (784,)
assert len(list(reader())) == len(list(mnist_train()))
true_reader = lambda: iter([True] * 3)
composed = paddle.reader.compose(paddle.dataset.mnist.train(), true_reader, check_alignment=False)
assert [len(item) for item in composed()] == [3, 3, 3]

with tempfile.TemporaryDirectory() as folder:
    paths = [os.path.join(folder, name) for name in ("images", "labels")]
    numpy.arange(5 * 28 * 28, dtype='uint8').tofile(paths[0])
    numpy.arange(5, dtype='uint8').tofile(paths[1])
    seen = []
    def do_forward_backward(mini_batch, mapping):
        seen.append([sample[mapping["label"]] for sample in mini_batch])
    train(paddle.batch(image_reader_creator(*paths, 5), 2), {"image": 0, "label": 1}, 2, 2)
    assert seen == [[0, 1], [2, 3], [4]] * 2

# Batches that the guide calls valid, and the one that it calls wrong.
columns = [fluid.data(name, [None, 1], 'int64') for name in 'abc']
row = fluid.data('row', [None, 3], 'int64')
fed = fluid.DataFeeder(columns, fluid.CPUPlace()).feed([(1, 1, 1), (2, 2, 2), (3, 3, 3)])
assert [numpy.array(fed[name]).tolist() for name in 'abc'] == [[[1], [2], [3]]] * 3
feeder = fluid.DataFeeder([row], fluid.CPUPlace())
assert numpy.array(feeder.feed([([1, 1, 1],), ([2, 2, 2],), ([3, 3, 3],)])['row']).shape == (3, 3)
try:
    feeder.feed([[1, 1, 1], [2, 2, 2], [3, 3, 3]])
except AssertionError as error:
    assert 'write it as a tuple' in str(error)
else:
    raise SystemExit('a sample of three numbers was taken for a variable of three')
