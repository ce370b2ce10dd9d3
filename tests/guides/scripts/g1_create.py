import paddle.fluid as fluid

image = fluid.data(name='image', dtype='float32', shape=[None, 784])
label = fluid.data(name='label', dtype='int64', shape=[None, 1])

ITERABLE = True

data_loader = fluid.io.DataLoader.from_generator(
    feed_list=[image, label], capacity=64, use_double_buffer=True, iterable=ITERABLE)
