import numpy
import paddle
import paddle.dataset.mnist

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
