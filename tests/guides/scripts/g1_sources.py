import paddle.fluid as fluid
import numpy as np

# Declare sample reader.
def fake_sample_reader():
    for _ in range(100):
        sample_image = np.random.random(size=(784, )).astype('float32')
        sample_label = np.random.random_integers(size=(1, ), low=0, high=9).astype('int64')
        yield sample_image, sample_label


# Declare batch reader.
def fake_batch_reader():
    batch_size = 32
    for _ in range(100):
        batch_image = np.random.random(size=(batch_size, 784)).astype('float32')
        batch_label = np.random.random_integers(size=(batch_size, 1), low=0, high=9).astype('int64')
        yield batch_image, batch_label

image1 = fluid.data(name='image1', dtype='float32', shape=[None, 784])
label1 = fluid.data(name='label1', dtype='int64', shape=[None, 1])

image2 = fluid.data(name='image2', dtype='float32', shape=[None, 784])
label2 = fluid.data(name='label2', dtype='int64', shape=[None, 1])

image3 = fluid.data(name='image3', dtype='float32', shape=[None, 784])
label3 = fluid.data(name='label3', dtype='int64', shape=[None, 1])

import paddle
import paddle.fluid as fluid

ITERABLE = True
USE_CUDA = True
USE_DATA_PARALLEL = True

if ITERABLE:
    # If DataLoader is iterable, places should be set.
    if USE_DATA_PARALLEL:
        # Use all GPU cards or 8 CPU cores to train.
        places = fluid.cuda_places() if USE_CUDA else fluid.cpu_places(8)
    else:
        # Use single GPU card or CPU core.
        places = fluid.cuda_places(0) if USE_CUDA else fluid.cpu_places(1)
else:
    # If DataLoader is not iterable, places shouldn't be set.
    places = None

# Use sample reader to configure data source of DataLoader.
data_loader1 = fluid.io.DataLoader.from_generator(feed_list=[image1, label1], capacity=10, iterable=ITERABLE)
data_loader1.set_sample_generator(fake_sample_reader, batch_size=32, places=places)

# Use sample reader + fluid.io.batch to configure data source of DataLoader.
data_loader2 = fluid.io.DataLoader.from_generator(feed_list=[image2, label2], capacity=10, iterable=ITERABLE)
sample_list_reader = fluid.io.batch(fake_sample_reader, batch_size=32)
sample_list_reader = fluid.io.shuffle(sample_list_reader, buf_size=64) # Shuffle data if needed.
data_loader2.set_sample_list_generator(sample_list_reader, places=places)

# Use batch to configure data source of DataLoader.
data_loader3 = fluid.io.DataLoader.from_generator(feed_list=[image3, label3], capacity=10, iterable=ITERABLE)
data_loader3.set_batch_generator(fake_batch_reader, places=places)

for ld in (data_loader1, data_loader2, data_loader3):
    print(sum(1 for _ in ld()))
